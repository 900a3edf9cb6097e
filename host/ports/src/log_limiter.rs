use crate::RateLimiter;
use parking_lot::Mutex;
use std::time::Instant;

/// Limits the log lines that remote clients can cause: a burst of 20, then 2 a second.
#[derive(Debug)]
pub struct LogLimiter(Mutex<(RateLimiter, u64)>);

impl Default for LogLimiter {
    fn default() -> Self {
        Self(Mutex::new((RateLimiter::new(2.0, 20, Instant::now()), 0)))
    }
}

impl LogLimiter {
    /// Whether one more line may be written now. If so, the number of lines suppressed since the last one.
    pub fn take(&self, now: Instant) -> Option<u64> {
        let (limiter, suppressed) = &mut *self.0.lock();
        if limiter.take(1, now) {
            return Some(std::mem::take(suppressed));
        }
        *suppressed += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_of_twenty_lines_then_two_a_second() {
        let start = Instant::now();
        let log = LogLimiter::default();
        let written = |at: Duration| (0..1000).filter(|_| log.take(start + at).is_some()).count();
        assert_eq!(written(Duration::from_millis(1)), 20);
        assert_eq!(written(Duration::from_millis(1)), 0);
        assert_eq!(written(Duration::from_millis(1100)), 2);
    }
}
