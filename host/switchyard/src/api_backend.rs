//! State shared by all API operations; status, queues, links and metrics; traces and explanations of messages.

use crate::archiving::ArchiveReader;
use crate::backup::Backups;
use crate::config_manager::{ConfigManager, TunableSettings};
use crate::core_handle::{CoreHandle, SIZE_BOUNDS, TIME_BOUNDS};
use crate::drain::DrainInfo;
use crate::error_causes::ErrorCauses;
use crate::leading_node;
use crate::logging::LogControl;
use crate::pools::PoolService;
use crate::replays::Replays;
use crate::routing::ApplianceRouting;
use crate::testing::PeerTests;
use admin::metrics::{self, MetricsPage};
use admin::{AttentionLimits, Problem, ProblemKind};
use arc_swap::ArcSwap;
use engine::{BlockedBy, Engine, PacedBy};
use hooks::Decision;
use links::{BindMode, Links};
use model::{
    Address, Directory, DlrRequest, FinalState, Message, MessageId, Moment, Now, NumberDisplay, PeerId,
    Priority, Refusal, RoutingDecision, Timestamp, Verdict,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{Store, StoredMessage};

/// Everything that the admin API can access.
pub(crate) struct Switchyard {
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) ready: AtomicBool,
    pub(crate) stopping: AtomicBool,
    /// The drain in progress, if any.
    pub(crate) draining: Mutex<Option<DrainInfo>>,
    pub(crate) logging: Arc<LogControl>,
    pub(crate) backups: Backups,
    pub(crate) peer_tests: PeerTests,
    /// The operator of the appliance image, if the daemon runs on it.
    pub(crate) operate_client: Option<admin::OperateClient>,
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    /// Users, tokens and the audit log.
    pub(crate) access: Arc<access::Access>,
    pub(crate) links: Arc<Links>,
    pub(crate) routing: Arc<ApplianceRouting>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) causes: ErrorCauses,
    pub(crate) recovered: u64,
    pub(crate) recovery_ms: u64,
    pub(crate) business: Arc<business::Business>,
    /// Connections of the admin listener.
    pub(crate) http_connections: Arc<ports::ConnectionCounts>,
    /// Connections of the business listener.
    pub(crate) business_connections: Arc<ports::ConnectionCounts>,
    pub(crate) networks: Vec<Arc<gsm::GsmNetwork>>,
    /// Set once the local socket is open.
    pub(crate) shell: OnceLock<Arc<shell::ShellServer>>,
    pub(crate) history: Option<ArchiveReader>,
    pub(crate) pump: Mutex<Option<archive::RunningPump>>,
    pub(crate) event_sinks: Option<events::EventSinks>,
    pub(crate) tables: Arc<capabilities::TableStore>,
    /// Durable counters of plugins.
    pub(crate) counters: Arc<capabilities::DurableCounters>,
    pub(crate) replays: Replays,
    pub(crate) pools: Arc<PoolService>,
    /// The listener for Redis clients.
    pub(crate) redis: Option<Arc<::pools::RedisServer>>,
    /// The active configuration and its versions.
    pub(crate) config_manager: Arc<ConfigManager>,
    /// Settings that can change while the daemon runs.
    pub(crate) tuning: Arc<TunableSettings>,
    /// Serializes reports of bindings to the engine.
    pub(crate) binding: Mutex<()>,
    /// The reads of plugin sources.
    pub(crate) source_readers: crate::source_readers::SourceReaders,
    /// Publishes peers and pools to plugins.
    pub(crate) peer_snapshots: Arc<crate::peer_snapshots::PeerSnapshotPublisher>,
    /// What was observed of peers.
    pub(crate) quality: Arc<capabilities::PeerQuality>,
    pub(crate) traffic: Arc<crate::traffic_flows::TrafficFlows>,
    pub(crate) peer_observer: crate::peer_observer::PeerObserver,
    pub(crate) conversions: crate::conversion_log::ConversionLog,
    /// This node, if it leads a cluster.
    pub(crate) cluster: Option<Arc<crate::leading_node::LeadingNode>>,
}

