//! The appliance as the admin's API sees it.

use crate::archiving::History;
use crate::backup::Backups;
use crate::causes::Causes;
use crate::configuring::{Configuring, Tuning};
use crate::core_loop::{CoreHandle, SIZE_BOUNDS, TIME_BOUNDS, wall};
use crate::drain::Draining;
use crate::logging::Logging;
use crate::pools::PoolDesk;
use crate::replays::Replays;
use crate::routing::HouseRouting;
use crate::testing::Trials;
use crate::traces::verdict_words;
use admin::metrics::{self, Page};
use admin::{Appliance, AttentionLimits, Export, Kind, Problem, view};
use arc_swap::ArcSwap;
use engine::{Brake, Engine};
use hooks::Decision;
use links::{LinkBrake, LinkRole, Links};
use model::{
    Address, Directory, FinalState, Message, MessageId, Moment, Now, PeerId, Priority, ReceiptRequest,
    Refusal, Routed, Text, Timestamp, Verdict,
};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{Found, Store};

/// Everything that the API can ask.
pub(crate) struct Switchyard {
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) ready: AtomicBool,
    pub(crate) stopping: AtomicBool,
    /// Who has it drained, where somebody has.
    pub(crate) draining: Mutex<Option<Draining>>,
    pub(crate) logging: Arc<Logging>,
    pub(crate) backups: Backups,
    pub(crate) trials: Trials,
    /// Who changes the machine, where it is the appliance image.
    pub(crate) operator: Option<admin::Operator>,
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    /// Users, tokens, the audit log.
    pub(crate) access: Arc<access::Access>,
    pub(crate) links: Arc<Links>,
    pub(crate) routing: Arc<HouseRouting>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) causes: Causes,
    pub(crate) recovered: u64,
    pub(crate) recovery_ms: u64,
    pub(crate) business: Arc<business::Business>,
    /// Connections to the admin's listener.
    pub(crate) http_connections: Arc<doors::ConnectionCounts>,
    /// Connections to the business systems' listener.
    pub(crate) business_connections: Arc<doors::ConnectionCounts>,
    pub(crate) networks: Vec<Arc<gsm::Network>>,
    /// Opened last.
    pub(crate) shell: OnceLock<Arc<shell::Shell>>,
    pub(crate) history: Option<History>,
    pub(crate) pump: Mutex<Option<archive::RunningPump>>,
    pub(crate) shelf: Arc<capabilities::Shelf>,
    /// Durable counters of plugins.
    pub(crate) counters: Arc<capabilities::DurableCounters>,
    pub(crate) replays: Replays,
    pub(crate) pools: Arc<PoolDesk>,
    /// The door of Redis clients.
    pub(crate) redis: Option<Arc<::pools::Door>>,
    /// What is configured, and how that is changed.
    pub(crate) configuring: Arc<Configuring>,
    /// Settings that may change while it runs.
    pub(crate) tuning: Arc<Tuning>,
    /// Taken while the engine is told who is bound.
    pub(crate) binding: Mutex<()>,
    /// What plugins see of peers and pools.
    pub(crate) boards: Arc<crate::boards::Boards>,
}

impl admin::Machine for Switchyard {
    fn operator(&self) -> Option<admin::Operator> {
        self.operator.clone()
    }
}

pub(crate) fn gone() -> Problem {
    Problem::new(Kind::Unavailable, "the appliance is shutting down")
}

/// A brake in words; moments of the engine's clock as wall-clock time.
pub(crate) fn brake_words(brake: Brake, now: Now) -> String {
    match brake {
        Brake::Idle => "idle".to_owned(),
        Brake::Window => "peer window: as many messages are unanswered as the peer's links allow".to_owned(),
        Brake::NoLink => "no link is up".to_owned(),
        Brake::Rate { until } => format!("our rate limit, until {}", now.wall_of(until).0),
        Brake::Throttled { until, rate } => {
            format!("the peer throttles us: learnt rate {rate:.1} a second{}", next_words(until, now))
        }
        Brake::SlowStart { until, rate } => {
            format!("the peer throttles us: slow start, {rate:.1} a second now{}", next_words(until, now))
        }
        Brake::Advised { until } => {
            format!("paused by the delivery policy, until {}", now.wall_of(until).0)
        }
        Brake::Loading => "messages are being read from disk".to_owned(),
        Brake::Subscribers => "all that waits is behind other messages to the same subscribers".to_owned(),
        Brake::NotConfigured => "the peer is not in the configuration".to_owned(),
        Brake::Draining => "shutting down".to_owned(),
        Brake::Suspended { order } => format!("suspended by order {order}"),
        Brake::Held => "what waits is held back by orders".to_owned(),
        Brake::Rebound => "messages go to another peer by an order, and it has no room now".to_owned(),
    }
}

