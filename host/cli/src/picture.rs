//! What the appliance says of itself as a whole, asked for in one go.

use crate::output::Failure;
use crate::way::optional;
use client::{Appliance, ClientError};
use serde_json::{Value, json};

/// The appliance at one moment. What it does not have, or does not show to this caller, is null.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
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
    /// Why it takes no traffic; nothing while it does.
    pub(crate) unready: Option<Vec<String>>,
    pub(crate) drain: Value,
    /// A list: what needs attention.
    pub(crate) attention: Value,
}

impl Picture {
    /// Asks for all of it.
    pub(crate) fn take(appliance: &Appliance) -> Result<Self, Failure> {
        let status = appliance.get("/v1/status")?;
        Ok(Self {
            status,
            queues: appliance.get("/v1/queues")?,
            links: appliance.get("/v1/links")?,
            archive: optional(appliance.get("/v1/archive"))?.unwrap_or_default(),
            hooks: optional(appliance.get("/v1/hooks"))?.unwrap_or_default(),
            unready: unready(appliance)?,
            drain: optional(appliance.get("/v1/drain"))?.unwrap_or_default(),
            attention: appliance.get("/v1/attention")?,
            networks: Value::Null,
        })
    }

    /// Asks for core networks as well.
    pub(crate) fn take_all(appliance: &Appliance) -> Result<Self, Failure> {
        let picture = Self::take(appliance)?;
        let networks = optional(appliance.get("/v1/gsm"))?.unwrap_or_default();
        Ok(Self { networks, ..picture })
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

    /// Plugins at work: the hook's name, and the plugin's counts.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = (&str, &Value)> {
        let hooks = self.hooks.as_array().into_iter().flatten();
        hooks.flat_map(|hook| {
            let name = hook["hook"].as_str().unwrap_or("?");
            let live = hook["counts"].as_array().into_iter().flatten();
            let tried = hook["candidate"]["counts"].as_array().into_iter().flatten();
            live.chain(tried).map(move |counts| (name, counts))
        })
    }

    /// One count of all queues together.
    pub(crate) fn sum(&self, name: &str) -> u64 {
        self.queues().iter().filter_map(|queue| queue[name].as_u64()).sum()
    }

    /// When the oldest message was accepted that waits in a queue.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.queues().iter().filter_map(|queue| queue["oldest"].as_u64()).min()
    }

    /// Links that we keep up: how many are, and how many there should be.
    pub(crate) fn dialled(&self) -> (usize, usize) {
        let ours = self.links().iter().filter(|link| link["role"] == "client");
        let up = ours.clone().filter(|link| is_up(link)).count();
        (up, ours.count())
    }

    /// Links of those who come to us.
    pub(crate) fn served(&self) -> usize {
        self.links().iter().filter(|link| link["role"] == "server" && is_up(link)).count()
    }

    /// Whether it is ready, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.unready, self.drain["draining"] == true) {
            (_, true) => "draining",
            (Some(_), false) => "not ready",
            (None, false) => "ready",
        }
    }

    /// The figures on the screen, for programs.
    pub(crate) fn figures(&self) -> Value {
        let (up, dialled) = self.dialled();
        json!({
            "ready": self.unready.is_none(),
            "draining": self.drain["draining"] == true,
            "waiting": self.status["waiting"],
            "queued": self.sum("queued"),
            "deferred": self.sum("deferred"),
            "in-flight": self.sum("in_flight"),
            "awaiting-receipt": self.sum("awaiting_receipt"),
            "uncertain": self.sum("uncertain"),
            "oldest": self.oldest(),
            "links": { "dialled": dialled, "up": up, "served": self.served() },
            "disk": { "free": self.status["disk_free"], "low": self.status["disk_low"] },
            "archive": self.archive,
            "totals": self.status["totals"],
        })
    }
}

/// Whether messages go over a link.
pub(crate) fn is_up(link: &Value) -> bool {
    link["phase"] == "bound"
}

/// Why the appliance takes no traffic.
fn unready(appliance: &Appliance) -> Result<Option<Vec<String>>, Failure> {
    match appliance.get("/v1/ready") {
        Ok(_) => Ok(None),
        Err(ClientError::Refused { status: 503, detail, problem, .. }) => {
            let reasons = problem["reasons"].as_array().into_iter().flatten();
            let reasons: Vec<String> =
                reasons.filter_map(|reason| reason.as_str().map(str::to_owned)).collect();
            Ok(Some(if reasons.is_empty() { vec![detail] } else { reasons }))
        }
        Err(error) => Err(error.into()),
    }
}
