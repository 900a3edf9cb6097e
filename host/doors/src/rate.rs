use model::PeerId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
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

/// The rate of one account, over all protocols by which it submits.
#[derive(Debug, Default)]
pub struct AccountRate(Mutex<Option<(f64, u32, Bucket)>>);

impl AccountRate {
    /// Takes `count` messages (or segments) of what the account may submit now, or none.
    pub fn take(&self, count: u32, now: Instant) -> bool {
        self.0.lock().as_mut().is_none_or(|(_, _, bucket)| bucket.take(count, now))
    }

    /// The same settings leave what was taken as it is: every protocol tells them.
    fn set(&self, settings: Option<(f64, u32)>, now: Instant) {
        let mut state = self.0.lock();
        let known = state.as_ref().map(|(rate, burst, _)| (*rate, *burst));
        if known != settings {
            *state = settings.map(|(rate, burst)| (rate, burst, Bucket::new(rate, burst, now)));
        }
    }
}

/// The rates of all accounts. An account that submits over several protocols has one rate for all of them.
#[derive(Debug, Default)]
pub struct AccountRates(Mutex<HashMap<PeerId, Arc<AccountRate>>>);

impl AccountRates {
    /// The rate of an account, with these settings: messages a second (`None`: no limit), and how many at once.
    pub fn set(&self, account: PeerId, rate: Option<f64>, burst: u32, now: Instant) -> Arc<AccountRate> {
        let shared = self.0.lock().entry(account).or_default().clone();
        shared.set(rate.map(|rate| (rate, burst)), now);
        shared
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

    #[test]
    fn protocols_of_one_account_share_its_rate() {
        let (rates, start) = (AccountRates::default(), Instant::now());
        let smpp = rates.set(PeerId(1), Some(1.0), 2, start);
        assert!(smpp.take(1, start));
        let http = rates.set(PeerId(1), Some(1.0), 2, start);
        assert!(http.take(1, start));
        assert!(!smpp.take(1, start) && !http.take(1, start), "two in all");
        assert!(rates.set(PeerId(2), Some(1.0), 2, start).take(1, start), "another account's");
        // A change counts for both.
        rates.set(PeerId(1), Some(1.0), 5, start);
        assert!(http.take(4, start) && smpp.take(1, start) && !http.take(1, start));
        rates.set(PeerId(1), None, 1, start);
        assert!(smpp.take(1000, start) && http.take(1000, start));
    }
}
