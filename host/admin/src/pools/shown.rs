//! Pools, numbers and entries of journals, as the API shows them.

use model::{NumberRow, NumberStanding, NumberState, PoolEntry, PoolSummary, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The state of a number that is not in its pool.
pub(super) const NONE: &str = "none";

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn pool(pool: &PoolSummary) -> Value {
    json!({
        "name": pool.name.as_str(),
        "settings": {
            "strategy": pool.settings.strategy,
            "quarantine-ms": millis(pool.settings.quarantine),
        },
        "numbers": {
            "idle+up": pool.counts.idle_up,
            "idle+down": pool.counts.idle_down,
            "busy+up": pool.counts.busy_up,
            "busy+down": pool.counts.busy_down,
            "total": pool.counts.total(),
        },
        "ready": pool.ready,
        "next-ms": pool.next.map(millis),
        "entries": pool.entries,
        "given": pool.given,
        "none": pool.none,
        "lapsed": pool.lapsed,
    })
}

/// How a number stands. What is not so is left out.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row<'a> {
    state: NumberState,
    since: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    holder: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ends: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rests_until: Option<u64>,
    weight: u8,
    calls: u32,
    held_seconds: u32,
    lapsed: u32,
}

fn row(row: &NumberRow) -> Row<'_> {
    let held = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    let ends = row.ends.map(|at| at.0);
    Row {
        state: row.state,
        since: row.since.0,
        ticket: held.then_some(row.stamp),
        holder: &row.holder,
        reason: &row.reason,
        message: row.message.map(|id| id.to_string()),
        lease_ends: ends.filter(|_| held),
        rests_until: ends.filter(|_| !held),
        weight: row.weight,
        calls: row.calls,
        held_seconds: row.held,
        lapsed: row.lapsed,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Number<'a> {
    number: String,
    #[serde(flatten)]
    row: Row<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_left_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rest_left_ms: Option<u64>,
}

pub(super) fn number(standing: &NumberStanding) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(millis).unwrap_or(0);
    let row = row(&standing.row);
    let left = |end: Option<u64>| end.map(|end| end.saturating_sub(now));
    let (lease_left_ms, rest_left_ms) = (left(row.lease_ends), left(row.rests_until));
    let number = Number { number: standing.number.to_string(), row, lease_left_ms, rest_left_ms };
    json!(number)
}

#[derive(Serialize)]
struct Entry<'a> {
    id: u64,
    at: Timestamp,
    event: model::PoolChange,
    number: String,
    /// Time has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(flatten)]
    row: Option<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

pub(super) fn entry(id: u64, entry: &PoolEntry) -> Value {
    let row = entry.row.as_ref().map(row);
    json!(Entry {
        id,
        at: entry.at,
        event: entry.change,
        number: entry.number.to_string(),
        by: entry.by.as_deref(),
        state: row.is_none().then_some(NONE),
        row,
    })
}
