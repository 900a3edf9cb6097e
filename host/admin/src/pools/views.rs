//! API views of pools, numbers and journal entries.

use super::schemas::{ChangeSchema, NoStateSchema, NumberStateSchema, StrategySchema};
use model::{
    JournalEntry, NumberRow, NumberState, NumberStatus, PoolChange, PoolSummary, Strategy, Timestamp,
};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// The state of a number that is not in its pool.
pub(super) const NO_STATE: &str = "none";

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A number pool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Pool)]
pub(super) struct PoolView {
    /// Its name.
    name: String,
    settings: PoolSettingsView,
    numbers: PoolCountsView,
    /// Numbers that can be acquired now.
    ready: usize,
    /// Milliseconds until the next lease or quarantine ends; null if there is none.
    #[schema(required)]
    next_ms: Option<u64>,
    /// Number of journal entries so far: the id of the next entry.
    entries: u64,
    /// Numbers acquired since the start of the daemon.
    acquired: u64,
    /// Requests since the start of the daemon that found no number.
    none: u64,
    /// Leases that expired since the start of the daemon.
    lapsed: u64,
}

/// Settings of a pool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolSettings)]
pub(super) struct PoolSettingsView {
    /// The strategy that selects the next number.
    #[schema(value_type = StrategySchema, inline)]
    strategy: Strategy,
    /// Quarantine of a number after a release, in milliseconds.
    quarantine_ms: u64,
}

/// Counts of a pool's numbers, by state and in all.
#[derive(Serialize, ToSchema)]
#[schema(as = PoolCounts)]
pub(super) struct PoolCountsView {
    #[serde(rename = "idle+up")]
    idle_up: usize,
    #[serde(rename = "idle+down")]
    idle_down: usize,
    #[serde(rename = "busy+up")]
    busy_up: usize,
    #[serde(rename = "busy+down")]
    busy_down: usize,
    total: usize,
}

pub(super) fn pool(pool: &PoolSummary) -> PoolView {
    PoolView {
        name: pool.name.as_str().to_owned(),
        settings: PoolSettingsView {
            strategy: pool.settings.strategy,
            quarantine_ms: millis(pool.settings.quarantine),
        },
        numbers: PoolCountsView {
            idle_up: pool.counts.idle_up,
            idle_down: pool.counts.idle_down,
            busy_up: pool.counts.busy_up,
            busy_down: pool.counts.busy_down,
            total: pool.counts.total(),
        },
        ready: pool.ready,
        next_ms: pool.next.map(millis),
        entries: pool.entries,
        acquired: pool.acquired,
        none: pool.none,
        lapsed: pool.lapsed,
    }
}

/// A number's state. Fields that do not apply are omitted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolRow)]
struct NumberRowView {
    #[schema(value_type = NumberStateSchema, inline)]
    state: NumberState,
    /// Start of the state, in milliseconds since the epoch.
    since: u64,
    /// The ticket of the current lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ticket: Option<u64>,
    /// The holder.
    #[serde(skip_serializing_if = "is_empty_text")]
    #[schema(value_type = String, required = false)]
    holder: Box<str>,
    /// The holder's reason.
    #[serde(skip_serializing_if = "is_empty_text")]
    #[schema(value_type = String, required = false)]
    reason: Box<str>,
    /// The id of the message that uses the number as its sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
    /// End of the lease, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lease_ends: Option<u64>,
    /// End of the quarantine, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rests_until: Option<u64>,
    #[schema(minimum = 1, maximum = 16)]
    weight: u8,
    /// Acquisitions of the number since it was added.
    calls: u32,
    /// Total time of completed leases, in seconds.
    held_seconds: u32,
    /// Expired leases of the number.
    lapsed: u32,
}

fn is_empty_text(text: &str) -> bool {
    text.is_empty()
}

fn row(row: &NumberRow) -> NumberRowView {
    let held = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    let ends = row.ends.map(|at| at.0);
    NumberRowView {
        state: row.state,
        since: row.since.0,
        ticket: held.then_some(row.stamp),
        holder: row.holder.clone(),
        reason: row.reason.clone(),
        message: row.message.map(|id| id.to_string()),
        lease_ends: ends.filter(|_| held),
        rests_until: ends.filter(|_| !held),
        weight: row.weight,
        calls: row.calls,
        held_seconds: row.held,
        lapsed: row.lapsed,
    }
}

/// A number of a pool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolNumber)]
pub(super) struct NumberView {
    number: String,
    #[serde(flatten)]
    #[schema(inline)]
    row: NumberRowView,
    /// Milliseconds until the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lease_left_ms: Option<u64>,
    /// Milliseconds until the quarantine ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rest_left_ms: Option<u64>,
}

pub(super) fn number(status: &NumberStatus) -> NumberView {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(millis).unwrap_or(0);
    let row = row(&status.row);
    let left = |end: Option<u64>| end.map(|end| end.saturating_sub(now));
    let (lease_left_ms, rest_left_ms) = (left(row.lease_ends), left(row.rests_until));
    NumberView { number: status.number.to_string(), row, lease_left_ms, rest_left_ms }
}

/// A journal entry: an event on a number, and the number's state after it.
#[derive(Serialize, ToSchema)]
#[schema(as = PoolEntry)]
pub(super) struct PoolEntryView {
    /// The entry's id, counted from 0 in each pool.
    id: u64,
    /// Time of the event, in milliseconds since the epoch.
    #[schema(value_type = u64)]
    at: Timestamp,
    #[schema(value_type = ChangeSchema, inline)]
    event: PoolChange,
    number: String,
    /// The caller that caused the event; omitted for timed events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    by: Option<Arc<str>>,
    #[serde(flatten)]
    row: EntryNumberView,
}

/// The number's state after the event.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PoolEntryNumber)]
enum EntryNumberView {
    /// The number is in the pool.
    Present(NumberRowView),
    /// The number is not in the pool.
    Removed(RemovedNumberView),
}

#[derive(Serialize, ToSchema)]
#[schema(as = PoolRemovedNumber)]
struct RemovedNumberView {
    #[schema(value_type = NoStateSchema, inline)]
    state: &'static str,
}

pub(super) fn entry(id: u64, entry: &JournalEntry) -> PoolEntryView {
    let row = entry
        .row
        .as_ref()
        .map(row)
        .map_or(EntryNumberView::Removed(RemovedNumberView { state: NO_STATE }), EntryNumberView::Present);
    PoolEntryView {
        id,
        at: entry.at,
        event: entry.change,
        number: entry.number.to_string(),
        by: entry.by.clone(),
        row,
    }
}
