use crate::{NumberState, PoolNumber};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// Which of the idle numbers a caller gets who does not name one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The one that has been idle longest.
    #[default]
    LongestIdle,
    /// Any.
    Random,
    /// Any, each as often as its weight says.
    Weighted,
    /// For the same user and callee the same, as long as it is idle and the pool's numbers stay what they are; one more
    /// or one less moves only few pairs.
    Sticky,
    /// The one that has the longest beginning in common with the callee.
    Nearest,
}

impl Strategy {
    /// All of them.
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

/// What is no strategy.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no strategy: expected longest-idle, random, weighted, sticky or nearest")]
pub struct ParseStrategyError(pub String);

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        found.ok_or_else(|| ParseStrategyError(text.chars().take(32).collect()))
    }
}

/// How a pool behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolSettings {
    /// Which number is given.
    pub strategy: Strategy,
    /// How long a number rests after it was given back, before anybody gets it again.
    pub quarantine: Duration,
}

/// Names one holding of a number: another one of the same number, later, has another ticket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PoolTicket(pub u64);

/// What is asked of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolOperation {
    /// Puts a number in, idle and down. One that is there already stays as it is, but for its weight.
    Add {
        /// The number.
        number: PoolNumber,
        /// How often it is given, beside others, by [`Strategy::Weighted`]: 1 to 16; what is beyond counts as the nearest
        /// of these. Without one, a new number has 1, and one that is there already keeps its own.
        weight: Option<u8>,
    },
    /// Takes a number out, whoever has it: its holder's ticket is void.
    Del {
        /// The number.
        number: PoolNumber,
    },
    /// Makes a number usable.
    Reg {
        /// The number.
        number: PoolNumber,
    },
    /// Makes a number unusable. Who has it keeps it.
    Unreg {
        /// The number.
        number: PoolNumber,
    },
    /// Takes a number.
    Call(PoolCall),
    /// Gives a number back.
    Hangup {
        /// The number.
        number: PoolNumber,
        /// Only if it is still held under this ticket. Without one, whoever holds it.
        ticket: Option<PoolTicket>,
    },
    /// Sets a new end for the lease of a number that is held, counted from now. Too late once the lease has ended.
    Renew {
        /// The number.
        number: PoolNumber,
        /// Only if it is still held under this ticket. Without one, whoever holds it.
        ticket: Option<PoolTicket>,
        /// How long from now; `None`: without an end.
        lease: Option<Duration>,
    },
}

/// A number is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolCall {
    /// This one; otherwise the pool's strategy chooses.
    pub number: Option<PoolNumber>,
    /// Who takes it. May be empty.
    pub holder: Box<str>,
    /// What for. May be empty.
    pub reason: Box<str>,
    /// The user that [`Strategy::Sticky`] looks at; where it is empty, the holder is.
    pub user: Box<str>,
    /// Whom it is for: [`Strategy::Sticky`] and [`Strategy::Nearest`] look at it. May be empty.
    pub callee: Box<str>,
    /// After this long the number is given back by itself.
    pub lease: Option<Duration>,
}

impl PoolCall {
    /// The most octets that a holder, and a reason, can have.
    pub const LONGEST_TEXT: usize = 255;
}

/// What became of a [`PoolOperation`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolOutcome {
    /// Done, or it was so already. The state is the one after it; `None`: not in the pool.
    Done(Option<NumberState>),
    /// The caller has this number.
    Given {
        /// The number.
        number: PoolNumber,
        /// The name of the holding.
        ticket: PoolTicket,
    },
    /// Nothing has changed.
    Refused(PoolRefusal),
}

/// Why a [`PoolOperation`] was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolRefusal {
    /// The named number is not in the pool.
    #[error("the number is not in the pool: add it first")]
    NotInPool,
    /// The named number is in a state in which this cannot be done.
    #[error("the number is {0}, and this cannot be done with it")]
    WrongState(NumberState),
    /// The named number is held under another ticket: the lease of the caller's has ended.
    #[error("the number is held under another ticket: this one's lease has ended")]
    OtherTicket,
    /// The named number rests after its last call.
    #[error("the number rests for another {} ms after its last call", left.as_millis())]
    Resting {
        /// How much longer.
        left: Duration,
    },
    /// The appliance has as many numbers as it takes.
    #[error("the appliance has as many numbers in its pools as it takes: raise `most-numbers`")]
    Full,
    /// Holder or reason is longer than [`PoolCall::LONGEST_TEXT`].
    #[error("holder and reason may have 255 octets each: shorten them")]
    TooLong,
    /// The pool has no numbers.
    #[error("the pool has no numbers")]
    Empty,
    /// No number of the pool is up.
    #[error("all numbers of the pool are down")]
    AllDown,
    /// Somebody has each number that is up.
    #[error("all numbers of the pool that are up are busy; {}", told(*left))]
    AllBusy {
        /// Until the next lease of a number that is up ends, if any has an end.
        left: Option<Duration>,
    },
    /// Each number that is up is busy or rests after its last call, and one at least rests.
    #[error("no number of the pool is ready, some rest after their last call; {}", told(*left))]
    AllResting {
        /// Until a rest, or the lease of a number that is up, ends.
        left: Option<Duration>,
    },
}

fn told(left: Option<Duration>) -> String {
    left.map_or_else(
        || "no lease has an end".to_owned(),
        |left| format!("the next one is to be had in {} ms", left.as_millis()),
    )
}