/// When the next message leaves, where it is worth waiting for.
fn next_words(until: Moment, now: Now) -> String {
    if until - now.mono < Duration::from_secs(1) {
        return String::new();
    }
    format!(", next at {}", now.wall_of(until).0)
}

fn link_brake(brake: LinkBrake) -> &'static str {
    match brake {
        LinkBrake::None => "none",
        LinkBrake::PeerWindow => "peer-window",
        LinkBrake::PeerThrottles => "peer-throttles",
        LinkBrake::SlowReader => "slow-reader",
        LinkBrake::OurWindow => "our-window",
        LinkBrake::AccountRate => "account-rate",
        LinkBrake::NotBound => "not-bound",
    }
}

impl Switchyard {
    pub(crate) fn name_of(&self, peer: PeerId) -> String {
        self.directory.load().name(peer).to_string()
    }

    pub(crate) fn parse_id(id: &str) -> Result<MessageId, Problem> {
        id.parse()
            .map_err(|error: model::ParseMessageIdError| Problem::new(Kind::BadRequest, error.to_string()))
    }

    fn write_core_metrics(&self, page: &mut Page) {
        let Some((totals, peers, live, cached)) = self
            .core
            .look(|engine, _| (engine.totals().clone(), engine.peers(), engine.live(), engine.cached()))
        else {
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
            (&metrics::RECEIPTS_MATCHED, totals.receipts_matched),
            (&metrics::RECEIPTS_UNMATCHED, totals.receipts_unmatched),
            (&metrics::RECEIPTS_MADE, totals.receipts_made),
            (&metrics::RECEIPTS_DELIVERED, totals.receipts_delivered),
        ] {
            page.put(metric, &[], value as f64);
        }
        for state in FinalState::ALL {
            page.put(&metrics::ENDED, &[state.name()], totals.ended[state as usize] as f64);
        }
        for peer in &peers {
            let name = self.name_of(peer.peer);
            for (doing, count) in [
                ("queued", peer.queued),
                ("suspended", peer.suspended),
                ("deferred", peer.deferred),
                ("resolving", peer.resolving),
                ("in-flight", peer.in_flight),
                ("uncertain", peer.uncertain),
                ("awaiting-receipt", peer.awaiting_receipt),
            ] {
                page.put(&metrics::QUEUE, &[&name, doing], count as f64);
            }
            page.put(&metrics::PARKED, &[&name], peer.parked as f64);
            if let Some(rate) = peer.learnt_rate {
                page.put(&metrics::LEARNT_RATE, &[&name], rate);
            }
        }
        self.write_counts(page);
        self.write_order_metrics(page);
        page.put(&metrics::WAITING, &[], live as f64);
        page.put(&metrics::BODY_CACHE, &[], cached as f64);
    }
}

impl Appliance for Switchyard {
    fn status(&self) -> Result<view::Status, Problem> {
        let (live, totals) =
            self.core.look(|engine, _| (engine.live(), engine.totals().clone())).ok_or_else(gone)?;
        let (_, kept) =
            self.store.counts().map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        let counts = &self.core.counts;
        let mut shown = BTreeMap::from([
            ("accepted", totals.accepted),
            ("refused", totals.refused),
            ("submitted", totals.submitted),
            ("throttled", totals.throttled),
            ("uncertain", totals.uncertain),
            ("sent_again", totals.sent_again),
            ("receipts_matched", totals.receipts_matched),
            ("receipts_unmatched", totals.receipts_unmatched),
            ("receipts_made", totals.receipts_made),
            ("receipts_delivered", totals.receipts_delivered),
            ("commits", counts.commits.load(Relaxed)),
            ("commit_us", counts.commit_us.load(Relaxed)),
            ("commit_rows", counts.rows.load(Relaxed)),
        ]);
        for state in FinalState::ALL {
            shown.insert(state.name(), totals.ended[state as usize]);
        }
        Ok(view::Status {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            waiting: live as u64,
            finished_kept: kept,
            disk_free: counts.disk_free.load(Relaxed),
            disk_low: counts.disk_low.load(Relaxed),
            recovered: self.recovered,
            recovery_ms: self.recovery_ms,
            totals: shown,
        })
    }

