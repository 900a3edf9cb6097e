use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Record {
    open: usize,
    wrong: u32,
    /// When the count of wrong binds begins anew.
    until: Instant,
}

/// Watches single addresses: how many connections each has open, and how often it has bound wrongly.
#[derive(Debug)]
pub struct Guard {
    wrong_limit: u32,
    addresses: Mutex<FxHashMap<IpAddr, Record>>,
}

/// One open connection of an address.
#[derive(Debug)]
pub struct Permit {
    guard: Arc<Guard>,
    address: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut addresses = self.guard.addresses.lock();
        if let Some(record) = addresses.get_mut(&self.address) {
            record.open = record.open.saturating_sub(1);
            if record.open == 0 && record.wrong == 0 {
                addresses.remove(&self.address);
            }
        }
    }
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

    /// Lets a connection in, unless its address has `most` open already.
    #[must_use]
    pub fn admit(self: &Arc<Self>, address: IpAddr, most: usize, now: Instant) -> Option<Permit> {
        let address = address.to_canonical();
        let mut addresses = self.addresses.lock();
        if addresses.len() >= Self::MOST {
            addresses.retain(|_, record| record.open > 0 || record.until > now);
        }
        let record = addresses.entry(address).or_insert(Record { open: 0, wrong: 0, until: now });
        if record.open >= most {
            return None;
        }
        record.open += 1;
        Some(Permit { guard: self.clone(), address })
    }

    /// Counts a wrong bind. Says whether it was the one that closes the door.
    pub fn wrong_bind(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.addresses.lock();
        let record =
            addresses.entry(address.to_canonical()).or_insert(Record { open: 0, wrong: 0, until: now });
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

    #[test]
    fn check_143_places_are_given_back() {
        let guard = Arc::new(Guard::new(3));
        let address = "192.0.2.1".parse().unwrap();
        let now = Instant::now();
        let first = guard.admit(address, 2, now).unwrap();
        let _second = guard.admit(address, 2, now).unwrap();
        assert!(guard.admit(address, 2, now).is_none());
        drop(first);
        assert!(guard.admit(address, 2, now).is_some());
    }
}
