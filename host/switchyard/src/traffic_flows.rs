//! Counts the traffic of the last minute: messages by submitter, submit attempts by submitter and peer.

use api::TrafficCounts;
use model::{ErrorClass, ObservationKind, PeerId, PeerObservation, Timestamp};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;

/// Length of a step, in milliseconds.
const STEP_MS: u64 = 5_000;
/// Number of steps that the figures cover: the current one and earlier ones.
const STEPS: u64 = 12;
/// Maximum number of flows, and of submitters. The traffic of further ones is not shown.
const MAX_KEYS: usize = 20_000;

/// The traffic of the last minute. Only the observer's thread adds to it.
#[derive(Debug)]
pub(crate) struct TrafficFlows {
    started: Timestamp,
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    submitters: HashMap<PeerId, Steps<u64>>,
    flows: HashMap<(PeerId, PeerId), Steps<TrafficCounts>>,
    /// Step in which windows without traffic were last removed.
    swept: u64,
}

/// The sums of the last minute.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TrafficSums {
    /// The period that the sums cover, in milliseconds.
    pub(crate) window_ms: u64,
    /// Accepted messages by submitter.
    pub(crate) submitters: Vec<(PeerId, u64)>,
    /// Counts by submitter and destination.
    pub(crate) flows: Vec<((PeerId, PeerId), TrafficCounts)>,
}

/// Counts by step, as a ring.
#[derive(Debug)]
struct Steps<T>([(u64, T); STEPS as usize]);

impl<T: Copy + Default> Steps<T> {
    fn new() -> Self {
        Self([(0, T::default()); STEPS as usize])
    }

    /// The counts of a step. If the clock was set back, counts of later steps are dropped.
    fn at(&mut self, step: u64) -> &mut T {
        let (counted, counts) = &mut self.0[(step % STEPS) as usize];
        if *counted != step {
            (*counted, *counts) = (step, T::default());
        }
        counts
    }

    fn recent(&self, step: u64) -> impl Iterator<Item = &T> {
        self.0.iter().filter(move |(at, _)| *at <= step && *at + STEPS > step).map(|(_, counts)| counts)
    }

    fn is_over(&self, step: u64) -> bool {
        self.0.iter().all(|(at, _)| *at > step || *at + STEPS <= step)
    }
}

/// Messages that were accepted in one batch, by submitter.
pub(crate) type AcceptedCounts = Vec<(PeerId, u64)>;

/// Counts a submitter's message. Messages of one submitter often follow each other.
pub(crate) fn count_accepted(accepted: &mut AcceptedCounts, origin: PeerId) {
    match accepted.last_mut() {
        Some((last, count)) if *last == origin => *count += 1,
        _ => accepted.push((origin, 1)),
    }
}

impl TrafficFlows {
    pub(crate) fn new(started: Timestamp) -> Self {
        Self { started, windows: Mutex::default() }
    }

    /// Adds the counts and observations of a batch.
    pub(crate) fn add(&self, now: Timestamp, accepted: &[(PeerId, u64)], observations: &[PeerObservation]) {
        let mut windows = self.windows.lock();
        windows.sweep(now.0 / STEP_MS);
        for (origin, count) in accepted {
            if let Some(steps) = entry(&mut windows.submitters, *origin) {
                *steps.at(now.0 / STEP_MS) += count;
            }
        }
        for one in observations {
            let Some(steps) = entry(&mut windows.flows, (one.origin, one.peer)) else { continue };
            let counts = steps.at(one.at.0 / STEP_MS);
            match one.kind {
                ObservationKind::Accepted => counts.accepted += 1,
                ObservationKind::Refused(ErrorClass::Throttled | ErrorClass::QueueFull) => {
                    counts.throttled += 1;
                }
                ObservationKind::Refused(_) => counts.refused += 1,
                ObservationKind::Unanswered => counts.unanswered += 1,
                ObservationKind::Delivered { .. } => counts.delivered += 1,
                ObservationKind::Failed { .. } => counts.failed += 1,
                ObservationKind::Converted => {}
            }
        }
    }

