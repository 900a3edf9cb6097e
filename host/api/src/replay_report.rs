//! OpenAPI schemas of the report of a replay, which the crate `replay` defines.

#![expect(dead_code, reason = "only schemas")]

use super::name_schemas::ReplayOutcomeSchema;
use utoipa::ToSchema;

/// The report of a replay.
#[derive(ToSchema)]
pub(super) struct ReplayReport {
    /// How the replay ended. If it is not complete, the report covers the oldest messages only.
    ended: ReplayOutcome,
    /// Messages that the candidate decided.
    messages: u64,
    /// Exact decisions: at the time of the message, the candidate would certainly have decided the same.
    exact: u64,
    /// Inexact decisions by reason, most frequent first.
    inexact: Vec<InexactReason>,
    /// Equivalent decisions.
    same: u64,
    /// Different decisions, over all groups.
    different: u64,
    /// Different decisions that refuse a message that was not refused.
    new_rejects: u64,
    /// Different decisions that are faults.
    new_faults: u64,
    /// Messages that were not routed, such as DLRs of the appliance; not decided.
    unrouted: u64,
    /// Unreadable rows of the archive; not decided.
    damaged: u64,
    /// Groups of equal differences, most frequent first.
    groups: Vec<DifferenceGroup>,
    /// Messages of groups beyond the maximum.
    other: RemainingGroups,
    /// The difference in price; null if the candidate has no prices.
    #[schema(required)]
    price: Option<PriceReport>,
    /// The throughput.
    pace: Throughput,
}

/// How a replay ended.
#[derive(ToSchema)]
struct ReplayOutcome {
    /// The kind of end.
    #[schema(value_type = ReplayOutcomeSchema, inline)]
    how: String,
    /// The cause of a failure.
    #[schema(nullable = false)]
    why: Option<String>,
}

/// Inexact decisions with one reason.
#[derive(ToSchema)]
struct InexactReason {
    /// The reason.
    because: String,
    /// Number of messages.
    count: u64,
}

/// Messages with the same archived verdict and the same verdict of the candidate, which differ.
#[derive(ToSchema)]
struct DifferenceGroup {
    /// The archived verdict, such as `forward north` or `reject prohibited`.
    from: String,
    /// The candidate's verdict.
    to: String,
    /// Number of messages.
    count: u64,
    /// Of these, exact decisions.
    exact: u64,
    /// The messages with the lowest ids.
    examples: Vec<DifferenceExample>,
}

/// A message of a group.
#[derive(ToSchema)]
struct DifferenceExample {
    /// The message id.
    id: String,
    /// Time of acceptance, milliseconds since the epoch.
    accepted_at: u64,
    /// The account or peer that submitted the message.
    origin: String,
    /// The sender, masked.
    source: String,
    /// The recipient, masked.
    destination: String,
    /// The candidate's note.
    #[schema(required)]
    note: Option<String>,
    /// Whether the decision is exact.
    exact: bool,
}

/// The remaining groups together.
#[derive(ToSchema)]
struct RemainingGroups {
    /// Number of messages.
    count: u64,
    /// Of these, exact decisions.
    exact: u64,
}

/// Archived prices and prices of the candidate, in millionths of the operator's currency.
#[derive(ToSchema)]
struct PriceReport {
    /// Sums over all messages that the candidate priced.
    total: PriceSums,
    /// Messages with the same price.
    same: u64,
    /// Messages with a higher price.
    dearer: u64,
    /// Messages with a lower price.
    cheaper: u64,
    /// Messages that the candidate's biller refuses.
    new_refusals: u64,
    /// The ledger accounts that differ most.
    accounts: Vec<AccountPrice>,
    /// Sums over all other accounts.
    other: PriceSums,
}

/// Prices of a ledger account.
#[derive(ToSchema)]
struct AccountPrice {
    /// The ledger account.
    account: String,
    /// Number of messages.
    messages: u64,
    /// Sum of the archived prices.
    old: u64,
    /// Sum of the candidate's prices.
    new: u64,
}

/// Sums of prices.
#[derive(ToSchema)]
struct PriceSums {
    /// Number of messages.
    messages: u64,
    /// Sum of the archived prices.
    old: u64,
    /// Sum of the candidate's prices.
    new: u64,
}

/// The throughput of a replay.
#[derive(ToSchema)]
struct Throughput {
    /// Number of threads.
    threads: usize,
    /// Total time, in seconds.
    seconds: f64,
    /// Messages a second over the total time.
    messages_per_second: f64,
    /// Time that the reading thread waited for the database, in seconds.
    reading_seconds: f64,
    /// Processor time of decoding, in seconds, over all threads.
    decoding_seconds: f64,
    /// Messages a second that one core can read and decode.
    loaded_per_second_per_core: f64,
    /// Processor time of deciding and comparing, in seconds, over all threads.
    comparing_seconds: f64,
    /// Messages a second that one core can decide and compare.
    compared_per_second_per_core: f64,
}
