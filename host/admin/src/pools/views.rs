//! API views of pools, numbers and journal entries.

use api::{
    NO_STATE, PoolCountsView, PoolEntryNumberView, PoolEntryView, PoolNumberView, PoolRemovedNumberView,
    PoolRowView, PoolSettingsView, PoolView,
};
use model::{JournalEntry, NumberRow, NumberState, NumberStatus, PoolSummary, Timestamp};
use std::time::Duration;

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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

fn row(row: &NumberRow) -> PoolRowView {
    let held = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    let ends = row.ends.map(|at| at.0);
    PoolRowView {
        state: row.state,
        since: row.since.0,
        ticket: held.then_some(row.stamp),
        holder: row.holder.to_string(),
        reason: row.reason.to_string(),
        message: row.message.map(|id| id.to_string()),
        lease_ends: ends.filter(|_| held),
        rests_until: ends.filter(|_| !held),
        weight: row.weight,
        calls: row.calls,
        held_seconds: row.held,
        lapsed: row.lapsed,
    }
}

pub(super) fn number(status: &NumberStatus) -> PoolNumberView {
    let now = Timestamp::now().0;
    let row = row(&status.row);
    let left = |end: Option<u64>| end.map(|end| end.saturating_sub(now));
    let (lease_left_ms, rest_left_ms) = (left(row.lease_ends), left(row.rests_until));
    PoolNumberView { number: status.number.to_string(), row, lease_left_ms, rest_left_ms }
}

pub(super) fn entry(id: u64, entry: &JournalEntry) -> PoolEntryView {
    let removed = || PoolEntryNumberView::Removed(PoolRemovedNumberView { state: NO_STATE.to_owned() });
    PoolEntryView {
        id,
        at: entry.at,
        event: entry.change,
        number: entry.number.to_string(),
        by: entry.by.as_deref().map(str::to_owned),
        row: entry.row.as_ref().map(row).map_or_else(removed, PoolEntryNumberView::Present),
    }
}
