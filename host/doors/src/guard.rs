use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Record {
    wrong: u32,
    /// When the count of wrong binds begins anew.
    until: Instant,
}

/// Watches single addresses: how often each has bound wrongly. [`crate::Places`] counts their connections.
#[derive(Debug)]
pub struct Guard {
    wrong_limit: u32,
    addresses: Mutex<FxHashMap<IpAddr, Record>>,
}

impl Guard {
    const PERIOD: Duration = Duration::from_secs(60);
    /// Addresses that are remembered for wrong binds alone; beyond it, old ones are forgotten.
    const MOST: usize = 10_000;

    /// A guard that shuts the door to an address after this many wrong passwords in a minute.
    #[must_use]
    pub fn new(wrong_limit: u32) -> Self {
        Self { wrong_limit: wrong_limit.max(1), addresses: Mutex::default() }
    }

    /// Counts a wrong bind. Says whether it was the one that closes the door.
    pub fn wrong_bind(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.addresses.lock();
        if addresses.len() >= Self::MOST {
            addresses.retain(|_, record| record.until > now);
        }
        let record = addresses.entry(address.to_canonical()).or_insert(Record { wrong: 0, until: now });
        if record.until <= now {
            record.wrong = 0;
        }
        record.wrong += 1;
        record.until = now + Self::PERIOD;
        record.wrong == self.wrong_limit
    }

    /// Whether the door is closed for binds from an address.
    #[must_use]
    pub fn is_shut(&self, address: IpAddr, now: Instant) -> bool {
        self.addresses
            .lock()
            .get(&address.to_canonical())
            .is_some_and(|record| record.wrong >= self.wrong_limit && record.until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_144_a_minute_of_silence_after_too_many_wrong_binds() {
        let guard = Guard::new(3);
        let (bad, good) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let now = Instant::now();
        assert!(!guard.wrong_bind(bad, now) && !guard.wrong_bind(bad, now) && !guard.is_shut(bad, now));
        assert!(guard.wrong_bind(bad, now));
        assert!(guard.is_shut(bad, now) && !guard.is_shut(good, now));
        assert!(!guard.is_shut(bad, now + Guard::PERIOD));
        assert!(!guard.wrong_bind(bad, now + Guard::PERIOD), "the count has begun anew");
    }
}
