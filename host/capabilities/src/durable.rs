//! Durable counters: counts of the current hour, day or month of a time zone.
//!
//! A call counts in memory and never waits for the disk. [`CounterWriter`] writes changed counts about ten times a second, so a
//! crash loses the counts of about 100 ms, and an orderly stop loses none.

mod key_space;
#[cfg(test)]
mod tests;
mod writer;

pub use writer::CounterWriter;

use crate::calendar::{Calendar, Period};
use crate::values::CountRow;
use crate::{CounterGrant, Error, KeyValues};
use hashbrown::{DefaultHashBuilder, HashMap};
use key_space::KeySpace;
use model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use writer::Wake;

/// Octets of the longest key that is stored as it is. A longer one is known by its digest.
const LONGEST_KEY: usize = 256;
/// What a digest in the place of a key begins with: an octet that no UTF-8 text has.
const DIGEST: u8 = 0xff;
/// Shards of one counter, a power of two.
const SHARDS: usize = 64;

/// A key, or [`DIGEST`] and the SHA-256 of a long one.
type Key = SmallVec<[u8; 32]>;

/// Limits of durable counters.
#[derive(Debug, Clone, Copy)]
pub struct DurableOptions {
    /// Keys that all durable counters of one plugin may have together. A key takes about 100 octets of memory.
    pub keys: u64,
}

impl Default for DurableOptions {
    fn default() -> Self {
        Self { keys: 1_000_000 }
    }
}

/// The durable counters of all plugins. Versions and instances of a plugin share them.
#[derive(Debug, Default)]
pub struct DurableCounters {
    options: DurableOptions,
    plugins: Mutex<FxHashMap<Box<str>, PluginCounters>>,
    wake: Arc<Wake>,
    write_failures: AtomicU64,
}

#[derive(Debug)]
struct PluginCounters {
    space: Arc<KeySpace>,
    counters: Vec<Arc<DurableCounter>>,
}

/// The durable counters of one plugin, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DurableMetrics {
    /// Keys now, including those of a past period that nobody has asked for since.
    pub keys: u64,
    /// Calls of `add` since the start that were refused because the plugin had its limit of keys.
    pub refused: u64,
}

impl DurableCounters {
    /// No counts yet, and none on disk.
    #[must_use]
    pub fn new(options: DurableOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The counts of the current periods, read from the plugins' values. Rows of other periods are left to the
    /// [`CounterWriter`] to delete.
    ///
    /// # Errors
    /// The file cannot be read, or a newer release wrote a row of it.
    pub fn recover(options: DurableOptions, values: &KeyValues, now: Timestamp) -> Result<Self, Error> {
        let counters = Self::new(options);
        let mut unknown = Vec::new();
        let mut last: Option<Arc<DurableCounter>> = None;
        values.read_counts(|row: CountRow<'_>| {
            let known = last.take().filter(|counter| counter.is(row.plugin, row.name, row.calendar));
            let counter = known.or_else(|| {
                let calendar = Calendar::parse(row.calendar)?;
                Some(counters.find_or_make(row.plugin, row.name, &calendar))
            });
            match &counter {
                Some(counter) => counter.recover(&row, now),
                None => unknown.push([row.plugin, row.name, row.calendar].map(str::to_owned)),
            }
            last = counter;
        })?;
        unknown.dedup();
        for [plugin, name, calendar] in unknown {
            tracing::warn!(
                plugin,
                counter = name,
                calendar,
                "the time zone is unknown now; the counts are deleted"
            );
            while !values.purge_counts(&plugin, &name, &calendar, &[])? {}
        }
        Ok(counters)
    }

    /// A plugin's counter, made where there is none.
    ///
    /// # Errors
    /// The time zone is unknown.
    pub fn counter(&self, plugin: &str, grant: &CounterGrant) -> Result<Arc<DurableCounter>, Error> {
        Ok(self.find_or_make(plugin, &grant.name, &Calendar::of(grant)?))
    }

    fn find_or_make(&self, plugin: &str, name: &str, calendar: &Calendar) -> Arc<DurableCounter> {
        let mut plugins = self.plugins.lock();
        let of_plugin = plugins.entry(plugin.into()).or_insert_with(|| PluginCounters {
            space: Arc::new(KeySpace::new(self.options.keys, Some(plugin))),
            counters: Vec::new(),
        });
        let same = |one: &&Arc<DurableCounter>| &*one.name == name && one.calendar == *calendar;
        if let Some(known) = of_plugin.counters.iter().find(same) {
            return known.clone();
        }
        let (space, wake) = (of_plugin.space.clone(), self.wake.clone());
        let new = Arc::new(DurableCounter::new(plugin, name, calendar.clone(), space, wake, None));
        of_plugin.space.has(&new);
        of_plugin.counters.push(new.clone());
        new
    }

    fn all(&self) -> Vec<Arc<DurableCounter>> {
        self.plugins.lock().values().flat_map(|plugin| plugin.counters.iter().cloned()).collect()
    }

