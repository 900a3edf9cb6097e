use super::{DurableCounter, DurableMetrics};
use model::Timestamp;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Milliseconds between two log lines on refused keys of one plugin.
const LOG_INTERVAL: u64 = 60_000;

/// The limit of keys that all durable counters of one plugin share.
#[derive(Debug)]
pub(super) struct KeySpace {
    /// For the log; `None`: refusals are not logged.
    plugin: Option<Box<str>>,
    limit: u64,
    keys: AtomicU64,
    refused: AtomicU64,
    /// The first end of a period of any of the counters; before it there are no past keys to drop.
    next_end: AtomicU64,
    logged: AtomicU64,
    counters: Mutex<Vec<Weak<DurableCounter>>>,
}

impl KeySpace {
    pub(super) fn new(limit: u64, plugin: Option<&str>) -> Self {
        Self {
            plugin: plugin.map(Into::into),
            limit,
            keys: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            next_end: AtomicU64::new(0),
            logged: AtomicU64::new(0),
            counters: Mutex::default(),
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Registers a counter that has keys here.
    pub(super) fn has(&self, counter: &Arc<DurableCounter>) {
        self.counters.lock().push(Arc::downgrade(counter));
        self.next_end.store(0, Ordering::Relaxed);
    }

    /// Takes room for one key, where there is some.
    pub(super) fn take(&self) -> bool {
        let more = |keys: u64| (keys < self.limit).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Takes room for a key that is on disk already, whatever the limit.
    pub(super) fn take_anyhow(&self) {
        self.keys.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, keys: u64) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
    }

    /// Whether a new key would be taken. Keys of periods that are over at `now` are taken for room.
    pub(super) fn may_have_room(&self, now: Timestamp) -> bool {
        self.keys.load(Ordering::Relaxed) < self.limit || now.0 >= self.next_end.load(Ordering::Relaxed)
    }

    /// Drops the keys of periods that are over. Tells whether it looked for some; the caller holds no lock of a counter.
    pub(super) fn drop_past(&self, now: Timestamp) -> bool {
        if now.0 < self.next_end.load(Ordering::Relaxed) {
            return false;
        }
        // Of several callers at the limit one is enough.
        let Some(counters) = self.counters.try_lock() else { return false };
        let ends = counters.iter().filter_map(Weak::upgrade).map(|counter| counter.turn_all(now)).min();
        self.next_end.store(ends.unwrap_or(u64::MAX), Ordering::Relaxed);
        true
    }

    /// Counts a refusal, and logs it at most once a minute.
    pub(super) fn refuse(&self, counter: &str, now: Timestamp) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(plugin) = &self.plugin else { return };
        let is_due =
            |logged: u64| (logged == 0 || now.0.abs_diff(logged) >= LOG_INTERVAL).then_some(now.0.max(1));
        if self.logged.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            tracing::warn!(
                plugin = &**plugin,
                counter,
                refused,
                limit = self.limit,
                "the plugin's durable counters have their limit of keys; new keys are refused until a period ends"
            );
        }
    }

    pub(super) fn metrics(&self) -> DurableMetrics {
        DurableMetrics {
            keys: self.keys.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
