//! Counters per peer and per account.

use model::FinalState;
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of [`PeerCounts::answers`], in milliseconds.
pub const ANSWER_BOUNDS: [u64; 11] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000];
/// Maximum number of error codes with their own counter: peers choose the codes.
const CODES: usize = 32;

/// Counters since the start of the messages sent to one peer, or submitted by one account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Submit attempts.
    pub submitted: u64,
    /// Attempts refused as throttled or queue full.
    pub throttled: u64,
    /// Refused attempts by error code; `None` collects codes beyond the first 32.
    pub refused: BTreeMap<Option<u32>, u64>,
    /// Finished messages by [`FinalState`]; the index is its octet.
    pub ended: [u64; 8],
    /// Answers by response time, see [`ANSWER_BOUNDS`]; the last counter is above all bounds.
    pub answers: [u64; ANSWER_BOUNDS.len() + 1],
    /// DLRs that the receipt policy suspected.
    pub suspected: u64,
    /// The sum of the response times.
    pub answer_time: Duration,
}

impl PeerCounts {
    fn refused(&mut self, code: u32) {
        let counted = self.refused.len() < CODES || self.refused.contains_key(&Some(code));
        *self.refused.entry(counted.then_some(code)).or_default() += 1;
    }

    fn answered(&mut self, after: Duration) {
        let bound = ANSWER_BOUNDS.iter().position(|bound| after <= Duration::from_millis(*bound));
        self.answers[bound.unwrap_or(ANSWER_BOUNDS.len())] += 1;
        self.answer_time += after;
    }
}

/// A countable event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountedEvent {
    Submitted,
    Throttled,
    Refused { code: u32 },
    Answered { after: Duration },
    Ended(FinalState),
    Suspected,
}

impl CountedEvent {
    pub(crate) fn add_to(self, counts: &mut PeerCounts) {
        match self {
            Self::Submitted => counts.submitted += 1,
            Self::Throttled => counts.throttled += 1,
            Self::Refused { code } => counts.refused(code),
            Self::Answered { after } => counts.answered(after),
            Self::Suspected => counts.suspected += 1,
            Self::Ended(state) => counts.ended[state as usize] += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_from_outside_take_no_memory_without_bound() {
        let mut counts = PeerCounts::default();
        for code in 0..1_000 {
            counts.refused(code);
        }
        counts.refused(5);
        assert_eq!(counts.refused.len(), CODES + 1);
        assert_eq!((counts.refused[&None], counts.refused[&Some(5)]), (1_000 - CODES as u64, 2));
    }

    #[test]
    fn an_answer_is_counted_under_the_first_bound_that_it_does_not_exceed() {
        let mut counts = PeerCounts::default();
        for ms in [0, 1, 2, 30_000, 30_001] {
            counts.answered(Duration::from_millis(ms));
        }
        assert_eq!(counts.answers, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(counts.answer_time, Duration::from_millis(60_004));
    }
}
