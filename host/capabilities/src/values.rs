//! The durable store of plugins.

mod counts;
mod memory;

pub(crate) use counts::CountRow;
pub use memory::MemoryValues;

use crate::Error;
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use snapshot::{Snapshot, SnapshotError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::RuntimeFlavor;

/// Octets of the longest key.
const LONGEST_KEY: usize = 256;
/// Octets of the largest value.
const LARGEST_VALUE: usize = 64 * 1024;

/// Plugin and key to value, as the plugin wrote it.
const VALUES: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("values");
/// Plugin to keys and octets of keys and values; written with each change of `values`.
const USAGE: TableDefinition<&str, (u64, u64)> = TableDefinition::new("usage");

/// Values that plugins keep: each plugin has its own, shared by its instances and versions.
pub trait Values: Send + Sync {
    /// The value of a key; `None` for one that was never set.
    ///
    /// # Errors
    /// The store failed.
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Sets a value; it is durable when this returns. `quota`: octets that all keys and values of the plugin may have
    /// together.
    ///
    /// # Errors
    /// A key of more than 256 octets, a value of more than 64 KiB, the quota, or the store failed. Nothing is changed then.
    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error>;

    /// Deletes a key, durably. Says whether there was one.
    ///
    /// # Errors
    /// The store failed.
    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error>;

    /// What a plugin keeps.
    ///
    /// # Errors
    /// The store failed.
    fn usage(&self, plugin: &str) -> Result<Usage, Error>;
}

/// What a plugin keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// How many keys.
    pub keys: u64,
    /// Octets of all keys and values.
    pub octets: u64,
}

impl Usage {
    /// With `key` set to a value of `new` octets, or deleted, where it had `old` octets or was not there.
    fn with(self, key: &str, old: Option<usize>, new: Option<usize>) -> Self {
        let octets = |value: Option<usize>| value.map_or(0, |value| (key.len() + value) as u64);
        Self {
            keys: (self.keys + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some())),
            octets: (self.octets + octets(new)).saturating_sub(octets(old)),
        }
    }

    /// # Errors
    /// It is more than the quota, and more than it was: a quota that was made smaller does not stop a plugin from making
    /// its values smaller.
    fn within(self, quota: u64, before: Self) -> Result<(), Error> {
        if self.octets > quota && self.octets > before.octets {
            return Err(Error::Quota { octets: self.octets, quota });
        }
        Ok(())
    }
}

fn check_sizes(key: &str, value: &[u8]) -> Result<(), Error> {
    if key.len() > LONGEST_KEY {
        return Err(Error::Key { octets: key.len(), most: LONGEST_KEY });
    }
    if value.len() > LARGEST_VALUE {
        return Err(Error::Value { octets: value.len(), most: LARGEST_VALUE });
    }
    Ok(())
}

/// What the store did since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ValuesMetrics {
    /// Values set and keys deleted.
    pub changes: u64,
    /// Transactions that it took; fewer than changes when callers came together.
    pub commits: u64,
    /// Changes refused for want of quota.
    pub over_quota: u64,
}

/// The durable store, in a redb file of its own.
///
/// A change is in a transaction with an fsync before its caller goes on. Callers that come while one runs share the next:
/// whoever gets the lock first commits for all that wait.
#[derive(Debug)]
pub struct KeyValues {
    path: PathBuf,
    database: Database,
    waiting: Mutex<Vec<Waiting>>,
    committing: Mutex<()>,
    changes: AtomicU64,
    commits: AtomicU64,
    over_quota: AtomicU64,
}

#[derive(Debug)]
struct Waiting {
    change: Change,
    answer: Answer,
}

/// Where the one that commits puts what became of a change: whether the key was there before.
type Answer = Arc<Mutex<Option<Result<bool, Error>>>>;

#[derive(Debug)]
struct Change {
    plugin: String,
    key: String,
    /// The value and the quota; `None` deletes.
    set: Option<(Vec<u8>, u64)>,
}

