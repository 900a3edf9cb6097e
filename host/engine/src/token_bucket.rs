use model::Moment;
use std::time::Duration;

/// A token bucket in fractions of a message, for whole milliseconds.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    pub(crate) per_second: f64,
    burst: f64,
    tokens: f64,
    at: Moment,
}

impl TokenBucket {
    pub(crate) fn new(per_second: f64, burst: f64) -> Self {
        // A bucket smaller than the tokens of two milliseconds could never reach its rate.
        let burst = burst.max(1.0).max(per_second / 500.0);
        Self { per_second, burst, tokens: burst, at: Moment(0) }
    }

    /// A bucket without tokens.
    pub(crate) fn empty(now: Moment, per_second: f64, burst: f64) -> Self {
        Self { tokens: 0.0, at: now, ..Self::new(per_second, burst) }
    }

    /// The current number of whole tokens.
    pub(crate) fn whole_tokens(&self, now: Moment) -> u64 {
        let passed = (now - self.at).as_secs_f64();
        ((self.tokens + passed * self.per_second).min(self.burst) + 1e-6) as u64
    }

    /// Takes one token; otherwise returns the time of the next one.
    pub(crate) fn take(&mut self, now: Moment) -> Result<(), Moment> {
        self.ready(now)?;
        self.spend();
        Ok(())
    }

    /// Whether a token is available, without taking it; otherwise the time of the next one.
    pub(crate) fn ready(&mut self, now: Moment) -> Result<(), Moment> {
        let passed = (now - self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        if self.tokens >= 1.0 - 1e-6 {
            return Ok(());
        }
        let wait = ((1.0 - self.tokens) / self.per_second).min(3600.0);
        Err(now + Duration::from_secs_f64(wait).max(Duration::from_millis(1)))
    }

    /// As [`TokenBucket::ready`], for several tokens, at most as many as the bucket holds.
    pub(crate) fn ready_for(&mut self, now: Moment, tokens: u64) -> Result<(), Moment> {
        self.ready(now).ok();
        let missing = tokens as f64 - self.tokens;
        if missing <= 1e-6 {
            return Ok(());
        }
        let wait = (missing / self.per_second).min(3600.0);
        Err(now + Duration::from_secs_f64(wait).max(Duration::from_millis(1)))
    }

    /// Takes tokens that [`TokenBucket::ready_for`] has found.
    pub(crate) fn spend_many(&mut self, tokens: u64) {
        self.tokens = (self.tokens - tokens as f64).max(0.0);
    }

    /// Keeps the tokens of the bucket that this one replaces.
    pub(crate) fn inherit_tokens(&mut self, former: &Self, now: Moment) {
        self.tokens = (former.whole_tokens(now) as f64).min(self.burst);
        self.at = now;
    }

    /// Takes a token that [`TokenBucket::ready`] has found.
    pub(crate) fn spend(&mut self) {
        self.tokens = (self.tokens - 1.0).max(0.0);
    }

    /// Changes the rate, without a burst.
    pub(crate) fn set_rate(&mut self, per_second: f64, burst: f64) {
        *self = Self { tokens: self.tokens, at: self.at, ..Self::new(per_second, burst) };
        self.tokens = self.tokens.min(self.burst);
    }

    /// Keeps one token at most.
    pub(crate) fn drain(&mut self) {
        self.tokens = self.tokens.min(1.0);
    }
}
