use crate::{
    LeaseTicket, NumberRow, NumberState, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome,
    PoolSettings,
};
use std::time::Duration;

/// A request to a number pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolRequest {
    /// One operation. Answered by [`PoolAnswer::Outcome`]. A [`PoolOperation::Add`] creates a missing pool.
    Operation(PoolOperation),
    /// Several operations, with no other operation in between. Answered by [`PoolAnswer::Outcomes`]. A refused one does not
    /// undo the others.
    Operations(Vec<PoolOperation>),
    /// Creates the pool, or changes its settings. Answered by [`PoolAnswer::Pool`], or [`PoolAnswer::TooMany`].
    Configure(PoolSettings),
    /// Removes the pool. Answered by [`PoolAnswer::Removed`], [`PoolAnswer::NotEmpty`] or [`PoolAnswer::NoPool`].
    Remove {
        /// Also if it has numbers, even leased ones.
        with_numbers: bool,
    },
    /// The summary of the pool. Answered by [`PoolAnswer::Pool`] or [`PoolAnswer::NoPool`].
    Show,
    /// The status of one number. Answered by [`PoolAnswer::Number`].
    Number(PoolNumber),
    /// A part of its numbers, in no particular order. Every number that stays in the pool is listed exactly once. Answered
    /// by [`PoolAnswer::Numbers`].
    Numbers {
        /// The start: `next` of the previous part; 0 for the first.
        from: u32,
        /// The maximum number of numbers. At most [`PoolRequest::SCAN_LIMIT`] are scanned.
        most: u32,
        /// Only numbers in this state.
        state: Option<NumberState>,
        /// Only numbers with this prefix.
        prefix: Option<PoolNumber>,
    },
    /// A part of the ready numbers, in the order of leasing if the strategy has one. Answered by
    /// [`PoolAnswer::Idle`].
    Idle {
        /// The number of ready numbers to skip.
        skip: usize,
        /// The maximum number of numbers. At most [`PoolRequest::SCAN_LIMIT`] are scanned.
        most: usize,
    },
}

impl PoolRequest {
    /// The maximum number of numbers scanned for one [`PoolRequest::Numbers`] or [`PoolRequest::Idle`].
    pub const SCAN_LIMIT: u32 = 20_000;
}

/// The answer to a [`PoolRequest`]. It contains durable state only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolAnswer {
    /// The outcome of the operation.
    Outcome(PoolOutcome),
    /// The outcomes of the operations, in their order.
    Outcomes(Vec<PoolOutcome>),
    /// The summary of the pool.
    Pool(Box<PoolSummary>),
    /// The status of the number; `None`: it is not in the pool.
    Number(Option<Box<NumberStatus>>),
    /// A part of the numbers.
    Numbers {
        /// Their status.
        numbers: Vec<NumberStatus>,
        /// The start of the next part, for [`PoolRequest::Numbers`]; `None` after the last one.
        next: Option<u32>,
    },
    /// Ready numbers.
    Idle {
        /// The numbers.
        numbers: Vec<PoolNumber>,
        /// The number of all ready numbers.
        total: usize,
    },
    /// The pool was removed.
    Removed,
    /// Nothing changed: the pool has numbers.
    NotEmpty,
    /// The pool does not exist.
    NoPool,
    /// The appliance's limit of pools, or of numbers, is reached.
    TooMany,
}

/// The status of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberStatus {
    /// The number.
    pub number: PoolNumber,
    /// Its record.
    pub row: NumberRow,
}

impl NumberStatus {
    /// The ticket of its current lease, if it is leased.
    #[must_use]
    pub fn ticket(&self) -> Option<LeaseTicket> {
        let held = matches!(self.row.state, NumberState::BusyUp | NumberState::BusyDown);
        held.then_some(LeaseTicket(self.row.stamp))
    }
}

/// The numbers of a pool by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Idle and up, including numbers in quarantine.
    pub idle_up: usize,
    /// Idle and down.
    pub idle_down: usize,
    /// Busy and up.
    pub busy_up: usize,
    /// Busy and down.
    pub busy_down: usize,
}

impl PoolCounts {
    /// All numbers.
    #[must_use]
    pub fn total(&self) -> usize {
        self.idle_up + self.idle_down + self.busy_up + self.busy_down
    }
}

/// The summary of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSummary {
    /// Its id in the tables, which names its journal.
    pub id: PoolId,
    /// Its name.
    pub name: PoolName,
    /// Its settings.
    pub settings: PoolSettings,
    /// Its numbers by state.
    pub counts: PoolCounts,
    /// Ready numbers.
    pub ready: usize,
    /// The time until the next lease or quarantine ends, if any does.
    pub next: Option<Duration>,
    /// The number of journal entries so far; the number of the next one.
    pub entries: u64,
    /// Leases since the start of the appliance.
    pub acquired: u64,
    /// Requests for a number since the start that found none.
    pub none: u64,
    /// Leases since the start that expired.
    pub lapsed: u64,
}
