//! Number pools: their numbers, events on them, and the journal.

use crate::name_schemas::{
    NoStateSchema, NumberStateSchema, PoolChangeSchema, PoolNumberSchema, StrategySchema,
};
use model::{NumberState, PoolChange, Strategy, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of a number that is not in its pool.
pub const NO_STATE: &str = "none";

/// `GET /v1/pools`: all number pools.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AllPools)]
pub struct PoolsView {
    /// The pools, sorted by name.
    pub pools: Vec<PoolView>,
}

/// A number pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Pool)]
pub struct PoolView {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: PoolSettingsView,
    /// Its numbers, by state.
    pub numbers: PoolCountsView,
    /// Numbers that can be acquired now.
    pub ready: usize,
    /// Milliseconds until the next lease or quarantine ends; null if there is none.
    #[schema(required)]
    pub next_ms: Option<u64>,
    /// Number of journal entries so far: the id of the next entry.
    pub entries: u64,
    /// Numbers acquired since the start of the daemon.
    pub acquired: u64,
    /// Requests since the start of the daemon that found no number.
    pub none: u64,
    /// Leases that expired since the start of the daemon.
    pub lapsed: u64,
}

/// Settings of a pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolSettings)]
pub struct PoolSettingsView {
    /// The strategy that selects the next number.
    #[schema(value_type = StrategySchema, inline)]
    pub strategy: Strategy,
    /// Quarantine of a number after a release, in milliseconds.
    pub quarantine_ms: u64,
}

/// Settings of a pool. Omitted settings get their defaults.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolSettingsRequest {
    /// The strategy that selects the next number.
    #[schema(value_type = StrategySchema, inline)]
    pub strategy: Strategy,
    /// Quarantine of a number after a release, in milliseconds.
    #[schema(maximum = 315_360_000_000_u64)]
    pub quarantine_ms: u64,
}

/// Counts of a pool's numbers: by state, and in total.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolCounts)]
pub struct PoolCountsView {
    /// Available numbers.
    #[serde(rename = "idle+up")]
    pub idle_up: usize,
    /// Unavailable numbers without a lease.
    #[serde(rename = "idle+down")]
    pub idle_down: usize,
    /// Leased numbers.
    #[serde(rename = "busy+up")]
    pub busy_up: usize,
    /// Leased numbers that become unavailable after the lease.
    #[serde(rename = "busy+down")]
    pub busy_down: usize,
    /// All numbers.
    pub total: usize,
}

/// A number's state. Fields that do not apply are omitted.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolRow)]
pub struct PoolRowView {
    /// The state.
    #[schema(value_type = NumberStateSchema, inline)]
    pub state: NumberState,
    /// Start of the state, in milliseconds since the epoch.
    pub since: u64,
    /// The ticket of the current lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ticket: Option<u64>,
    /// The holder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holder: String,
    /// The holder's reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The id of the message that uses the number as its sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<String>,
    /// End of the lease, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lease_ends: Option<u64>,
    /// End of the quarantine, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rests_until: Option<u64>,
    /// The weight for the strategy `weighted`.
    #[schema(minimum = 1, maximum = 16)]
    pub weight: u8,
    /// Acquisitions of the number since it was added.
    pub calls: u32,
    /// Total time of completed leases, in seconds.
    pub held_seconds: u32,
    /// Expired leases of the number.
    pub lapsed: u32,
}

/// A number of a pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolNumber)]
pub struct PoolNumberView {
    /// The number.
    pub number: String,
    /// Its state.
    #[serde(flatten)]
    #[schema(inline)]
    pub row: PoolRowView,
    /// Milliseconds until the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lease_left_ms: Option<u64>,
    /// Milliseconds until the quarantine ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rest_left_ms: Option<u64>,
}

/// A page of a pool's numbers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = NumbersPage)]
pub struct PoolNumbersPage {
    /// The numbers.
    pub numbers: Vec<PoolNumberView>,
    /// The `cursor` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<u32>,
}

/// A journal entry: an event on a number, and the number's state after it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolEntry)]
pub struct PoolEntryView {
    /// The entry's id, counted from 0 in each pool.
    pub id: u64,
    /// Time of the event, in milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub at: Timestamp,
    /// The event.
    #[schema(value_type = PoolChangeSchema, inline)]
    pub event: PoolChange,
    /// The number.
    pub number: String,
    /// The caller that caused the event; omitted for timed events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    /// The number's state after the event.
    #[serde(flatten)]
    pub row: PoolEntryNumberView,
}

/// The number's state after the event.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PoolEntryNumber)]
pub enum PoolEntryNumberView {
    /// The number is in the pool.
    Present(PoolRowView),
    /// The number is not in the pool.
    Removed(PoolRemovedNumberView),
}

impl PoolEntryNumberView {
    /// The number's row; `None` if it is not in the pool.
    #[must_use]
    pub fn row(&self) -> Option<&PoolRowView> {
        match self {
            Self::Present(row) => Some(row),
            Self::Removed(_) => None,
        }
    }

