//! The queues and links of the API, with the fields that pages need.

use crate::api_caller::ApiError;
use crate::request_context::RequestContext;
use serde::Deserialize;

/// The queue of a peer or an account.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct QueueStatus {
    pub(crate) peer: String,
    pub(crate) configured: bool,
    /// Queued messages, including those behind a subscriber lock.
    pub(crate) queued: u64,
    pub(crate) suspended: u64,
    pub(crate) deferred: u64,
    pub(crate) resolving: u64,
    pub(crate) in_flight: u64,
    pub(crate) uncertain: u64,
    pub(crate) awaiting_dlr: u64,
    pub(crate) oldest: Option<u64>,
    pub(crate) links: usize,
    pub(crate) blocked_by: String,
    pub(crate) learnt_rate: Option<f64>,
}

impl QueueStatus {
    /// The number of all unfinished messages.
    pub(crate) fn waiting(&self) -> u64 {
        self.queued
            + self.suspended
            + self.deferred
            + self.resolving
            + self.in_flight
            + self.uncertain
            + self.awaiting_dlr
    }
}

/// A link.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LinkStatus {
    pub(crate) peer: String,
    pub(crate) role: String,
    pub(crate) phase: String,
    pub(crate) remote: Option<String>,
    pub(crate) bind: Option<String>,
    pub(crate) tls: bool,
    pub(crate) window: u64,
    pub(crate) in_flight: u64,
    pub(crate) round_trip_us: Option<u64>,
    pub(crate) blocked_by: String,
    pub(crate) since: u64,
    pub(crate) down_since: Option<u64>,
    pub(crate) last_error: Option<String>,
    pub(crate) back_off_until: Option<u64>,
}

impl LinkStatus {
    pub(crate) fn is_up(&self) -> bool {
        self.phase == "bound"
    }

    /// The round-trip time, in milliseconds.
    pub(crate) fn round_trip(&self) -> Option<f64> {
        self.round_trip_us.map(|micros| micros as f64 / 1_000.0)
    }
}

pub(crate) async fn queues(context: &RequestContext) -> Result<Vec<QueueStatus>, ApiError> {
    context.get("/v1/queues").await
}

pub(crate) async fn links(context: &RequestContext) -> Result<Vec<LinkStatus>, ApiError> {
    context.get("/v1/links").await
}