impl KeyValues {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// It cannot be opened, made or read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: redb::Error| Error::Values { path: path.to_owned(), source: Arc::new(error) };
        // Plugins' values are small and few beside messages: they need no large cache.
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
        };
        values.write(&[]).map_err(failed)?;
        Ok(values)
    }

    /// Deletes all that a plugin keeps, its durable counters too: when an admin removes it for good. Says how much its values
    /// were.
    ///
    /// # Errors
    /// The store failed.
    pub fn clear(&self, plugin: &str) -> Result<Usage, Error> {
        let _committing = self.committing.lock();
        self.clear_all(plugin).map_err(|error| self.failed(error))
    }

    /// The values as they stand now, for a backup. Changes go on beside it.
    ///
    /// # Errors
    /// The store failed.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(VALUES)?;
            copier.table(USAGE)?;
            copier.table(counts::COUNTS)
        })
    }

    /// What each plugin keeps, by its name.
    ///
    /// # Errors
    /// The store failed.
    pub fn usages(&self) -> Result<Vec<(String, Usage)>, Error> {
        self.read_usages().map_err(|error| self.failed(error))
    }

    /// What the store did.
    #[must_use]
    pub fn metrics(&self) -> ValuesMetrics {
        ValuesMetrics {
            changes: self.changes.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            over_quota: self.over_quota.load(Ordering::Relaxed),
        }
    }

    fn failed(&self, error: redb::Error) -> Error {
        Error::Values { path: self.path.clone(), source: Arc::new(error) }
    }

    /// Makes a change together with others that come meanwhile. It waits for the disk: a thread of the network hands its
    /// other work over to another one first.
    fn change(&self, change: Change) -> Result<bool, Error> {
        let inside = tokio::runtime::Handle::try_current();
        if inside.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
            tokio::task::block_in_place(|| self.change_now(change))
        } else {
            self.change_now(change)
        }
    }

    fn change_now(&self, change: Change) -> Result<bool, Error> {
        let answer = Answer::default();
        self.waiting.lock().push(Waiting { change, answer: Arc::clone(&answer) });
        let committing = self.committing.lock();
        if let Some(answered) = answer.lock().take() {
            return answered;
        }
        let together = std::mem::take(&mut *self.waiting.lock());
        match self.write(&together) {
            Ok(answers) => {
                for (waiting, result) in together.iter().zip(answers) {
                    *waiting.answer.lock() = Some(result);
                }
            }
            Err(error) => {
                let error = self.failed(error);
                tracing::error!(%error, "plugins' values are not written");
                for waiting in &together {
                    *waiting.answer.lock() = Some(Err(error.clone()));
                }
            }
        }
        drop(committing);
        // Our own change was among them: it was put there before the lock was taken.
        answer.lock().take().unwrap_or(Ok(false))
    }

    /// One transaction with all these changes, less those that are refused.
    fn write(&self, together: &[Waiting]) -> Result<Vec<Result<bool, Error>>, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        // What is in the values may come from strangers.
        transaction.set_two_phase_commit(true);
        let mut answers = Vec::with_capacity(together.len());
        {
            let mut values = transaction.open_table(VALUES)?;
            let mut usages = transaction.open_table(USAGE)?;
            for Waiting { change: Change { plugin, key, set }, .. } in together {
                let (plugin, key) = (plugin.as_str(), key.as_str());
                let before = usages.get(plugin)?.map(|usage| usage.value()).unwrap_or_default();
                let before = Usage { keys: before.0, octets: before.1 };
                let old = values.get((plugin, key))?.map(|value| value.value().len());
                let after = before.with(key, old, set.as_ref().map(|(value, _)| value.len()));
                match set {
                    Some((value, quota)) => {
                        if let Err(refused) = after.within(*quota, before) {
                            self.over_quota.fetch_add(1, Ordering::Relaxed);
                            answers.push(Err(refused));
                            continue;
                        }
                        values.insert((plugin, key), value.as_slice())?;
                    }
                    None => {
                        values.remove((plugin, key))?;
                    }
                }
                usages.insert(plugin, (after.keys, after.octets))?;
                answers.push(Ok(old.is_some()));
            }
        }
        transaction.commit()?;
        let done = answers.iter().filter(|answer| answer.is_ok()).count();
        self.changes.fetch_add(done as u64, Ordering::Relaxed);
        self.commits.fetch_add(u64::from(done > 0), Ordering::Relaxed);
        Ok(answers)
    }

    fn read(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, redb::Error> {
        let values = self.database.begin_read()?.open_table(VALUES)?;
        Ok(values.get((plugin, key))?.map(|value| value.value().to_vec()))
    }

    fn read_usages(&self) -> Result<Vec<(String, Usage)>, redb::Error> {
        let usages = self.database.begin_read()?.open_table(USAGE)?;
        let mut all = Vec::new();
        for row in usages.iter()? {
            let (plugin, usage) = row?;
            let (keys, octets) = usage.value();
            all.push((plugin.value().to_owned(), Usage { keys, octets }));
        }
        Ok(all)
    }

    fn clear_all(&self, plugin: &str) -> Result<Usage, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_two_phase_commit(true);
        let usage = {
            let mut values = transaction.open_table(VALUES)?;
            // The least key after all of the plugin's is the empty one of the least name after its name.
            let end = format!("{plugin}\0");
            values.retain_in((plugin, "")..(end.as_str(), ""), |_, _| false)?;
            counts::clear(&transaction, plugin)?;
            let (keys, octets) =
                transaction.open_table(USAGE)?.remove(plugin)?.map(|usage| usage.value()).unwrap_or_default();
            Usage { keys, octets }
        };
        transaction.commit()?;
        Ok(usage)
    }
}