impl admin::ApplianceImage for Switchyard {
    fn operate_client(&self) -> Option<admin::OperateClient> {
        self.operate_client.clone()
    }
}

pub(crate) fn shutting_down_problem() -> Problem {
    Problem::new(ProblemKind::Unavailable, "the appliance is shutting down")
}

/// Describes why a queue does not move; engine times are converted to wall-clock time.
pub(crate) fn describe_blocked_by(blocked_by: BlockedBy, now: Now) -> String {
    match blocked_by {
        BlockedBy::Idle => "idle".to_owned(),
        BlockedBy::Window => "peer window: the windows of all links are full".to_owned(),
        BlockedBy::NoLink => "no link is up".to_owned(),
        BlockedBy::Rate { until } => format!("rate limit, until {}", now.wall_of(until).0),
        BlockedBy::Throttled { until, rate } => {
            format!("throttled by the peer: learnt rate {rate:.1}/s{}", describe_next(until, now))
        }
        BlockedBy::SlowStart { until, rate } => {
            format!("throttled by the peer: slow start at {rate:.1}/s{}", describe_next(until, now))
        }
        BlockedBy::PolicyPause { until } => {
            format!("paused by the delivery policy, until {}", now.wall_of(until).0)
        }
        BlockedBy::Loading => "messages are being read from disk".to_owned(),
        BlockedBy::SubscriberLocked => {
            "all queued messages wait for others to the same subscribers".to_owned()
        }
        BlockedBy::NotConfigured => "the peer is not in the configuration".to_owned(),
        BlockedBy::Shutdown => "shutting down".to_owned(),
        BlockedBy::Suspended { queue_action } => format!("suspended by queue action {queue_action}"),
        BlockedBy::Paced => "all queued messages wait for pace buckets or send windows".to_owned(),
        BlockedBy::QueueAction => "all queued messages are suspended by queue actions".to_owned(),
        BlockedBy::RerouteTargetFull => "messages are rerouted to a peer whose queue is full".to_owned(),
    }
}

/// The pace bucket or the send window that messages wait for, as the end of a sentence.
pub(crate) fn describe_pace(by: &PacedBy, now: Now) -> String {
    let kind = if by.is_window { "send window" } else { "pace bucket" };
    let until = by.until.map_or(String::new(), |until| format!(", until {}", now.wall_of(until).0));
    format!(" for {kind} {}{until}", by.name)
}

/// Describes when the next message leaves, if that takes at least a second.
fn describe_next(until: Moment, now: Now) -> String {
    if until - now.mono < Duration::from_secs(1) {
        return String::new();
    }
    format!(", next at {}", now.wall_of(until).0)
}

fn bind_mode(mode: BindMode) -> api::BindMode {
    match mode {
        BindMode::Receiver => api::BindMode::Receiver,
        BindMode::Transmitter => api::BindMode::Transmitter,
        BindMode::Transceiver => api::BindMode::Transceiver,
    }
}

impl Switchyard {
    pub(crate) fn name_of(&self, peer: PeerId) -> String {
        self.directory.load().name(peer).to_string()
    }

    /// A message as its account or peer would submit it now.
    pub(crate) fn hypothetical_message(&self, asked: &api::ExplainRequest) -> Result<Message, Problem> {
        let origin = self.directory.load().id(&asked.origin).ok_or_else(|| {
            Problem::new(ProblemKind::NotFound, format!("{:?} is not an account or peer", asked.origin))
        })?;
        let now = Timestamp::now();
        let address = |value: &str| {
            let digits = value.trim_start_matches('+');
            if digits.bytes().all(|c| c.is_ascii_digit()) {
                Address::new(1, 1, digits.as_bytes())
            } else {
                Address::new(5, 0, value.as_bytes())
            }
        };
        Ok(Message {
            id: MessageId(0),
            kind: model::MessageKind::Text,
            origin,
            source: address(&asked.source),
            destination: address(&asked.destination),
            service_type: bytes::Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            dlr_request: DlrRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: crate::testing::encode_hypothetical(&asked.text),
            tlvs: bytes::Bytes::new(),
            protocol_fields: bytes::Bytes::new(),
            accepted_at: now,
            scheduled: None,
            expires_at: Timestamp(now.0 + 86_400_000),
            routed: RoutingDecision::new(
                Verdict::Reject(model::RejectReason::NoRoute),
                Arc::new(model::PluginVersion { plugin: String::new(), version: String::new() }),
            ),
        })
    }