    fn queues(&self) -> Result<Vec<view::Queue>, Problem> {
        let look = |engine: &engine::Engine, now| (engine.peers(), engine.orders(), now);
        let (peers, orders, now) = self.core.look(look).ok_or_else(gone)?;
        let parties = self.routing.parties.load();
        let shown = peers.into_iter().map(|peer| view::Queue {
            peer: self.name_of(peer.peer),
            configured: peer.configured,
            queued: peer.queued,
            deferred: peer.deferred,
            aside: peer.aside,
            suspended: peer.suspended,
            parked: peer.parked,
            resolving: peer.resolving,
            in_flight: peer.in_flight,
            uncertain: peer.uncertain,
            awaiting_receipt: peer.awaiting_receipt,
            oldest: peer.oldest.map(|at| at.0),
            links: peer.links.len(),
            brake: self.brake_with_orders(&peer, &orders, now),
            learnt_rate: peer.learnt_rate,
            blocked: match peer.brake {
                Brake::Suspended { .. } => view::BlockedBy::Order,
                Brake::Throttled { .. } | Brake::SlowStart { .. } => view::BlockedBy::Throttle,
                _ => view::BlockedBy::Other,
            },
            is_account: parties.is_account(peer.peer),
        });
        Ok(shown.collect())
    }

