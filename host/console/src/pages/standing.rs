//! How queues and links stand: what of the API's lists pages need.

use crate::ask::Refusal;
use crate::visit::Visit;
use serde::Deserialize;

/// A peer's or an account's queue.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Queue {
    pub(crate) peer: String,
    pub(crate) configured: bool,
    pub(crate) queued: u64,
    pub(crate) aside: u64,
    pub(crate) deferred: u64,
    pub(crate) resolving: u64,
    pub(crate) in_flight: u64,
    pub(crate) uncertain: u64,
    pub(crate) awaiting_receipt: u64,
    pub(crate) oldest: Option<u64>,
    pub(crate) links: usize,
    pub(crate) brake: String,
    pub(crate) learnt_rate: Option<f64>,
}

impl Queue {
    /// All that waits.
    pub(crate) fn waiting(&self) -> u64 {
        self.queued
            + self.aside
            + self.deferred
            + self.resolving
            + self.in_flight
            + self.uncertain
            + self.awaiting_receipt
    }
}

/// A link.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) peer: String,
    pub(crate) role: String,
    pub(crate) phase: String,
    pub(crate) remote: Option<String>,
    pub(crate) bind: Option<String>,
    pub(crate) tls: bool,
    pub(crate) window: u64,
    pub(crate) in_flight: u64,
    pub(crate) round_trip_us: Option<u64>,
    pub(crate) brake: String,
    pub(crate) since: u64,
    pub(crate) down_since: Option<u64>,
    pub(crate) last_error: Option<String>,
    pub(crate) back_off_until: Option<u64>,
}

impl Link {
    pub(crate) fn is_up(&self) -> bool {
        self.phase == "bound"
    }

    /// The time to an answer, in milliseconds.
    pub(crate) fn round_trip(&self) -> Option<f64> {
        self.round_trip_us.map(|micros| micros as f64 / 1_000.0)
    }
}

pub(crate) async fn queues(visit: &Visit) -> Result<Vec<Queue>, Refusal> {
    visit.get("/v1/queues").await
}

pub(crate) async fn links(visit: &Visit) -> Result<Vec<Link>, Refusal> {
    visit.get("/v1/links").await
}
