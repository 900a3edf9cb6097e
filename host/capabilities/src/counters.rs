use arc_swap::ArcSwap;
use hashbrown::{DefaultHashBuilder, HashTable};
use model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of steps of a window: it covers the current step and the 59 before it.
const STEPS: u64 = 60;
/// A longer name and key (together) are replaced by their digest, so that a plugin cannot fill the memory with keys.
const MAX_KEY_OCTETS: usize = 256;
/// Number of counters to check for expiry whenever a new one is created.
const SWEEP_LIMIT: u32 = 4;
/// Number of counters to search for an expired one if the space is full.
const SEARCH_LIMIT: u32 = 32;

/// Limits of counters.
#[derive(Debug, Clone, Copy)]
pub struct CounterOptions {
    /// Maximum number of counters of one space. An idle counter takes about 130 octets, one with additions in every
    /// step 600.
    pub entries: usize,
}

impl Default for CounterOptions {
    fn default() -> Self {
        Self { entries: 1_000_000 }
    }
}

/// Counters over sliding windows, in spaces: a space is a plugin, or its candidate in shadow.
///
/// Each space has its own limit, so a plugin with too many counters loses only its own.
#[derive(Debug, Default)]
pub struct Counters {
    options: CounterOptions,
    spaces: ArcSwap<FxHashMap<Box<str>, Arc<CounterSpace>>>,
}

impl Counters {
    /// Creates an empty set of counters.
    #[must_use]
    pub fn new(options: CounterOptions) -> Self {
        Self { options, spaces: ArcSwap::default() }
    }

    /// Adds to a counter and returns the sum of its window; see [`CounterSpace::add`].
    pub fn add(
        &self,
        space: &str,
        name: &str,
        key: &str,
        amount: u32,
        window: Duration,
        now: Timestamp,
    ) -> u64 {
        if let Some(space) = self.spaces.load().get(space) {
            return space.add(name, key, amount, window, now);
        }
        self.space(space).add(name, key, amount, window, now)
    }

    /// The sum of a counter's window.
    #[must_use]
    pub fn sum(&self, space: &str, name: &str, key: &str, window: Duration, now: Timestamp) -> u64 {
        self.spaces.load().get(space).map_or(0, |space| space.sum(name, key, window, now))
    }

    /// The space of this name, created on first use. Frequent callers should keep it, to save the look-up by name.
    #[must_use]
    pub fn space(&self, name: &str) -> Arc<CounterSpace> {
        if let Some(known) = self.spaces.load().get(name) {
            return Arc::clone(known);
        }
        let new = Arc::new(CounterSpace::new(self.options));
        let before = self.spaces.rcu(|spaces| {
            let mut spaces = FxHashMap::clone(spaces);
            spaces.entry(name.into()).or_insert_with(|| Arc::clone(&new));
            spaces
        });
        before.get(name).map_or(new, Arc::clone)
    }

    /// An empty space that no other caller can find, with the same limits.
    #[must_use]
    pub fn private_space(&self) -> Arc<CounterSpace> {
        Arc::new(CounterSpace::new(self.options))
    }

    /// Drops a space with all its counters, such as a candidate's when its shadow ends.
    pub fn forget(&self, name: &str) {
        self.spaces.rcu(|spaces| {
            let mut spaces = FxHashMap::clone(spaces);
            spaces.remove(name);
            spaces
        });
    }

    /// Metrics of each space, by its name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, CounterMetrics)> {
        self.spaces.load().iter().map(|(name, space)| (name.to_string(), space.metrics())).collect()
    }
}

/// Metrics of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CounterMetrics {
    /// Number of counters, including expired ones that are not dropped yet.
    pub entries: u64,
    /// Number of counters that were dropped after they expired, since the start.
    pub ended: u64,
    /// Number of live counters that were dropped because the space was full, since the start: the limit is too small.
    pub evicted: u64,
}

/// The counters of one plugin.
#[derive(Debug)]
pub struct CounterSpace {
    shards: Box<[Mutex<Shard>]>,
    /// Maximum number of counters of one shard.
    limit: usize,
    /// Keys are untrusted input: the hash is seeded, so that an attacker cannot cause collisions.
    hasher: DefaultHashBuilder,
    ended: AtomicU64,
    evicted: AtomicU64,
}

