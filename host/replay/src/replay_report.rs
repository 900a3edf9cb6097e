use crate::Throughput;
use model::{MessageId, Timestamp};
use serde::{Deserialize, Serialize};

/// The report of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// The outcome. If it is not complete, the report covers the oldest messages only.
    pub ended: ReplayOutcome,
    /// Number of decided messages.
    pub messages: u64,
    /// Number of exact decisions: at the time the candidate would certainly have decided the same.
    pub exact: u64,
    /// Numbers of inexact decisions by reason, most frequent first.
    pub inexact: Vec<InexactReason>,
    /// Number of equivalent decisions.
    pub same: u64,
    /// Number of different decisions, over all groups.
    pub different: u64,
    /// Different decisions that refuse a message that was not refused.
    pub new_rejects: u64,
    /// Different decisions that are faults.
    pub new_faults: u64,
    /// Messages that were not routed, such as the appliance's own DLRs; not decided.
    pub unrouted: u64,
    /// Unreadable rows of the archive; not decided.
    pub damaged: u64,
    /// Groups of equal differences, most frequent first.
    pub groups: Vec<DifferenceGroup>,
    /// Messages of groups beyond the maximum.
    pub other: RemainingGroups,
    /// The difference in price; `None` if the candidate has no prices.
    pub price: Option<PriceReport>,
    /// The throughput.
    pub pace: Throughput,
}

/// How a replay ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum ReplayOutcome {
    /// At the last message.
    Complete,
    /// By cancellation.
    Cancelled,
    /// By an error of the source.
    Failed {
        /// The cause.
        why: String,
    },
}

/// Inexact decisions with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InexactReason {
    /// The reason.
    pub because: String,
    /// Number of messages.
    pub count: u64,
}

/// Messages with the same archived verdict and the same candidate verdict, which differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceGroup {
    /// The archived verdict: `forward north`, `forward north|south,reserve`, `home`, `hold`, `reject prohibited`. Peers
    /// of one rank are joined by `|`, ranks by `,`.
    pub from: String,
    /// The candidate's verdict; in addition to the above: `pass`, `fault trap`.
    pub to: String,
    /// Number of messages.
    pub count: u64,
    /// Number of exact decisions among them.
    pub exact: u64,
    /// The messages with the lowest ids.
    pub examples: Vec<DifferenceExample>,
}

/// One message of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceExample {
    /// Its id; in JSON the text form that submitters use, as everywhere in the API.
    #[serde(with = "as_text")]
    pub id: MessageId,
    /// Time of acceptance, in milliseconds since the Unix epoch.
    pub accepted_at: Timestamp,
    /// The account or peer that it came from.
    pub origin: String,
    /// Its source, masked.
    pub source: String,
    /// Its destination, masked.
    pub destination: String,
    /// The candidate's note.
    pub note: Option<String>,
    /// Whether the decision is exact.
    pub exact: bool,
}

/// The combined remaining groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemainingGroups {
    /// Number of messages.
    pub count: u64,
    /// Number of exact decisions among them.
    pub exact: u64,
}

/// Archived and candidate prices of messages, whatever their final state. Amounts are in millionths of the appliance's
/// currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The ledger accounts that differ most. A message whose account differs counts for both accounts.
    pub accounts: Vec<AccountPrice>,
    /// Sums over all other accounts.
    pub other: PriceSums,
}

/// Archived and candidate prices of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountPrice {
    /// The ledger account.
    pub account: String,
    /// The sums.
    #[serde(flatten)]
    pub sums: PriceSums,
}

/// Sums in millionths of the appliance's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PriceSums {
    /// Number of messages.
    pub messages: u64,
    /// Sum of the archived prices.
    pub old: u64,
    /// Sum of the candidate's prices.
    pub new: u64,
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
