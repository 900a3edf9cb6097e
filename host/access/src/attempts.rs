//! How often somebody may try to log in.

use model::{Moment, Now};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

/// For so long attempts are counted, from the first on.
const PERIOD: u64 = 5 * 60_000;
/// Attempts for one name in a period.
const OF_A_NAME: u32 = 10;
/// Attempts from one address in a period.
const OF_AN_ADDRESS: u32 = 30;
/// Names and addresses that are remembered, each.
const MOST: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct Count {
    made: u32,
    /// When the count begins anew.
    until: Moment,
}

/// Attempts to log in that have not succeeded, by name and by address.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    names: FxHashMap<String, Count>,
    addresses: FxHashMap<IpAddr, Count>,
}

/// How many attempts there were, and until when they count.
fn look<K: Hash + Eq>(counts: &FxHashMap<K, Count>, key: &K, now: Moment) -> Option<Count> {
    counts.get(key).copied().filter(|count| count.until > now)
}

fn add<K: Hash + Eq>(counts: &mut FxHashMap<K, Count>, key: K, now: Moment) {
    if counts.len() >= MOST && !counts.contains_key(&key) {
        counts.retain(|_, count| count.until > now);
        if counts.len() >= MOST {
            // Whoever tries thousands of names has thousands of counts, and is found by address; forgetting is what is left.
            counts.clear();
        }
    }
    let count = counts.entry(key).or_insert(Count { made: 0, until: Moment(0) });
    if count.until <= now {
        *count = Count { made: 0, until: Moment(now.0.saturating_add(PERIOD)) };
    }
    count.made += 1;
}

/// The network of an address that one party has at least: a host's own 64 bits of IPv6 do not make it many parties.
fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((u128::from(six) >> 64 << 64).into()),
        four => four,
    }
}

impl Attempts {
    /// Counts an attempt before it is looked at, so that many at once are no way round the limit. `name` is `None` for a
    /// token.
    ///
    /// # Errors
    /// It is one too many: how long to wait. It is not counted then.
    pub(crate) fn begin(&self, name: Option<&str>, from: Option<IpAddr>, now: Now) -> Result<(), Duration> {
        let mut counts = self.counts.lock();
        let of_name = name.and_then(|name| look(&counts.names, &name.to_owned(), now.mono));
        let of_address = from.and_then(|from| look(&counts.addresses, &party(from), now.mono));
        let full = [(of_name, OF_A_NAME), (of_address, OF_AN_ADDRESS)];
        let wait = full.into_iter().filter_map(|(count, most)| count.filter(|count| count.made >= most));
        if let Some(until) = wait.map(|count| count.until).max() {
            return Err(Duration::from_millis(until.0.saturating_sub(now.mono.0).max(1)));
        }
        if let Some(name) = name {
            add(&mut counts.names, name.to_owned(), now.mono);
        }
        if let Some(from) = from {
            add(&mut counts.addresses, party(from), now.mono);
        }
        Ok(())
    }

    /// It was the right password: the attempt does not count, and those for the name before it neither.
    pub(crate) fn succeeded(&self, name: Option<&str>, from: Option<IpAddr>) {
        let mut counts = self.counts.lock();
        if let Some(name) = name {
            counts.names.remove(name);
        }
        if let Some(count) = from.and_then(|from| counts.addresses.get_mut(&party(from))) {
            count.made = count.made.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    fn at(seconds: u64) -> Now {
        Now { wall: Timestamp(0), mono: Moment(1 + seconds * 1000) }
    }

    #[test]
    fn a_name_is_tried_ten_times_in_five_minutes() {
        let attempts = Attempts::default();
        for second in 0..10 {
            attempts.begin(Some("ann"), None, at(second)).unwrap();
        }
        assert_eq!(attempts.begin(Some("ann"), None, at(100)), Err(Duration::from_secs(200)));
        attempts.begin(Some("bob"), None, at(100)).unwrap();
        attempts.begin(Some("ann"), None, at(300)).unwrap();
        for _ in 0..8 {
            attempts.begin(Some("bob"), None, at(101)).unwrap();
        }
        attempts.succeeded(Some("bob"), None);
        for _ in 0..10 {
            attempts.begin(Some("bob"), None, at(102)).unwrap();
        }
        assert!(attempts.begin(Some("bob"), None, at(102)).is_err());
    }

    #[test]
    fn an_address_is_one_party_however_many_names_it_tries() {
        let attempts = Attempts::default();
        let from = |host: u16| Some(format!("2001:db8::{host:x}").parse().unwrap());
        for turn in 0..30 {
            attempts.begin(Some(&format!("user-{turn}")), from(turn), at(0)).unwrap();
        }
        assert!(attempts.begin(Some("another"), from(99), at(1)).is_err());
        assert!(attempts.begin(None, from(1), at(1)).is_err(), "a token is an attempt as well");
        attempts.begin(Some("another"), Some("192.0.2.1".parse().unwrap()), at(1)).unwrap();
        attempts.succeeded(Some("user-1"), from(1));
        attempts.begin(Some("another"), from(99), at(1)).unwrap();
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let attempts = Attempts::default();
        for turn in 0..3 * MOST {
            attempts.begin(Some(&format!("user-{turn}")), None, at(0)).unwrap();
            assert!(attempts.counts.lock().names.len() <= MOST);
        }
    }
}
