use model::{ErrorClass, ObservationKind, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// Number of steps of a window: it covers the current step and the 59 before it.
const STEPS: u64 = 60;

/// Upper bounds of the steps of times to a DLR, in milliseconds.
const TIMES: [u64; 30] = [
    250, 350, 500, 700, 1_000, 1_400, 2_000, 2_800, 4_000, 5_600, 8_000, 11_000, 16_000, 22_000, 32_000,
    45_000, 64_000, 90_000, 128_000, 180_000, 256_000, 360_000, 512_000, 1_024_000, 2_048_000, 4_096_000,
    8_192_000, 16_384_000, 32_768_000, 65_536_000,
];

/// Slots of the counts: outcomes first, then the times to DLRs; longer times than the last bound are in the last slot.
const OUTCOMES: usize = 10;
const SLOTS: usize = OUTCOMES + TIMES.len();

/// The figures of a window. Counts saturate at the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerFigures {
    /// Submit attempts that the peer accepted.
    pub accepted: u32,
    /// Attempts that it refused as temporary.
    pub temporary: u32,
    /// Attempts that it refused permanently.
    pub permanent: u32,
    /// Attempts that it refused because the subscriber is absent.
    pub absent: u32,
    /// Attempts that it refused because the handset's memory is full.
    pub memory_full: u32,
    /// Attempts that it throttled.
    pub throttled: u32,
    /// Attempts that it did not answer.
    pub unanswered: u32,
    /// Messages that were delivered, according to their DLRs.
    pub delivered: u32,
    /// Messages that were not delivered, or whose DLR did not come in time.
    pub failed: u32,
    /// Messages that led to a conversion.
    pub conversions: u32,
    /// Median of the time to the DLR, in milliseconds.
    pub median: Option<u64>,
    /// The 95th percentile of the same time.
    pub percentile95: Option<u64>,
}

/// The step of a time.
pub(super) fn step(at: Timestamp, window: Duration) -> u64 {
    let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    at.0 / (window / STEPS).max(1)
}

/// One sliding window. Its sums are kept up to date, so that reading does not add all steps.
#[derive(Debug)]
pub(super) struct Window {
    /// Steps in which something was observed, oldest first.
    steps: VecDeque<(u64, [u32; SLOTS])>,
    sums: [u64; SLOTS],
}

impl Default for Window {
    fn default() -> Self {
        Self { steps: VecDeque::new(), sums: [0; SLOTS] }
    }
}

fn slots(kind: ObservationKind) -> (usize, Option<Duration>) {
    match kind {
        ObservationKind::Accepted => (0, None),
        ObservationKind::Refused(class) => match class {
            ErrorClass::Temporary | ErrorClass::ThisMessage => (1, None),
            ErrorClass::Permanent | ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => (2, None),
            ErrorClass::Absent => (3, None),
            ErrorClass::MemoryFull => (4, None),
            ErrorClass::Throttled | ErrorClass::QueueFull => (5, None),
        },
        ObservationKind::Unanswered => (6, None),
        ObservationKind::Delivered { after } => (7, Some(after)),
        ObservationKind::Failed { after } => (8, after),
        ObservationKind::Converted => (9, None),
    }
}

impl Window {
    /// A time before the newest step counts as the newest step; a time a whole window before it empties the window: the
    /// clock was set back.
    pub(super) fn add(&mut self, step: u64, kind: ObservationKind) {
        if let Some((newest, _)) = self.steps.back()
            && step + STEPS <= *newest
        {
            *self = Self::default();
        }
        while let Some((oldest, _)) = self.steps.front()
            && oldest + STEPS <= step
            && let Some((_, counts)) = self.steps.pop_front()
        {
            for (sum, count) in self.sums.iter_mut().zip(counts) {
                *sum -= u64::from(count);
            }
        }
        if self.steps.back().is_none_or(|(newest, _)| *newest < step) {
            self.steps.push_back((step, [0; SLOTS]));
        }
        let Some((_, counts)) = self.steps.back_mut() else { return };
        let (outcome, after) = slots(kind);
        let time = after.map(|after| {
            let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            OUTCOMES + TIMES.iter().position(|bound| after <= *bound).unwrap_or(TIMES.len() - 1)
        });
        for slot in std::iter::once(outcome).chain(time) {
            if counts[slot] < u32::MAX {
                counts[slot] += 1;
                self.sums[slot] += 1;
            }
        }
    }

