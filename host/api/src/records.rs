//! Views of finished messages and their records.

use super::PumpState;
use super::name_schemas::{
    DirectionSchema, DlrStateSchema, FinalStateSchema, IdText, PriceStateSchema, TimeText,
};
use model::{Direction, DlrState, FinalState, PriceState};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// A page of `GET /v1/history`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = HistoryPage)]
pub struct HistoryPageView {
    /// Messages, newest first.
    pub messages: Vec<FinishedMessageView>,
    /// The `cursor` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}

/// A finished message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = FinishedMessage)]
pub struct FinishedMessageView {
    /// The message id.
    pub id: String,
    /// Time of acceptance (RFC 3339).
    pub accepted_at: String,
    /// Time of the end (RFC 3339).
    pub ended_at: String,
    /// `mt`: from an account to the network; `mo`: from the network to an account.
    #[schema(value_type = DirectionSchema, inline)]
    pub direction: Direction,
    /// The account.
    pub account: String,
    /// The gateway; empty if the message was never submitted to one.
    pub peer: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// Type of number of the sender.
    pub source_ton: u8,
    /// Numbering plan of the sender.
    pub source_npi: u8,
    /// The recipient, masked likewise.
    pub destination: String,
    /// Type of number of the recipient.
    pub destination_ton: u8,
    /// Numbering plan of the recipient.
    pub destination_npi: u8,
    /// The final state.
    #[schema(value_type = FinalStateSchema, inline)]
    pub state: FinalState,
    /// The decisive error code; 0 if there is none.
    pub error: u32,
    /// The peer's id of the first segment.
    #[schema(required)]
    pub peer_message_id: Option<String>,
    /// Number of submit attempts.
    pub attempts: u16,
    /// Priority, 0 to 3.
    pub priority: u8,
    /// Data coding scheme.
    pub data_coding: u8,
    /// Whether the body begins with a user data header.
    pub udhi: bool,
    /// The body in hexadecimal, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub body: Option<String>,
    /// The plugin that routed the message.
    pub router: String,
    /// The plugin's version.
    pub router_version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// The submission, the routing and all steps, if requested. Without the permission to read message texts its numbers are masked,
    /// and TLVs are left out; without `body` a text that a screen replaced is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<serde_json::Value>)]
    pub trace: Option<Box<RawValue>>,
    /// The price; omitted if no biller was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub price: Option<FinishedPriceView>,
    /// Time at which the content was erased (RFC 3339): the text, and all quotations of it. Omitted if it was not erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content_erased_at: Option<String>,
}

/// The price of a finished message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = FinishedPrice)]
pub struct FinishedPriceView {
    /// Millionths of the operator's currency; 0 if the message was free.
    pub amount: u64,
    /// The ledger account; omitted if the message was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub account: Option<String>,
    /// Whether the price was captured, released, or neither.
    #[schema(value_type = PriceStateSchema, inline)]
    pub state: PriceState,
}

/// A row of `GET /v1/statistics`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[schema(as = Statistics)]
pub struct StatisticsView {
    /// Start of the hour or day, milliseconds since the epoch.
    pub start: u64,
    /// The account.
    pub account: String,
    /// The gateway; empty for messages that were never submitted to one.
    pub peer: String,
    /// Messages from the account to the network.
    pub mt: StatisticsCountsView,
    /// Messages from the network to the account; `accepted` counts the replies.
    pub mo: StatisticsCountsView,
}

/// Counts of messages. Each message counts once in each group.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[schema(as = StatisticsCounts)]
pub struct StatisticsCountsView {
    /// Accepted from the submitter.
    pub accepted: u64,
    /// Accepted by the peer.
    pub responded: u64,
    /// Never accepted by the peer, by the last error code.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub refused: BTreeMap<u32, u64>,
    /// Delivered, according to the last DLR.
    pub delivered: u64,
    /// Not delivered, by the error code of the last DLR.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub undelivered: BTreeMap<u32, u64>,
    /// By final state.
    pub ended: BTreeMap<String, u64>,
    /// Time from acceptance to the peer's answer.
    pub response: LatencyView,
    /// Time from acceptance to the last DLR.
    pub dlr: LatencyView,
}

/// Latencies, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[schema(as = Latency)]
pub struct LatencyView {
    /// Number of measurements.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// `GET /v1/archive`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ArchivePump)]
pub struct ArchivePumpView {
    /// `starting`, `up` or `down`.
    #[schema(inline)]
    pub state: PumpState,
    /// The error, if it is `down`; otherwise null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Messages archived since the start of the daemon.
    pub archived: u64,
    /// Transactions since the start of the daemon.
    pub batches: u64,
    /// Failed transactions.
    pub failures: u64,
    /// Messages that the database refuses individually.
    pub refused: u64,
    /// Messages deleted after the retention time.
    pub trimmed: u64,
    /// Messages whose content was erased after the text retention of their account.
    #[serde(default)]
    pub contents_erased: u64,
    /// Whether copies of erased values may still be in unused parts of the file, which are being overwritten. Only with SQLite.
    #[serde(default)]
    pub overwriting: bool,
    /// Messages that wait for the archive.
    pub backlog: u64,
    /// Time since the last success of the database; null if there was none.
    #[schema(required)]
    pub since_success: Option<SpanView>,
    /// Duration of the last transaction.
    pub last_batch: SpanView,
}

/// A duration.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[schema(as = Span)]
pub struct SpanView {
    /// Whole seconds.
    pub secs: u64,
    /// Remaining nanoseconds.
    pub nanos: u32,
}

impl From<Duration> for SpanView {
    fn from(span: Duration) -> Self {
        Self { secs: span.as_secs(), nanos: span.subsec_nanos() }
    }
}

impl SpanView {
    /// In milliseconds.
    #[must_use]
    pub fn millis(self) -> u64 {
        self.secs.saturating_mul(1_000).saturating_add(u64::from(self.nanos / 1_000_000))
    }
}

/// `GET /v1/dlrs/orphans`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = OrphanDlrs)]
pub struct OrphanDlrsView {
    /// Total number of orphan DLRs.
    pub total: u64,
    /// The first orphan DLRs.
    pub dlrs: Vec<OrphanDlrView>,
}

/// A DLR that matches no message yet.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = OrphanDlr)]
pub struct OrphanDlrView {
    /// Its number.
    pub number: u64,
    /// The peer that sent it.
    pub peer: String,
    /// Time of arrival, milliseconds since the epoch.
    pub at: u64,
    /// The peer's id of the message, in hexadecimal.
    pub peer_message_id: String,
    /// The state of the message.
    #[schema(value_type = DlrStateSchema, inline)]
    pub state: DlrState,
    /// The network's error code; 0 if there is none.
    pub error: u16,
}

/// The DLRs to send again.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResendDlrsRequest {
    /// Only this account; default: all accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// DLRs of messages accepted at or after this time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    #[schema(value_type = TimeText, inline)]
    pub from: String,
    /// DLRs of messages accepted before this time.
    #[schema(value_type = TimeText, inline)]
    pub until: String,
    /// DLRs of messages with ids below this one: the `next` of the previous answer.
    #[schema(value_type = Option<IdText>, inline)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The result of sending DLRs again.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResendDlrsResult {
    /// Number of queued DLRs.
    pub dlrs: u64,
    /// If an account's queue was full: the `before` of the next request. Null if all DLRs were sent.
    #[schema(required)]
    pub next: Option<String>,
}

/// `GET /v1/opt-outs`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = OptOuts)]
pub struct OptOutsView {
    /// The opt-outs.
    pub stopped: Vec<OptOutView>,
}

/// An opt-out: a subscriber has stopped a sender.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = OptOut)]
pub struct OptOutView {
    /// The sender's number, masked unless the caller may read message texts.
    pub sender: String,
    /// The subscriber's number, masked likewise.
    pub subscriber: String,
}

/// A change of an opt-out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OptOutChange {
    /// The sender's number.
    pub sender: String,
    /// The subscriber's number.
    pub subscriber: String,
    /// True: add the opt-out; messages are refused. False: remove it.
    pub stop: bool,
}
