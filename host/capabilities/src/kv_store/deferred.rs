//! Changes that are visible at once and durable soon: for plugins that are called on a link's thread, which must not wait
//! for the disk.

use super::{ChangeResult, KvChange, KvUsage, PendingChange, RedbKvStore, check_sizes};
use crate::Error;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum octets of deferred keys and values, over all plugins.
const MAX_OCTETS: usize = 8 << 20;
/// Maximum number of deferred changes in one transaction.
const BATCH: usize = 4_096;

/// The changes that wait for the disk.
#[derive(Debug, Default)]
pub(super) struct DeferredChanges {
    plugins: Mutex<Plugins>,
    /// Number of waiting changes, so that a read takes no lock if there are none.
    count: AtomicUsize,
    /// Wakes the thread that writes the changes. Without it, no change is deferred.
    waker: OnceLock<Waker>,
}

struct Waker(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Waker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Waker")
    }
}

#[derive(Debug, Default)]
struct Plugins {
    changes: HashMap<String, PluginChanges>,
    octets: usize,
    last_serial: u64,
    /// The error of changes of a plugin that were not written, until it is reported to the plugin.
    failures: HashMap<String, Error>,
}

#[derive(Debug)]
struct PluginChanges {
    keys: HashMap<String, DeferredChange>,
    /// The usage with the waiting changes.
    usage: KvUsage,
}

#[derive(Debug, Clone)]
struct DeferredChange {
    serial: u64,
    /// The value and the quota; `None` deletes.
    set: Option<(Vec<u8>, u64)>,
}

impl DeferredChange {
    fn octets(&self, key: &str) -> usize {
        key.len() + self.set.as_ref().map_or(0, |(value, _)| value.len())
    }
}

impl DeferredChanges {
    /// The waiting value of a key. The outer `None`: the key has no waiting change.
    pub(super) fn value(&self, plugin: &str, key: &str) -> Option<Option<Vec<u8>>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let plugins = self.plugins.lock();
        let change = plugins.changes.get(plugin)?.keys.get(key)?;
        Some(change.set.as_ref().map(|(value, _)| value.clone()))
    }

    /// Drops all waiting changes of a plugin.
    pub(super) fn forget_plugin(&self, plugin: &str) {
        let mut plugins = self.plugins.lock();
        plugins.failures.remove(plugin);
        let Some(changes) = plugins.changes.remove(plugin) else { return };
        plugins.octets -= changes.keys.iter().map(|(key, change)| change.octets(key)).sum::<usize>();
        self.count.fetch_sub(changes.keys.len(), Ordering::Release);
    }

    /// Removes a written change, unless a newer one has replaced it. The last change of a plugin removes its usage too.
    fn remove(&self, plugins: &mut Plugins, plugin: &str, key: &str, serial: u64) {
        let Some(changes) = plugins.changes.get_mut(plugin) else { return };
        if changes.keys.get(key).is_some_and(|found| found.serial == serial)
            && let Some(removed) = changes.keys.remove(key)
        {
            plugins.octets -= removed.octets(key);
            self.count.fetch_sub(1, Ordering::Release);
        }
        if changes.keys.is_empty() {
            plugins.changes.remove(plugin);
        }
    }
}

impl RedbKvStore {
    /// Defers the changes of [`KvStore::set_soon`](super::KvStore::set_soon) from now on. `wake` is called for each, and
    /// [`Self::write_deferred`] must follow soon. Only the first call counts.
    pub fn defer_changes(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.deferred.waker.set(Waker(Box::new(wake)));
    }

    /// Changes a value at once, and durably soon. Returns whether the key existed; `None` if the store does not defer
    /// changes.
    pub(super) fn defer(
        &self,
        plugin: &str,
        key: &str,
        set: Option<(&[u8], u64)>,
    ) -> Option<Result<bool, Error>> {
        let waker = self.deferred.waker.get()?;
        let deferred = self.defer_change(plugin, key, set);
        waker.0();
        Some(deferred)
    }

