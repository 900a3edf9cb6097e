//! Ages of durable records that are deleted at an age.

use crate::Timestamp;
use std::time::Duration;

/// How long a machine may be off before its clock is doubted.
const LONGEST_STOP: Duration = Duration::from_secs(30 * 86_400);

/// The clock by which the ages of durable records are counted: no jump of the wall clock makes anything older.
///
/// While the process lives, an age grows with monotonic time. At the start, the wall clock is believed if it stands no more than
/// 30 days after the newest record; otherwise nothing is old enough to be deleted until the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeClock {
    /// The wall clock at the start, where it is believed.
    start: Option<Timestamp>,
}

impl AgeClock {
    /// The clock of a process that has started at `wall`, and believes it.
    #[must_use]
    pub const fn believed(wall: Timestamp) -> Self {
        Self { start: Some(wall) }
    }

    /// The clock of a process that has started at `wall`; `newest` is the time of the newest record of the process before it.
    #[must_use]
    pub fn checked(wall: Timestamp, newest: Option<Timestamp>) -> Self {
        let is_near = newest.is_none_or(|newest| wall - newest <= LONGEST_STOP);
        Self { start: is_near.then_some(wall) }
    }

    /// Whether anything may be deleted for its age.
    #[must_use]
    pub const fn is_believed(self) -> bool {
        self.start.is_some()
    }

    /// The time by which ages are counted, `elapsed` of monotonic time after the start: the wall clock, but never further on
    /// than the time that has passed. `None` if nothing is to be deleted for its age.
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
        let ages = AgeClock::believed(START);
        assert_eq!(ages.now(HOUR, START + HOUR), Some(START + HOUR));
        assert_eq!(ages.now(HOUR, START + HOUR * 1000), Some(START + HOUR), "forward");
        assert_eq!(ages.now(HOUR, Timestamp(5)), Some(Timestamp(5)), "back");
    }

    #[test]
    fn a_clock_far_after_the_newest_record_is_not_believed() {
        assert!(AgeClock::checked(START, None).is_believed());
        assert!(AgeClock::checked(START, Some(START + HOUR)).is_believed(), "an early clock deletes less");
        assert!(AgeClock::checked(START + HOUR * 24 * 30, Some(START)).is_believed());
        let doubted = AgeClock::checked(START + HOUR * 24 * 31, Some(START));
        assert_eq!((doubted.is_believed(), doubted.now(HOUR, START)), (false, None));
    }
}
