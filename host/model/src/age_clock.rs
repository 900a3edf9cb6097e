//! The clock for ages of durable records, which are deleted at an age.

use crate::Timestamp;
use std::time::Duration;

/// The longest downtime after which the clock is still trusted.
const MAX_TRUSTED_DOWNTIME: Duration = Duration::from_secs(30 * 86_400);

/// The clock for the ages of durable records: no jump of the wall clock makes anything older.
///
/// While the process lives, ages grow with monotonic time. At the start, the wall clock is trusted if it is at most
/// 30 days after the newest record; otherwise nothing is deleted for its age until the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeClock {
    /// The wall clock at the start, if it is trusted.
    start: Option<Timestamp>,
}

impl AgeClock {
    /// The clock of a process that started at `wall`, trusted.
    #[must_use]
    pub const fn trusted(wall: Timestamp) -> Self {
        Self { start: Some(wall) }
    }

    /// The clock of a process that started at `wall`; `newest` is the time of the newest record of the previous
    /// process.
    #[must_use]
    pub fn checked(wall: Timestamp, newest: Option<Timestamp>) -> Self {
        let is_near = newest.is_none_or(|newest| wall - newest <= MAX_TRUSTED_DOWNTIME);
        Self { start: is_near.then_some(wall) }
    }

    /// Whether anything may be deleted for its age.
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        self.start.is_some()
    }

    /// The time for ages, `elapsed` of monotonic time after the start: the wall clock, but at most the start plus
    /// `elapsed`. `None` if nothing may be deleted for its age.
    #[must_use]
    pub fn now(self, elapsed: Duration, wall: Timestamp) -> Option<Timestamp> {
        self.start.map(|start| wall.min(start + elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const START: Timestamp = Timestamp(1_795_000_000_000);

    #[test]
    fn a_jump_of_the_wall_clock_makes_nothing_older() {
        let ages = AgeClock::trusted(START);
        assert_eq!(ages.now(HOUR, START + HOUR), Some(START + HOUR));
        assert_eq!(ages.now(HOUR, START + HOUR * 1000), Some(START + HOUR), "forward");
        assert_eq!(ages.now(HOUR, Timestamp(5)), Some(Timestamp(5)), "back");
    }

    #[test]
    fn a_clock_far_after_the_newest_record_is_not_trusted() {
        assert!(AgeClock::checked(START, None).is_trusted());
        assert!(AgeClock::checked(START, Some(START + HOUR)).is_trusted(), "an early clock deletes less");
        assert!(AgeClock::checked(START + HOUR * 24 * 30, Some(START)).is_trusted());
        let doubted = AgeClock::checked(START + HOUR * 24 * 31, Some(START));
        assert_eq!((doubted.is_trusted(), doubted.now(HOUR, START)), (false, None));
    }
}