    pub(crate) fn parse_id(id: &str) -> Result<MessageId, Problem> {
        id.parse().map_err(|error: model::ParseMessageIdError| {
            Problem::new(ProblemKind::BadRequest, error.to_string())
        })
    }

    fn write_core_metrics(&self, page: &mut MetricsPage) {
        let Some((totals, peers, live, (cached, quarantine))) = self.core.query(|engine, _| {
            let sizes = (engine.cached(), engine.quarantine_length());
            (engine.totals().clone(), engine.peers(), engine.live(), sizes)
        }) else {
            return;
        };
        for (metric, value) in [
            (&metrics::ACCEPTED, totals.accepted),
            (&metrics::REFUSED, totals.refused),
            (&metrics::SUBMITTED, totals.submitted),
            (&metrics::ATTEMPTS_REFUSED, totals.attempts_refused),
            (&metrics::THROTTLED, totals.throttled),
            (&metrics::UNCERTAIN, totals.uncertain),
            (&metrics::SENT_AGAIN, totals.sent_again),
            (&metrics::DLRS_MATCHED, totals.dlrs_matched),
            (&metrics::DLRS_UNMATCHED, totals.dlrs_unmatched),
            (&metrics::DLRS_LATE, totals.late_dlrs),
            (&metrics::DLRS_REMAPPED, totals.dlrs_remapped),
            (&metrics::RECEIPT_NEXT_LEGS, totals.second_legs),
            (&metrics::DLRS_MADE, totals.dlrs_made),
            (&metrics::DLRS_DELIVERED, totals.dlrs_delivered),
            (&metrics::QUARANTINED, totals.quarantined),
            (&metrics::SCREEN_DROPS, totals.dropped_by_screens),
        ] {
            page.put(metric, &[], value as f64);
        }
        for state in FinalState::ALL {
            page.put(&metrics::ENDED, &[state.name()], totals.ended[state as usize] as f64);
        }
        for peer in &peers {
            let name = self.name_of(peer.peer);
            for (state, count) in [
                ("queued", peer.queued),
                ("suspended", peer.suspended),
                ("paced", peer.paced),
                ("deferred", peer.deferred),
                ("resolving", peer.resolving),
                ("in-flight", peer.in_flight),
                ("uncertain", peer.uncertain),
                ("awaiting-dlr", peer.awaiting_dlr),
            ] {
                page.put(&metrics::QUEUE, &[&name, state], count as f64);
            }
            page.put(&metrics::SUBSCRIBERS_BLOCKED, &[&name], peer.blocked_subscribers as f64);
            if let Some(rate) = peer.learnt_rate {
                page.put(&metrics::LEARNT_RATE, &[&name], rate);
            }
        }
        self.write_counts(page);
        self.write_queue_action_metrics(page);
        self.write_pace_metrics(page);
        self.write_event_metrics(page);
        page.put(&metrics::WAITING, &[], live as f64);
        page.put(&metrics::QUARANTINE, &[], quarantine as f64);
        page.put(&metrics::BODY_CACHE, &[], cached as f64);
    }
}

