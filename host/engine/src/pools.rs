//! Number pools: numbers that many users share, each leased to one at a time.

mod idle_list;
mod pool;
mod recover;
mod registry;
mod sender_leases;
mod state_table;

#[cfg(test)]
mod tests;

pub use pool::Pool;
pub use registry::PoolLimits;
pub(crate) use registry::Pools;
pub use state_table::{StepReply, step};

use model::{MessageId, Moment, NumberState, PoolNumber, Timestamp};

/// The state of one number: 64 octets.
#[derive(Debug)]
struct Entry {
    number: PoolNumber,
    /// From the pool's serial: the ticket of a leased number, or the position of an idle one.
    stamp: u64,
    /// The time of its last change of state.
    since: Timestamp,
    /// The end of its lease or quarantine; [`NEVER`] if there is none.
    ends: Moment,
    /// The lease holder.
    holder: Option<Box<Holder>>,
    /// Calls since it was added.
    calls: u32,
    /// Seconds leased in all.
    held: u32,
    /// Leases that expired.
    lapsed: u32,
    /// Predecessor in the longest-idle queue; with weighted strategies, the position in its list.
    before: u32,
    /// Successor in the longest-idle queue.
    after: u32,
    weight: u8,
    /// It is in the list of ready numbers.
    listed: bool,
    /// Table `numbers` is not up to date.
    unwritten: bool,
    /// `None`: the slot is free.
    state: Option<NumberState>,
}

const NEVER: Moment = Moment(u64::MAX);

/// The holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    name: Box<str>,
    reason: Box<str>,
    /// The message that has it as its sender.
    message: Option<MessageId>,
}
