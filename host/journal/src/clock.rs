//! Time for a journal: record times, and the age of segments.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A wall clock and a monotonic clock.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch. It may jump.
    fn wall_millis(&self) -> u64;
    /// Monotonic time.
    fn now(&self) -> Instant;
}

/// The system's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}
