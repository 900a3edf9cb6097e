use std::time::Instant;

/// A token bucket: so many a second, with so many at once.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub fn new(per_second: f64, burst: u32, now: Instant) -> Self {
        // Requests come in clumps, as the network delivers them; a bucket that holds less than a tenth of a second
        // brings would refuse an ESME that keeps to its rate.
        let burst = f64::from(burst.max(1)).max(per_second / 10.0);
        Self { per_second: per_second.max(0.0), burst, tokens: burst, at: now }
    }

    /// Takes `count` tokens, or none. A message of more parts than the bucket can hold passes when it is full, and is
    /// paid for afterwards: a server that lets part one through must let the others follow (sheet §2.13).
    pub fn take(&mut self, count: u32, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        let count = f64::from(count);
        if self.tokens >= count.min(self.burst) {
            self.tokens -= count;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn check_089_refused_above_the_rate_and_taken_at_once_below_it() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 2, start);
        assert!(bucket.take(1, start) && bucket.take(1, start) && !bucket.take(1, start));
        assert!(bucket.take(1, start + Duration::from_millis(101)));
        assert!(!bucket.take(1, start + Duration::from_millis(102)));
    }

    #[test]
    fn a_long_message_passes_whole_and_is_paid_for_later() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1.0, 2, start);
        assert!(bucket.take(5, start));
        assert!(!bucket.take(1, start + Duration::from_secs(3)));
        assert!(bucket.take(1, start + Duration::from_millis(4100)));
    }
}