impl admin::Overview for Switchyard {
    fn status(&self) -> Result<api::StatusView, Problem> {
        let (live, totals) = self
            .core
            .query(|engine, _| (engine.live(), engine.totals().clone()))
            .ok_or_else(shutting_down_problem)?;
        let (_, kept) =
            self.store.counts().map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        let counts = &self.core.counts;
        let ended = |state: FinalState| totals.ended[state as usize];
        let totals = api::StatusTotals {
            accepted: totals.accepted,
            refused: totals.refused,
            submitted: totals.submitted,
            throttled: totals.throttled,
            uncertain: totals.uncertain,
            sent_again: totals.sent_again,
            dlrs_matched: totals.dlrs_matched,
            dlrs_unmatched: totals.dlrs_unmatched,
            dlrs_made: totals.dlrs_made,
            dlrs_delivered: totals.dlrs_delivered,
            commits: counts.commits.load(Relaxed),
            commit_us: counts.commit_us.load(Relaxed),
            commit_rows: counts.rows.load(Relaxed),
            delivered: ended(FinalState::Delivered),
            relayed: ended(FinalState::Relayed),
            failed: ended(FinalState::Failed),
            expired: ended(FinalState::Expired),
            cancelled: ended(FinalState::Cancelled),
            rejected: ended(FinalState::Rejected),
            unknown: ended(FinalState::Unknown),
        };
        Ok(api::StatusView {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            waiting: live as u64,
            finished_kept: kept,
            disk_free: counts.disk_free.load(Relaxed),
            disk_low: counts.disk_low.load(Relaxed),
            recovered: self.recovered,
            recovery_ms: self.recovery_ms,
            totals,
        })
    }

    fn queues(&self) -> Result<Vec<api::QueueView>, Problem> {
        let query = |engine: &engine::Engine, now| (engine.peers(), engine.queue_actions(), now);
        let (peers, orders, now) = self.core.query(query).ok_or_else(shutting_down_problem)?;
        let peer_roles = self.routing.peer_roles.load();
        let shown = peers.into_iter().map(|peer| api::QueueView {
            peer: self.name_of(peer.peer),
            configured: peer.configured,
            queued: peer.queued,
            deferred: peer.deferred,
            subscriber_locked: peer.subscriber_locked,
            suspended: peer.suspended,
            paced: peer.paced,
            blocked_subscribers: peer.blocked_subscribers,
            resolving: peer.resolving,
            in_flight: peer.in_flight,
            uncertain: peer.uncertain,
            awaiting_dlr: peer.awaiting_dlr,
            oldest: peer.oldest.map(|at| at.0),
            links: peer.links.len(),
            blocked_by: self.describe_queue_block(&peer, &orders, now),
            learnt_rate: peer.learnt_rate,
            block_cause: match peer.blocked_by {
                BlockedBy::Suspended { .. } => api::BlockCause::QueueAction,
                BlockedBy::Throttled { .. } | BlockedBy::SlowStart { .. } => api::BlockCause::Throttle,
                _ => api::BlockCause::Other,
            },
            is_account: peer_roles.is_account(peer.peer),
        });
        Ok(shown.collect())
    }

