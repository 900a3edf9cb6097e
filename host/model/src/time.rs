use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime};

/// Wall-clock time: milliseconds since the Unix epoch, UTC. For timestamps that people and peers read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time of the system's clock; the epoch if the clock shows an earlier time.
    ///
    /// This is the only place that reads the wall clock. Sessions and the engine get the time as an argument.
    #[must_use]
    pub fn now() -> Self {
        Self(millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
    }
}

/// Monotonic time: milliseconds since an arbitrary moment before the process started. For timers and deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

/// The current time, as an argument of pure code: the wall clock for timestamps, the monotonic clock for deadlines.
///
/// A jump of the wall clock therefore changes timestamps, but no deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Wall-clock time.
    pub wall: Timestamp,
    /// Monotonic time.
    pub mono: Moment,
}

impl Now {
    /// The moment at which the wall clock will show `at`, unless it is set; now, if that has passed.
    #[must_use]
    pub fn moment_of(&self, at: Timestamp) -> Moment {
        Moment(self.mono.0.saturating_add(at.0.saturating_sub(self.wall.0)))
    }

    /// The wall-clock time at `at`, unless the clock is set.
    #[must_use]
    pub fn wall_of(&self, at: Moment) -> Timestamp {
        if at >= self.mono {
            Timestamp(self.wall.0.saturating_add(at.0 - self.mono.0))
        } else {
            Timestamp(self.wall.0.saturating_sub(self.mono.0 - at.0))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Parses a duration: `500ms`, `30s`, `5m`, `1h`, `2d`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let factor = match unit.trim() {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).map(Duration::from_millis)
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

impl Sub for Moment {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Sub for Timestamp {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
