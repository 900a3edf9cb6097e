use crate::{NumberState, PoolNumber};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// The choice among the idle numbers, if the caller names none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The number that has been idle for the longest time.
    #[default]
    LongestIdle,
    /// A random number.
    Random,
    /// A random number, in proportion to the weights.
    Weighted,
    /// The same number for the same user and callee, while it is idle and the pool's numbers do not change; adding or
    /// removing a number moves few pairs only.
    Sticky,
    /// The number with the longest common prefix with the callee.
    Nearest,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::LongestIdle, Self::Random, Self::Weighted, Self::Sticky, Self::Nearest];

    /// Its name, `longest-idle` for instance.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LongestIdle => "longest-idle",
            Self::Random => "random",
            Self::Weighted => "weighted",
            Self::Sticky => "sticky",
            Self::Nearest => "nearest",
        }
    }
}

/// The text is not a strategy.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a strategy: expected longest-idle, random, weighted, sticky or nearest")]
pub struct ParseStrategyError(pub String);

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        found.ok_or_else(|| ParseStrategyError(text.chars().take(32).collect()))
    }
}

/// The settings of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolSettings {
    /// The strategy.
    pub strategy: Strategy,
    /// The quarantine: how long a released number is not leased again.
    pub quarantine: Duration,
}

/// The ticket of a lease; each lease of a number has a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseTicket(pub u64);

/// An operation on a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolOperation {
    /// Adds a number, idle and down. An existing number keeps its state, but gets the weight.
    Add {
        /// The number.
        number: PoolNumber,
        /// The weight for [`Strategy::Weighted`], 1 to 16; other values are clamped. Without one, a new number has 1,
        /// and an existing one keeps its own.
        weight: Option<u8>,
    },
    /// Removes a number, even a leased one: its ticket is void.
    Del {
        /// The number.
        number: PoolNumber,
    },
    /// Makes a number usable.
    Reg {
        /// The number.
        number: PoolNumber,
    },
    /// Makes a number unusable. A lease stays.
    Unreg {
        /// The number.
        number: PoolNumber,
    },
    /// Leases a number.
    Call(AcquireRequest),
    /// Releases a number.
    Hangup {
        /// The number.
        number: PoolNumber,
        /// Only if it is leased under this ticket. Without one, the current lease.
        ticket: Option<LeaseTicket>,
    },
    /// Sets a new end for the lease of a number, counted from now. Fails once the lease has expired.
    Renew {
        /// The number.
        number: PoolNumber,
        /// Only if it is leased under this ticket. Without one, the current lease.
        ticket: Option<LeaseTicket>,
        /// The lease time from now; `None`: without end.
        lease: Option<Duration>,
    },
}

/// A request for a lease.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AcquireRequest {
    /// This number; otherwise the pool's strategy chooses.
    pub number: Option<PoolNumber>,
    /// The holder. May be empty.
    pub holder: Box<str>,
    /// The reason. May be empty.
    pub reason: Box<str>,
    /// The user for [`Strategy::Sticky`]; if empty, the holder counts.
    pub user: Box<str>,
    /// The callee, for [`Strategy::Sticky`] and [`Strategy::Nearest`]. May be empty.
    pub callee: Box<str>,
    /// The lease time; afterwards the number is released.
    pub lease: Option<Duration>,
}

impl AcquireRequest {
    /// The maximum number of octets of a holder, and of a reason.
    pub const MAX_TEXT: usize = 255;
}

/// The outcome of a [`PoolOperation`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolOutcome {
    /// Done, or already in that state. The new state; `None`: not in the pool.
    Done(Option<NumberState>),
    /// The number is leased to the caller.
    Acquired {
        /// The number.
        number: PoolNumber,
        /// The ticket of the lease.
        ticket: LeaseTicket,
    },
    /// Nothing changed.
    Refused(PoolRefusal),
}

/// The reason why a [`PoolOperation`] was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolRefusal {
    /// The number is not in the pool.
    #[error("the number is not in the pool: add it first")]
    NotInPool,
    /// The state of the number does not allow the operation.
    #[error("the number is {0}, which does not allow the operation")]
    WrongState(NumberState),
    /// The number is leased under another ticket: the caller's lease has expired.
    #[error("the number is leased under another ticket: this lease has expired")]
    OtherTicket,
    /// The number is in quarantine after its last lease.
    #[error("the number is in quarantine for another {} ms", remaining.as_millis())]
    InQuarantine {
        /// The remaining time.
        remaining: Duration,
    },
    /// The appliance's limit of pool numbers is reached.
    #[error("the limit of pool numbers is reached: raise `max-numbers`")]
    Full,
    /// Holder or reason is longer than [`AcquireRequest::MAX_TEXT`].
    #[error("holder and reason are limited to 255 octets each: shorten them")]
    TooLong,
    /// The pool has no numbers.
    #[error("the pool has no numbers")]
    Empty,
    /// No number of the pool is up.
    #[error("all numbers of the pool are down")]
    AllDown,
    /// All numbers that are up are leased.
    #[error("all numbers of the pool that are up are busy; {}", retry_hint(*remaining))]
    AllBusy {
        /// The time until the next lease of a usable number expires, if any does.
        remaining: Option<Duration>,
    },
    /// All numbers that are up are leased or in quarantine, and at least one is in quarantine.
    #[error("no number of the pool is ready, some are in quarantine; {}", retry_hint(*remaining))]
    AllInQuarantine {
        /// The time until a quarantine, or the lease of a usable number, ends.
        remaining: Option<Duration>,
    },
}

fn retry_hint(remaining: Option<Duration>) -> String {
    remaining.map_or_else(
        || "no lease has an end".to_owned(),
        |remaining| format!("the next one is ready in {} ms", remaining.as_millis()),
    )
}
