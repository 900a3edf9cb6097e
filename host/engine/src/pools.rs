//! Number pools: numbers that many users share, each held by one at a time.

mod lists;
mod pool;
mod recover;
mod table;

#[cfg(test)]
mod tests;

pub use pool::{Pool, PoolCounts};
pub use recover::NumberRow;
pub use table::{Reply, step};

use model::{Moment, NumberState, PoolNumber};

/// What a pool knows of one number: 48 octets.
#[derive(Debug)]
struct Entry {
    number: PoolNumber,
    /// From the pool's serial: of a number that is held, its ticket; of an idle one, its place in the order of idling.
    stamp: u64,
    /// When the lease or the rest ends; [`NEVER`] where there is none.
    ends: Moment,
    /// Who has it and what for.
    holder: Option<Box<Holder>>,
    /// Calls since it came into the pool.
    calls: u32,
    /// In the queue of the longest idle: who came before. Where numbers are drawn: the place in the urn.
    before: u32,
    /// In the queue of the longest idle: who comes next.
    after: u32,
    weight: u8,
    /// In the list of those that are to be had.
    listed: bool,
    /// `None`: the slot is free.
    state: Option<NumberState>,
}

const NEVER: Moment = Moment(u64::MAX);

/// Who has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    name: Box<str>,
    reason: Box<str>,
}