    fn links(&self) -> Vec<view::Link> {
        let kinds = |map: BTreeMap<&'static str, u64>| {
            map.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect::<BTreeMap<_, _>>()
        };
        let statuses = |map: BTreeMap<u32, u64>| {
            map.into_iter()
                .map(|(status, count)| match status {
                    u32::MAX => ("others".to_owned(), count),
                    status => (smpp::Status(status).to_string(), count),
                })
                .collect::<BTreeMap<_, _>>()
        };
        let shown = self.links.states().into_iter().map(|link| view::Link {
            id: link.link.map(|id| id.0),
            peer: link.name,
            role: match link.role {
                LinkRole::Server => "server",
                LinkRole::Client => "client",
            },
            phase: link.phase.name(),
            remote: link.remote.map(|remote| remote.to_string()),
            bind: link.bind.map(smpp::BindMode::name),
            tls: link.tls,
            window: link.window,
            in_flight: link.in_flight,
            unanswered_in: link.unanswered_in,
            round_trip_us: link.round_trip.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            brake: link_brake(link.brake).to_owned(),
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

    fn message(&self, id: &str, body: bool) -> Result<view::Trace, Problem> {
        let id = Self::parse_id(id)?;
        // Memory first: what it does now. The content is in the store in any case.
        let live = self
            .core
            .look(move |engine, now| engine.message(id).map(|status| (status, now)))
            .ok_or_else(gone)?;
        let found = self.store.find(id).map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        if body {
            tracing::info!(id = id.0, "message text read by an admin");
        }
        match found {
            Some(Found::Waiting(message, progress)) => {
                Ok(self.waiting(&message, live, progress.as_ref(), body))
            }
            Some(Found::Finished(message, ended)) => {
                Ok(self.finished(&message, &ended, body, &|peer| self.name_of(peer)))
            }
            None => self.archived_trace(id, body),
        }
    }

    fn explain(&self, asked: view::Hypothetical) -> Result<view::Explanation, Problem> {
        let origin = self.directory.load().id(&asked.origin).ok_or_else(|| {
            Problem::new(Kind::NotFound, format!("{:?} is no account and no peer", asked.origin))
        })?;
        let now = wall();
        let address = |value: &str| {
            let digits = value.trim_start_matches('+');
            if digits.bytes().all(|c| c.is_ascii_digit()) {
                Address::new(1, 1, digits.as_bytes())
            } else {
                Address::new(5, 0, value.as_bytes())
            }
        };
        let mut message = Message {
            id: MessageId(0),
            kind: model::Kind::Text,
            origin,
            source: address(&asked.source),
            destination: address(&asked.destination),
            service_type: bytes::Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: bytes::Bytes::from(asked.text.into_bytes()), ..Text::default() },
            tlvs: bytes::Bytes::new(),
            accepted_at: now,
            scheduled: None,
            expires_at: Timestamp(now.0 + 86_400_000),
            routed: Routed {
                verdict: Verdict::Reject(model::RejectReason::NoRoute),
                by: Arc::new(model::DecidedBy { plugin: String::new(), version: String::new() }),
                note: None,
                sender: None,
                quote: None,
                seen: None,
                faulted: None,
            },
        };
        let name = |peer| self.name_of(peer);
        let mut steps = vec![format!("origin: {}", asked.origin)];
        let (considered, routed) = self.routing.explain(&message);
        for considered in considered {
            let by = format!("router {} {}", considered.by.plugin, considered.by.version);
            steps.push(match considered.outcome {
                Ok(Decision { verdict: None, .. }) => format!("{by}: pass"),
                Ok(Decision { verdict: Some(verdict), sender, note }) => {
                    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                    format!("{by}: {}{note}", verdict_words(&verdict, sender.as_deref(), &name))
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.what),
            });
        }
        message.routed = routed;
        let note = message.routed.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        steps.push(format!(
            "after the house's own rules: {}{note}",
            verdict_words(&message.routed.verdict, message.routed.sender.as_deref(), &name)
        ));
        if let Some(quote) = &message.routed.quote {
            let by = format!("biller {} {}", quote.by.plugin, quote.by.version);
            let price = match &quote.charge {
                Some(charge) => format!("{} millionths, of ledger account {}", charge.amount, charge.account),
                None => "free".to_owned(),
            };
            let note = quote.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
            steps.push(format!("{by}: {price}{note}"));
        }
        let routed = message.routed.clone();
        let look = move |engine: &Engine, now| (engine.would_accept(now, &message), engine.peers(), now);
        let (accepted, peers, now) = self.core.look(look).ok_or_else(gone)?;
        if let Verdict::Forward(legs) = &routed.verdict {
            for leg in legs {
                let name = self.name_of(leg.peer);
                steps.push(match peers.iter().find(|peer| peer.peer == leg.peer && peer.configured) {
                    Some(peer) => {
                        let (brake, links) = (brake_words(peer.brake, now), peer.links.len());
                        format!("leg {name}: {} queued, {links} links; {brake}", peer.queued)
                    }
                    None => format!("leg {name}: left out, the peer is not in the configuration"),
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
            steps.push(format!("the appliance drains, by the word of {}", draining.by));
            answer = "refused: queue full".to_owned();
        }
        Ok(view::Explanation { steps, answer })
    }

    fn history(&self, query: &HashMap<String, String>) -> Result<Value, Problem> {
        self.show_history(query)
    }

    fn export(&self, query: &HashMap<String, String>) -> Result<Export, Problem> {
        self.export_history(query)
    }

    fn statistics(&self, query: &HashMap<String, String>) -> Result<Value, Problem> {
        self.show_statistics(query)
    }

    fn archive(&self) -> Result<Value, Problem> {
        self.show_archive()
    }

    fn parked(&self) -> Result<Value, Problem> {
        self.show_parked()
    }

    fn report_again(&self, request: Value) -> Result<Value, Problem> {
        Switchyard::report_again(self, request)
    }

    fn refusals(&self, query: &HashMap<String, String>) -> Result<view::Refusals, Problem> {
        self.show_refusals(query)
    }

    fn opt_outs(&self) -> Result<Value, Problem> {
        self.show_opt_outs()
    }

    fn set_opt_out(&self, request: Value) -> Result<(), Problem> {
        self.change_opt_out(request)
    }

    fn business(&self) -> Value {
        self.show_business()
    }

    fn gsm(&self) -> Value {
        self.show_gsm()
    }

    fn attention_limits(&self) -> AttentionLimits {
        self.tuning.attention()
    }

    fn metrics(&self) -> String {
        let mut page = Page::default();
        self.write_process_metrics(&mut page);
        self.write_core_metrics(&mut page);
        self.write_record_metrics(&mut page);
        self.write_gsm_metrics(&mut page);
        let mut links: BTreeMap<(String, &str, &str), u64> = BTreeMap::new();
        for link in Appliance::links(self) {
            *links.entry((link.peer, link.role, link.phase)).or_default() += 1;
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
        let doors = self.links.doors();
        page.put(&metrics::CONNECTIONS, &[], doors.connections as f64);
        page.put(&metrics::TURNED_AWAY, &[], doors.turned_away as f64);
        for (name, counts) in [("http", &self.http_connections), ("business", &self.business_connections)] {
            page.put(&metrics::HTTP_CONNECTIONS, &[name], counts.accepted.load(Relaxed) as f64);
            page.put(&metrics::HTTP_TURNED_AWAY, &[name], counts.turned_away() as f64);
        }
        page.put(&metrics::BINDS_REFUSED, &[], doors.binds_refused as f64);
        page.finish()
    }
}
