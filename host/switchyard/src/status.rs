//! State of the appliance in the API: status, queues, links, business systems, core networks; all metrics.

use crate::core_handle::CoreHandle;
use crate::error_causes::ErrorCauses;
use crate::event_sinks::EventSinkService;
use crate::hook_service::HookService;
use crate::leading_node::LeadingNode;
use crate::message_service::MessageService;
use crate::pools::PoolService;
use crate::problems::shutting_down_problem;
use crate::records::RecordService;
use admin::{Problem, ProblemKind};
use engine::BlockedBy;
use links::{BindMode, Links};
use model::FinalState;
use ports::ConnectionCounts;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use store::Store;

/// State of the appliance.
pub(crate) struct StatusService {
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) recovered: u64,
    pub(crate) recovery_ms: u64,
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    pub(crate) links: Arc<Links>,
    pub(crate) causes: ErrorCauses,
    pub(crate) business: Arc<business::Business>,
    pub(crate) networks: Vec<Arc<gsm::GsmNetwork>>,
    /// Set once the local socket is open.
    pub(crate) shell: OnceLock<Arc<shell::ShellServer>>,
    /// The listener for Redis clients.
    pub(crate) redis: Option<Arc<::pools::RedisServer>>,
    /// Connections of the admin listener.
    pub(crate) http_connections: Arc<ConnectionCounts>,
    /// Connections of the business listener.
    pub(crate) business_connections: Arc<ConnectionCounts>,
    /// This node; `None` without a cluster.
    pub(crate) cluster: Option<Arc<LeadingNode>>,
    // For their metrics.
    pub(crate) messages: Arc<MessageService>,
    pub(crate) hooks: Arc<HookService>,
    pub(crate) records: Arc<RecordService>,
    pub(crate) pools: Arc<PoolService>,
    pub(crate) event_sinks: Arc<EventSinkService>,
}

fn bind_mode(mode: BindMode) -> api::BindMode {
    match mode {
        BindMode::Receiver => api::BindMode::Receiver,
        BindMode::Transmitter => api::BindMode::Transmitter,
        BindMode::Transceiver => api::BindMode::Transceiver,
    }
}

impl admin::Overview for StatusService {
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
            text_keys_failing: counts.text_keys_failing.load(Relaxed),
            recovered: self.recovered,
            recovery_ms: self.recovery_ms,
            totals,
        })
    }

    fn queues(&self) -> Result<Vec<api::QueueView>, Problem> {
        let query = |engine: &engine::Engine, now| (engine.peers(), engine.queue_actions(), now);
        let (peers, orders, now) = self.core.query(query).ok_or_else(shutting_down_problem)?;
        let peer_roles = self.messages.routing.peer_roles.load();
        let shown = peers.into_iter().map(|peer| api::QueueView {
            peer: self.messages.name_of(peer.peer),
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
            blocked_by: self.messages.describe_queue_block(&peer, &orders, now),
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
        let chain = self.messages.routing.hooks.status(model::Hook::Peer).live.chain;
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
        self.write_metrics()
    }
}
