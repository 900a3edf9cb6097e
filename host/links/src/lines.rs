use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Keeps the log readable when strangers knock at the door a thousand times a second: so many lines in ten seconds, and
/// then none until the ten seconds are over.
#[derive(Debug)]
pub(crate) struct Lines {
    began: Instant,
    /// Which ten seconds (upper 32 bits), and how many lines in them (lower 32).
    period: AtomicU64,
}

impl Lines {
    const MOST: u64 = 20;
    const SECONDS: u64 = 10;

    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, period: AtomicU64::new(0) }
    }

    /// Whether one more line may be written.
    pub(crate) fn allow(&self, now: Instant) -> bool {
        let period = now.saturating_duration_since(self.began).as_secs() / Self::SECONDS;
        let next = |state: u64| if state >> 32 == period { state + 1 } else { period << 32 | 1 };
        // Two threads at once may write one line more; nobody minds.
        let state = self.period.fetch_update(Relaxed, Relaxed, |state| Some(next(state))).unwrap_or_default();
        (next(state) & u64::from(u32::MAX)) <= Self::MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn twenty_lines_in_ten_seconds() {
        let start = Instant::now();
        let lines = Lines::new(start);
        let written = |at: Duration| (0..1000).filter(|_| lines.allow(start + at)).count();
        assert_eq!(written(Duration::from_secs(1)), 20);
        assert_eq!(written(Duration::from_secs(9)), 0);
        assert_eq!(written(Duration::from_secs(11)), 20);
    }
}
