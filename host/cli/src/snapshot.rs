//! The state of the appliance, fetched with several requests.

use crate::format::value_text;
use crate::global_args::optional;
use crate::output::Failure;
use api::{Problem, Readiness};
use client::{ApiClient, ClientError};
use serde_json::{Value, json};

/// The state of the appliance. Parts that it does not have, or does not show to this caller, are null.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) status: Value,
    /// A list.
    pub(crate) queues: Value,
    /// A list.
    pub(crate) links: Value,
    pub(crate) archive: Value,
    /// A list.
    pub(crate) hooks: Value,
    /// A list: GSM core networks.
    pub(crate) networks: Value,
    /// Why the appliance is not ready; `None` while it is.
    pub(crate) unready: Option<Vec<String>>,
    pub(crate) drain: Value,
    /// A list: findings that need attention.
    pub(crate) attention: Value,
}

impl Snapshot {
    /// Fetches everything except core networks.
    pub(crate) fn fetch(api: &ApiClient) -> Result<Self, Failure> {
        let status = api.get("/v1/status")?;
        Ok(Self {
            status,
            queues: api.get("/v1/queues")?,
            links: api.get("/v1/links")?,
            archive: optional(api.get("/v1/archive"))?.unwrap_or_default(),
            hooks: optional(api.get("/v1/hooks"))?.unwrap_or_default(),
            unready: unready_reasons(api)?,
            drain: optional(api.get("/v1/drain"))?.unwrap_or_default(),
            attention: api.get("/v1/attention")?,
            networks: Value::Null,
        })
    }

    /// Fetches core networks as well.
    pub(crate) fn fetch_with_networks(api: &ApiClient) -> Result<Self, Failure> {
        let snapshot = Self::fetch(api)?;
        let networks = optional(api.get("/v1/gsm"))?.unwrap_or_default();
        Ok(Self { networks, ..snapshot })
    }

    pub(crate) fn queues(&self) -> &[Value] {
        self.queues.as_array().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn links(&self) -> &[Value] {
        self.links.as_array().map_or(&[], Vec::as_slice)
    }

    /// GSM core networks.
    pub(crate) fn networks(&self) -> &[Value] {
        self.networks.as_array().map_or(&[], Vec::as_slice)
    }

    /// The active plugins: the name of the hook, and the counts of the plugin.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = (&str, &Value)> {
        let hooks = self.hooks.as_array().into_iter().flatten();
        hooks.flat_map(|hook| {
            let name = hook["hook"].as_str().unwrap_or("?");
            let live = hook["counts"].as_array().into_iter().flatten();
            let candidate = hook["candidate"]["counts"].as_array().into_iter().flatten();
            live.chain(candidate).map(move |counts| (name, counts))
        })
    }

    /// The sum of one counter over all queues.
    pub(crate) fn sum(&self, name: &str) -> u64 {
        self.queues().iter().filter_map(|queue| queue[name].as_u64()).sum()
    }

    /// The time at which the oldest waiting message was accepted, in milliseconds since the epoch.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.queues().iter().filter_map(|queue| queue["oldest"].as_u64()).min()
    }

    /// Client links: the number of bound links, and of all.
    pub(crate) fn dialled_links(&self) -> (usize, usize) {
        let ours = self.links().iter().filter(|link| link["role"] == "client");
        let up = ours.clone().filter(|link| is_link_up(link)).count();
        (up, ours.count())
    }

    /// The number of bound server links.
    pub(crate) fn served_links(&self) -> usize {
        self.links().iter().filter(|link| link["role"] == "server" && is_link_up(link)).count()
    }

    /// `ready`, `not ready` or `draining`.
    pub(crate) fn readiness(&self) -> &'static str {
        match (&self.unready, self.drain["draining"] == true) {
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
            "draining": self.drain["draining"] == true,
            "waiting": self.status["waiting"],
            "queued": self.sum("queued"),
            "deferred": self.sum("deferred"),
            "in-flight": self.sum("in_flight"),
            "awaiting-dlr": self.sum("awaiting_dlr"),
            "uncertain": self.sum("uncertain"),
            "oldest": self.oldest(),
            "links": { "dialled": dialled, "up": up, "served": self.served_links() },
            "disk": { "free": self.status["disk_free"], "low": self.status["disk_low"] },
            "archive": self.archive,
            "totals": self.status["totals"],
        })
    }
}

/// Whether a link is bound.
pub(crate) fn is_link_up(link: &Value) -> bool {
    link["phase"] == "bound"
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
