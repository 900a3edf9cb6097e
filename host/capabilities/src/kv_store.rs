//! The durable key-value store of plugins.

mod counter_rows;
mod deferred;
mod memory_kv_store;
mod shared_rows;

pub(crate) use counter_rows::CounterRow;
pub use memory_kv_store::MemoryKvStore;
pub use shared_rows::{RowChange, WriteThrough};

use crate::Error;
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use snapshot::{Snapshot, SnapshotError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::RuntimeFlavor;

/// Maximum length of a key, in octets.
const MAX_KEY_OCTETS: usize = 256;
/// Maximum size of a value, in octets.
const MAX_VALUE_OCTETS: usize = 64 * 1024;

/// Plugin and key to value; the value is stored unchanged.
const VALUES: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("values");
/// Plugin to number of keys and octets of keys and values; updated with each change of `values`.
const USAGE: TableDefinition<&str, (u64, u64)> = TableDefinition::new("usage");

/// A key-value store for plugins. Each plugin has its own values, shared by its instances and versions.
pub trait KvStore: Send + Sync {
    /// The value of a key; `None` if it was never set.
    ///
    /// # Errors
    /// The store failed.
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Sets a value, durably. `quota`: maximum octets of all keys and values of the plugin.
    ///
    /// # Errors
    /// The key has more than 256 octets, the value more than 64 KiB, the quota is exceeded, or the store failed.
    /// In this case nothing changes.
    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error>;

    /// Deletes a key, durably. Returns whether it existed.
    ///
    /// # Errors
    /// The store failed.
    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error>;

    /// Like [`KvStore::set`], for callers that must not wait for the disk: reads see the value at once, and it is durable
    /// soon. A store without deferred changes sets it durably at once.
    ///
    /// # Errors
    /// As for [`KvStore::set`]; too many changes wait for the disk; or an earlier change of the plugin could not be written,
    /// which is reported once.
    fn set_soon(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        self.set(plugin, key, value, quota)
    }

    /// Like [`KvStore::delete`], for callers that must not wait for the disk.
    ///
    /// # Errors
    /// As for [`KvStore::set_soon`].
    fn delete_soon(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        self.delete(plugin, key)
    }

    /// The usage of a plugin, without changes that are not durable yet.
    ///
    /// # Errors
    /// The store failed.
    fn usage(&self, plugin: &str) -> Result<KvUsage, Error>;
}

/// Storage used by a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KvUsage {
    /// Number of keys.
    pub keys: u64,
    /// Total size of all keys and values, in octets.
    pub octets: u64,
}

impl KvUsage {
    /// The usage after `key` is set to a value of `new` octets or deleted (`None`), if its value had `old` octets or
    /// did not exist.
    fn after_change(self, key: &str, old: Option<usize>, new: Option<usize>) -> Self {
        let octets = |value: Option<usize>| value.map_or(0, |value| (key.len() + value) as u64);
        Self {
            keys: (self.keys + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some())),
            octets: (self.octets + octets(new)).saturating_sub(octets(old)),
        }
    }

    /// # Errors
    /// The usage exceeds the quota and has grown: after the quota is reduced, a plugin may still shrink its values.
    fn check_quota(self, quota: u64, before: Self) -> Result<(), Error> {
        if self.octets > quota && self.octets > before.octets {
            return Err(Error::Quota { octets: self.octets, quota });
        }
        Ok(())
    }
}

fn check_sizes(key: &str, value: &[u8]) -> Result<(), Error> {
    if key.len() > MAX_KEY_OCTETS {
        return Err(Error::Key { octets: key.len(), most: MAX_KEY_OCTETS });
    }
    if value.len() > MAX_VALUE_OCTETS {
        return Err(Error::Value { octets: value.len(), most: MAX_VALUE_OCTETS });
    }
    Ok(())
}

/// Counts of the store since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KvMetrics {
    /// Values set and keys deleted.
    pub changes: u64,
    /// Transactions; fewer than changes, because concurrent callers share one.
    pub commits: u64,
    /// Changes refused because of the quota.
    pub over_quota: u64,
}

/// The durable store, in its own redb file.
///
/// A change is committed with an fsync before the call returns. Concurrent callers share a transaction: the first to
/// get the lock commits for all waiting callers.
#[derive(Debug)]
pub struct RedbKvStore {
    path: PathBuf,
    database: Database,
    waiting: Mutex<Vec<PendingChange>>,
    committing: Mutex<()>,
    changes: AtomicU64,
    commits: AtomicU64,
    over_quota: AtomicU64,
    write_through: OnceLock<WriteThrough>,
    deferred: deferred::DeferredChanges,
}

#[derive(Debug, Clone)]
struct PendingChange {
    change: KvChange,
    result: ChangeResult,
}

/// The result of a change, set by the caller that commits: whether the key existed before.
type ChangeResult = Arc<Mutex<Option<Result<bool, Error>>>>;

