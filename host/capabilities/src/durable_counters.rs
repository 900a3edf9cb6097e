//! Durable counters: counts of the current hour, day or month of a time zone.
//!
//! A call counts in memory and never waits for the disk. [`CounterWriter`] writes changed counts about ten times a
//! second, so a crash loses the counts of about 100 ms, and an orderly shutdown loses none.

mod counter_writer;
mod key_quota;
#[cfg(test)]
mod tests;

pub use counter_writer::CounterWriter;

use crate::calendar::{Calendar, CalendarPeriod};
use crate::kv_store::CounterRow;
use crate::{CounterGrant, Error, RedbKvStore};
use counter_writer::WakeSignal;
use hashbrown::{DefaultHashBuilder, HashMap};
use key_quota::KeyQuota;
use model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum length of a key that is stored unchanged, in octets. A longer key is replaced by its digest.
const MAX_KEY_OCTETS: usize = 256;
/// Marks a digest in place of a key: an octet that does not occur in UTF-8.
const DIGEST_MARK: u8 = 0xff;
/// Number of shards of one counter, a power of two.
const SHARDS: usize = 64;

/// A key, or [`DIGEST_MARK`] and the SHA-256 digest of a long key.
type StoredKey = SmallVec<[u8; 32]>;

/// Limits of durable counters.
#[derive(Debug, Clone, Copy)]
pub struct DurableCounterOptions {
    /// Maximum number of keys over all durable counters of one plugin. A key takes about 100 octets of memory.
    pub keys: u64,
}

impl Default for DurableCounterOptions {
    fn default() -> Self {
        Self { keys: 1_000_000 }
    }
}

/// The durable counters of all plugins. The versions and instances of a plugin share them.
#[derive(Debug, Default)]
pub struct DurableCounters {
    options: DurableCounterOptions,
    plugins: Mutex<FxHashMap<Box<str>, PluginCounters>>,
    wake: Arc<WakeSignal>,
    write_failures: AtomicU64,
}

#[derive(Debug)]
struct PluginCounters {
    quota: Arc<KeyQuota>,
    counters: Vec<Arc<DurableCounter>>,
}

/// Metrics of the durable counters of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DurableCounterMetrics {
    /// Number of keys, including keys of past periods that were not accessed since.
    pub keys: u64,
    /// Number of `add` calls that were refused because the plugin was at its limit of keys, since the start.
    pub refused: u64,
}

impl DurableCounters {
    /// Creates counters without any counts. Nothing is stored on disk.
    #[must_use]
    pub fn new(options: DurableCounterOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Loads the counts of the current periods from the plugins' store. Rows of other periods are left for the
    /// [`CounterWriter`] to delete.
    ///
    /// # Errors
    /// The file cannot be read, or a newer release wrote a row of it.
    pub fn recover(
        options: DurableCounterOptions,
        values: &RedbKvStore,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let counters = Self::new(options);
        let mut unknown = Vec::new();
        let mut last: Option<Arc<DurableCounter>> = None;
        values.read_counts(|row: CounterRow<'_>| {
            let known = last.take().filter(|counter| counter.matches(row.plugin, row.name, row.calendar));
            let counter = known.or_else(|| {
                let calendar = Calendar::parse(row.calendar)?;
                Some(counters.find_or_create(row.plugin, row.name, &calendar))
            });
            match &counter {
                Some(counter) => counter.recover(&row, now),
                None => unknown.push([row.plugin, row.name, row.calendar].map(str::to_owned)),
            }
            last = counter;
        })?;
        unknown.dedup();
        for [plugin, name, calendar] in unknown {
            tracing::warn!(plugin, counter = name, calendar, "time zone no longer known; counts deleted");
            while !values.delete_counts_outside(&plugin, &name, &calendar, &[])? {}
        }
        Ok(counters)
    }

    /// A counter of a plugin, created on first use.
    ///
    /// # Errors
    /// The time zone is unknown.
    pub fn counter(&self, plugin: &str, grant: &CounterGrant) -> Result<Arc<DurableCounter>, Error> {
        Ok(self.find_or_create(plugin, &grant.name, &Calendar::of(grant)?))
    }

