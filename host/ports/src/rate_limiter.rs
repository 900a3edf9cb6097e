use std::time::Instant;

/// A token bucket: a rate a second, and a burst.
#[derive(Debug)]
pub struct RateLimiter {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl RateLimiter {
    /// Creates a full bucket.
    #[must_use]
    pub fn new(per_second: f64, burst: u32, now: Instant) -> Self {
        // The network delivers requests in groups. A bucket smaller than a tenth of a second's rate would refuse an
        // ESME that keeps to its rate.
        let burst = f64::from(burst.max(1)).max(per_second / 10.0);
        Self { per_second: per_second.max(0.0), burst, tokens: burst, at: now }
    }

    /// Takes `count` tokens, or none. A message with more segments than the bucket can hold passes when the bucket is
    /// full, and the bucket's debt is paid later: a server that accepts the first segment must accept the others.
    pub fn take(&mut self, count: u32, now: Instant) -> bool {
        let takes = self.has(count, now);
        if takes {
            self.tokens -= f64::from(count);
        }
        takes
    }

    /// Whether [`RateLimiter::take`] would take `count` tokens now.
    pub fn has(&mut self, count: u32, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        self.tokens >= f64::from(count).min(self.burst)
    }
}

/// The burst of an account or a peer that sets none: a tenth of a second's rate.
#[must_use]
pub fn default_burst(rate: Option<f64>) -> u32 {
    rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn check_089_requests_above_the_rate_are_refused() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(10.0, 2, start);
        assert!(limiter.take(1, start) && limiter.take(1, start) && !limiter.take(1, start));
        assert!(limiter.take(1, start + Duration::from_millis(101)));
        assert!(!limiter.take(1, start + Duration::from_millis(102)));
    }

    #[test]
    fn a_long_message_passes_and_its_debt_is_paid_later() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(1.0, 2, start);
        assert!(limiter.take(5, start));
        assert!(!limiter.take(1, start + Duration::from_secs(3)));
        assert!(limiter.take(1, start + Duration::from_millis(4100)));
    }
}
