//! Counters of one peer or of one account.

use crate::engine::Engine;
use crate::slab::{Slot, flag};
use model::{FinalState, Now, PeerId};
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of [`Counts::answers`], in milliseconds.
pub const ANSWER_BOUNDS: [u64; 11] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000];
/// How many codes of refusals are counted singly: they come from outside.
const CODES: usize = 32;

/// What happened since the start to the messages that one peer was given, or that one account submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages given to links, every attempt counted.
    pub submitted: u64,
    /// Attempts refused as too fast, or because the peer's queue was full.
    pub throttled: u64,
    /// All refused attempts by the code of the answer; under `None` those of further codes than the first 32.
    pub refused: BTreeMap<Option<u32>, u64>,
    /// Ended messages by [`FinalState`], index = octet.
    pub ended: [u64; 8],
    /// Answers by the time from when the message was given to the link, see [`ANSWER_BOUNDS`]; the last are above all bounds.
    pub answers: [u64; ANSWER_BOUNDS.len() + 1],
    /// The sum of these times.
    pub answer_time: Duration,
}

impl Counts {
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

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counted {
    Submitted,
    Throttled,
    Refused { code: u32 },
    Answered { after: Duration },
    Ended(FinalState),
}

impl Counted {
    fn add_to(self, counts: &mut Counts) {
        match self {
            Self::Submitted => counts.submitted += 1,
            Self::Throttled => counts.throttled += 1,
            Self::Refused { code } => counts.refused(code),
            Self::Answered { after } => counts.answered(after),
            Self::Ended(state) => counts.ended[state as usize] += 1,
        }
    }
}

impl Engine {
    /// Counts for the peer that the message is with, and for the account that submitted it.
    pub(crate) fn count(&mut self, slot: Slot, counted: Counted) {
        let entry = &self.slab[slot];
        let (peer, origin, own) = (entry.peer, entry.origin, entry.has(flag::OWN_RECEIPT));
        // A message that never had a peer stands under its account.
        let ended_nowhere = matches!(counted, Counted::Ended(_)) && peer == origin;
        if !ended_nowhere {
            counted.add_to(&mut self.peer_mut(peer).counts);
        }
        if !own {
            counted.add_to(&mut self.peer_mut(origin).submitter_counts);
        }
    }

    /// An answer has come to an attempt that began at `since`.
    pub(crate) fn count_answer(&mut self, now: Now, slot: Slot, since: Option<model::Moment>) {
        if let Some(since) = since {
            self.count(slot, Counted::Answered { after: now.mono - since });
        }
    }

    /// Of all peers and accounts: the counters of what each was given, and those of what each submitted.
    pub fn counts(&self) -> impl Iterator<Item = (PeerId, &Counts, &Counts)> {
        self.peers.iter().map(|peer| (peer.settings.peer, &peer.counts, &peer.submitter_counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_from_outside_take_no_memory_without_bound() {
        let mut counts = Counts::default();
        for code in 0..1_000 {
            counts.refused(code);
        }
        counts.refused(5);
        assert_eq!(counts.refused.len(), CODES + 1);
        assert_eq!((counts.refused[&None], counts.refused[&Some(5)]), (1_000 - CODES as u64, 2));
    }

    #[test]
    fn an_answer_is_counted_under_the_first_bound_that_it_does_not_exceed() {
        let mut counts = Counts::default();
        for ms in [0, 1, 2, 30_000, 30_001] {
            counts.answered(Duration::from_millis(ms));
        }
        assert_eq!(counts.answers, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(counts.answer_time, Duration::from_millis(60_004));
    }
}
