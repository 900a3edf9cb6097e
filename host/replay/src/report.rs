use crate::Pace;
use model::{MessageId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether that is all of it. A replay that did not come to its end tells of the oldest messages, up to some point.
    pub ended: Ended,
    /// Messages that were judged.
    pub messages: u64,
    /// Of which the candidate would certainly have said then what it says now.
    pub exact: u64,
    /// Of which it might have said something else then, by reason, most first.
    pub inexact: Vec<Inexact>,
    /// It decides as was decided.
    pub same: u64,
    /// It decides otherwise; all groups together.
    pub different: u64,
    /// Of those: it refuses what was not refused.
    pub new_rejects: u64,
    /// Of those: it fails.
    pub new_faults: u64,
    /// Messages that no router was asked about, such as receipts of the house's own; not judged.
    pub unrouted: u64,
    /// Rows of the archive that cannot be read; not judged.
    pub damaged: u64,
    /// What becomes of what, most first.
    pub groups: Vec<Group>,
    /// Messages of groups beyond the most that are told apart.
    pub other: Other,
    /// What it would cost; `None` where the candidate prices nothing.
    pub price: Option<PriceReport>,
    /// How fast it went.
    pub pace: Pace,
}

/// How a replay ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Ended {
    /// With the last message.
    Complete,
    /// Because it was told to.
    Cancelled,
    /// Because messages could not be read any more.
    Failed {
        /// Why.
        why: String,
    },
}

/// Messages that are not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inexact {
    /// Why.
    pub because: String,
    /// How many.
    pub count: u64,
}

/// Messages that were decided in one way and would be in another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What was decided: `forward north`, `forward north|south,reserve`, `home`, `hold`, `reject prohibited`. Peers of one
    /// rank are joined by `|`, ranks by `,`.
    pub from: String,
    /// What the candidate decides; beside the above: `pass`, `fault trap`.
    pub to: String,
    /// How many.
    pub count: u64,
    /// How many of them are exact.
    pub exact: u64,
    /// Those with the lowest ids.
    pub examples: Vec<Example>,
}

/// One message of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// Its id; in JSON the text that submitters know, as everywhere in the API.
    #[serde(with = "as_text")]
    pub id: MessageId,
    /// When it was accepted, milliseconds since the Unix epoch.
    pub accepted_at: Timestamp,
    /// The account or peer that it came from.
    pub origin: String,
    /// Its source, masked.
    pub source: String,
    /// Its destination, masked.
    pub destination: String,
    /// The candidate's note.
    pub note: Option<String>,
    /// Whether it is exact.
    pub exact: bool,
}

/// What is not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Other {
    /// How many messages.
    pub count: u64,
    /// How many of them are exact.
    pub exact: u64,
}

/// What messages were to cost and what they would, whatever became of them. Amounts are millionths of the house's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceReport {
    /// All messages that the candidate priced.
    pub total: Sums,
    /// Of those: they cost the same.
    pub same: u64,
    /// They cost more.
    pub dearer: u64,
    /// They cost less.
    pub cheaper: u64,
    /// The candidate's biller refuses them.
    pub new_refusals: u64,
    /// The ledger accounts that differ most. A message that another account would pay for counts for both.
    pub accounts: Vec<AccountPrice>,
    /// All other accounts together.
    pub other: Sums,
}

/// What an account was to pay, and what it would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountPrice {
    /// The ledger account.
    pub account: String,
    /// How much.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Amounts, in millionths of the house's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Of how many messages.
    pub messages: u64,
    /// As it was.
    pub old: u64,
    /// As it would be.
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
