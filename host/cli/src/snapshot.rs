//! The state of the appliance, fetched with several requests.

use crate::format::value_text;
use crate::global_args::optional;
use crate::output::Failure;
use api::{
    ArchivePumpView, AttentionView, CoreNetworkView, DrainStateView, EventSinkView, HookStateView, LinkRole,
    LinkView, PluginCountsView, PluginPeerView, Problem, QueueView, Readiness, StatusView,
};
use client::{ApiClient, ClientError};
use serde_json::{Value, json};

/// The state of the appliance. Lists that it does not show to this caller are empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) status: StatusView,
    pub(crate) queues: Vec<QueueView>,
    pub(crate) links: Vec<LinkView>,
    /// `None` if there is no archive, or this caller may not see it.
    pub(crate) archive: Option<ArchivePumpView>,
    pub(crate) event_sinks: Vec<EventSinkView>,
    pub(crate) hooks: Vec<HookStateView>,
    /// Peers whose protocol a plugin implements.
    pub(crate) plugin_peers: Vec<PluginPeerView>,
    /// GSM core networks.
    pub(crate) networks: Vec<CoreNetworkView>,
    /// The reasons why the appliance is not ready; `None` while it is ready.
    pub(crate) unready: Option<Vec<String>>,
    pub(crate) draining: bool,
    pub(crate) attention: Vec<AttentionView>,
}

impl Snapshot {
    /// Fetches everything except core networks.
    pub(crate) fn fetch(api: &ApiClient) -> Result<Self, Failure> {
        let status = api.read("/v1/status")?;
        let drain: Option<DrainStateView> = optional(api.read("/v1/drain"))?;
        Ok(Self {
            status,
            queues: api.read("/v1/queues")?,
            links: api.read("/v1/links")?,
            archive: optional(api.read("/v1/archive"))?,
            event_sinks: optional(api.read("/v1/event-sinks"))?.unwrap_or_default(),
            hooks: optional(api.read("/v1/hooks"))?.unwrap_or_default(),
            plugin_peers: optional(api.read("/v1/plugin-peers"))?.unwrap_or_default(),
            unready: unready_reasons(api)?,
            draining: drain.is_some_and(|drain| drain.draining),
            attention: api.read("/v1/attention")?,
            networks: Vec::new(),
        })
    }

    /// Fetches core networks as well.
    pub(crate) fn fetch_with_networks(api: &ApiClient) -> Result<Self, Failure> {
        let snapshot = Self::fetch(api)?;
        let networks = optional(api.read("/v1/gsm"))?.unwrap_or_default();
        Ok(Self { networks, ..snapshot })
    }

    /// The active plugins: the name of the hook, and the counts of the plugin.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = (&'static str, &PluginCountsView)> {
        self.hooks.iter().flat_map(|hook| {
            let candidate = hook.candidate.iter().flat_map(|candidate| &candidate.counts);
            hook.counts.iter().chain(candidate).map(move |counts| (hook.hook.name(), counts))
        })
    }

    /// The sum of one counter over all queues.
    pub(crate) fn sum(&self, of: fn(&QueueView) -> u64) -> u64 {
        self.queues.iter().map(of).sum()
    }

    /// The time at which the oldest waiting message was accepted, in milliseconds since the epoch.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.queues.iter().filter_map(|queue| queue.oldest).min()
    }

    /// Client links: the number of bound links, and of all links.
    pub(crate) fn dialled_links(&self) -> (usize, usize) {
        let ours = self.links.iter().filter(|link| link.role == LinkRole::Client);
        let up = ours.clone().filter(|link| link.is_up()).count();
        (up, ours.count())
    }

    /// The number of bound server links.
    pub(crate) fn served_links(&self) -> usize {
        self.links.iter().filter(|link| link.role == LinkRole::Server && link.is_up()).count()
    }

    /// `ready`, `not ready` or `draining`.
    pub(crate) fn readiness(&self) -> &'static str {
        match (&self.unready, self.draining) {
            (_, true) => "draining",
            (Some(_), false) => "not ready",
            (None, false) => "ready",
        }
    }

    /// The figures of the status screen as JSON.
    pub(crate) fn summary_json(&self) -> Value {
        let (up, dialled) = self.dialled_links();
        json!({
            "ready": self.unready.is_none(),
            "draining": self.draining,
            "waiting": self.status.waiting,
            "queued": self.sum(|queue| queue.queued),
            "deferred": self.sum(|queue| queue.deferred),
            "in-flight": self.sum(|queue| queue.in_flight),
            "awaiting-dlr": self.sum(|queue| queue.awaiting_dlr),
            "uncertain": self.sum(|queue| queue.uncertain),
            "oldest": self.oldest(),
            "links": { "dialled": dialled, "up": up, "served": self.served_links() },
            "disk": { "free": self.status.disk_free, "low": self.status.disk_low },
            "archive": self.archive,
            "plugin-peers": self.plugin_peers,
            "event-sinks": self.event_sinks,
            "totals": self.status.totals,
        })
    }
}

/// Fetches the reasons why the appliance is not ready.
fn unready_reasons(api: &ApiClient) -> Result<Option<Vec<String>>, Failure> {
    match api.read_with_status::<Readiness>("/v1/ready", 503) {
        Ok(readiness) if readiness.reasons.is_empty() => Ok(None),
        Ok(readiness) => Ok(Some(readiness.reasons.iter().map(value_text).collect())),
        Err(ClientError::Refused(Problem { status: 503, detail, .. })) => Ok(Some(vec![detail])),
        Err(error) => Err(error.into()),
    }
}
