//! What the API shows, in the shapes in which it shows it.

mod attention;
mod ledger;
mod messages;
mod orders;
mod plugins;
mod records;
mod refusals;
mod subscribers;

pub use attention::{Attention, Severity, Subject, SubjectKind};
pub use ledger::{Balance, Balances, ChangedBalance, LedgerOperation};
pub use messages::{MessagePage, MessageRow, WantedMessages};
pub use orders::{
    Order, OrderKind, OrderPreview, OrderSample, OrderScope, OrderState, Remedy, Settled, Uncertain,
    UncertainPage, WantedOrder, WantedSettlement,
};
pub use plugins::{
    Activation, Binding, BindingRecord, CandidateRecord, CandidateState, Comparison, Difference, FilledTable,
    Grants, HookEvent, HookRollback, HookState, InstanceUse, LongestKey, LookedUp, Mode, Moment, OnFault,
    PluginCounts, PluginVersion, Promotion, ReplayBegun, ReplayProgress, ReplayState, ReplayedHook, Table,
    TableKind, Tolerance, Trial, VersionName, WantedBinding, WantedReplay,
};
pub use records::{
    Business, BusinessPush, BusinessRequests, CoreConnection, CoreNetwork, CoreNetworkFault, Finished,
    FinishedPrice, HistoryPage, Latency, OptOut, OptOuts, Parked, ParkedReport, Pump, Span, StatisticCounts,
    Statistics,
};
pub use refusals::{RefusalCount, Refusals, RefusedSubmission};
pub use subscribers::{Subscriber, SubscriberQueue, Woken};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /v1/status`.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Status {
    /// The appliance's name.
    pub name: String,
    /// The daemon's version.
    pub version: String,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Messages that have not ended, receipts on their way to submitters included.
    pub waiting: u64,
    /// Finished messages that are kept.
    pub finished_kept: u64,
    /// Free octets on the disk of the data directory.
    pub disk_free: u64,
    /// Whether that is below the watermark: submissions are refused, delivery goes on.
    pub disk_low: bool,
    /// Messages read back at the start, and how long that took.
    pub recovered: u64,
    /// Milliseconds of recovery.
    pub recovery_ms: u64,
    /// Counts since the start.
    pub totals: BTreeMap<&'static str, u64>,
}

/// What blocks a queue, as far as the rules on attention tell reasons apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockedBy {
    /// Nothing, or something that passes without an admin.
    #[default]
    Other,
    /// An admin's order holds the whole queue.
    Order,
    /// The peer answers that it is asked too fast.
    Throttle,
}

/// One peer or account in `GET /v1/queues`.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub peer: String,
    /// Whether it is in the configuration.
    pub configured: bool,
    /// Waiting their turn.
    pub queued: u64,
    /// Of these, behind other messages to the same subscriber.
    pub aside: u64,
    /// Held back by orders when their turns came.
    pub suspended: u64,
    /// Subscribers to whom nothing is sent until a message that has failed is tried again.
    pub parked: u64,
    /// Waiting for their next attempt or schedule.
    pub deferred: u64,
    /// Waiting for the subscriber behind their number to be found.
    pub resolving: u64,
    /// On a link, unanswered.
    pub in_flight: u64,
    /// Written and never answered.
    pub uncertain: u64,
    /// Taken; a receipt is to come.
    pub awaiting_receipt: u64,
    /// When the oldest queued message was accepted, milliseconds since the epoch.
    #[schema(required)]
    pub oldest: Option<u64>,
    /// Links that take messages.
    pub links: usize,
    /// What stands between queue and links, and until when.
    pub brake: String,
    /// Messages a second that the peer allows, as learnt from what it has refused as too fast; null if it never has.
    #[schema(required)]
    pub learnt_rate: Option<f64>,
    /// What `brake` says, for the rules on attention.
    #[serde(skip)]
    pub blocked: BlockedBy,
    /// Whether it is an account's queue.
    #[serde(skip)]
    pub is_account: bool,
}

/// One link in `GET /v1/links`.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Link {
    /// Its number while it is bound.
    #[schema(required)]
    pub id: Option<u64>,
    /// The peer or account.
    pub peer: String,
    /// `server`: it came to us; `client`: we dialled.
    pub role: &'static str,
    /// Where it stands.
    pub phase: &'static str,
    /// The other end.
    #[schema(required)]
    pub remote: Option<String>,
    /// What it is bound as.
    #[schema(required)]
    pub bind: Option<&'static str>,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Messages of ours that may be unanswered.
    pub window: u32,
    /// Messages of ours that are.
    pub in_flight: u32,
    /// Requests that wait for our answer.
    pub unanswered_in: u32,
    /// Smoothed time to an answer, in microseconds.
    #[schema(required)]
    pub round_trip_us: Option<u64>,
    /// What limits it.
    pub brake: String,
    /// Requests in, by kind.
    pub received: BTreeMap<String, u64>,
    /// Requests out, by kind.
    pub sent: BTreeMap<String, u64>,
    /// Refusals out, by status.
    pub refused_by_us: BTreeMap<String, u64>,
    /// Refusals in, by status.
    pub refused_by_peer: BTreeMap<String, u64>,
    /// Since when it is in its phase.
    pub since: u64,
    /// Where it is not bound: since when, however often it was dialled since.
    #[schema(required)]
    pub down_since: Option<u64>,
    /// The last thing that went wrong.
    #[schema(required)]
    pub last_error: Option<String>,
    /// When it is dialled again.
    #[schema(required)]
    pub back_off_until: Option<u64>,
}

/// One step of a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Step {
    /// Milliseconds since the epoch.
    pub at: u64,
    /// What happened.
    pub what: String,
}

/// `GET /v1/messages/{id}`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Trace {
    /// Its id; its submitter knows it by this, or by `submission` where there is one.
    pub id: String,
    /// The id that stands for all destinations of its submission (SMPP submit_multi); nothing where it was submitted alone.
    #[schema(required)]
    pub submission: Option<String>,
    /// `queued`, `submitted`, `deferred` … or a final state.
    pub state: String,
    /// Whether that is the end.
    pub finished: bool,
    /// Who submitted it.
    pub origin: String,
    /// The sender.
    pub source: String,
    /// The addressee; masked unless the body was asked for.
    pub destination: String,
    /// When it was accepted.
    pub accepted_at: u64,
    /// End of its validity.
    pub expires_at: u64,
    /// Which plugin version decided where it goes, and why.
    pub why_here: WhyHere,
    /// What it was to cost; nothing where no biller was asked.
    #[schema(required)]
    pub price: Option<Price>,
    /// What it waits for, and until when; nothing once it has ended.
    #[schema(required)]
    pub why_late: Option<String>,
    /// Everything that happened to it, oldest first.
    pub steps: Vec<Step>,
    /// The ids that the peer gave to its parts.
    pub peer_ids: Vec<String>,
    /// Octets of text.
    pub length: usize,
    /// The text, where it was asked for.
    #[schema(required)]
    pub body: Option<String>,
}

/// How a message was routed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WhyHere {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its note.
    #[schema(required)]
    pub note: Option<String>,
    /// The verdict, with legs in the order in which they are tried.
    pub verdict: String,
    /// The leg in use.
    #[schema(required)]
    pub leg: Option<usize>,
}

/// What a message was to cost. What became of it is among the steps.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Price {
    /// The plugin that said so.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its note.
    #[schema(required)]
    pub note: Option<String>,
    /// The ledger account that pays; nothing where it was free.
    #[schema(required)]
    pub account: Option<String>,
    /// Millionths of the house's currency.
    pub amount: u64,
}

/// `POST /v1/explain`: a message that is not sent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hypothetical {
    /// The account, or the peer, that it would come from.
    pub origin: String,
    /// The sender.
    #[serde(default)]
    pub source: String,
    /// The addressee.
    pub destination: String,
    /// The text.
    #[serde(default)]
    pub text: String,
}

/// The answer to [`Hypothetical`].
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Explanation {
    /// Each step of the decision, in order.
    pub steps: Vec<String>,
    /// What the submitter would be told.
    pub answer: String,
}
