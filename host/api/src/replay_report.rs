//! The report of a replay.

use crate::name_schemas::ReplayOutcomeSchema;
use model::{MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The report of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplayReport {
    /// The outcome of the replay. Unless it is `complete`, the report covers only the oldest messages.
    #[schema(value_type = ReplayOutcomeObject)]
    pub ended: ReplayOutcome,
    /// Messages that the candidate decided. In a replay of the hooks `receipt` and `peer`, calls: a message may have several.
    pub messages: u64,
    /// Exact decisions: at the time of the message, the candidate would certainly have decided the same.
    pub exact: u64,
    /// Inexact decisions by reason, most frequent first.
    pub inexact: Vec<InexactReason>,
    /// Equivalent decisions.
    pub same: u64,
    /// Different decisions, over all groups.
    pub different: u64,
    /// Different decisions that refuse a message which was originally accepted.
    pub new_rejects: u64,
    /// Different decisions that are faults.
    pub new_faults: u64,
    /// Messages that were not routed, such as DLRs of the appliance, and messages without a recorded call of this hook; not
    /// decided.
    pub unrouted: u64,
    /// Unreadable rows of the archive; not decided.
    pub damaged: u64,
    /// Groups of equal differences, most frequent first.
    pub groups: Vec<DifferenceGroup>,
    /// Messages of groups beyond the maximum.
    pub other: RemainingGroups,
    /// The difference in price; null if the candidate has no prices.
    #[schema(required)]
    pub price: Option<PriceReport>,
    /// The throughput.
    pub pace: Throughput,
}

/// The outcome of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum ReplayOutcome {
    /// All messages were replayed.
    Complete,
    /// The replay was cancelled.
    Cancelled,
    /// The source of the messages failed.
    Failed {
        /// The cause.
        why: String,
    },
}

impl ReplayOutcome {
    /// Its name in the API.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }
}

/// The outcome of a replay.
#[derive(ToSchema)]
#[schema(as = ReplayOutcome)]
#[expect(dead_code, reason = "only a schema")]
struct ReplayOutcomeObject {
    /// The kind of outcome.
    #[schema(value_type = ReplayOutcomeSchema, inline)]
    how: String,
    /// The cause of a failure.
    #[schema(nullable = false)]
    why: Option<String>,
}

/// Inexact decisions with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InexactReason {
    /// The reason.
    pub because: String,
    /// Number of messages.
    pub count: u64,
}

/// Messages with the same archived verdict, and the same different verdict of the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceGroup {
    /// The archived verdict, such as `forward north` or `reject prohibited`.
    pub from: String,
    /// The candidate's verdict.
    pub to: String,
    /// Number of messages.
    pub count: u64,
    /// Of these, exact decisions.
    pub exact: u64,
    /// The messages with the lowest ids.
    pub examples: Vec<DifferenceExample>,
}

/// A message of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceExample {
    /// The message id.
    #[serde(with = "as_text")]
    #[schema(value_type = String)]
    pub id: MessageId,
    /// Time of acceptance, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub accepted_at: Timestamp,
    /// The account or peer that submitted the message.
    pub origin: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// The candidate's note.
    #[schema(required)]
    pub note: Option<String>,
    /// Whether the decision is exact.
    pub exact: bool,
    /// The differences in the request to the peer, in a replay of the hook `peer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<RequestDifference>,
}

/// A part of an HTTP request that differs. Secrets are replaced by `secret-NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestDifference {
    /// The part: `number of requests`, `method`, `url`, `header NAME` or `body`.
    pub part: String,
    /// The value of the live plugin; null if it sends no such part, or if the API request does not ask for message texts.
    #[schema(required)]
    pub live: Option<String>,
    /// The value of the candidate; null likewise.
    #[schema(required)]
    pub candidate: Option<String>,
}

/// The remaining groups together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RemainingGroups {
    /// Number of messages.
    pub count: u64,
    /// Of these, exact decisions.
    pub exact: u64,
}

/// Archived prices and prices of the candidate, in millionths of the operator's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceReport {
    /// Sums over all messages that the candidate priced.
    pub total: PriceSums,
    /// Messages with the same price.
    pub same: u64,
    /// Messages with a higher price.
    pub dearer: u64,
    /// Messages with a lower price.
    pub cheaper: u64,
    /// Messages that the candidate's biller refuses.
    pub new_refusals: u64,
    /// The ledger accounts that differ most.
    pub accounts: Vec<AccountPrice>,
    /// Sums over all other accounts.
    pub other: PriceSums,
}

/// Prices of a ledger account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountPrice {
    /// The ledger account.
    pub account: String,
    /// The sums.
    #[serde(flatten)]
    #[schema(inline)]
    pub sums: PriceSums,
}

/// Sums of prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PriceSums {
    /// Number of messages.
    pub messages: u64,
    /// Sum of the archived prices.
    pub old: u64,
    /// Sum of the candidate's prices.
    pub new: u64,
}

/// The throughput of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Throughput {
    /// Number of threads.
    pub threads: usize,
    /// Total time, in seconds.
    pub seconds: f64,
    /// Messages a second over the total time.
    pub messages_per_second: f64,
    /// Time that the reading thread waited for the database, in seconds.
    pub reading_seconds: f64,
    /// Processor time of decoding, in seconds, over all threads.
    pub decoding_seconds: f64,
    /// Messages a second that one core can read and decode.
    pub loaded_per_second_per_core: f64,
    /// Processor time of deciding and comparing, in seconds, over all threads.
    pub comparing_seconds: f64,
    /// Messages a second that one core can decide and compare.
    pub compared_per_second_per_core: f64,
}

mod as_text {
    use model::MessageId;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &MessageId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<MessageId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