    /// The sums of the last minute, without submitters and flows that had no traffic.
    pub(crate) fn sums(&self, now: Timestamp) -> TrafficSums {
        let step = now.0 / STEP_MS;
        let windows = self.windows.lock();
        let submitters = windows.submitters.iter();
        let submitters = submitters.map(|(id, steps)| (*id, steps.recent(step).sum::<u64>()));
        let flows = windows.flows.iter().map(|(key, steps)| {
            let mut sum = TrafficCounts::default();
            steps.recent(step).for_each(|counts| sum.add(counts));
            (*key, sum)
        });
        let window_ms = (STEPS - 1) * STEP_MS + now.0 % STEP_MS;
        TrafficSums {
            window_ms: window_ms.min(now.0.saturating_sub(self.started.0)).max(1_000),
            submitters: submitters.filter(|(_, accepted)| *accepted > 0).collect(),
            flows: flows.filter(|(_, counts)| *counts != TrafficCounts::default()).collect(),
        }
    }
}

fn entry<K: Hash + Eq, T: Copy + Default>(map: &mut HashMap<K, Steps<T>>, key: K) -> Option<&mut Steps<T>> {
    if map.len() >= MAX_KEYS && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_insert_with(Steps::new))
}

impl Windows {
    /// Removes windows without traffic, once a step.
    fn sweep(&mut self, step: u64) {
        if self.swept != step {
            self.swept = step;
            self.submitters.retain(|_, steps| !steps.is_over(step));
            self.flows.retain(|_, steps| !steps.is_over(step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_800_000_000_000;

    fn observed(origin: u32, peer: u32, at: u64, kind: ObservationKind) -> PeerObservation {
        PeerObservation { peer: PeerId(peer), origin: PeerId(origin), at: Timestamp(at), message: None, kind }
    }

    #[test]
    fn traffic_counts_for_a_minute() {
        let flows = TrafficFlows::new(Timestamp(AT));
        let throttled = ObservationKind::Refused(ErrorClass::Throttled);
        flows.add(
            Timestamp(AT),
            &[(PeerId(1), 3), (PeerId(2), 1), (PeerId(1), 2)],
            &[
                observed(1, 9, AT, ObservationKind::Accepted),
                observed(1, 9, AT, throttled),
                observed(1, 8, AT, ObservationKind::Unanswered),
            ],
        );
        flows.add(
            Timestamp(AT + 30_000),
            &[(PeerId(1), 1)],
            &[observed(1, 9, AT + 30_000, ObservationKind::Accepted)],
        );
        let mut sums = flows.sums(Timestamp(AT + 30_000));
        sums.submitters.sort_unstable_by_key(|(id, _)| id.0);
        sums.flows.sort_unstable_by_key(|(key, _)| key.1.0);
        assert_eq!(sums.submitters, [(PeerId(1), 6), (PeerId(2), 1)]);
        let unanswered = TrafficCounts { unanswered: 1, ..TrafficCounts::default() };
        let north = TrafficCounts { accepted: 2, throttled: 1, ..TrafficCounts::default() };
        assert_eq!(sums.flows, [((PeerId(1), PeerId(8)), unanswered), ((PeerId(1), PeerId(9)), north)]);
        assert_eq!(sums.window_ms, 30_000);

        let later = flows.sums(Timestamp(AT + 62_000));
        assert_eq!((later.submitters, later.window_ms), (vec![(PeerId(1), 1)], 57_000));
        let north = TrafficCounts { accepted: 1, ..TrafficCounts::default() };
        assert_eq!(later.flows, [((PeerId(1), PeerId(9)), north)]);
        assert!(flows.sums(Timestamp(AT + 91_000)).flows.is_empty());
    }

    #[test]
    fn keys_are_limited_and_swept() {
        let flows = TrafficFlows::new(Timestamp(AT));
        let many: AcceptedCounts = (0..MAX_KEYS as u32 + 10).map(|id| (PeerId(id), 1)).collect();
        flows.add(Timestamp(AT), &many, &[]);
        assert_eq!(flows.sums(Timestamp(AT)).submitters.len(), MAX_KEYS);
        flows.add(Timestamp(AT + 120_000), &[(PeerId(u32::MAX), 1)], &[]);
        assert_eq!(flows.sums(Timestamp(AT + 120_000)).submitters, [(PeerId(u32::MAX), 1)]);
    }

    #[test]
    fn messages_of_one_submitter_in_a_row_are_one_entry() {
        let mut accepted = AcceptedCounts::new();
        for origin in [1, 1, 2, 1] {
            count_accepted(&mut accepted, PeerId(origin));
        }
        assert_eq!(accepted, [(PeerId(1), 2), (PeerId(2), 1), (PeerId(1), 1)]);
    }
}