    fn find_or_create(&self, plugin: &str, name: &str, calendar: &Calendar) -> Arc<DurableCounter> {
        let mut plugins = self.plugins.lock();
        let plugin_counters = plugins.entry(plugin.into()).or_insert_with(|| PluginCounters {
            quota: Arc::new(KeyQuota::new(self.options.keys, Some(plugin))),
            counters: Vec::new(),
        });
        let same = |one: &&Arc<DurableCounter>| &*one.name == name && one.calendar == *calendar;
        if let Some(known) = plugin_counters.counters.iter().find(same) {
            return known.clone();
        }
        let (quota, wake) = (plugin_counters.quota.clone(), self.wake.clone());
        let new = Arc::new(DurableCounter::new(plugin, name, calendar.clone(), quota, wake, None));
        plugin_counters.quota.register(&new);
        plugin_counters.counters.push(new.clone());
        new
    }

    fn all(&self) -> Vec<Arc<DurableCounter>> {
        self.plugins.lock().values().flat_map(|plugin| plugin.counters.iter().cloned()).collect()
    }

    /// Metrics of each plugin's counters, by the plugin's name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, DurableCounterMetrics)> {
        self.plugins.lock().iter().map(|(name, plugin)| (name.to_string(), plugin.quota.metrics())).collect()
    }

    /// Number of failed attempts to write counts since the start. Failed writes are retried.
    #[must_use]
    pub fn write_failures(&self) -> u64 {
        self.write_failures.load(Ordering::Relaxed)
    }
}

/// One counter of a plugin, identified by name, window and time zone. It has one count for each key.
#[derive(Debug)]
pub struct DurableCounter {
    plugin: Box<str>,
    name: Box<str>,
    calendar: Calendar,
    calendar_text: Box<str>,
    shards: Box<[Mutex<Shard>]>,
    /// Keys are untrusted input: the hash is seeded, so that an attacker cannot cause collisions.
    hasher: DefaultHashBuilder,
    quota: Arc<KeyQuota>,
    wake: Arc<WakeSignal>,
    /// The counter that supplies the initial counts of this one, and is never changed.
    base: Option<Arc<DurableCounter>>,
    /// The time at which a shard rolled over to another period after the writer's last visit; 0: no shard has rolled over.
    rolled_over_at: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    /// The period of all counts of the shard; empty before the first call.
    period: CalendarPeriod,
    counts: HashMap<StoredKey, Count, DefaultHashBuilder>,
    /// Keys with unwritten counts.
    dirty: Vec<StoredKey>,
}

#[derive(Debug)]
struct Count {
    count: u64,
    dirty: bool,
}

/// A changed count to be written.
struct ChangedCount {
    counter: Arc<DurableCounter>,
    period: CalendarPeriod,
    key: StoredKey,
    count: u64,
}

impl ChangedCount {
    fn row(&self) -> CounterRow<'_> {
        CounterRow {
            plugin: &self.counter.plugin,
            name: &self.counter.name,
            calendar: &self.counter.calendar_text,
            start: self.period.start,
            end: self.period.end,
            key: &self.key,
            count: self.count,
        }
    }
}

fn stored_key(key: &str) -> StoredKey {
    if key.len() <= MAX_KEY_OCTETS {
        return StoredKey::from_slice(key.as_bytes());
    }
    let mut digest = StoredKey::from_slice(&[DIGEST_MARK]);
    digest.extend_from_slice(&Sha256::digest(key));
    digest
}

impl DurableCounter {
    fn new(
        plugin: &str,
        name: &str,
        calendar: Calendar,
        quota: Arc<KeyQuota>,
        wake: Arc<WakeSignal>,
        base: Option<Arc<Self>>,
    ) -> Self {
        Self {
            plugin: plugin.into(),
            name: name.into(),
            calendar_text: calendar.to_string().into(),
            calendar,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            quota,
            wake,
            base,
            rolled_over_at: AtomicU64::new(0),
        }
    }

    /// A counter for a candidate in shadow: it starts with the counts of this one; its additions stay in memory and in
    /// this overlay.
    #[must_use]
    pub fn overlay(self: &Arc<Self>) -> Arc<Self> {
        let quota = Arc::new(KeyQuota::new(self.quota.limit(), None));
        let calendar = self.calendar.clone();
        // No thread waits for this signal: the counts of an overlay are never written.
        let overlay =
            Self::new(&self.plugin, &self.name, calendar, quota, Arc::default(), Some(self.clone()));
        let overlay = Arc::new(overlay);
        overlay.quota.register(&overlay);
        overlay
    }

