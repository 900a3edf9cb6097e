//! Pools, numbers and entries of journals, as the API shows them.

use super::words::{ChangeWord, NoState, NumberWord, StrategyWord};
use model::{
    NumberRow, NumberStanding, NumberState, PoolChange, PoolEntry, PoolSummary, Strategy, Timestamp,
};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// The state of a number that is not in its pool.
pub(super) const NONE: &str = "none";

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A number pool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Pool {
    /// Its name.
    name: String,
    settings: Settings,
    numbers: Counts,
    /// How many numbers are to be had now.
    ready: usize,
    /// Milliseconds until a lease or a rest ends.
    #[schema(required)]
    next_ms: Option<u64>,
    /// Entries that the history has had: the number of the next one.
    entries: u64,
    /// Numbers given since the start of the appliance.
    given: u64,
    /// Calls since then that found no number.
    none: u64,
    /// Leases since then that ended by themselves.
    lapsed: u64,
}

/// How numbers of a pool are given.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolSettings)]
pub(super) struct Settings {
    /// Which number is taken.
    #[schema(value_type = StrategyWord, inline)]
    strategy: Strategy,
    /// How long a number rests after a call, in milliseconds.
    quarantine_ms: u64,
}

/// How many numbers a pool has, by state and in all.
#[derive(Serialize, ToSchema)]
#[schema(as = PoolCounts)]
pub(super) struct Counts {
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

pub(super) fn pool(pool: &PoolSummary) -> Pool {
    Pool {
        name: pool.name.as_str().to_owned(),
        settings: Settings {
            strategy: pool.settings.strategy,
            quarantine_ms: millis(pool.settings.quarantine),
        },
        numbers: Counts {
            idle_up: pool.counts.idle_up,
            idle_down: pool.counts.idle_down,
            busy_up: pool.counts.busy_up,
            busy_down: pool.counts.busy_down,
            total: pool.counts.total(),
        },
        ready: pool.ready,
        next_ms: pool.next.map(millis),
        entries: pool.entries,
        given: pool.given,
        none: pool.none,
        lapsed: pool.lapsed,
    }
}

/// How a number stands. What is not so is left out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PoolRow)]
struct Row {
    #[schema(value_type = NumberWord, inline)]
    state: NumberState,
    /// Since when it is in its state, in milliseconds since 1970.
    since: u64,
    /// The name of the present holding.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ticket: Option<u64>,
    /// Who has it.
    #[serde(skip_serializing_if = "is_blank")]
    #[schema(value_type = String, required = false)]
    holder: Box<str>,
    /// What for.
    #[serde(skip_serializing_if = "is_blank")]
    #[schema(value_type = String, required = false)]
    reason: Box<str>,
    /// The id of the message whose sender it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
    /// When it is given back by itself, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lease_ends: Option<u64>,
    /// Until when it rests after its last call, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rests_until: Option<u64>,
    #[schema(minimum = 1, maximum = 16)]
    weight: u8,
    /// How often it was given since it came into the pool.
    calls: u32,
    /// How long it was held in all, the present holding left out.
    held_seconds: u32,
    /// How often its lease ended by itself.
    lapsed: u32,
}

fn is_blank(text: &str) -> bool {
    text.is_empty()
}

fn row(row: &NumberRow) -> Row {
    let held = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    let ends = row.ends.map(|at| at.0);
    Row {
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
pub(super) struct Number {
    number: String,
    #[serde(flatten)]
    #[schema(inline)]
    row: Row,
    /// Milliseconds until the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lease_left_ms: Option<u64>,
    /// Milliseconds until the rest ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rest_left_ms: Option<u64>,
}

pub(super) fn number(standing: &NumberStanding) -> Number {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(millis).unwrap_or(0);
    let row = row(&standing.row);
    let left = |end: Option<u64>| end.map(|end| end.saturating_sub(now));
    let (lease_left_ms, rest_left_ms) = (left(row.lease_ends), left(row.rests_until));
    Number { number: standing.number.to_string(), row, lease_left_ms, rest_left_ms }
}

/// Something that happened to a number of a pool, and how it stands since.
#[derive(Serialize, ToSchema)]
#[schema(as = PoolEntry)]
pub(super) struct Entry {
    /// The entry's number; they are counted from 0 in each pool.
    id: u64,
    /// When, in milliseconds since 1970.
    #[schema(value_type = u64)]
    at: Timestamp,
    #[schema(value_type = ChangeWord, inline)]
    event: PoolChange,
    number: String,
    /// Whose doing it was; left out where it was time's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    by: Option<Arc<str>>,
    #[serde(flatten)]
    standing: Standing,
}

/// How the number of an entry stands since.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PoolStanding)]
enum Standing {
    /// In the pool.
    In(Row),
    /// Not in the pool.
    Out(Out),
}

#[derive(Serialize, ToSchema)]
#[schema(as = PoolLeft)]
struct Out {
    #[schema(value_type = NoState, inline)]
    state: &'static str,
}

pub(super) fn entry(id: u64, entry: &PoolEntry) -> Entry {
    let standing = entry.row.as_ref().map(row).map_or(Standing::Out(Out { state: NONE }), Standing::In);
    Entry {
        id,
        at: entry.at,
        event: entry.change,
        number: entry.number.to_string(),
        by: entry.by.clone(),
        standing,
    }
}