    fn defer_change(&self, plugin: &str, key: &str, set: Option<(&[u8], u64)>) -> Result<bool, Error> {
        check_sizes(key, set.map_or(&[], |(value, _)| value))?;
        let mut plugins = self.deferred.plugins.lock();
        if let Some(failure) = plugins.failures.remove(plugin) {
            return Err(failure);
        }
        let changes = plugins.changes.get(plugin);
        let usage = match changes {
            Some(changes) => changes.usage,
            None => super::KvStore::usage(self, plugin)?,
        };
        let waiting = changes.and_then(|changes| changes.keys.get(key));
        let old = match waiting {
            Some(waiting) => waiting.set.as_ref().map(|(value, _)| value.len()),
            None => {
                let stored = self.read(plugin, key).map_err(|error| self.store_error(error))?;
                stored.map(|value| value.len())
            }
        };
        if old.is_none() && set.is_none() {
            return Ok(false);
        }
        let replaced = waiting.map_or(0, |waiting| waiting.octets(key));
        let after = usage.after_change(key, old, set.map(|(value, _)| value.len()));
        if let Some((_, quota)) = set
            && let Err(refused) = after.check_quota(quota, usage)
        {
            self.over_quota.fetch_add(1, Ordering::Relaxed);
            return Err(refused);
        }
        plugins.last_serial += 1;
        let change = DeferredChange {
            serial: plugins.last_serial,
            set: set.map(|(value, quota)| (value.to_vec(), quota)),
        };
        let octets = plugins.octets - replaced + change.octets(key);
        if octets > MAX_OCTETS {
            return Err(Error::WriteBacklogFull { most: MAX_OCTETS });
        }
        plugins.octets = octets;
        let changes = plugins
            .changes
            .entry(plugin.to_owned())
            .or_insert_with(|| PluginChanges { keys: HashMap::new(), usage });
        changes.usage = after;
        if changes.keys.insert(key.to_owned(), change).is_none() {
            self.deferred.count.fetch_add(1, Ordering::Release);
        }
        Ok(old.is_some())
    }

