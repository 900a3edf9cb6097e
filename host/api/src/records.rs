//! Views of finished messages and their records.

use super::name_schemas::{
    CoreNetworkFaultKindSchema, CoreNetworkFaultLevelSchema, CoreNetworkRoleSchema, DirectionSchema,
    DlrStateSchema, FinalStateSchema, PriceStateSchema, PumpStateSchema,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    pub direction: String,
    /// The account.
    pub account: String,
    /// The gateway; empty if the message was never submitted to one.
    pub peer: String,
    /// The sender.
    pub source: String,
    /// Type of number of the sender.
    pub source_ton: u8,
    /// Numbering plan of the sender.
    pub source_npi: u8,
    /// The recipient.
    pub destination: String,
    /// Type of number of the recipient.
    pub destination_ton: u8,
    /// Numbering plan of the recipient.
    pub destination_npi: u8,
    /// The final state.
    #[schema(value_type = FinalStateSchema, inline)]
    pub state: String,
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
    #[schema(nullable = false)]
    pub body: Option<String>,
    /// The plugin that routed the message.
    pub router: String,
    /// The plugin's version.
    pub router_version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// The submission, the routing and all steps, if requested.
    #[schema(nullable = false)]
    pub trace: Option<serde_json::Value>,
    /// The price, if a biller was asked.
    #[schema(nullable = false)]
    pub price: Option<FinishedPriceView>,
}

/// The price of a finished message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = FinishedPrice)]
pub struct FinishedPriceView {
    /// Millionths of the operator's currency; 0 if the message was free.
    pub amount: u64,
    /// The ledger account; omitted if the message was free.
    #[schema(nullable = false)]
    pub account: Option<String>,
    /// Whether the price was captured, released, or neither.
    #[schema(value_type = PriceStateSchema, inline)]
    pub state: String,
}

/// A row of `GET /v1/statistics`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = StatisticsCounts)]
pub struct StatisticsCountsView {
    /// Accepted from the submitter.
    pub accepted: u64,
    /// Accepted by the peer.
    pub responded: u64,
    /// Never accepted by the peer, by the last error code.
    pub refused: BTreeMap<String, u64>,
    /// Delivered, according to the last DLR.
    pub delivered: u64,
    /// Not delivered, by the error code of the last DLR.
    pub undelivered: BTreeMap<String, u64>,
    /// By final state.
    pub ended: BTreeMap<String, u64>,
    /// Time from acceptance to the peer's answer.
    pub response: LatencyView,
    /// Time from acceptance to the last DLR.
    pub dlr: LatencyView,
}

/// Latencies, in milliseconds.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
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
    #[schema(value_type = PumpStateSchema, inline)]
    pub state: String,
    /// Why it is down.
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
    pub state: serde_json::Value,
    /// The network's error code; 0 if there is none.
    pub error: u16,
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
    /// The sender's number.
    pub sender: String,
    /// The subscriber's number.
    pub subscriber: String,
}

/// A business system in `GET /v1/business`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Business)]
pub struct BusinessView {
    /// Its account.
    pub account: String,
    /// Its calls, by method and result.
    pub requests: Vec<BusinessRequestsView>,
    /// Messages accepted from it.
    pub accepted: u64,
    /// Messages and DLRs that it has fetched.
    pub fetched: u64,
    /// Fetched, but not yet acknowledged.
    pub leased: u64,
    /// Pushes to it; null if there are none.
    #[schema(required)]
    pub push: Option<BusinessPushView>,
}

/// Calls of one kind.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = BusinessRequests)]
pub struct BusinessRequestsView {
    /// The method.
    pub method: String,
    /// The result.
    pub result: String,
    /// Number of calls.
    pub count: u64,
}

/// Pushes to a business system.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = BusinessPush)]
pub struct BusinessPushView {
    /// The URL.
    pub url: String,
    /// Messages and DLRs pushed.
    pub pushed: u64,
    /// Failed attempts.
    pub failures: u64,
    /// Pushes in flight.
    pub in_flight: u64,
    /// Time of the last success, milliseconds since the epoch.
    #[schema(required)]
    pub last_success: Option<u64>,
    /// The last error.
    #[schema(required)]
    pub last_error: Option<String>,
}

/// A core network in `GET /v1/gsm`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreNetwork)]
pub struct CoreNetworkView {
    /// Its name.
    pub name: String,
    /// The appliance's role in it.
    #[schema(value_type = CoreNetworkRoleSchema, inline)]
    pub role: String,
    /// Connections of the network.
    pub connections: Vec<CoreConnectionView>,
    /// Whether the HLR's control interface answers; null if none is configured.
    #[schema(required, value_type = Option<bool>)]
    pub hlr_answers: serde_json::Value,
    /// Known subscribers.
    pub subscribers_known: u64,
    /// Unanswered MT messages.
    pub in_flight: u64,
    /// Counts of MT messages.
    #[schema(value_type = CoreNetworkMt)]
    pub mt: BTreeMap<String, serde_json::Value>,
    /// Counts of MO messages.
    #[schema(value_type = CoreNetworkMo)]
    pub mo: BTreeMap<String, serde_json::Value>,
    /// READY-FOR-SM notifications: handsets with free memory again.
    pub ready_for_sm: u64,
    /// Subscribers that became reachable again.
    pub attached: u64,
    /// Frames relayed between MSCs and HLR.
    pub relayed_frames: u64,
    /// HLR requests, by result.
    #[schema(value_type = HlrQuestions)]
    pub hlr_questions: BTreeMap<String, u64>,
    /// The last error.
    #[schema(required)]
    pub last_error: Option<String>,
    /// Active faults.
    pub faults: Vec<CoreNetworkFaultView>,
}

/// Counts of MT messages in a core network.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only a schema")]
struct CoreNetworkMt {
    /// Written to MSCs.
    sent: u64,
    /// Acknowledged by handsets.
    delivered: u64,
    /// Refused, by reason.
    refused: BTreeMap<String, u64>,
    /// Not answered in time.
    unanswered: u64,
    /// Answered after the timeout.
    answered_late: u64,
    /// Answered more than once.
    answered_twice: u64,
    /// Status reports sent to handsets.
    status_reports: u64,
}

/// Counts of MO messages in a core network.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only a schema")]
struct CoreNetworkMo {
    /// Received from handsets.
    received: u64,
    /// Of these, repetitions.
    repeated: u64,
    /// Refused, by RP cause.
    refused: BTreeMap<String, u64>,
}

/// HLR requests, by result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only a schema")]
struct HlrQuestions {
    /// All requests.
    asked: u64,
    /// Of these, not answered.
    unanswered: u64,
}

/// A fault of a core network.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreNetworkFault)]
pub struct CoreNetworkFaultView {
    /// `hlr-down`, `hlr-ctrl-down`, `no-msc`, `msc-without-sms` or `double-name`.
    #[schema(value_type = CoreNetworkFaultKindSchema, inline)]
    pub kind: String,
    /// `error` if the fault stops messages, else `warning`.
    #[schema(value_type = CoreNetworkFaultLevelSchema, inline)]
    pub level: String,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// A connection of a core network.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreConnection)]
pub struct CoreConnectionView {
    /// The name that the remote side has given.
    #[schema(required)]
    pub name: Option<String>,
    /// Address of the remote side.
    pub remote: String,
    /// Whether the connection is ready for traffic.
    pub ready: bool,
}