impl Values for KeyValues {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.read(plugin, key).map_err(|error| self.failed(error))
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        check_sizes(key, value)?;
        let set = Some((value.to_vec(), quota));
        self.change(Change { plugin: plugin.to_owned(), key: key.to_owned(), set }).map(|_| ())
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        // A key that is not there needs no transaction.
        if self.get(plugin, key)?.is_none() {
            return Ok(false);
        }
        self.change(Change { plugin: plugin.to_owned(), key: key.to_owned(), set: None })
    }

    fn usage(&self, plugin: &str) -> Result<Usage, Error> {
        let read = || -> Result<Usage, redb::Error> {
            let usages = self.database.begin_read()?.open_table(USAGE)?;
            let (keys, octets) = usages.get(plugin)?.map(|usage| usage.value()).unwrap_or_default();
            Ok(Usage { keys, octets })
        };
        read().map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store() -> (tempfile::TempDir, KeyValues) {
        let folder = tempfile::tempdir().unwrap();
        let values = KeyValues::open(&folder.path().join("kv.redb")).unwrap();
        (folder, values)
    }

    /// What every store must do.
    fn behaves(values: &dyn Values) {
        assert_eq!(values.get("a", "k").unwrap(), None);
        values.set("a", "k", b"one", 1_000).unwrap();
        values.set("a", "k", b"three", 1_000).unwrap();
        values.set("b", "k", b"other", 1_000).unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(b"three".as_slice()));
        assert_eq!(values.usage("a").unwrap(), Usage { keys: 1, octets: 6 });
        assert!(values.delete("a", "k").unwrap());
        assert!(!values.delete("a", "k").unwrap());
        assert_eq!(values.usage("a").unwrap(), Usage::default());
        assert_eq!(values.get("b", "k").unwrap().as_deref(), Some(b"other".as_slice()));

        let refused = values.set("a", &"k".repeat(257), b"", 1_000).unwrap_err();
        assert_eq!(refused.to_string(), "a key of 257 octets is longer than the 256 that are allowed");
        let refused = values.set("a", "k", &[0; 65_537], 1_000_000).unwrap_err();
        assert_eq!(refused.to_string(), "a value of 65537 octets is larger than the 65536 that are allowed");
        values.set("a", &"k".repeat(256), &[0; 65_536], 65_792).unwrap();
        let refused = values.set("a", "l", b"", 65_792).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "keys and values would make 65793 octets, and the binding's quota is 65792"
        );
        assert_eq!(values.get("a", "l").unwrap(), None);
        values.set("a", &"k".repeat(256), &[0; 100], 10).expect("smaller than it was, though over the quota");
        assert_eq!(values.usage("a").unwrap(), Usage { keys: 1, octets: 356 });
    }

    #[test]
    fn the_file_behaves() {
        behaves(&store().1);
    }

    #[test]
    fn memory_behaves() {
        behaves(&MemoryValues::default());
    }

    #[test]
    fn values_are_there_after_a_restart() {
        let (folder, values) = store();
        values.set("a", "k", b"kept", 1_000).unwrap();
        drop(values);
        let values = KeyValues::open(&folder.path().join("kv.redb")).unwrap();
        assert_eq!(values.get("a", "k").unwrap().as_deref(), Some(b"kept".as_slice()));
        assert_eq!(values.usages().unwrap(), [("a".to_owned(), Usage { keys: 1, octets: 5 })]);
    }

    #[test]
    fn a_change_that_waits_for_the_disk_holds_up_no_other_task() {
        let (_folder, values) = store();
        let values = Arc::new(values);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        // Somebody else's transaction is under way.
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
    fn clearing_a_plugin_leaves_its_neighbours() {
        let (_folder, values) = store();
        for plugin in ["a", "a-b", "b", "ab"] {
            values.set(plugin, "", b"1", 1_000).unwrap();
            values.set(plugin, "zz", b"2", 1_000).unwrap();
        }
        assert_eq!(values.clear("a").unwrap(), Usage { keys: 2, octets: 4 });
        assert_eq!(values.get("a", "").unwrap(), None);
        assert_eq!(values.get("a", "zz").unwrap(), None);
        let names: Vec<_> = values.usages().unwrap().into_iter().map(|(plugin, _)| plugin).collect();
        assert_eq!(names, ["a-b", "ab", "b"]);
        assert_eq!(values.get("a-b", "").unwrap().as_deref(), Some(b"1".as_slice()));
    }

    #[test]
    fn changes_of_many_threads_are_all_kept_and_the_quota_holds() {
        let (_folder, values) = store();
        let set = |thread: u32| (0..20).filter(|n| set_one(&values, thread, *n)).count();
        let set = &set;
        let kept: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || set(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Each key and value is 10 octets; the quota is 1,000.
        assert_eq!(kept, 100);
        assert_eq!(values.usage("a").unwrap(), Usage { keys: 100, octets: 1_000 });
        let metrics = values.metrics();
        assert_eq!((metrics.changes, metrics.over_quota), (100, 60));
        assert!(metrics.commits <= metrics.changes);
    }

    fn set_one(values: &KeyValues, thread: u32, n: u32) -> bool {
        values.set("a", &format!("{thread:02}{n:03}"), b"12345", 1_000).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_file_is_as_memory(
            changes in proptest::collection::vec((0_u8..3, 0_u8..6, proptest::option::of(0_usize..80)), 1..60),
        ) {
            let (_folder, file) = store();
            let memory = MemoryValues::default();
            for (plugin, key, value) in changes {
                let (plugin, key) = (plugin.to_string(), key.to_string());
                match value {
                    Some(octets) => {
                        let value = vec![b'x'; octets];
                        let set = |values: &dyn Values| {
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