#[derive(Debug, Clone)]
struct KvChange {
    plugin: String,
    key: String,
    /// The value and the quota; `None` deletes.
    set: Option<(Vec<u8>, u64)>,
}

impl RedbKvStore {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened, created or read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: redb::Error| Error::KvStore { path: path.to_owned(), source: Arc::new(error) };
        // Plugins' values are small and few compared to messages: they need no large cache.
        let database = Database::builder()
            .set_cache_size(16 * 1024 * 1024)
            .create(path)
            .map_err(|error| failed(error.into()))?;
        let values = Self {
            path: path.to_owned(),
            database,
            waiting: Mutex::default(),
            committing: Mutex::default(),
            changes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            over_quota: AtomicU64::new(0),
            write_through: OnceLock::new(),
            deferred: deferred::DeferredChanges::default(),
        };
        values.write(&[]).map_err(failed)?;
        Ok(values)
    }

    /// Deletes all values and durable counters of a plugin, when an admin removes it permanently. Returns the usage of
    /// its values before.
    ///
    /// # Errors
    /// The store failed.
    pub fn clear(&self, plugin: &str) -> Result<KvUsage, Error> {
        let _committing = self.committing.lock();
        self.deferred.forget_plugin(plugin);
        self.delete_plugin(plugin).map_err(|error| self.store_error(error))
    }

    /// A snapshot of the values for a backup. Changes may continue meanwhile.
    ///
    /// # Errors
    /// The store failed.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(VALUES)?;
            copier.table(USAGE)?;
            copier.table(counter_rows::COUNTERS)
        })
    }

    /// The usage of each plugin, by its name.
    ///
    /// # Errors
    /// The store failed.
    pub fn usages(&self) -> Result<Vec<(String, KvUsage)>, Error> {
        self.read_usages().map_err(|error| self.store_error(error))
    }

    /// Counts of the store.
    #[must_use]
    pub fn metrics(&self) -> KvMetrics {
        KvMetrics {
            changes: self.changes.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            over_quota: self.over_quota.load(Ordering::Relaxed),
        }
    }

    fn store_error(&self, error: redb::Error) -> Error {
        Error::KvStore { path: self.path.clone(), source: Arc::new(error) }
    }

    /// Commits a change together with concurrent ones. Blocks on the disk: a runtime thread moves its other tasks to another
    /// thread first.
    fn commit(&self, change: KvChange) -> Result<bool, Error> {
        let inside = tokio::runtime::Handle::try_current();
        if inside.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
            tokio::task::block_in_place(|| self.commit_pending(change))
        } else {
            self.commit_pending(change)
        }
    }

    fn commit_pending(&self, change: KvChange) -> Result<bool, Error> {
        if self.deferred.value(&change.plugin, &change.key).is_some() {
            // A deferred change of the same key is older.
            self.write_deferred()?;
        }
        let result = ChangeResult::default();
        self.waiting.lock().push(PendingChange { change, result: Arc::clone(&result) });
        let committing = self.committing.lock();
        if let Some(done) = result.lock().take() {
            return done;
        }
        let batch = std::mem::take(&mut *self.waiting.lock());
        match self.write(&batch) {
            Ok(results) => {
                for (pending, outcome) in batch.iter().zip(results) {
                    *pending.result.lock() = Some(outcome);
                }
            }
            Err(error) => {
                let error = self.store_error(error);
                tracing::error!(%error, "plugin values not written");
                for pending in &batch {
                    *pending.result.lock() = Some(Err(error.clone()));
                }
            }
        }
        drop(committing);
        // The caller's change was in the batch: it was queued before the lock was taken.
        result.lock().take().unwrap_or(Ok(false))
    }

    /// Writes a batch in one transaction, without the refused changes.
    fn write(&self, batch: &[PendingChange]) -> Result<Vec<Result<bool, Error>>, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        // Keys and values may be untrusted input.
        transaction.set_two_phase_commit(true);
        let mut results = Vec::with_capacity(batch.len());
        let mut rows: Vec<RowChange> = Vec::new();
        {
            let mut values = transaction.open_table(VALUES)?;
            let mut usages = transaction.open_table(USAGE)?;
            for PendingChange { change: KvChange { plugin, key, set }, .. } in batch {
                let (plugin, key) = (plugin.as_str(), key.as_str());
                let before = usages.get(plugin)?.map(|usage| usage.value()).unwrap_or_default();
                let before = KvUsage { keys: before.0, octets: before.1 };
                let old = values.get((plugin, key))?.map(|value| value.value().len());
                let after = before.after_change(key, old, set.as_ref().map(|(value, _)| value.len()));
                match set {
                    Some((value, quota)) => {
                        if let Err(refused) = after.check_quota(*quota, before) {
                            self.over_quota.fetch_add(1, Ordering::Relaxed);
                            results.push(Err(refused));
                            continue;
                        }
                        values.insert((plugin, key), value.as_slice())?;
                    }
                    None => {
                        values.remove((plugin, key))?;
                    }
                }
                usages.insert(plugin, (after.keys, after.octets))?;
                rows.push((
                    shared_rows::value_name(plugin, key),
                    set.as_ref().map(|(value, _)| value.clone()),
                ));
                results.push(Ok(old.is_some()));
            }
        }
        self.write_elsewhere(&rows)?;
        transaction.commit()?;
        let done = results.iter().filter(|result| result.is_ok()).count();
        self.changes.fetch_add(done as u64, Ordering::Relaxed);
        self.commits.fetch_add(u64::from(done > 0), Ordering::Relaxed);
        Ok(results)
    }

    fn read(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, redb::Error> {
        let values = self.database.begin_read()?.open_table(VALUES)?;
        Ok(values.get((plugin, key))?.map(|value| value.value().to_vec()))
    }

    fn read_usages(&self) -> Result<Vec<(String, KvUsage)>, redb::Error> {
        let usages = self.database.begin_read()?.open_table(USAGE)?;
        let mut all = Vec::new();
        for row in usages.iter()? {
            let (plugin, usage) = row?;
            let (keys, octets) = usage.value();
            all.push((plugin.value().to_owned(), KvUsage { keys, octets }));
        }
        Ok(all)
    }

    fn delete_plugin(&self, plugin: &str) -> Result<KvUsage, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_two_phase_commit(true);
        let mut rows: Vec<RowChange> = Vec::new();
        let usage = {
            let mut values = transaction.open_table(VALUES)?;
            // The smallest key after all of the plugin's is the empty key of the next possible name.
            let end = format!("{plugin}\0");
            values.retain_in((plugin, "")..(end.as_str(), ""), |(plugin, key), _| {
                rows.push((shared_rows::value_name(plugin, key), None));
                false
            })?;
            counter_rows::delete_plugin(&transaction, plugin, &mut rows)?;
            let (keys, octets) =
                transaction.open_table(USAGE)?.remove(plugin)?.map(|usage| usage.value()).unwrap_or_default();
            KvUsage { keys, octets }
        };
        self.write_elsewhere(&rows)?;
        transaction.commit()?;
        Ok(usage)
    }
}