    /// Writes all deferred changes, durably. A refused change is dropped, and the plugin's next deferred change returns the
    /// error.
    ///
    /// # Errors
    /// The file failed. The changes wait for the next attempt.
    pub fn write_deferred(&self) -> Result<(), Error> {
        while self.deferred.count.load(Ordering::Acquire) > 0 {
            // The lock comes first: no durable change of a key comes between the collection of its deferred change and
            // the write.
            let _committing = self.committing.lock();
            let batch = self.collect_deferred();
            let pending: Vec<PendingChange> = batch.iter().map(|(_, pending)| pending.clone()).collect();
            match self.write(&pending) {
                Ok(results) => {
                    let mut plugins = self.deferred.plugins.lock();
                    for ((serial, PendingChange { change, .. }), result) in batch.into_iter().zip(results) {
                        self.deferred.remove(&mut plugins, &change.plugin, &change.key, serial);
                        if let Err(refused) = result {
                            tracing::warn!(plugin = change.plugin, error = %refused, "kv write failed");
                            plugins.failures.insert(change.plugin, refused);
                        }
                    }
                }
                Err(error) => {
                    let error = self.store_error(error);
                    let mut plugins = self.deferred.plugins.lock();
                    for (_, PendingChange { change, .. }) in batch {
                        plugins.failures.insert(change.plugin, error.clone());
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn collect_deferred(&self) -> Vec<(u64, PendingChange)> {
        let plugins = self.deferred.plugins.lock();
        let all = plugins.changes.iter().flat_map(|(plugin, changes)| {
            changes.keys.iter().map(move |(key, change)| {
                let DeferredChange { serial, set } = change.clone();
                // The quota was checked when the change was deferred, against all changes before it. Here the changes are in
                // any order.
                let set = set.map(|(value, _)| (value, u64::MAX));
                let change = KvChange { plugin: plugin.clone(), key: key.clone(), set };
                (serial, PendingChange { change, result: ChangeResult::default() })
            })
        });
        all.take(BATCH).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KvStore as _, WriteThrough};
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn store(folder: &tempfile::TempDir) -> RedbKvStore {
        RedbKvStore::open(&folder.path().join("kv.redb")).unwrap()
    }

    fn deferring(folder: &tempfile::TempDir) -> RedbKvStore {
        let store = store(folder);
        store.defer_changes(|| {});
        store
    }

    #[test]
    fn a_deferred_change_is_visible_at_once_and_stored_with_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let values = deferring(&folder);
        values.set("a", "old", b"one", 1_000).unwrap();
        values.set_soon("a", "new", b"two", 1_000).unwrap();
        assert!(values.delete_soon("a", "old").unwrap());
        assert!(!values.delete_soon("a", "never").unwrap());
        let seen = |values: &RedbKvStore| ["old", "new"].map(|key| values.get("a", key).unwrap());
        assert_eq!(seen(&values), [None, Some(b"two".to_vec())]);
        assert_eq!(values.rows().unwrap().len(), 1, "only the durable one is in the file");
        values.write_deferred().unwrap();
        assert_eq!(seen(&values), [None, Some(b"two".to_vec())]);
        drop(values);
        assert_eq!(seen(&store(&folder)), [None, Some(b"two".to_vec())]);
    }

    #[test]
    fn the_latest_of_durable_and_deferred_changes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let values = deferring(&folder);
        values.set_soon("a", "k", b"deferred", 1_000).unwrap();
        values.set("a", "k", b"durable", 1_000).unwrap();
        values.write_deferred().unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(&b"durable"[..]));
        values.set_soon("a", "k", b"later", 1_000).unwrap();
        values.set_soon("a", "k", b"last", 1_000).unwrap();
        values.write_deferred().unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(&b"last"[..]));
        assert_eq!(values.usage("a").unwrap(), KvUsage { keys: 1, octets: 5 });
        values.set_soon("a", "k", b"gone", 1_000).unwrap();
        values.clear("a").unwrap();
        values.write_deferred().unwrap();
        assert_eq!(values.get("a", "k").unwrap(), None);
    }

    #[test]
    fn the_quota_counts_deferred_changes() {
        let folder = tempfile::tempdir().unwrap();
        let values = deferring(&folder);
        values.set("a", "k", &[0; 59], 100).unwrap();
        // The new value fits in place of the old one, but not in addition to it.
        assert!(matches!(values.set_soon("a", "j", &[0; 59], 100), Err(Error::Quota { octets: 120, .. })));
        values.set_soon("a", "k", &[0; 9], 100).unwrap();
        values.set_soon("a", "j", &[0; 59], 100).unwrap();
        assert!(values.set_soon("a", "l", &[0; 59], 100).is_err());
        values.write_deferred().unwrap();
        assert_eq!(values.usage("a").unwrap(), KvUsage { keys: 2, octets: 70 });
    }

    #[test]
    fn a_failure_is_reported_once_and_the_changes_wait() {
        let folder = tempfile::tempdir().unwrap();
        let values = deferring(&folder);
        let broken = Arc::new(AtomicBool::new(true));
        let is_broken = broken.clone();
        values.write_through(WriteThrough::new(move |_| {
            if is_broken.load(Ordering::Relaxed) { Err("etcd does not answer".to_owned()) } else { Ok(()) }
        }));
        values.set_soon("a", "k", b"one", 1_000).unwrap();
        assert!(values.write_deferred().is_err());
        let told = values.set_soon("a", "k", b"two", 1_000).unwrap_err();
        assert!(told.to_string().contains("etcd does not answer"), "{told}");
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(&b"one"[..]));
        broken.store(false, Ordering::Relaxed);
        values.set_soon("a", "j", b"three", 1_000).unwrap();
        values.write_deferred().unwrap();
        assert_eq!(values.rows().unwrap().len(), 2);
    }

    #[test]
    fn the_memory_of_deferred_changes_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let values = deferring(&folder);
        let value = vec![0; 64 << 10];
        let refused = (0..1_000).find_map(|n| values.set_soon("a", &n.to_string(), &value, u64::MAX).err());
        assert!(matches!(refused, Some(Error::WriteBacklogFull { .. })), "{refused:?}");
        values.write_deferred().unwrap();
        values.set_soon("a", "k", &value, u64::MAX).unwrap();
    }

    #[test]
    fn without_a_writer_nothing_is_deferred() {
        let folder = tempfile::tempdir().unwrap();
        let values = store(&folder);
        values.set_soon("a", "k", b"one", 1_000).unwrap();
        assert_eq!(values.rows().unwrap().len(), 1);
        assert!(values.delete_soon("a", "k").unwrap());
        assert!(values.rows().unwrap().is_empty());
    }
}