    /// The state of each plugin's counters, by the plugin's name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, DurableMetrics)> {
        self.plugins.lock().iter().map(|(name, plugin)| (name.to_string(), plugin.space.metrics())).collect()
    }

    /// Attempts to write counts that failed since the start. What failed is tried again.
    #[must_use]
    pub fn write_failures(&self) -> u64 {
        self.write_failures.load(Ordering::Relaxed)
    }
}

/// One counter of a plugin, by name, window and time zone; it has a count for each key.
#[derive(Debug)]
pub struct DurableCounter {
    plugin: Box<str>,
    name: Box<str>,
    calendar: Calendar,
    calendar_text: Box<str>,
    shards: Box<[Mutex<Shard>]>,
    /// Keys come from strangers: the hash has a seed of its own, so that nobody can make them collide.
    hasher: DefaultHashBuilder,
    space: Arc<KeySpace>,
    wake: Arc<Wake>,
    /// The counter whose counts this one begins with, without ever changing them.
    base: Option<Arc<DurableCounter>>,
    /// The time at which a shard began another period since the writer looked last; 0: none did.
    turned: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    /// The period of all counts below; empty before the first call.
    period: Period,
    counts: HashMap<Key, Count, DefaultHashBuilder>,
    /// Keys whose count is not written.
    dirty: Vec<Key>,
}

#[derive(Debug)]
struct Count {
    count: u64,
    dirty: bool,
}

/// A changed count on its way to the disk.
struct Changed {
    counter: Arc<DurableCounter>,
    period: Period,
    key: Key,
    count: u64,
}

impl Changed {
    fn row(&self) -> CountRow<'_> {
        CountRow {
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

fn stored_key(key: &str) -> Key {
    if key.len() <= LONGEST_KEY {
        return Key::from_slice(key.as_bytes());
    }
    let mut digest = Key::from_slice(&[DIGEST]);
    digest.extend_from_slice(&Sha256::digest(key));
    digest
}

impl DurableCounter {
    fn new(
        plugin: &str,
        name: &str,
        calendar: Calendar,
        space: Arc<KeySpace>,
        wake: Arc<Wake>,
        base: Option<Arc<Self>>,
    ) -> Self {
        Self {
            plugin: plugin.into(),
            name: name.into(),
            calendar_text: calendar.to_string().into(),
            calendar,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            space,
            wake,
            base,
            turned: AtomicU64::new(0),
        }
    }

    /// A counter for a candidate in shadow: it begins with the counts of this one, and what it adds is in memory and in no
    /// other counter.
    #[must_use]
    pub fn aside(self: &Arc<Self>) -> Arc<Self> {
        let space = Arc::new(KeySpace::new(self.space.limit(), None));
        let calendar = self.calendar.clone();
        // Nobody waits for this signal: these counts are never written.
        let aside = Self::new(&self.plugin, &self.name, calendar, space, Arc::default(), Some(self.clone()));
        let aside = Arc::new(aside);
        aside.space.has(&aside);
        aside
    }

    /// The name by which the plugin asks for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, plugin: &str, name: &str, calendar: &str) -> bool {
        &*self.plugin == plugin && &*self.name == name && &*self.calendar_text == calendar
    }

    /// Adds to a key's count of the current period, and tells the count after it. `None`: the key is new, and the plugin has
    /// its limit of keys; nothing is counted then.
    pub fn add(&self, key: &str, amount: u32, now: Timestamp) -> Option<u64> {
        let key = stored_key(key);
        let amount = u64::from(amount);
        let added = self.at(&key, now, |shard| {
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
                None if amount == 0 => Some(self.base(&key, now)),
                None => self.insert(shard, &key, amount, now),
            }
        });
        let added = added.or_else(|| {
            // Other counters of the plugin may be full of keys of a period that is over.
            let found_room = self.space.drop_past(now);
            found_room.then(|| self.at(&key, now, |shard| self.insert(shard, &key, amount, now))).flatten()
        });
        match added {
            Some(_) if amount > 0 => self.wake.raise(),
            Some(_) => {}
            None => self.space.refuse(&self.name, now),
        }
        added
    }

    /// Adds a key, or to one that another thread has added meanwhile.
    fn insert(&self, shard: &mut Shard, key: &Key, amount: u64, now: Timestamp) -> Option<u64> {
        let Shard { counts, dirty, .. } = shard;
        if !counts.contains_key(&key[..]) {
            if !self.space.take() {
                return None;
            }
            counts.insert(key.clone(), Count { count: self.base(key, now), dirty: false });
        }
        let known = counts.get_mut(&key[..])?;
        known.count = known.count.saturating_add(amount);
        if !std::mem::replace(&mut known.dirty, true) {
            dirty.push(key.clone());
        }
        Some(known.count)
    }

