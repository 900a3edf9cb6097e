//! Finished messages, and what is remembered beside messages.

use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A page of `GET /v1/history`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct HistoryPage {
    /// Newest first.
    pub messages: Vec<Finished>,
    /// `cursor` of the next page; null: there is none.
    #[schema(required)]
    pub next: Option<String>,
}

/// A finished message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Finished {
    /// Its id.
    pub id: String,
    /// When it was accepted, as RFC 3339 has it.
    pub accepted_at: String,
    /// When it ended, as RFC 3339 has it.
    pub ended_at: String,
    /// `mt` from an account to the network, `mo` from the network to an account.
    pub direction: String,
    /// The customer of the house.
    pub account: String,
    /// The gateway; empty where it never came to one.
    pub peer: String,
    /// The sender.
    pub source: String,
    /// Its type of number.
    pub source_ton: u8,
    /// Its numbering plan.
    pub source_npi: u8,
    /// The addressee.
    pub destination: String,
    /// Its type of number.
    pub destination_ton: u8,
    /// Its numbering plan.
    pub destination_npi: u8,
    /// How it ended.
    pub state: String,
    /// The last error code that mattered, 0 where there was none.
    pub error: u32,
    /// The peer's id of its first part.
    #[schema(required)]
    pub peer_message_id: Option<String>,
    /// How often it was handed over.
    pub attempts: u16,
    /// Urgency, 0 to 3.
    pub priority: u8,
    /// Data coding scheme.
    pub data_coding: u8,
    /// Whether the body begins with a user data header.
    pub udhi: bool,
    /// The body in hexadecimal, where it was asked for.
    #[schema(nullable = false)]
    pub body: Option<String>,
    /// The plugin that decided on its route.
    pub router: String,
    /// That plugin's version.
    pub router_version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// How it was submitted and routed, and all its steps, where asked for.
    #[schema(nullable = false)]
    pub trace: Option<serde_json::Value>,
    /// What it was to cost, where a biller was asked.
    #[schema(nullable = false)]
    pub price: Option<FinishedPrice>,
}

/// What a finished message was to cost.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct FinishedPrice {
    /// Millionths of the house's currency; 0 where it was free.
    pub amount: u64,
    /// The ledger account; left out where it was free.
    #[schema(nullable = false)]
    pub account: Option<String>,
    /// Whether it was paid, given back, or neither.
    pub state: String,
}

/// One row of `GET /v1/statistics`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Statistics {
    /// Beginning of the hour or day, milliseconds since the epoch.
    pub start: u64,
    /// The account.
    pub account: String,
    /// The gateway; empty for messages that never came to one.
    pub peer: String,
    /// From the account to the network.
    pub mt: StatisticCounts,
    /// From the network to the account: its `accepted` are the replies.
    pub mo: StatisticCounts,
}

/// What became of some messages; each is counted once in every group.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct StatisticCounts {
    /// Accepted from the submitter.
    pub accepted: u64,
    /// Taken by the other side.
    pub responded: u64,
    /// Never taken by the other side, by the code of the last refusal.
    pub refused: BTreeMap<String, u64>,
    /// Delivered, by the last receipt.
    pub delivered: u64,
    /// Not delivered, by the error code of the last receipt.
    pub undelivered: BTreeMap<String, u64>,
    /// By final state.
    pub ended: BTreeMap<String, u64>,
    /// From acceptance to the other side's answer.
    pub response: Latency,
    /// From acceptance to the last receipt.
    pub report: Latency,
}

/// Times, in milliseconds.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Half of them were faster.
    pub p50: f64,
    /// 95 in a hundred were faster.
    pub p95: f64,
    /// 99 in a hundred were faster.
    pub p99: f64,
}

/// `GET /v1/archive`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Pump {
    /// `starting`, `up` or `down`.
    pub state: String,
    /// Why it is down.
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Messages put into the archive since the start.
    pub archived: u64,
    /// Transactions that did so.
    pub batches: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Messages that the data base refuses by themselves.
    pub refused: u64,
    /// Messages deleted for their age.
    pub trimmed: u64,
    /// Messages that wait to be archived.
    pub backlog: u64,
    /// Since the data base last did what it should; null: it never did.
    #[schema(required)]
    pub since_success: Option<Span>,
    /// What the last transaction took.
    pub last_batch: Span,
}

