//! The data of events; the manual describes the fields.

use model::{NumberState, PoolChange};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Attribute `data` of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum EventData {
    Accepted(AcceptedData),
    Attempt(AttemptData),
    Dlr(DlrData),
    Ended(EndedData),
    Pool(PoolData),
    /// The data of an operational notice, unchanged.
    Notice(Value),
    Gap(GapData),
}

/// Fields that all events about a message have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MessageData {
    /// The id of the message.
    pub(crate) message: String,
    /// The id of its submission, if that had several destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) submission: Option<String>,
    /// `mt` or `mo`.
    pub(crate) direction: &'static str,
    /// The account that submitted or receives the message.
    pub(crate) account: Arc<str>,
    pub(crate) source: String,
    pub(crate) destination: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AcceptedData {
    #[serde(flatten)]
    pub(crate) message: MessageData,
    /// Number of segments.
    pub(crate) segments: u16,
    /// The data coding scheme.
    pub(crate) data_coding: u8,
    /// Priority, 0 to 3.
    pub(crate) priority: u8,
    /// The peers of the legs, in order.
    pub(crate) peers: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AttemptData {
    #[serde(flatten)]
    pub(crate) message: MessageData,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DlrData {
    #[serde(flatten)]
    pub(crate) message: MessageData,
    /// SMPP's `message_state`: `delivered`, `undeliverable`, …
    pub(crate) state: &'static str,
    /// The network's error code; 0 for none.
    pub(crate) error: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EndedData {
    #[serde(flatten)]
    pub(crate) message: MessageData,
    /// The final state.
    pub(crate) state: &'static str,
    /// The last error code; 0 for none.
    pub(crate) error: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<Arc<str>>,
    /// The id that the peer gave to the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_message_id: Option<String>,
    pub(crate) attempts: u16,
    pub(crate) segments: u16,
    /// Time in RFC 3339.
    pub(crate) accepted_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<PriceData>,
}

/// The price of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PriceData {
    /// Amount in millionths of the currency unit.
    pub(crate) amount: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<Arc<str>>,
    /// `free`, `captured`, `refunded` or `open`.
    pub(crate) state: &'static str,
}

/// A change of a number of a pool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PoolData {
    pub(crate) pool: Arc<str>,
    /// The number of the change in the pool's journal.
    pub(crate) entry: u64,
    pub(crate) number: String,
    /// `add`, `call`, `hangup`, …
    pub(crate) change: PoolChange,
    /// The new state; omitted if the number has left the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<NumberState>,
    /// The author; omitted if a timer made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Arc<str>>,
    /// The message that uses the number as its sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// A range of journal records for which no events exist.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GapData {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) reason: &'static str,
}