    /// What [`Self::add`] would tell. Nothing is counted.
    #[must_use]
    pub fn add_as_if(&self, key: &str, amount: u32, now: Timestamp) -> Option<u64> {
        let key = stored_key(key);
        let found = self.find(&key, now);
        if found.is_none() && amount > 0 && !self.space.may_have_room(now) {
            return None;
        }
        Some(found.unwrap_or_else(|| self.base(&key, now)).saturating_add(u64::from(amount)))
    }

    /// A key's count of the current period; 0 for a key that was never added to.
    #[must_use]
    pub fn sum(&self, key: &str, now: Timestamp) -> u64 {
        self.sum_of(&stored_key(key), now)
    }

    fn sum_of(&self, key: &Key, now: Timestamp) -> u64 {
        self.find(key, now).unwrap_or_else(|| self.base(key, now))
    }

    /// Begins no other period: who only looks may look at another time.
    fn find(&self, key: &Key, now: Timestamp) -> Option<u64> {
        let shard = self.shard(key)?.lock();
        let is_current = shard.period.contains(now.0)
            || self.calendar.standing(shard.period, now.0).start == shard.period.start;
        shard.counts.get(&key[..]).filter(|_| is_current).map(|known| known.count)
    }

    fn shard(&self, key: &Key) -> Option<&Mutex<Shard>> {
        self.shards.get(self.hasher.hash_one(&key[..]) as usize & (SHARDS - 1))
    }

    /// What a key begins with.
    fn base(&self, key: &Key, now: Timestamp) -> u64 {
        self.base.as_ref().map_or(0, |base| base.sum_of(key, now))
    }

    fn at<T: Default>(&self, key: &Key, now: Timestamp, work: impl FnOnce(&mut Shard) -> T) -> T {
        let Some(shard) = self.shard(key) else { return T::default() };
        let mut shard = shard.lock();
        let past = self.turn(&mut shard, now);
        let result = work(&mut shard);
        drop(shard);
        drop(past);
        result
    }

    /// Begins another period where `now` is in another. Gives back the counts that are over, to be dropped without the lock.
    fn turn(&self, shard: &mut Shard, now: Timestamp) -> HashMap<Key, Count, DefaultHashBuilder> {
        if shard.period.contains(now.0) {
            return HashMap::default();
        }
        let period = self.calendar.standing(shard.period, now.0);
        let same = period.start == shard.period.start && shard.period != Period::default();
        shard.period = period;
        if same {
            return HashMap::default();
        }
        shard.dirty.clear();
        let past = std::mem::take(&mut shard.counts);
        if !past.is_empty() {
            self.space.give_back(past.len() as u64);
            self.turned.store(now.0.max(1), Ordering::Release);
            self.wake.raise();
        }
        past
    }

    /// Begins the period of `now` in all shards. Tells when the first of their periods ends.
    fn turn_all(&self, now: Timestamp) -> u64 {
        let mut ends = u64::MAX;
        for shard in &self.shards {
            let mut shard = shard.lock();
            if shard.period == Period::default() {
                continue;
            }
            let past = self.turn(&mut shard, now);
            ends = ends.min(shard.period.end);
            drop(shard);
            drop(past);
        }
        ends
    }

    /// Takes a row of the disk, unless it is not of the current period.
    fn recover(&self, row: &CountRow<'_>, now: Timestamp) {
        let key = Key::from_slice(row.key);
        let Some(shard) = self.shard(&key) else { return };
        // All shards of a counter have the same period after a start.
        let seen = Period { start: row.start, end: row.end };
        if self.calendar.standing(seen, now.0).start != row.start {
            self.turned.store(now.0.max(1), Ordering::Release);
            self.wake.raise();
            return;
        }
        let mut shard = shard.lock();
        if row.start > shard.period.start || shard.period == Period::default() {
            // Rows come by their periods, the earliest first.
            self.space.give_back(shard.counts.len() as u64);
            shard.counts.clear();
            shard.period = self.calendar.standing(seen, now.0);
        }
        self.space.take_anyhow();
        shard.counts.insert(key, Count { count: row.count, dirty: false });
    }

    /// Moves up to `most` changed counts to `changed`.
    fn take_changed(self: &Arc<Self>, most: usize, changed: &mut Vec<Changed>) {
        let mut room = most;
        for shard in &self.shards {
            if room == 0 {
                return;
            }
            let mut shard = shard.lock();
            let Shard { period, counts, dirty } = &mut *shard;
            let keep = dirty.len().saturating_sub(room);
            for key in dirty.drain(keep..) {
                let Some(known) = counts.get_mut(&key[..]) else { continue };
                known.dirty = false;
                let counter = self.clone();
                changed.push(Changed { counter, period: *period, key, count: known.count });
                room = room.saturating_sub(1);
            }
        }
    }

    /// Marks a count as changed again: it could not be written.
    fn take_back(&self, key: Key, period: Period) {
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
    fn starts(&self) -> Vec<u64> {
        let periods = self.shards.iter().map(|shard| shard.lock().period);
        let mut starts: Vec<u64> =
            periods.filter(|period| *period != Period::default()).map(|period| period.start).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}
