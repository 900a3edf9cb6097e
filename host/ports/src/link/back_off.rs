use std::time::Duration;

/// The wait before a peer is dialed again. It doubles from one second to a limit, and is longer where frequent
/// attempts would do harm.
#[derive(Debug)]
pub struct BackOff {
    next: Duration,
    max: Duration,
}

impl BackOff {
    const FIRST: Duration = Duration::from_secs(1);
    /// The smallest limit, so that a wrong setting does not flood a peer.
    const MIN_LIMIT: Duration = Duration::from_millis(100);
    /// The default limit.
    #[cfg(test)]
    const MAX: Duration = Duration::from_secs(30);

    /// Creates a back-off with waits of at most `max`, unless the peer's refusal requires more.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        let max = max.max(Self::MIN_LIMIT);
        Self { next: Self::FIRST.min(max), max }
    }

    /// Starts again at the first wait, because the link was bound and worked.
    pub fn reset(&mut self) {
        self.next = Self::FIRST.min(self.max);
    }

    /// Returns the next wait, at least `least`, spread at random over 80 to 120 percent, but never beyond the limit.
    pub fn next_wait(&mut self, least: Duration) -> Duration {
        self.next(least, getrandom::u64().unwrap_or(20))
    }

    fn next(&mut self, least: Duration, random: u64) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.max);
        let percent = 80 + u32::try_from(random % 41).unwrap_or(0);
        if least > wait {
            // A minimum is only exceeded, never reduced.
            return least + least * (percent - 80) / 200;
        }
        (wait * percent / 100).min(self.max).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_the_refusal_requires() {
        for random in 0..100 {
            let mut backoff = BackOff::new(BackOff::MAX);
            assert!(backoff.next(Duration::from_secs(60), random) >= Duration::from_secs(60));
        }
    }

    #[test]
    fn waits_double_to_the_limit_and_restart_after_a_reset() {
        let mut backoff = BackOff::new(BackOff::MAX);
        let waits: Vec<u64> = (0..7).map(|_| backoff.next(Duration::ZERO, 20).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        for random in 0..100 {
            assert!(backoff.next(Duration::ZERO, random) <= BackOff::MAX);
        }
        let mut short = BackOff::new(Duration::from_millis(500));
        assert!((0..100).all(|random| short.next(Duration::ZERO, random) <= Duration::from_millis(500)));
        backoff.reset();
        let wait = backoff.next(Duration::ZERO, 0);
        assert!(wait >= Duration::from_millis(800) && wait < Duration::from_secs(1));
    }
}
