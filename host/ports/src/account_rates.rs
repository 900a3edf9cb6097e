use crate::RateLimiter;
use model::PeerId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The rate limiter of one account, shared by all protocols over which the account submits.
#[derive(Debug, Default)]
pub struct AccountRate(Mutex<Option<(f64, u32, RateLimiter)>>);

impl AccountRate {
    /// Takes `count` messages (or segments) from the limiter, or none.
    pub fn take(&self, count: u32, now: Instant) -> bool {
        self.0.lock().as_mut().is_none_or(|(_, _, limiter)| limiter.take(count, now))
    }

    /// Every protocol passes the settings; equal settings leave the limiter's state as it is.
    fn set(&self, settings: Option<(f64, u32)>, now: Instant) {
        let mut state = self.0.lock();
        let known = state.as_ref().map(|(rate, burst, _)| (*rate, *burst));
        if known != settings {
            *state = settings.map(|(rate, burst)| (rate, burst, RateLimiter::new(rate, burst, now)));
        }
    }
}

/// The rate limiters of all accounts. An account has one limiter for all its protocols.
#[derive(Debug, Default)]
pub struct AccountRates(Mutex<HashMap<PeerId, Arc<AccountRate>>>);

impl AccountRates {
    /// Sets the rate of an account and returns its limiter: messages a second (`None`: no limit), and the burst.
    pub fn set(&self, account: PeerId, rate: Option<f64>, burst: u32, now: Instant) -> Arc<AccountRate> {
        let shared = self.0.lock().entry(account).or_default().clone();
        shared.set(rate.map(|rate| (rate, burst)), now);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocols_of_an_account_share_its_rate() {
        let (rates, start) = (AccountRates::default(), Instant::now());
        let smpp = rates.set(PeerId(1), Some(1.0), 2, start);
        assert!(smpp.take(1, start));
        let http = rates.set(PeerId(1), Some(1.0), 2, start);
        assert!(http.take(1, start));
        assert!(!smpp.take(1, start) && !http.take(1, start), "two in all");
        assert!(rates.set(PeerId(2), Some(1.0), 2, start).take(1, start), "another account's");
        // A change applies to both protocols.
        rates.set(PeerId(1), Some(1.0), 5, start);
        assert!(http.take(4, start) && smpp.take(1, start) && !http.take(1, start));
        rates.set(PeerId(1), None, 1, start);
        assert!(smpp.take(1000, start) && http.take(1000, start));
    }
}