    fn links(&self) -> Vec<api::LinkView> {
        let kinds = |map: BTreeMap<&'static str, u64>| {
            map.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect::<BTreeMap<_, _>>()
        };
        let statuses = |map: BTreeMap<u32, u64>| {
            map.into_iter()
                .map(|(status, count)| match status {
                    u32::MAX => ("others".to_owned(), count),
                    status => (smpp::CommandStatus(status).to_string(), count),
                })
                .collect::<BTreeMap<_, _>>()
        };
        let shown = self.links.states().into_iter().map(|link| api::LinkView {
            id: link.link.map(|id| id.0),
            peer: link.name,
            role: link.role,
            phase: link.phase,
            remote: link.remote.map(|remote| remote.to_string()),
            bind: link.bind.map(bind_mode),
            tls: link.tls,
            window: link.window,
            in_flight: link.in_flight,
            unanswered_in: link.unanswered_in,
            round_trip_us: link.round_trip.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            blocked_by: link.blocked_by,
            received: kinds(link.inbound.requests),
            sent: kinds(link.outbound.requests),
            refused_by_us: statuses(link.outbound.errors),
            refused_by_peer: statuses(link.inbound.errors),
            since: link.since.0,
            down_since: link.down_since.map(|at| at.0),
            last_error: link.last_error,
            back_off_until: link.back_off_until.map(|at| at.0),
        });
        shown.collect()
    }

    fn business(&self) -> Vec<api::BusinessView> {
        self.business.states()
    }

    fn plugin_peers(&self) -> Vec<api::PluginPeerView> {
        let chain = self.routing.hooks.status(model::Hook::Peer).live.chain;
        let mut states = self.causes.plugin_peers.states();
        for state in &mut states {
            let binding = chain.iter().find(|binding| binding.peers.contains(&state.peer));
            state.plugin = binding.map(|binding| binding.plugin.clone());
            state.version = binding.map(|binding| binding.version.clone());
        }
        states
    }

    fn gsm(&self) -> Vec<api::CoreNetworkView> {
        self.networks.iter().map(|network| network.state()).collect()
    }

    fn metrics(&self) -> String {
        let mut page = MetricsPage::default();
        self.write_process_metrics(&mut page);
        self.write_core_metrics(&mut page);
        self.write_record_metrics(&mut page);
        self.write_gsm_metrics(&mut page);
        let mut links: BTreeMap<(String, &str, &str), u64> = BTreeMap::new();
        for link in admin::Overview::links(self) {
            *links.entry((link.peer, link.role.name(), link.phase.name())).or_default() += 1;
        }
        for ((peer, role, phase), count) in links {
            page.put(&metrics::LINKS, &[&peer, role, phase], count as f64);
        }
        let counts = &self.core.counts;
        let load = |buckets: &[std::sync::atomic::AtomicU64; 11]| -> Vec<u64> {
            buckets.iter().map(|bucket| bucket.load(Relaxed)).collect()
        };
        let seconds: Vec<f64> = TIME_BOUNDS.iter().map(|bound| *bound as f64 / 1e6).collect();
        let total = counts.commit_us.load(Relaxed) as f64 / 1e6;
        page.histogram(&metrics::COMMIT_SECONDS, &[], &seconds, &load(&counts.times), total);
        let sizes: Vec<f64> = SIZE_BOUNDS.iter().map(|bound| *bound as f64).collect();
        let rows = counts.rows.load(Relaxed) as f64;
        page.histogram(&metrics::COMMIT_ROWS, &[], &sizes, &load(&counts.sizes), rows);
        page.put(&metrics::COMMIT_BYTES, &[], counts.octets.load(Relaxed) as f64);
        page.put(&metrics::LOADS, &[], counts.loads.load(Relaxed) as f64);
        self.write_hook_metrics(&mut page);
        self.write_pool_metrics(&mut page);
        self.write_redis_metrics(&mut page);
        page.put(&metrics::DISK_FREE, &[], counts.disk_free.load(Relaxed) as f64);
        page.put(&metrics::DISK_LOW, &[], f64::from(u8::from(counts.disk_low.load(Relaxed))));
        page.put(&metrics::RECOVERY_SECONDS, &[], self.recovery_ms as f64 / 1e3);
        page.put(&metrics::RECOVERED, &[], self.recovered as f64);
        if let Some(node) = &self.cluster {
            leading_node::write_metrics(&node.view(), &mut page);
        }
        let listeners = self.links.listener_counts();
        page.put(&metrics::CONNECTIONS, &[], listeners.connections as f64);
        page.put(&metrics::TURNED_AWAY, &[], listeners.turned_away as f64);
        for (name, counts) in [("http", &self.http_connections), ("business", &self.business_connections)] {
            page.put(&metrics::HTTP_CONNECTIONS, &[name], counts.accepted.load(Relaxed) as f64);
            page.put(&metrics::HTTP_TURNED_AWAY, &[name], counts.turned_away() as f64);
        }
        page.put(&metrics::BINDS_REFUSED, &[], listeners.binds_refused as f64);
        page.finish()
    }
}

impl admin::MetricsSource for Switchyard {
    fn metrics_folder(&self) -> PathBuf {
        self.backups.data.join(crate::backup::METRICS_FOLDER)
    }
}

impl admin::Traces for Switchyard {
    fn message(&self, id: &str, body: bool, numbers: NumberDisplay) -> Result<api::TraceView, Problem> {
        let id = Self::parse_id(id)?;
        // Memory first, for the current state. The content is in the store in any case.
        let live = self
            .core
            .query(move |engine, now| engine.message(id).map(|status| (status, now)))
            .ok_or_else(shutting_down_problem)?;
        let found =
            self.store.find(id).map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        if body {
            tracing::info!(id = id.0, "message text read by admin");
        }
        match found {
            Some(StoredMessage::Waiting(message, progress)) => {
                Ok(self.waiting(&message, live, progress.as_ref(), (body, numbers)))
            }
            Some(StoredMessage::Finished(message, ended)) => {
                Ok(self.finished(&message, &ended, (body, numbers)))
            }
            None => self.archived_trace(id, (body, numbers)),
        }
    }