    /// The name that the plugin uses for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn matches(&self, plugin: &str, name: &str, calendar: &str) -> bool {
        &*self.plugin == plugin && &*self.name == name && &*self.calendar_text == calendar
    }

    /// Adds to a key's count of the current period and returns the new count. `None`: the key is new and the plugin is
    /// at its limit of keys; nothing is counted.
    pub fn add(&self, key: &str, amount: u32, now: Timestamp) -> Option<u64> {
        let key = stored_key(key);
        let amount = u64::from(amount);
        let added = self.with_shard(&key, now, |shard| {
            let Shard { counts, dirty, .. } = shard;
            match counts.get_mut(&key[..]) {
                Some(known) => {
                    if amount > 0 {
                        known.count = known.count.saturating_add(amount);
                        if !std::mem::replace(&mut known.dirty, true) {
                            dirty.push(key.clone());
                        }
                    }
                    Some(known.count)
                }
                None if amount == 0 => Some(self.base_count(&key, now)),
                None => self.insert(shard, &key, amount, now),
            }
        });
        let added = added.or_else(|| {
            // Other counters of the plugin may hold keys of expired periods.
            let has_room = self.quota.drop_expired(now);
            has_room
                .then(|| self.with_shard(&key, now, |shard| self.insert(shard, &key, amount, now)))
                .flatten()
        });
        match added {
            Some(_) if amount > 0 => self.wake.raise(),
            Some(_) => {}
            None => self.quota.record_refusal(&self.name, now),
        }
        added
    }

    /// Inserts a key, or adds to it if another thread has inserted it meanwhile.
    fn insert(&self, shard: &mut Shard, key: &StoredKey, amount: u64, now: Timestamp) -> Option<u64> {
        let Shard { counts, dirty, .. } = shard;
        if !counts.contains_key(&key[..]) {
            if !self.quota.reserve() {
                return None;
            }
            counts.insert(key.clone(), Count { count: self.base_count(key, now), dirty: false });
        }
        let known = counts.get_mut(&key[..])?;
        known.count = known.count.saturating_add(amount);
        if !std::mem::replace(&mut known.dirty, true) {
            dirty.push(key.clone());
        }
        Some(known.count)
    }

    /// The result that [`Self::add`] would return. Counts nothing.
    #[must_use]
    pub fn preview_add(&self, key: &str, amount: u32, now: Timestamp) -> Option<u64> {
        let key = stored_key(key);
        let found = self.find(&key, now);
        if found.is_none() && amount > 0 && !self.quota.may_have_room(now) {
            return None;
        }
        Some(found.unwrap_or_else(|| self.base_count(&key, now)).saturating_add(u64::from(amount)))
    }

    /// A key's count of the current period; 0 for an unknown key.
    #[must_use]
    pub fn sum(&self, key: &str, now: Timestamp) -> u64 {
        self.sum_stored(&stored_key(key), now)
    }

    fn sum_stored(&self, key: &StoredKey, now: Timestamp) -> u64 {
        self.find(key, now).unwrap_or_else(|| self.base_count(key, now))
    }

    /// Reads a count without a roll-over: a read may be for another time.
    fn find(&self, key: &StoredKey, now: Timestamp) -> Option<u64> {
        let shard = self.shard(key)?.lock();
        let is_current = shard.period.contains(now.0)
            || self.calendar.current_period(shard.period, now.0).start == shard.period.start;
        shard.counts.get(&key[..]).filter(|_| is_current).map(|known| known.count)
    }

    fn shard(&self, key: &StoredKey) -> Option<&Mutex<Shard>> {
        self.shards.get(self.hasher.hash_one(&key[..]) as usize & (SHARDS - 1))
    }

    /// The base count of a key.
    fn base_count(&self, key: &StoredKey, now: Timestamp) -> u64 {
        self.base.as_ref().map_or(0, |base| base.sum_stored(key, now))
    }

    fn with_shard<T: Default>(
        &self,
        key: &StoredKey,
        now: Timestamp,
        work: impl FnOnce(&mut Shard) -> T,
    ) -> T {
        let Some(shard) = self.shard(key) else { return T::default() };
        let mut shard = shard.lock();
        let expired = self.roll_over(&mut shard, now);
        let result = work(&mut shard);
        drop(shard);
        drop(expired);
        result
    }

    /// Rolls the shard over if `now` is in another period. Returns the expired counts, so that the caller drops them
    /// without the lock.
    fn roll_over(&self, shard: &mut Shard, now: Timestamp) -> HashMap<StoredKey, Count, DefaultHashBuilder> {
        if shard.period.contains(now.0) {
            return HashMap::default();
        }
        let period = self.calendar.current_period(shard.period, now.0);
        let same = period.start == shard.period.start && shard.period != CalendarPeriod::default();
        shard.period = period;
        if same {
            return HashMap::default();
        }
        shard.dirty.clear();
        let expired = std::mem::take(&mut shard.counts);
        if !expired.is_empty() {
            self.quota.release(expired.len() as u64);
            self.rolled_over_at.store(now.0.max(1), Ordering::Release);
            self.wake.raise();
        }
        expired
    }

    /// Rolls all shards over to the period of `now`. Returns the earliest end of their periods.
    fn roll_over_all(&self, now: Timestamp) -> u64 {
        let mut ends = u64::MAX;
        for shard in &self.shards {
            let mut shard = shard.lock();
            if shard.period == CalendarPeriod::default() {
                continue;
            }
            let expired = self.roll_over(&mut shard, now);
            ends = ends.min(shard.period.end);
            drop(shard);
            drop(expired);
        }
        ends
    }

    /// Loads a row from disk, unless its period is not the current one.
    fn recover(&self, row: &CounterRow<'_>, now: Timestamp) {
        let key = StoredKey::from_slice(row.key);
        let Some(shard) = self.shard(&key) else { return };
        // All shards of a counter have the same period after a start.
        let seen = CalendarPeriod { start: row.start, end: row.end };
        if self.calendar.current_period(seen, now.0).start != row.start {
            self.rolled_over_at.store(now.0.max(1), Ordering::Release);
            self.wake.raise();
            return;
        }
        let mut shard = shard.lock();
        if row.start > shard.period.start || shard.period == CalendarPeriod::default() {
            // Rows are ordered by period, earliest first.
            self.quota.release(shard.counts.len() as u64);
            shard.counts.clear();
            shard.period = self.calendar.current_period(seen, now.0);
        }
        self.quota.reserve_unchecked();
        shard.counts.insert(key, Count { count: row.count, dirty: false });
    }

    /// Moves up to `most` changed counts to `changed`.
    fn drain_changed(self: &Arc<Self>, most: usize, changed: &mut Vec<ChangedCount>) {
        let mut remaining = most;
        for shard in &self.shards {
            if remaining == 0 {
                return;
            }
            let mut shard = shard.lock();
            let Shard { period, counts, dirty } = &mut *shard;
            let keep = dirty.len().saturating_sub(remaining);
            for key in dirty.drain(keep..) {
                let Some(known) = counts.get_mut(&key[..]) else { continue };
                known.dirty = false;
                let counter = self.clone();
                changed.push(ChangedCount { counter, period: *period, key, count: known.count });
                remaining = remaining.saturating_sub(1);
            }
        }
    }

    /// Marks a count as changed again after a failed write.
    fn mark_dirty(&self, key: StoredKey, period: CalendarPeriod) {
        let Some(shard) = self.shard(&key) else { return };
        let mut shard = shard.lock();
        let Shard { period: current, counts, dirty } = &mut *shard;
        if current.start != period.start {
            return;
        }
        if let Some(known) = counts.get_mut(&key[..])
            && !std::mem::replace(&mut known.dirty, true)
        {
            dirty.push(key);
        }
    }

    /// The starts of the periods that are counted in memory.
    fn period_starts(&self) -> Vec<u64> {
        let periods = self.shards.iter().map(|shard| shard.lock().period);
        let mut starts: Vec<u64> = periods
            .filter(|period| *period != CalendarPeriod::default())
            .map(|period| period.start)
            .collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}
