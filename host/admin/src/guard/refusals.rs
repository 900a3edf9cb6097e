//! Refused requests in the audit log: a few a minute and caller have a line each, the others of the minute one line together.
//! Each line is an fsync, and whoever may do nothing could fill the disk with refusals.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Refusals of one caller that have a line each in a minute.
const LINES: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// What is written of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line of its own.
    Own,
    /// It is counted. The first that is only counted says how long the minute goes on: whoever is told so takes the count then.
    Counted(Option<Duration>),
}

#[derive(Debug)]
struct Minute {
    begun: Instant,
    lines: u32,
    counted: u64,
}

/// Refusals of this minute, by caller. Callers have a name, so there are not many.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    minutes: Mutex<HashMap<String, Minute>>,
}

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn count(&self, caller: &str, now: Instant) -> Line {
        let mut minutes = self.minutes.lock();
        let begin = || Minute { begun: now, lines: 0, counted: 0 };
        let minute = minutes.entry(caller.to_owned()).or_insert_with(begin);
        let gone = now.saturating_duration_since(minute.begun);
        // What was counted is taken by whoever was told to; until then the minute goes on.
        if gone >= MINUTE && minute.counted == 0 {
            *minute = begin();
        }
        if minute.lines < LINES {
            minute.lines += 1;
            return Line::Own;
        }
        minute.counted += 1;
        Line::Counted((minute.counted == 1).then(|| MINUTE.saturating_sub(gone)))
    }

    /// How many refusals were only counted; a new minute begins.
    pub(crate) fn take(&self, caller: &str) -> u64 {
        self.minutes.lock().remove(caller).map_or(0, |minute| minute.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_have_a_line_each_and_the_others_one_together() {
        let refusals = Refusals::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        for _ in 0..LINES {
            assert_eq!(refusals.count("ann", at(0)), Line::Own);
        }
        assert_eq!(refusals.count("ann", at(20)), Line::Counted(Some(Duration::from_secs(40))));
        assert_eq!(refusals.count("bob", at(20)), Line::Own, "another's are his own");
        for second in [21, 59, 61] {
            assert_eq!(refusals.count("ann", at(second)), Line::Counted(None));
        }
        assert_eq!(refusals.take("ann"), 4);
        assert_eq!(refusals.count("ann", at(61)), Line::Own);
        assert_eq!((refusals.take("ann"), refusals.take("nobody")), (0, 0));
    }

    #[test]
    fn a_minute_with_few_is_followed_by_another() {
        let refusals = Refusals::default();
        let begin = Instant::now();
        for minute in 0..3 {
            for _ in 0..LINES {
                assert_eq!(refusals.count("ann", begin + minute * MINUTE), Line::Own);
            }
        }
    }
}