    fn explain(&self, asked: api::ExplainRequest) -> Result<api::ExplanationView, Problem> {
        let mut message = self.hypothetical_message(&asked)?;
        let mut steps = vec![format!("origin: {}", asked.origin)];
        let explanation = self.routing.explain(&mut message);
        for screen in explanation.screens {
            let by = format!("screen {} {}", screen.by.plugin, screen.by.version);
            steps.push(match screen.outcome {
                Ok(decision) => {
                    let note = decision.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
                    format!("{by}: {decision}{note}")
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        for asked in explanation.lookups {
            let by = format!("lookup {} {}", asked.by.plugin, asked.by.version);
            steps.push(match asked.outcome {
                Ok(answer) => {
                    let note = answer.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
                    format!("{by}: {answer}{note}")
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        if let Some(lookup) = message.routed.lookup.as_deref().filter(|lookup| lookup.cached) {
            steps.push(format!("lookup {} {}: {lookup} (cached)", lookup.by.plugin, lookup.by.version));
        }
        for considered in explanation.routers {
            let by = format!("router {} {}", considered.by.plugin, considered.by.version);
            steps.push(match considered.outcome {
                Ok(Decision { verdict: None, .. }) => format!("{by}: pass"),
                Ok(Decision { verdict: Some(verdict), sender, changes, note }) => {
                    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                    format!(
                        "{by}: {}{note}",
                        self.describe_routing(&verdict, sender.as_deref(), changes.as_deref())
                    )
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        let note = message.routed.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        steps.push(format!(
            "after the built-in rules: {}{note}",
            self.describe_routing(
                &message.routed.verdict,
                message.routed.sender.as_deref(),
                message.routed.changes.as_deref()
            )
        ));
        if let Some(quote) = &message.routed.quote {
            let by = format!("biller {} {}", quote.by.plugin, quote.by.version);
            let price = match &quote.charge {
                Some(charge) => {
                    format!("{} millionths from ledger account {}", charge.amount, charge.account)
                }
                None => "free".to_owned(),
            };
            let note = quote.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
            steps.push(format!("{by}: {price}{note}"));
        }
        let routed = message.routed.clone();
        let query = move |engine: &Engine, now| (engine.would_accept(now, &message), engine.peers(), now);
        let (accepted, peers, now) = self.core.query(query).ok_or_else(shutting_down_problem)?;
        if let Verdict::Forward(legs) = &routed.verdict {
            for leg in legs {
                let name = self.name_of(leg.peer);
                steps.push(match peers.iter().find(|peer| peer.peer == leg.peer && peer.configured) {
                    Some(peer) => {
                        let (blocked_by, links) =
                            (describe_blocked_by(peer.blocked_by, now), peer.links.len());
                        format!("leg {name}: {} queued, {links} links; {blocked_by}", peer.queued)
                    }
                    None => format!("leg {name}: skipped, the peer is not in the configuration"),
                });
            }
        }
        let mut answer = match accepted {
            Ok(()) => "accepted".to_owned(),
            Err(Refusal::Rejected(reason)) => format!("refused: {reason}"),
            Err(refusal) => format!("refused: {refusal}"),
        };
        if self.core.counts.disk_low.load(Relaxed) {
            steps.push("the disk is nearly full".to_owned());
            answer = "refused: queue full".to_owned();
        }
        if let Some(draining) = &*self.draining.lock() {
            steps.push(format!("the appliance is drained by {}", draining.by));
            answer = "refused: queue full".to_owned();
        }
        Ok(api::ExplanationView { steps, answer })
    }
}

impl admin::AttentionSource for Switchyard {
    fn attention_limits(&self) -> AttentionLimits {
        self.tuning.attention()
    }
}
