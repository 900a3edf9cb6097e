//! Limits the audit records of refused requests. Per minute, a caller gets a limited number of records, and one record
//! for all further refusals. Each record is an fsync, and a caller without permissions could otherwise fill the disk.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of refusals per caller and minute that get a record each.
const MAX_LINES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// How a refusal is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditLine {
    /// In its own record.
    Own,
    /// Only counted. The first one of a minute contains the remaining time of the minute, after which the caller of
    /// [`RefusalLimiter::count`] takes the count.
    Suppressed(Option<Duration>),
}

#[derive(Debug)]
struct CallerWindow {
    started: Instant,
    own_lines: u32,
    suppressed: u64,
}

/// Refusals in the current minute, by caller. Callers are authenticated, so their number is small.
#[derive(Debug, Default)]
pub(crate) struct RefusalLimiter {
    windows: Mutex<HashMap<String, CallerWindow>>,
}

impl RefusalLimiter {
    /// Counts a refusal.
    pub(crate) fn count(&self, caller: &str, now: Instant) -> AuditLine {
        let mut windows = self.windows.lock();
        let begin = || CallerWindow { started: now, own_lines: 0, suppressed: 0 };
        let window = windows.entry(caller.to_owned()).or_insert_with(begin);
        let elapsed = now.saturating_duration_since(window.started);
        // A window with suppressed refusals ends when their count is taken.
        if elapsed >= WINDOW && window.suppressed == 0 {
            *window = begin();
        }
        if window.own_lines < MAX_LINES {
            window.own_lines += 1;
            return AuditLine::Own;
        }
        window.suppressed += 1;
        AuditLine::Suppressed((window.suppressed == 1).then(|| WINDOW.saturating_sub(elapsed)))
    }

    /// Takes the number of suppressed refusals, and starts a new window.
    pub(crate) fn take(&self, caller: &str) -> u64 {
        self.windows.lock().remove(caller).map_or(0, |window| window.suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_over_the_limit_are_counted() {
        let limiter = RefusalLimiter::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        for _ in 0..MAX_LINES {
            assert_eq!(limiter.count("ann", at(0)), AuditLine::Own);
        }
        assert_eq!(limiter.count("ann", at(20)), AuditLine::Suppressed(Some(Duration::from_secs(40))));
        assert_eq!(limiter.count("bob", at(20)), AuditLine::Own, "callers are limited separately");
        for second in [21, 59, 61] {
            assert_eq!(limiter.count("ann", at(second)), AuditLine::Suppressed(None));
        }
        assert_eq!(limiter.take("ann"), 4);
        assert_eq!(limiter.count("ann", at(61)), AuditLine::Own);
        assert_eq!((limiter.take("ann"), limiter.take("nobody")), (0, 0));
    }

    #[test]
    fn window_restarts_after_a_minute() {
        let limiter = RefusalLimiter::default();
        let begin = Instant::now();
        for window in 0..3 {
            for _ in 0..MAX_LINES {
                assert_eq!(limiter.count("ann", begin + window * WINDOW), AuditLine::Own);
            }
        }
    }
}