    /// Whether all of its steps have expired.
    pub(super) fn is_over(&self, step: u64) -> bool {
        self.steps.back().is_none_or(|(newest, _)| newest + STEPS <= step || step + STEPS <= *newest)
    }

    pub(super) fn figures(&self, step: u64) -> PeerFigures {
        if self.is_over(step) {
            return PeerFigures::default();
        }
        let mut sums = self.sums;
        for (_, counts) in self.steps.iter().take_while(|(one, _)| one + STEPS <= step) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum -= u64::from(*count);
            }
        }
        let (outcomes, times) = sums.split_at(OUTCOMES);
        let count =
            |slot: usize| outcomes.get(slot).map_or(0, |count| u32::try_from(*count).unwrap_or(u32::MAX));
        PeerFigures {
            accepted: count(0),
            temporary: count(1),
            permanent: count(2),
            absent: count(3),
            memory_full: count(4),
            throttled: count(5),
            unanswered: count(6),
            delivered: count(7),
            failed: count(8),
            conversions: count(9),
            median: percentile(times, 50),
            percentile95: percentile(times, 95),
        }
    }
}

/// The upper bound that `share` percent of the times do not exceed.
fn percentile(times: &[u64], share: u64) -> Option<u64> {
    let all: u64 = times.iter().sum();
    let wanted = (all * share).div_ceil(100);
    let mut passed = 0;
    let found = times.iter().zip(TIMES).find(|(count, _)| {
        passed += **count;
        passed >= wanted
    });
    found.filter(|_| all > 0).map(|(_, bound)| bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delivered(millis: u64) -> ObservationKind {
        ObservationKind::Delivered { after: Duration::from_millis(millis) }
    }

    #[test]
    fn a_window_slides() {
        let mut window = Window::default();
        window.add(100, ObservationKind::Accepted);
        window.add(101, ObservationKind::Refused(ErrorClass::QueueFull));
        window.add(159, ObservationKind::Accepted);
        let seen = |window: &Window, step| {
            let figures = window.figures(step);
            (figures.accepted, figures.throttled)
        };
        assert_eq!(seen(&window, 159), (2, 1));
        assert_eq!(seen(&window, 160), (1, 1));
        window.add(160, ObservationKind::Accepted);
        assert_eq!(seen(&window, 161), (2, 0));
        assert_eq!(seen(&window, 220), (0, 0));
        assert!(window.is_over(220));
    }

    #[test]
    fn a_clock_that_is_set_back_empties_the_window() {
        let mut window = Window::default();
        window.add(1_000, ObservationKind::Accepted);
        window.add(999, ObservationKind::Accepted);
        assert_eq!(window.figures(1_000).accepted, 2, "threads see the clock in different order");
        assert_eq!(window.figures(10).accepted, 0);
        window.add(10, ObservationKind::Accepted);
        assert_eq!(window.figures(10).accepted, 1);
    }

    #[test]
    fn times_to_dlrs_have_percentiles() {
        let mut window = Window::default();
        assert_eq!(window.figures(0).median, None);
        for _ in 0..94 {
            window.add(0, delivered(900));
        }
        for _ in 0..6 {
            window.add(0, ObservationKind::Failed { after: Some(Duration::from_secs(20)) });
        }
        window.add(0, ObservationKind::Failed { after: None });
        let figures = window.figures(0);
        assert_eq!((figures.delivered, figures.failed), (94, 7));
        assert_eq!((figures.median, figures.percentile95), (Some(1_000), Some(22_000)));
        window.add(0, delivered(u64::MAX));
        assert_eq!(window.figures(0).delivered, 95);
    }

    proptest! {
        /// The sums are those of a plain list of observations.
        #[test]
        fn a_window_counts_like_a_list(gaps in prop::collection::vec((0_u64..30, any::<bool>()), 1..200)) {
            let mut window = Window::default();
            let mut all = Vec::new();
            let mut now = 0;
            for (gap, good) in gaps {
                now += gap;
                all.push((now, good));
                let after = Duration::from_secs(1);
                window.add(now, if good {
                    ObservationKind::Delivered { after }
                } else {
                    ObservationKind::Failed { after: Some(after) }
                });
                let count = |good: bool| {
                    all.iter().filter(|(at, is_good)| at + STEPS > now && *is_good == good).count()
                };
                let figures = window.figures(now);
                prop_assert_eq!(figures.delivered as usize, count(true));
                prop_assert_eq!(figures.failed as usize, count(false));
            }
        }
    }
}