    /// The name of the number's state.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.row().map_or(NO_STATE, |row| row.state.as_str())
    }
}

/// A number that is not in its pool.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolRemovedNumber)]
pub struct PoolRemovedNumberView {
    /// [`NO_STATE`].
    #[schema(value_type = NoStateSchema, inline)]
    pub state: String,
}

/// A page of a pool's journal.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PoolHistoryPage {
    /// The entries, newest first.
    pub entries: Vec<PoolEntryView>,
    /// The `before` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<u64>,
}

/// The data of the event `forgotten` of `GET /v1/pools/{pool}/watch`: entries that are no longer stored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PoolGapView {
    /// The id of the first one.
    pub from: u64,
    /// The id of the last one.
    pub to: u64,
}

/// An event on a number.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
#[schema(as = PoolEvent)]
pub enum PoolEventRequest {
    /// Adds the number to the pool.
    Add {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
        /// The weight. Default: 1 for a new number; the current weight for an existing one.
        #[schema(minimum = 1, maximum = 16)]
        weight: Option<u8>,
    },
    /// Removes the number from the pool.
    Del {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
    },
    /// Makes the number available.
    Reg {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
    },
    /// Makes the number unavailable.
    Unreg {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
    },
    /// Acquires this number, or any available one.
    Call {
        /// The number to acquire; any if omitted.
        #[schema(value_type = Option<PoolNumberSchema>, inline)]
        number: Option<String>,
        /// The holder; at most 255 octets.
        #[serde(default)]
        holder: String,
        /// The reason; at most 255 octets.
        #[serde(default)]
        reason: String,
        /// The user for the strategy `sticky`; default: the holder.
        #[serde(default)]
        user: String,
        /// The called party, for the strategies `sticky` and `nearest`.
        #[serde(default)]
        callee: String,
        /// Duration of the lease, in milliseconds. If omitted, the lease does not expire.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
    /// Releases the number.
    Hangup {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
        /// Release only if the number is held under this ticket. If omitted, release it from any holder.
        ticket: Option<u64>,
    },
    /// Renews the lease.
    Renew {
        /// The number.
        #[schema(value_type = PoolNumberSchema, inline)]
        number: String,
        /// Renew only if the number is held under this ticket. If omitted, renew it for any holder.
        ticket: Option<u64>,
        /// Duration of the lease from now on, in milliseconds. If omitted, the lease does not expire.
        #[schema(minimum = 1, maximum = 315_360_000_000_u64)]
        #[serde(rename = "lease-ms")]
        lease_ms: Option<u64>,
    },
}

/// One event, or several events in order.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PoolEvents)]
#[serde(untagged)]
pub enum PoolEventsRequest {
    /// One event.
    One(PoolEventRequest),
    /// Several events.
    Several(Vec<PoolEventRequest>),
}

/// The result of an event.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolResult)]
pub struct PoolEventResult {
    /// `done` or `refused`.
    #[schema(value_type = String)]
    pub result: PoolEventOutcome,
    /// The number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub number: Option<String>,
    /// The state of the number after the event; `none` if it is not in the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<String>,
    /// The ticket of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ticket: Option<u64>,
    /// The reason of a refusal, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// The reason of a refusal, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// Milliseconds after which a retry may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after_ms: Option<u64>,
}

/// Whether an event was applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolEventOutcome {
    /// It was applied.
    #[default]
    Done,
    /// It was refused.
    Refused,
}

/// The result of one event, or the results of all events.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolResults)]
#[serde(untagged)]
pub enum PoolEventResults {
    /// The result of one event.
    One(PoolEventResult),
    /// The results of an array of events.
    Several(Vec<PoolEventResult>),
}

/// The result of an import.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolImport)]
pub struct PoolImportResult {
    /// Lines in the file.
    pub lines: u64,
    /// Numbers added to the pool.
    pub added: u64,
    /// Numbers that were in the pool already.
    pub already: u64,
    /// Numbers refused because the appliance has its maximum of numbers.
    pub refused: u64,
    /// Invalid lines.
    pub wrong: u64,
    /// The first 100 invalid lines.
    pub errors: Vec<PoolImportErrorView>,
}

/// An invalid line.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PoolImportError)]
pub struct PoolImportErrorView {
    /// Line number, from 1.
    pub line: u64,
    /// The error.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn journal_entries_round_trip_with_and_without_a_row() {
        let row = json!({
            "state": "busy+up", "since": 5, "ticket": 7, "holder": "crm", "weight": 1, "calls": 2, "held-seconds": 3, "lapsed": 0,
        });
        for (number, state) in [(row, "busy+up"), (json!({ "state": "none" }), "none")] {
            let mut wire = json!({ "id": 3, "at": 9, "event": "call", "number": "+49", "by": "crm" });
            wire.as_object_mut().unwrap().extend(number.as_object().unwrap().clone());
            let entry: PoolEntryView = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!((entry.row.state(), entry.row.row().is_some()), (state, state != NO_STATE));
            assert_eq!(serde_json::to_value(&entry).unwrap(), wire);
        }
    }
}
