//! The record of every numbered message of a run.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

const SENT: u8 = 1;
const ACCEPTED: u8 = 2;
const REFUSED: u8 = 4;

/// Number of source connections whose message order is checked.
const LANES: usize = 256;

/// Records for each message whether it was sent, how it was answered and how often it arrived.
///
/// Sources and sinks write concurrently; the result is exact once they have stopped.
#[derive(Debug)]
pub struct Tally {
    began: Instant,
    next: AtomicU64,
    fate: Vec<AtomicU8>,
    arrivals: Vec<AtomicU8>,
    receipts: Vec<AtomicU8>,
    /// Messages with a delivery receipt.
    with_receipt: AtomicU64,
    /// When each message was due, in microseconds since `began`.
    due: Vec<AtomicU32>,
    /// Highest number that arrived from each source connection.
    lanes: Vec<AtomicU64>,
    arrived: AtomicU64,
    accepted: AtomicU64,
    inversions: AtomicU64,
    unknown: AtomicU64,
}

/// The totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TallySummary {
    /// Written to a socket.
    pub sent: u64,
    /// Answered positively.
    pub accepted: u64,
    /// Answered negatively.
    pub refused: u64,
    /// Never answered.
    pub unanswered: u64,
    /// Arrived at the sink at least once.
    pub arrived: u64,
    /// Arrivals after the first.
    pub duplicates: u64,
    /// Answered positively but never arrived: lost.
    pub missing: u64,
    /// Arrived although they were refused.
    pub refused_arrived: u64,
    /// Arrived after a later message of the same source connection.
    pub inversions: u64,
    /// Arrived with a number that was never assigned.
    pub unknown: u64,
}

impl Tally {
    /// Allocates a record for this many messages.
    pub fn new(capacity: usize) -> Self {
        Self {
            began: Instant::now(),
            next: AtomicU64::new(0),
            fate: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            arrivals: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            receipts: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            with_receipt: AtomicU64::new(0),
            due: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            lanes: (0..LANES).map(|_| AtomicU64::new(0)).collect(),
            arrived: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            inversions: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        }
    }

    /// Number of messages there is room for.
    pub fn capacity(&self) -> usize {
        self.fate.len()
    }

    /// The numbers of the messages that were answered positively.
    pub fn accepted_numbers(&self) -> impl Iterator<Item = u64> {
        let is_accepted = |fate: &AtomicU8| fate.load(Ordering::Relaxed) & ACCEPTED != 0;
        (0..).zip(&self.fate).filter(move |(_, fate)| is_accepted(fate)).map(|(number, _)| number)
    }

    /// The zero of the tally's clock.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Microseconds by the tally's clock.
    pub fn micros(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_micros() as u64
    }

