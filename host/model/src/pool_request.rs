use crate::{
    NumberRow, NumberState, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome, PoolSettings,
    PoolTicket,
};
use std::time::Duration;

/// What a user of number pools wants of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolRequest {
    /// One operation. Answered by [`PoolAnswer::Outcome`]. An [`PoolOperation::Add`] makes the pool if there is none.
    Do(PoolOperation),
    /// Several, one after the other, in one piece: nobody else's comes in between. Answered by [`PoolAnswer::Outcomes`]. One
    /// that is refused does not undo the others.
    DoAll(Vec<PoolOperation>),
    /// Makes the pool, or gives it other settings. Answered by [`PoolAnswer::Pool`], or [`PoolAnswer::TooMany`].
    Configure(PoolSettings),
    /// Takes the pool away. Answered by [`PoolAnswer::Removed`], [`PoolAnswer::NotEmpty`] or [`PoolAnswer::NoPool`].
    Remove {
        /// Also if it has numbers, whoever has them.
        with_numbers: bool,
    },
    /// How it stands. Answered by [`PoolAnswer::Pool`] or [`PoolAnswer::NoPool`].
    Show,
    /// How one number stands. Answered by [`PoolAnswer::Number`].
    Number(PoolNumber),
    /// A part of its numbers, in no particular order, but every number that is there all the while comes exactly once.
    /// Answered by [`PoolAnswer::Numbers`].
    Numbers {
        /// Where to go on: `next` of the part before; 0 for the first.
        from: u32,
        /// The most numbers of the part. No more than [`PoolRequest::MOST_LOOKED_AT`] are looked at, whatever it says.
        most: u32,
        /// Only those in this state.
        state: Option<NumberState>,
        /// Only those that begin with this.
        prefix: Option<PoolNumber>,
    },
    /// A part of the numbers that are to be had, in the order in which they are given where the strategy has one. Answered
    /// by [`PoolAnswer::Idle`].
    Idle {
        /// How many to leave out.
        skip: usize,
        /// The most numbers of the part. No more than [`PoolRequest::MOST_LOOKED_AT`] are looked at, whatever it says.
        most: usize,
    },
}

impl PoolRequest {
    /// The most numbers that are looked at for one [`PoolRequest::Numbers`] or [`PoolRequest::Idle`].
    pub const MOST_LOOKED_AT: u32 = 20_000;
}

/// What becomes of a [`PoolRequest`]. It tells only what is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolAnswer {
    /// What became of the operation.
    Outcome(PoolOutcome),
    /// What became of each operation, in their order.
    Outcomes(Vec<PoolOutcome>),
    /// How the pool stands.
    Pool(Box<PoolSummary>),
    /// How the number stands; `None`: it is not in the pool.
    Number(Option<Box<NumberStanding>>),
    /// Numbers, and where to go on; `None` when that was the last part.
    Numbers {
        /// How they stand.
        numbers: Vec<NumberStanding>,
        /// For [`PoolRequest::Numbers`].
        next: Option<u32>,
    },
    /// Numbers that are to be had.
    Idle {
        /// The numbers.
        numbers: Vec<PoolNumber>,
        /// How many are to be had in all.
        total: usize,
    },
    /// It is gone.
    Removed,
    /// Nothing was done: it has numbers.
    NotEmpty,
    /// There is no such pool.
    NoPool,
    /// There are as many pools, or numbers, as the appliance takes.
    TooMany,
}

/// How a number stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberStanding {
    /// Which.
    pub number: PoolNumber,
    /// How.
    pub row: NumberRow,
}

impl NumberStanding {
    /// The name of its present holding, where somebody has it.
    #[must_use]
    pub fn ticket(&self) -> Option<PoolTicket> {
        let held = matches!(self.row.state, NumberState::BusyUp | NumberState::BusyDown);
        held.then_some(PoolTicket(self.row.stamp))
    }
}

/// How many numbers of a pool are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Idle and up, those that rest among them.
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

/// How a pool stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSummary {
    /// Its number in the tables: names its journal.
    pub id: PoolId,
    /// Its name.
    pub name: PoolName,
    /// How it behaves.
    pub settings: PoolSettings,
    /// Its numbers by state.
    pub counts: PoolCounts,
    /// Numbers that are to be had now.
    pub ready: usize,
    /// Until a lease or a rest ends, if one does.
    pub next: Option<Duration>,
    /// Entries that its journal has had: the number of the next one.
    pub entries: u64,
    /// Numbers given since the start of the appliance.
    pub given: u64,
    /// Calls since then that found no number.
    pub none: u64,
    /// Leases since then that ended by themselves.
    pub lapsed: u64,
}
