//! Cache of the lookups' answers about numbers, during their lifetime.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use model::{Lookup, LookupNumber};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Number of parts, each with its own lock, so that links rarely wait for each other.
const SHARDS: usize = 16;

/// The bounds of a [`LookupCache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCacheOptions {
    /// Maximum number of answers; beyond it, the answers that expire first are removed. 0: nothing is cached.
    pub entries: usize,
    /// The shortest time for which an answer is cached, even if its plugin asks for less.
    pub min_lifetime: Duration,
    /// The longest time for which an answer is cached.
    pub max_lifetime: Duration,
}

impl Default for LookupCacheOptions {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            min_lifetime: Duration::from_secs(1),
            max_lifetime: Duration::from_secs(86_400),
        }
    }
}

/// Counts of a [`LookupCache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookupCacheCounts {
    /// Queries with a cached answer.
    pub hits: u64,
    /// Queries without a cached answer.
    pub misses: u64,
    /// Cached answers, including expired ones.
    pub entries: u64,
}

/// The answers of lookups by number.
#[derive(Debug)]
pub struct LookupCache {
    options: LookupCacheOptions,
    shards: [Mutex<Shard>; SHARDS],
    hasher: hashbrown::DefaultHashBuilder,
    /// Increases when all answers are removed, so that an answer of an earlier chain is not cached afterwards.
    epoch: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    answers: HashMap<LookupNumber, (Instant, Arc<Lookup>)>,
    /// The end of each answer, the earliest first. A replaced answer has another end, and its old item is skipped.
    ends: BinaryHeap<Reverse<(Instant, LookupNumber)>>,
}

impl LookupCache {
    /// An empty cache.
    #[must_use]
    pub fn new(options: LookupCacheOptions) -> Self {
        Self {
            options,
            shards: Default::default(),
            hasher: hashbrown::DefaultHashBuilder::default(),
            epoch: AtomicU64::default(),
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
        }
    }

    fn shard(&self, number: &LookupNumber) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(number) as usize % SHARDS]
    }

    /// The answer about a number, if it is still valid.
    #[must_use]
    pub fn get(&self, number: &LookupNumber, now: Instant) -> Option<Arc<Lookup>> {
        let found = match self.shard(number).lock().answers.get(number) {
            Some((until, lookup)) if *until > now => Some(lookup.clone()),
            _ => None,
        };
        let count = if found.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Relaxed);
        found
    }

    /// The number of times that all answers were removed; for [`LookupCache::insert`].
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Caches an answer, within the bounds. Does nothing if all answers were removed since `epoch`, because the question went to
    /// plugins that are no longer bound.
    pub fn insert(&self, epoch: u64, number: LookupNumber, lookup: Lookup, lifetime: Duration, now: Instant) {
        // Each part has at least one answer, unless nothing is cached.
        let limit = self.options.entries.div_ceil(SHARDS);
        let lifetime = lifetime.max(self.options.min_lifetime).min(self.options.max_lifetime);
        if limit == 0 || lifetime.is_zero() {
            return;
        }
        let until = now + lifetime;
        let mut shard = self.shard(&number).lock();
        if self.epoch() != epoch {
            return;
        }
        let Shard { answers, ends } = &mut *shard;
        ends.push(Reverse((until, number.clone())));
        answers.insert(number, (until, Arc::new(Lookup { cached: true, host_calls: None, ..lookup })));
        while answers.len() > limit || ends.peek().is_some_and(|Reverse((end, _))| *end <= now) {
            let Some(Reverse((end, number))) = ends.pop() else { break };
            if let Entry::Occupied(known) = answers.entry(number)
                && known.get().0 == end
            {
                known.remove();
            }
        }
    }

    /// Removes all answers: the plugins have changed.
    pub fn clear(&self) {
        self.epoch.fetch_add(1, Relaxed);
        for shard in &self.shards {
            *shard.lock() = Shard::default();
        }
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> LookupCacheCounts {
        LookupCacheCounts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            entries: self.shards.iter().map(|shard| shard.lock().answers.len() as u64).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Address, LookupResult, PluginVersion};

    fn number(at: usize) -> LookupNumber {
        LookupNumber::of(&Address::international(&format!("49{at:08}"))).unwrap()
    }

    fn lookup() -> Lookup {
        let by = Arc::new(PluginVersion { plugin: "p".to_owned(), version: "1".to_owned() });
        let attributes = vec![("mcc".into(), "262".into())];
        Lookup { result: LookupResult::Found, attributes, by, note: None, cached: false, host_calls: None }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn an_answer_holds_for_its_lifetime_within_the_bounds() {
        let options =
            LookupCacheOptions { entries: 100, min_lifetime: seconds(5), max_lifetime: seconds(50) };
        let cache = LookupCache::new(options);
        let now = Instant::now();
        for (at, asked, holds) in [(1, 10, 10), (2, 1, 5), (3, 1_000, 50)] {
            cache.insert(cache.epoch(), number(at), lookup(), seconds(asked), now);
            assert!(cache.get(&number(at), now + seconds(holds - 1)).is_some_and(|found| found.cached));
            assert_eq!(cache.get(&number(at), now + seconds(holds)), None);
        }
        assert_eq!(cache.counts(), LookupCacheCounts { hits: 3, misses: 3, entries: 3 });
    }

    #[test]
    fn the_answers_that_expire_first_are_evicted() {
        let cache = LookupCache::new(LookupCacheOptions { entries: 160, ..LookupCacheOptions::default() });
        let now = Instant::now();
        for at in 0..10_000 {
            cache.insert(cache.epoch(), number(at), lookup(), seconds(10 + at as u64), now);
        }
        assert_eq!(cache.counts().entries, 160);
        assert!(cache.get(&number(9_999), now).is_some());
        // A number that is renewed again and again keeps one end after the others have passed.
        for turn in 0..1_000_u64 {
            cache.insert(cache.epoch(), number(1), lookup(), seconds(2), now + seconds(20_000 + turn));
        }
        let ends: usize = cache.shards.iter().map(|shard| shard.lock().ends.len()).sum();
        assert!(ends < 200, "{ends}");
    }

    #[test]
    fn an_answer_of_plugins_that_are_not_bound_any_more_is_not_cached() {
        let cache = LookupCache::new(LookupCacheOptions::default());
        let (epoch, now) = (cache.epoch(), Instant::now());
        cache.insert(epoch, number(1), lookup(), seconds(10), now);
        cache.clear();
        assert_eq!(cache.get(&number(1), now), None);
        cache.insert(epoch, number(1), lookup(), seconds(10), now);
        assert_eq!(cache.get(&number(1), now), None);
        let off = LookupCache::new(LookupCacheOptions { entries: 0, ..LookupCacheOptions::default() });
        off.insert(off.epoch(), number(1), lookup(), seconds(10), now);
        assert_eq!(off.counts().entries, 0);
    }
}
