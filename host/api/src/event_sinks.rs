//! Event sinks: systems that get events of the appliance.

use super::{PumpState, SpanView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event sink, in `GET /v1/event-sinks`. Counts begin at the start of the daemon.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = EventSink)]
pub struct EventSinkView {
    /// Its name.
    pub name: String,
    /// The protocol: `http`, `nats`, `amqp` or `kafka`; `cdr-file` for CDR files.
    pub kind: String,
    /// `starting` until it has accepted an event, `up` or `down`.
    #[schema(inline)]
    pub state: PumpState,
    /// The error, if it is `down`; otherwise null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Events that it has accepted.
    pub sent: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Records of the journal whose events it has not accepted. A record is a batch of changes.
    pub lag_records: u64,
    /// The age of the oldest of these records that was read; 0 if there is none.
    pub lag: SpanView,
    /// How often the journal no longer had the records that the sink needed next.
    pub gaps: u64,
    /// Number of these missing records. Their events are lost.
    pub lost_records: u64,
    /// The last record whose events it has accepted.
    pub position: u64,
    /// Time since it accepted an event; null if it has accepted none.
    #[schema(required)]
    pub since_success: Option<SpanView>,
}
