use crate::{MessageId, NumberState, PoolNumber, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a pool: 1 to 100 octets of UTF-8 without spaces, control characters, braces and slashes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PoolName(Arc<str>);

impl PoolName {
    /// The maximum number of octets.
    pub const MAX_LEN: usize = 100;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a pool name.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} cannot be the name of a pool: expected 1 to 100 octets of UTF-8 without spaces, control characters, braces and \
     slashes, such as support-line"
)]
pub struct ParsePoolNameError(pub String);

impl FromStr for PoolName {
    type Err = ParsePoolNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '{' | '}' | '/');
        if (1..=Self::MAX_LEN).contains(&text.len()) && !text.contains(wrong) {
            return Ok(Self(text.into()));
        }
        Err(ParsePoolNameError(text.chars().take(Self::MAX_LEN).collect()))
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pool's id in the tables. After the pool is removed, its name may be used for another pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PoolId(pub u32);

/// The record of one pool number; it survives a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRow {
    /// Its state.
    pub state: NumberState,
    /// Ascending within the pool: the ticket of its lease, or its position in the idle order.
    pub stamp: u64,
    /// The time of its last change of state.
    pub since: Timestamp,
    /// The end of its lease or quarantine, by the wall clock.
    pub ends: Option<Timestamp>,
    /// The weight, 1 to 16.
    pub weight: u8,
    /// Calls since it was added.
    pub calls: u32,
    /// Seconds leased in all, without the current lease.
    pub held: u32,
    /// Leases that expired.
    pub lapsed: u32,
    /// The holder; empty if it is not leased, or the holder is unnamed.
    pub holder: Box<str>,
    /// The reason of the lease.
    pub reason: Box<str>,
    /// The message that has it as its sender.
    pub message: Option<MessageId>,
}

/// A change of a pool number: [`crate::NumberEvent`]s and timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum PoolChange {
    /// It was added.
    Add = 0,
    /// It was removed.
    Del = 1,
    /// It became usable.
    Reg = 2,
    /// It became unusable.
    Unreg = 3,
    /// It was leased.
    Call = 4,
    /// It was released.
    Hangup = 5,
    /// Its lease got a new end.
    Renew = 6,
    /// Its lease expired.
    Lapse = 7,
    /// Its quarantine ended.
    Rested = 8,
    /// Its weight changed.
    Weigh = 9,
}

impl PoolChange {
    /// The change of an octet; `None` if unknown.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        use PoolChange::{Add, Call, Del, Hangup, Lapse, Reg, Renew, Rested, Unreg, Weigh};
        [Add, Del, Reg, Unreg, Call, Hangup, Renew, Lapse, Rested, Weigh].get(usize::from(octet)).copied()
    }
}

impl fmt::Display for PoolChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One entry of a pool's journal: a change of a number, and its new state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The time of the change.
    pub at: Timestamp,
    /// The number.
    pub number: PoolNumber,
    /// The change.
    pub change: PoolChange,
    /// The new record; `None`: the number is no longer in the pool.
    pub row: Option<NumberRow>,
    /// The author; `None`: a timer.
    pub by: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pools() {
        for name in ["pool", "pool:1", "Ünïcode-名", "a", &"x".repeat(100)] {
            assert_eq!(name.parse::<PoolName>().map(|name| name.to_string()), Ok(name.to_owned()));
        }
        for name in ["", "a b", "{pool}", "a/b", "a\n", &"x".repeat(101)] {
            assert!(name.parse::<PoolName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn changes_round_trip() {
        for octet in 0..=u8::MAX {
            if let Some(change) = PoolChange::from_octet(octet) {
                assert_eq!(change as u8, octet);
            } else {
                assert!(octet > PoolChange::Weigh as u8);
            }
        }
    }
}