/// A length of time.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub struct Span {
    /// Whole seconds.
    pub secs: u64,
    /// Nanoseconds beyond.
    pub nanos: u32,
}

/// `GET /v1/reports/parked`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Parked {
    /// How many there are in all.
    pub parked: u64,
    /// The first of them.
    pub reports: Vec<ParkedReport>,
}

/// A report that matches no message yet.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ParkedReport {
    /// Its number.
    pub number: u64,
    /// The peer that it came from.
    pub peer: String,
    /// When it came, milliseconds since the epoch.
    pub at: u64,
    /// The peer's id of the message, in hexadecimal.
    pub peer_message_id: String,
    /// What it says became of the message.
    pub state: serde_json::Value,
    /// The operator's error code, 0 where there is none.
    pub error: u16,
}

/// `GET /v1/opt-outs`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OptOuts {
    /// Whom nothing more is sent.
    pub stopped: Vec<OptOut>,
}

/// One subscriber who has told one sender to stop.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OptOut {
    /// The sender's number.
    pub sender: String,
    /// The subscriber's number.
    pub subscriber: String,
}

/// A business system in `GET /v1/business`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Business {
    /// Its account.
    pub account: String,
    /// Its calls, by method and result.
    pub requests: Vec<BusinessRequests>,
    /// Messages accepted from it.
    pub accepted: u64,
    /// Messages and reports that it has fetched.
    pub fetched: u64,
    /// Of these, not confirmed yet.
    pub leased: u64,
    /// What is pushed to it; null where nothing is.
    #[schema(required)]
    pub push: Option<BusinessPush>,
}

/// Calls of one kind.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct BusinessRequests {
    /// What was asked for.
    pub method: String,
    /// What was answered.
    pub result: String,
    /// How often.
    pub count: u64,
}

/// Pushes to a business system.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct BusinessPush {
    /// Where to.
    pub url: String,
    /// Messages and reports pushed.
    pub pushed: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// On their way.
    pub in_flight: u64,
    /// When one last succeeded, milliseconds since the epoch.
    #[schema(required)]
    pub last_success: Option<u64>,
    /// What last went wrong.
    #[schema(required)]
    pub last_error: Option<String>,
}

/// A core network in `GET /v1/gsm`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CoreNetwork {
    /// Its name.
    pub name: String,
    /// What the appliance is to it.
    pub role: String,
    /// Connections from it and to it.
    pub connections: Vec<CoreConnection>,
    /// Whether the HLR answers.
    pub hlr_answers: serde_json::Value,
    /// Subscribers that are known.
    pub subscribers_known: u64,
    /// Short messages to handsets that are unanswered.
    pub in_flight: u64,
    /// Short messages to handsets.
    pub mt: BTreeMap<String, serde_json::Value>,
    /// Short messages from handsets.
    pub mo: BTreeMap<String, serde_json::Value>,
    /// Times that a handset said it has memory again.
    pub ready_for_sm: u64,
    /// Times that a subscriber came back.
    pub attached: u64,
    /// Frames passed on between the others.
    pub relayed_frames: u64,
    /// What the HLR was asked.
    pub hlr_questions: BTreeMap<String, u64>,
    /// What last went wrong.
    #[schema(required)]
    pub last_error: Option<String>,
    /// What somebody has to mend.
    pub faults: Vec<CoreNetworkFault>,
}

/// A fault of a core network.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CoreNetworkFault {
    /// `hlr-down`, `hlr-ctrl-down`, `no-msc`, `msc-without-sms` or `double-name`.
    pub kind: String,
    /// `error` if it stops messages, else `warning`.
    pub level: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// A connection of a core network.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CoreConnection {
    /// The name that the other end gave itself.
    #[schema(required)]
    pub name: Option<String>,
    /// The other end.
    pub remote: String,
    /// Whether it takes part.
    pub ready: bool,
}