impl KvStore for RedbKvStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        if let Some(waiting) = self.deferred.value(plugin, key) {
            return Ok(waiting);
        }
        self.read(plugin, key).map_err(|error| self.store_error(error))
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        check_sizes(key, value)?;
        let set = Some((value.to_vec(), quota));
        self.commit(KvChange { plugin: plugin.to_owned(), key: key.to_owned(), set }).map(|_| ())
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        // Deleting a missing key needs no transaction.
        if self.get(plugin, key)?.is_none() {
            return Ok(false);
        }
        self.commit(KvChange { plugin: plugin.to_owned(), key: key.to_owned(), set: None })
    }

    fn set_soon(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        match self.defer(plugin, key, Some((value, quota))) {
            Some(deferred) => deferred.map(drop),
            None => self.set(plugin, key, value, quota),
        }
    }

    fn delete_soon(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        self.defer(plugin, key, None).unwrap_or_else(|| self.delete(plugin, key))
    }

    fn usage(&self, plugin: &str) -> Result<KvUsage, Error> {
        let read = || -> Result<KvUsage, redb::Error> {
            let usages = self.database.begin_read()?.open_table(USAGE)?;
            let (keys, octets) = usages.get(plugin)?.map(|usage| usage.value()).unwrap_or_default();
            Ok(KvUsage { keys, octets })
        };
        read().map_err(|error| self.store_error(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store() -> (tempfile::TempDir, RedbKvStore) {
        let folder = tempfile::tempdir().unwrap();
        let values = RedbKvStore::open(&folder.path().join("kv.redb")).unwrap();
        (folder, values)
    }

    /// The behaviour that all stores share.
    fn check_behaviour(values: &dyn KvStore) {
        assert_eq!(values.get("a", "k").unwrap(), None);
        values.set("a", "k", b"one", 1_000).unwrap();
        values.set("a", "k", b"three", 1_000).unwrap();
        values.set("b", "k", b"other", 1_000).unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(b"three".as_slice()));
        assert_eq!(values.usage("a").unwrap(), KvUsage { keys: 1, octets: 6 });
        assert!(values.delete("a", "k").unwrap());
        assert!(!values.delete("a", "k").unwrap());
        assert_eq!(values.usage("a").unwrap(), KvUsage::default());
        assert_eq!(values.get("b", "k").unwrap().as_deref(), Some(b"other".as_slice()));

        let refused = values.set("a", &"k".repeat(257), b"", 1_000).unwrap_err();
        assert_eq!(refused.to_string(), "a key of 257 octets exceeds the limit of 256");
        let refused = values.set("a", "k", &[0; 65_537], 1_000_000).unwrap_err();
        assert_eq!(refused.to_string(), "a value of 65537 octets exceeds the limit of 65536");
        values.set("a", &"k".repeat(256), &[0; 65_536], 65_792).unwrap();
        let refused = values.set("a", "l", b"", 65_792).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "keys and values would take 65793 octets, but the binding's quota is 65792"
        );
        assert_eq!(values.get("a", "l").unwrap(), None);
        values.set("a", &"k".repeat(256), &[0; 100], 10).expect("smaller than it was, though over the quota");
        assert_eq!(values.usage("a").unwrap(), KvUsage { keys: 1, octets: 356 });
    }

    #[test]
    fn the_redb_store_behaves() {
        check_behaviour(&store().1);
    }

    #[test]
    fn the_memory_store_behaves() {
        check_behaviour(&MemoryKvStore::default());
    }

    #[test]
    fn values_survive_a_restart() {
        let (folder, values) = store();
        values.set("a", "k", b"kept", 1_000).unwrap();
        drop(values);
        let values = RedbKvStore::open(&folder.path().join("kv.redb")).unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(b"kept".as_slice()));
        assert_eq!(values.usages().unwrap(), [("a".to_owned(), KvUsage { keys: 1, octets: 5 })]);
    }

    #[test]
    fn a_pending_commit_blocks_no_other_task() {
        let (_folder, values) = store();
        let values = Arc::new(values);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        // Another caller's transaction is in progress.
        let committing = values.committing.lock();
        let (begun, writing) = (sender.clone(), values.clone());
        let writer = runtime.spawn(async move {
            begun.send("begun").unwrap();
            writing.set("a", "k", b"kept", 1_000)
        });
        assert_eq!(receiver.recv().unwrap(), "begun");
        runtime.spawn(async move { sender.send("another") });
        assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(60)), Ok("another"));
        drop(committing);
        runtime.block_on(writer).unwrap().unwrap();
    }

    #[test]
    fn clearing_a_plugin_leaves_other_plugins() {
        let (_folder, values) = store();
        for plugin in ["a", "a-b", "b", "ab"] {
            values.set(plugin, "", b"1", 1_000).unwrap();
            values.set(plugin, "zz", b"2", 1_000).unwrap();
        }
        assert_eq!(values.clear("a").unwrap(), KvUsage { keys: 2, octets: 4 });
        assert_eq!(values.get("a", "").unwrap(), None);
        assert_eq!(values.get("a", "zz").unwrap(), None);
        let names: Vec<_> = values.usages().unwrap().into_iter().map(|(plugin, _)| plugin).collect();
        assert_eq!(names, ["a-b", "ab", "b"]);
        assert_eq!(values.get("a-b", "").unwrap().as_deref(), Some(b"1".as_slice()));
    }

    #[test]
    fn concurrent_changes_are_all_kept_within_the_quota() {
        let (_folder, values) = store();
        let set = |thread: u32| (0..20).filter(|n| set_one(&values, thread, *n)).count();
        let set = &set;
        let kept: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || set(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Each key with its value is 10 octets; the quota is 1,000.
        assert_eq!(kept, 100);
        assert_eq!(values.usage("a").unwrap(), KvUsage { keys: 100, octets: 1_000 });
        let metrics = values.metrics();
        assert_eq!((metrics.changes, metrics.over_quota), (100, 60));
        assert!(metrics.commits <= metrics.changes);
    }

    fn set_one(values: &RedbKvStore, thread: u32, n: u32) -> bool {
        values.set("a", &format!("{thread:02}{n:03}"), b"12345", 1_000).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_redb_store_matches_the_memory_store(
            changes in proptest::collection::vec((0_u8..3, 0_u8..6, proptest::option::of(0_usize..80)), 1..60),
        ) {
            let (_folder, file) = store();
            let memory = MemoryKvStore::default();
            for (plugin, key, value) in changes {
                let (plugin, key) = (plugin.to_string(), key.to_string());
                match value {
                    Some(octets) => {
                        let value = vec![b'x'; octets];
                        let set = |values: &dyn KvStore| {
                            values.set(&plugin, &key, &value, 200).map_err(|error| error.to_string())
                        };
                        prop_assert_eq!(set(&file), set(&memory));
                    }
                    None => prop_assert_eq!(
                        file.delete(&plugin, &key).unwrap(), memory.delete(&plugin, &key).unwrap()),
                }
                prop_assert_eq!(file.get(&plugin, &key).unwrap(), memory.get(&plugin, &key).unwrap());
                prop_assert_eq!(file.usage(&plugin).unwrap(), memory.usage(&plugin).unwrap());
            }
        }
    }
}