/// Identity of a counter. It includes the window, so that two versions of a plugin with different windows do not
/// disturb each other.
#[derive(Clone, Copy)]
struct CounterKey<'a> {
    name: &'a [u8],
    key: &'a [u8],
    /// In milliseconds.
    window: u32,
}

impl Hash for CounterKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.name);
        state.write(self.key);
        state.write_u64(u64::from(self.window) << 32 | self.name.len() as u64);
    }
}

impl CounterSpace {
    fn new(options: CounterOptions) -> Self {
        let shards = (options.entries / 1024).clamp(1, 64).next_power_of_two();
        Self {
            limit: options.entries.div_ceil(shards).max(1),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            ended: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// Adds to a counter and returns the sum of its window.
    ///
    /// A window is 1 s to 24 h; other values are clamped. It slides in sixty steps, so it covers the last 59 to 60
    /// sixtieths. A time slightly before the counter's newest step counts as the newest step (threads see the clock in
    /// different order); a time a whole window before it resets the counter (the clock was set back).
    pub fn add(&self, name: &str, key: &str, amount: u32, window: Duration, now: Timestamp) -> u64 {
        self.with_counter(name, key, window, |hash, id, shard| {
            let step = step(now, id.window);
            if let Some(slot) = shard.find(hash, id) {
                return shard.counters.get_mut(slot).map_or(0, |counter| counter.add(step, amount));
            }
            let (ended, evicted) = shard.make_room(self.limit, now, &self.hasher);
            self.ended.fetch_add(ended, Ordering::Relaxed);
            self.evicted.fetch_add(evicted, Ordering::Relaxed);
            shard.insert(hash, Counter::new(id, step, amount), &self.hasher);
            u64::from(amount)
        })
    }

    /// The sum of a counter's window; 0 for an unknown counter.
    #[must_use]
    pub fn sum(&self, name: &str, key: &str, window: Duration, now: Timestamp) -> u64 {
        self.with_counter(name, key, window, |hash, id, shard| {
            let slot = shard.find(hash, id)?;
            shard.counters.get_mut(slot).map(|counter| counter.sum(step(now, id.window)))
        })
        .unwrap_or(0)
    }

    fn with_counter<T>(
        &self,
        name: &str,
        key: &str,
        window: Duration,
        work: impl FnOnce(u64, CounterKey<'_>, &mut Shard) -> T,
    ) -> T
    where
        T: Default,
    {
        let window = u32::try_from(window.as_millis()).unwrap_or(u32::MAX).clamp(1_000, 86_400_000);
        let digest: [u8; 32];
        let id = if name.len() + key.len() <= MAX_KEY_OCTETS {
            CounterKey { name: name.as_bytes(), key: key.as_bytes(), window }
        } else {
            let mut sha = Sha256::new();
            sha.update((name.len() as u64).to_le_bytes());
            sha.update(name);
            sha.update(key);
            digest = sha.finalize().into();
            CounterKey { name: &digest, key: &[], window }
        };
        let hash = self.hasher.hash_one(id);
        // The inner hash table uses the lowest and the highest bits.
        let shard = (hash >> 40) as usize & (self.shards.len() - 1);
        self.shards.get(shard).map(|shard| work(hash, id, &mut shard.lock())).unwrap_or_default()
    }

    /// Metrics of the counters.
    #[must_use]
    pub fn metrics(&self) -> CounterMetrics {
        CounterMetrics {
            entries: self.shards.iter().map(|shard| shard.lock().index.len() as u64).sum(),
            ended: self.ended.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }
}

fn step(now: Timestamp, window: u32) -> u64 {
    now.0.saturating_mul(STEPS) / u64::from(window)
}

#[derive(Debug, Default)]
struct Shard {
    index: HashTable<u32>,
    counters: Vec<Counter>,
    free: Vec<u32>,
    /// The earliest expiry time of each counter, and its slot; one entry for each counter. An addition extends the
    /// expiry but leaves the entry unchanged, so that the hot path does not touch the heap.
    expiries: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Shard {
    fn find(&self, hash: u64, id: CounterKey<'_>) -> Option<usize> {
        let is_match =
            |slot: &u32| self.counters.get(*slot as usize).is_some_and(|counter| counter.matches(id));
        self.index.find(hash, is_match).map(|slot| *slot as usize)
    }

    fn insert(&mut self, hash: u64, counter: Counter, hasher: &DefaultHashBuilder) {
        let expires_at = counter.expires_at();
        let slot = if let Some(slot) = self.free.pop() {
            if let Some(old) = self.counters.get_mut(slot as usize) {
                *old = counter;
            }
            slot
        } else {
            // A shard has far fewer than 2^32 counters, because of the limit.
            let slot = u32::try_from(self.counters.len()).unwrap_or(u32::MAX);
            self.counters.push(counter);
            slot
        };
        let counters = &self.counters;
        let rehash = |slot: &u32| counters.get(*slot as usize).map_or(0, |known| hasher.hash_one(known.id()));
        self.index.insert_unique(hash, slot, rehash);
        self.expiries.push(Reverse((expires_at, slot)));
    }

    /// Drops a few expired counters and, if the shard is still full, the counter that expires next. Returns the number
    /// of each.
    fn make_room(&mut self, limit: usize, now: Timestamp, hasher: &DefaultHashBuilder) -> (u64, u64) {
        let (mut ended, mut evicted) = (0, 0);
        for _ in 0..SWEEP_LIMIT {
            let Some(&Reverse((expires_at, slot))) = self.expiries.peek() else { break };
            if expires_at > now.0 {
                break;
            }
            if !self.requeue_if_extended(expires_at, slot) {
                self.evict_next(hasher);
                ended += 1;
            }
        }
        let mut searched = 0;
        while self.index.len() >= limit {
            let Some(&Reverse((expires_at, slot))) = self.expiries.peek() else { break };
            searched += 1;
            // At the search limit, the counter that seems to expire next is good enough.
            if searched > SEARCH_LIMIT || !self.requeue_if_extended(expires_at, slot) {
                self.evict_next(hasher);
                evicted += 1;
            }
        }
        (ended, evicted)
    }

    /// Whether the expiry of the counter at the front was extended after it was queued. If so, requeues it.
    fn requeue_if_extended(&mut self, expires_at: u64, slot: u32) -> bool {
        let new_expiry = self.counters.get(slot as usize).map_or(0, Counter::expires_at);
        if new_expiry <= expires_at {
            return false;
        }
        if let Some(mut front) = self.expiries.peek_mut() {
            front.0.0 = new_expiry;
        }
        true
    }

    fn evict_next(&mut self, hasher: &DefaultHashBuilder) {
        let Some(Reverse((_, slot))) = self.expiries.pop() else { return };
        let Some(counter) = self.counters.get_mut(slot as usize) else { return };
        let hash = hasher.hash_one(counter.id());
        if let Ok(found) = self.index.find_entry(hash, |known| *known == slot) {
            found.remove();
        }
        counter.clear();
        self.free.push(slot);
    }
}

#[derive(Debug)]
struct Counter {
    /// Name, then key.
    id: SmallVec<[u8; 32]>,
    /// Length of the name, in octets.
    name: u16,
    /// In milliseconds.
    window: u32,
    /// The newest step that was seen.
    newest: u64,
    /// The sum of all steps.
    total: u64,
    /// Steps with additions, oldest first: the lowest eight bits of the step number in the lowest eight bits, the
    /// amount above them.
    steps: SmallVec<[u64; 2]>,
}

impl Counter {
    fn new(id: CounterKey<'_>, step: u64, amount: u32) -> Self {
        let mut octets = SmallVec::with_capacity(id.name.len() + id.key.len());
        octets.extend_from_slice(id.name);
        octets.extend_from_slice(id.key);
        let name = u16::try_from(id.name.len()).unwrap_or(u16::MAX);
        let mut counter =
            Self { id: octets, name, window: id.window, newest: step, total: 0, steps: SmallVec::new() };
        counter.add(step, amount);
        counter
    }

    fn id(&self) -> CounterKey<'_> {
        let (name, key) = self.id.split_at_checked(self.name.into()).unwrap_or((&self.id, &[]));
        CounterKey { name, key, window: self.window }
    }

    fn matches(&self, id: CounterKey<'_>) -> bool {
        let own = self.id();
        own.window == id.window && own.name == id.name && own.key == id.key
    }

    /// The age of a packed step, in steps.
    fn age(&self, packed: u64) -> u64 {
        u64::from((self.newest as u8).wrapping_sub(packed as u8))
    }

    fn advance(&mut self, step: u64) {
        if step.abs_diff(self.newest) >= STEPS {
            self.steps.clear();
            self.total = 0;
            self.newest = step;
        } else if step > self.newest {
            // Ages stay below 120 here, so eight bits are unambiguous.
            self.newest = step;
            let expired = self.steps.iter().take_while(|packed| self.age(**packed) >= STEPS).count();
            for gone in self.steps.drain(..expired) {
                self.total -= gone >> 8;
            }
        }
    }

    fn add(&mut self, step: u64, amount: u32) -> u64 {
        self.advance(step);
        if amount == 0 {
            return self.total;
        }
        let (low, amount) = (self.newest & 0xff, u64::from(amount));
        match self.steps.last_mut() {
            // A step holds 2^24 maximum amounts; an overflow is dropped, from the total too.
            Some(last) if *last & 0xff == low => match last.checked_add(amount << 8) {
                Some(sum) => *last = sum,
                None => return self.total,
            },
            _ => self.steps.push(amount << 8 | low),
        }
        self.total += amount;
        self.total
    }

    fn sum(&mut self, step: u64) -> u64 {
        self.advance(step);
        self.total
    }

    /// The time, in milliseconds, at which the window becomes empty.
    fn expires_at(&self) -> u64 {
        self.steps.last().map_or(0, |last| {
            let added = self.newest - self.age(*last).min(self.newest);
            (added + STEPS).saturating_mul(u64::from(self.window)).div_ceil(STEPS)
        })
    }

    fn clear(&mut self) {
        self.id = SmallVec::new();
        self.steps = SmallVec::new();
        self.total = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn amounts_outside_the_window_do_not_count() {
        let counters = Counters::default();
        let add = |at| counters.add("guard", "calls", "491511", 2, MINUTE, Timestamp(at));
        let sum = |at| counters.sum("guard", "calls", "491511", MINUTE, Timestamp(at));
        assert_eq!(add(1_000_000), 2);
        assert_eq!(add(1_030_000), 4);
        assert_eq!(sum(1_059_999), 4);
        assert_eq!(sum(1_060_000), 2);
        assert_eq!(sum(1_090_000), 0);
        assert_eq!(add(2_000_000), 2);
    }

    #[test]
    fn spaces_names_keys_and_windows_are_separate() {
        let counters = Counters::default();
        let now = Timestamp(1_000_000);
        counters.add("guard", "calls", "1", 1, MINUTE, now);
        assert_eq!(counters.sum("guard#shadow", "calls", "1", MINUTE, now), 0);
        assert_eq!(counters.sum("guard", "call", "s1", MINUTE, now), 0);
        assert_eq!(counters.sum("guard", "calls", "1", MINUTE * 2, now), 0);
        counters.add("guard#shadow", "calls", "1", 7, MINUTE, now);
        counters.forget("guard#shadow");
        assert_eq!(counters.sum("guard#shadow", "calls", "1", MINUTE, now), 0);
        assert_eq!(counters.sum("guard", "calls", "1", MINUTE, now), 1);
    }

    #[test]
    fn long_keys_are_distinct() {
        let counters = Counters::default();
        let (now, key) = (Timestamp(1_000_000), "x".repeat(100_000));
        counters.add("guard", "calls", &key, 1, MINUTE, now);
        assert_eq!(counters.add("guard", "calls", &key, 1, MINUTE, now), 2);
        assert_eq!(counters.sum("guard", "callsx", &key[1..], MINUTE, now), 0);
    }

    #[test]
    fn at_the_limit_the_stalest_counter_of_the_space_is_evicted() {
        let counters = Counters::new(CounterOptions { entries: 100 });
        let key = |n: u64| format!("{n}");
        counters.add("other", "calls", "1", 1, MINUTE, Timestamp(1_000_000));
        for n in 0..100 {
            counters.add("guard", "calls", &key(n), 1, MINUTE, Timestamp(1_000_000 + n * 100));
        }
        // The first counter is incremented again, so the second is the oldest now.
        counters.add("guard", "calls", &key(0), 1, MINUTE, Timestamp(1_010_000));
        let now = Timestamp(1_011_000);
        counters.add("guard", "calls", "one more", 1, MINUTE, now);
        assert_eq!(counters.sum("guard", "calls", &key(0), MINUTE, now), 2);
        let lost = (1..100).filter(|n| counters.sum("guard", "calls", &key(*n), MINUTE, now) == 0).count();
        assert_eq!(lost, 1);
        assert!(
            (1..10).any(|n| counters.sum("guard", "calls", &key(n), MINUTE, now) == 0),
            "one of the oldest step"
        );
        let metrics = counters.space("guard").metrics();
        assert_eq!(metrics, CounterMetrics { entries: 100, ended: 0, evicted: 1 });
        assert_eq!(counters.sum("other", "calls", "1", MINUTE, now), 1);
    }

    #[test]
    fn expired_counters_are_dropped() {
        let counters = Counters::new(CounterOptions { entries: 100 });
        for n in 0..10_000_u64 {
            counters.add("guard", "calls", &n.to_string(), 1, Duration::from_secs(1), Timestamp(n * 20));
        }
        let metrics = counters.space("guard").metrics();
        assert!(metrics.entries <= 60, "{metrics:?}");
        assert_eq!(metrics.evicted, 0);
        assert_eq!(metrics.entries + metrics.ended, 10_000);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let counters = Counters::default();
        let add = || counters.add("guard", "calls", "1", u32::MAX, MINUTE, Timestamp(1_000_000));
        for n in 1..=1_000 {
            assert_eq!(add(), n * u64::from(u32::MAX));
        }
        let far = Timestamp(u64::MAX);
        assert_eq!(counters.add("guard", "calls", "1", 1, Duration::from_secs(86_400), far), 1);
    }

    #[test]
    fn setting_the_clock_back_restarts_a_counter() {
        let counters = Counters::default();
        let add = |at| counters.add("guard", "calls", "1", 1, MINUTE, Timestamp(at));
        add(10_000_000);
        assert_eq!(add(9_999_000), 2, "a little: threads out of step");
        assert_eq!(add(5_000_000), 1);
    }

    proptest! {
        #[test]
        fn windows_match_a_naive_model(
            window in 1_000_u64..100_000,
            start in 0_u64..2_000_000_000_000,
            moves in proptest::collection::vec((0_u64..30_000, 0_u8..4, 0_u32..1_000), 1..200),
        ) {
            let counters = Counters::new(CounterOptions { entries: 10_000 });
            let mut model: Vec<(u8, u64, u64)> = Vec::new();
            let mut now = start;
            for (requeue_if_extended, key, amount) in moves {
                now += requeue_if_extended;
                let in_window = |model: &[(u8, u64, u64)]| -> u64 {
                    let oldest = (now * 60 / window).saturating_sub(59);
                    let counts = |(k, at, _): &&(u8, u64, u64)| *k == key && at * 60 / window >= oldest;
                    model.iter().filter(counts).map(|(_, _, amount)| amount).sum()
                };
                let (name, length) = (key.to_string(), Duration::from_millis(window));
                prop_assert_eq!(counters.sum("s", "n", &name, length, Timestamp(now)), in_window(&model));
                model.push((key, now, amount.into()));
                prop_assert_eq!(counters.add("s", "n", &name, amount, length, Timestamp(now)), in_window(&model));
            }
        }
    }
}
