use super::{DurableCounter, DurableCounterMetrics};
use model::Timestamp;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Minimum time between two log lines about refused keys of one plugin, in milliseconds.
const LOG_INTERVAL: u64 = 60_000;

/// The limit of keys that all durable counters of one plugin share.
#[derive(Debug)]
pub(super) struct KeyQuota {
    /// The plugin's name for the log; `None`: refusals are not logged.
    plugin: Option<Box<str>>,
    limit: u64,
    keys: AtomicU64,
    refused: AtomicU64,
    /// The earliest end of a period of any counter. Before it there are no expired keys to drop.
    next_end: AtomicU64,
    logged: AtomicU64,
    counters: Mutex<Vec<Weak<DurableCounter>>>,
}

impl KeyQuota {
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

    /// Registers a counter that shares this quota.
    pub(super) fn register(&self, counter: &Arc<DurableCounter>) {
        self.counters.lock().push(Arc::downgrade(counter));
        self.next_end.store(0, Ordering::Relaxed);
    }

    /// Reserves room for one key, if there is any.
    pub(super) fn reserve(&self) -> bool {
        let more = |keys: u64| (keys < self.limit).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Reserves room for a key that is already on disk, regardless of the limit.
    pub(super) fn reserve_unchecked(&self) {
        self.keys.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn release(&self, keys: u64) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
    }

    /// Whether a new key would be accepted. Keys of periods that are over at `now` count as free room.
    pub(super) fn may_have_room(&self, now: Timestamp) -> bool {
        self.keys.load(Ordering::Relaxed) < self.limit || now.0 >= self.next_end.load(Ordering::Relaxed)
    }

    /// Drops the keys of expired periods. Returns whether it searched for any; the caller must not hold a lock of a
    /// counter.
    pub(super) fn drop_expired(&self, now: Timestamp) -> bool {
        if now.0 < self.next_end.load(Ordering::Relaxed) {
            return false;
        }
        // Of several callers at the limit, one is enough.
        let Some(counters) = self.counters.try_lock() else { return false };
        let ends = counters.iter().filter_map(Weak::upgrade).map(|counter| counter.roll_over_all(now)).min();
        self.next_end.store(ends.unwrap_or(u64::MAX), Ordering::Relaxed);
        true
    }

    /// Counts a refusal and logs it at most once a minute.
    pub(super) fn record_refusal(&self, counter: &str, now: Timestamp) {
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
                "durable counters at their limit of keys; new keys are refused until a period ends"
            );
        }
    }

    pub(super) fn metrics(&self) -> DurableCounterMetrics {
        DurableCounterMetrics {
            keys: self.keys.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
