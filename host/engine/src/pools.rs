//! Number pools: numbers that many users share, each held by one at a time.

mod all;
mod lists;
mod pool;
mod recover;
mod senders;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use all::Pools;
pub use all::{PoolBatch, PoolLimits, Purge};
pub use pool::Pool;
pub use table::{Reply, step};

use model::{MessageId, Moment, NumberState, PoolNumber, Timestamp};

/// What a pool knows of one number: 64 octets.
#[derive(Debug)]
struct Entry {
    number: PoolNumber,
    /// From the pool's serial: of a number that is held, its ticket; of an idle one, its place in the order of idling.
    stamp: u64,
    /// Since when it is in its state.
    since: Timestamp,
    /// When the lease or the rest ends; [`NEVER`] where there is none.
    ends: Moment,
    /// Who has it and what for.
    holder: Option<Box<Holder>>,
    /// Calls since it came into the pool.
    calls: u32,
    /// Seconds that it was held in all.
    held: u32,
    /// Leases that ended by themselves.
    lapsed: u32,
    /// In the queue of the longest idle: who came before. Where numbers are drawn: the place in the urn.
    before: u32,
    /// In the queue of the longest idle: who comes next.
    after: u32,
    weight: u8,
    /// In the list of those that are to be had.
    listed: bool,
    /// The table does not have it as it is.
    unwritten: bool,
    /// `None`: the slot is free.
    state: Option<NumberState>,
}

const NEVER: Moment = Moment(u64::MAX);

/// Who has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    name: Box<str>,
    reason: Box<str>,
    /// The message whose sender it is.
    message: Option<MessageId>,
}