    /// Assigns a number to the next message; `None` when all are used.
    pub fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.fate.len() as u64).then_some(number)
    }

    /// Records that a message was sent; `due` is when it should have been sent, in microseconds.
    pub fn sent(&self, number: u64, due: u64) {
        self.due[number as usize].store(due as u32, Ordering::Relaxed);
        self.fate[number as usize].fetch_or(SENT, Ordering::Relaxed);
    }

    /// Records an answer.
    pub fn answered(&self, number: u64, accepted: bool) {
        let mark = if accepted { ACCEPTED } else { REFUSED };
        self.fate[number as usize].fetch_or(mark, Ordering::Relaxed);
        if accepted {
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records an arrival; returns the delay in microseconds since the message was due. `None` for unassigned numbers.
    pub fn arrived(&self, number: u64, lane: usize, now: u64) -> Option<u64> {
        let (Some(count), Some(due)) = (self.arrivals.get(number as usize), self.due.get(number as usize))
        else {
            self.unknown.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // The count stops at 255.
        let before = count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1))
            .unwrap_or(255);
        if before == 0 {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let latest = self.lanes[lane % LANES].fetch_max(number, Ordering::Relaxed);
            if latest > number {
                self.inversions.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some((now as u32).wrapping_sub(due.load(Ordering::Relaxed)).into())
    }

    /// Records that the source got a delivery receipt.
    pub fn receipt(&self, number: u64) {
        let Some(count) = self.receipts.get(number as usize) else { return self.count_unknown() };
        // The count stops at 255.
        let before = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        if before == Ok(0) {
            self.with_receipt.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The first few numbers that were answered positively and have no delivery receipt.
    pub fn without_receipt(&self, most: usize) -> Vec<u64> {
        self.accepted_without(&self.receipts, most)
    }

    /// The first few numbers that have arrived and have no delivery receipt, answered or not.
    pub fn arrived_without_receipt(&self, most: usize) -> Vec<u64> {
        let without = |number: &usize| {
            self.arrivals[*number].load(Ordering::Relaxed) > 0
                && self.receipts[*number].load(Ordering::Relaxed) == 0
        };
        (0..self.fate.len()).filter(without).take(most).map(|number| number as u64).collect()
    }

    /// Number of delivery receipts after the first of each message.
    pub fn repeated_receipts(&self) -> u64 {
        let counts = self.receipts.iter().map(|count| u64::from(count.load(Ordering::Relaxed)));
        counts.map(|count| count.saturating_sub(1)).sum()
    }

    /// Records an arrival without an assigned number.
    pub fn count_unknown(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of different messages that have arrived so far.
    pub fn arrived_count(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Number of positive answers so far.
    pub fn accepted_count(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Number of positive answers whose messages have not arrived; with `receipts`, whose DLRs have not arrived.
    pub fn backlog(&self, receipts: bool) -> u64 {
        let done = if receipts { self.with_receipt.load(Ordering::Relaxed) } else { self.arrived_count() };
        self.accepted_count().saturating_sub(done)
    }

    /// The first few numbers that were answered positively but never arrived.
    pub fn missing(&self, most: usize) -> Vec<u64> {
        self.accepted_without(&self.arrivals, most)
    }

    fn accepted_without(&self, counts: &[AtomicU8], most: usize) -> Vec<u64> {
        (0..self.fate.len())
            .filter(|&number| {
                self.fate[number].load(Ordering::Relaxed) & ACCEPTED != 0
                    && counts[number].load(Ordering::Relaxed) == 0
            })
            .take(most)
            .map(|number| number as u64)
            .collect()
    }

    /// Whether every positively answered message has arrived. Comparing the two counts is not enough: an unanswered message may
    /// have arrived as well.
    pub fn is_settled(&self) -> bool {
        self.missing(1).is_empty()
    }

    /// Computes the totals.
    pub fn summary(&self) -> TallySummary {
        let mut sums = TallySummary {
            inversions: self.inversions.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            ..TallySummary::default()
        };
        for (fate, arrivals) in self.fate.iter().zip(&self.arrivals) {
            let (fate, arrivals) =
                (fate.load(Ordering::Relaxed), u64::from(arrivals.load(Ordering::Relaxed)));
            sums.sent += u64::from(fate & SENT != 0);
            sums.accepted += u64::from(fate & ACCEPTED != 0);
            sums.refused += u64::from(fate & REFUSED != 0);
            sums.unanswered += u64::from(fate == SENT);
            sums.arrived += u64::from(arrivals > 0);
            sums.duplicates += arrivals.saturating_sub(1);
            sums.missing += u64::from(fate & ACCEPTED != 0 && arrivals == 0);
            sums.refused_arrived += u64::from(fate & REFUSED != 0 && arrivals > 0);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_counted_once() {
        let tally = Tally::new(4);
        for _ in 0..4 {
            let number = tally.take().expect("room for four");
            tally.sent(number, 0);
        }
        assert_eq!(tally.take(), None);
        tally.answered(0, true);
        tally.arrived(0, 0, 5);
        tally.arrived(0, 0, 6);
        tally.answered(1, true);
        tally.answered(2, false);
        tally.arrived(9, 0, 5);
        let wanted = TallySummary {
            sent: 4,
            accepted: 2,
            refused: 1,
            unanswered: 1,
            arrived: 1,
            duplicates: 1,
            missing: 1,
            refused_arrived: 0,
            inversions: 0,
            unknown: 1,
        };
        assert_eq!(tally.summary(), wanted);
        assert_eq!(tally.missing(10), [1]);
        tally.arrived(3, 0, 7);
        assert_eq!(tally.arrived_count(), tally.accepted_count());
        assert!(!tally.is_settled(), "one of those that arrived was never answered");
        tally.arrived(1, 0, 8);
        assert!(tally.is_settled());
    }

    #[test]
    fn a_late_arrival_is_an_inversion() {
        let tally = Tally::new(3);
        tally.arrived(2, 0, 0);
        tally.arrived(1, 0, 0);
        tally.arrived(0, 1, 0);
        assert_eq!(tally.summary().inversions, 1);
    }
}
