use crate::{MessageId, NumberState, PoolNumber, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a pool: 1 to 100 octets of UTF-8 without spaces, control characters, braces and slashes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PoolName(Arc<str>);

impl PoolName {
    /// The most octets of a name.
    pub const LONGEST: usize = 100;

    /// The name as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What cannot be the name of a pool.
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
        if (1..=Self::LONGEST).contains(&text.len()) && !text.contains(wrong) {
            return Ok(Self(text.into()));
        }
        Err(ParsePoolNameError(text.chars().take(Self::LONGEST).collect()))
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pool's number in the tables; the name may be given to another pool once this one is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PoolId(pub u32);

/// What is known of one number of a pool; also what must survive a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRow {
    /// Its state.
    pub state: NumberState,
    /// Grows within the pool: the ticket of whoever has it, or its place in the order of idling.
    pub stamp: u64,
    /// Since when it is in its state.
    pub since: Timestamp,
    /// When its lease or its rest ends, by the wall clock.
    pub ends: Option<Timestamp>,
    /// 1 to 16.
    pub weight: u8,
    /// Calls since it came into the pool.
    pub calls: u32,
    /// Seconds that it was held in all, the present holding left out.
    pub held: u32,
    /// Holdings that ended because their lease did.
    pub lapsed: u32,
    /// Who has it; empty where nobody does, or did not say.
    pub holder: Box<str>,
    /// What for.
    pub reason: Box<str>,
    /// The message that has it for its sender.
    pub message: Option<MessageId>,
}

/// What happened to a number of a pool: [`crate::NumberEvent`]s, and what time does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum PoolChange {
    /// It came into the pool.
    Add = 0,
    /// It left the pool.
    Del = 1,
    /// It can be used.
    Reg = 2,
    /// It cannot be used any more.
    Unreg = 3,
    /// Somebody took it.
    Call = 4,
    /// It was given back.
    Hangup = 5,
    /// Its lease has a new end.
    Renew = 6,
    /// Its lease ended: it was taken back.
    Lapse = 7,
    /// Its rest after a call ended: it is to be had again.
    Rested = 8,
    /// It is drawn more or less often from now on.
    Weigh = 9,
}

impl PoolChange {
    /// Reads the octet that `self as u8` is; `None` for others.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        use PoolChange::{Add, Call, Del, Hangup, Lapse, Reg, Renew, Rested, Unreg, Weigh};
        [Add, Del, Reg, Unreg, Call, Hangup, Renew, Lapse, Rested, Weigh].get(usize::from(octet)).copied()
    }
}

/// One entry of a pool's journal: something happened to a number, and how it stands since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    /// When.
    pub at: Timestamp,
    /// To which.
    pub number: PoolNumber,
    /// What.
    pub change: PoolChange,
    /// How it stands after that; `None`: it is not in the pool any more.
    pub row: Option<NumberRow>,
    /// Whose doing it was; `None`: time's.
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
    fn changes_read_what_they_write() {
        for octet in 0..=u8::MAX {
            if let Some(change) = PoolChange::from_octet(octet) {
                assert_eq!(change as u8, octet);
            } else {
                assert!(octet > PoolChange::Weigh as u8);
            }
        }
    }
}
