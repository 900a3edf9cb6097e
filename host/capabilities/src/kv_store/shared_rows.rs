//! The rows of the store, in the form that the nodes of a cluster share.

use super::counter_rows::COUNTERS;
use super::{KvUsage, RedbKvStore, USAGE, VALUES};
use crate::Error;
use model::hex;
use redb::{ReadableDatabase, ReadableTable, TableError, WriteTransaction};
use std::collections::BTreeMap;

/// A row's name, and its new value; `None`: the row was removed. Names are `values/PLUGIN/KEY`, and `counters/` followed by
/// the parts of the key as a JSON array, the last part in hexadecimal.
pub type RowChange = (String, Option<Vec<u8>>);

/// Writes changes to the shared log before this store commits them. If that fails, this store does not change. It may block.
pub struct WriteThrough(Box<WriteRows>);

type WriteRows = dyn Fn(&[RowChange]) -> Result<(), String> + Send + Sync;

impl std::fmt::Debug for WriteThrough {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WriteThrough").finish_non_exhaustive()
    }
}

impl WriteThrough {
    /// Writes with this function.
    pub fn new(write: impl Fn(&[RowChange]) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Box::new(write))
    }
}

pub(super) fn value_name(plugin: &str, key: &str) -> String {
    format!("values/{plugin}/{key}")
}

type CounterKey<'a> = (&'a str, &'a str, &'a str, u64, &'a [u8]);

pub(super) fn counter_name((plugin, name, calendar, start, key): CounterKey<'_>) -> String {
    format!("counters/{}", serde_json::json!([plugin, name, calendar, start, hex(key)]))
}

/// A parsed name.
enum RowName {
    Value { plugin: String, key: String },
    Counter { plugin: String, name: String, calendar: String, start: u64, key: Vec<u8> },
}

fn parse(full_name: &str) -> Option<RowName> {
    let (kind, rest) = full_name.split_once('/')?;
    match kind {
        "values" => {
            let (plugin, key) = rest.split_once('/')?;
            Some(RowName::Value { plugin: plugin.to_owned(), key: key.to_owned() })
        }
        "counters" => {
            let parts: (String, String, String, u64, String) = serde_json::from_str(rest).ok()?;
            let (plugin, name, calendar, start, key) = parts;
            Some(RowName::Counter { plugin, name, calendar, start, key: from_hex(&key)? })
        }
        _ => None,
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair.filter(|pair| pair.len() == 2)?, 16).ok()).collect()
}

impl RedbKvStore {
    /// Writes each later change with `write` first. Only the first call counts.
    pub fn write_through(&self, write: WriteThrough) {
        let _ = self.write_through.set(write);
    }

    pub(super) fn write_elsewhere(&self, changes: &[RowChange]) -> Result<(), redb::Error> {
        match self.write_through.get() {
            Some(WriteThrough(write)) if !changes.is_empty() => {
                write(changes).map_err(|reason| std::io::Error::other(reason).into())
            }
            _ => Ok(()),
        }
    }

    /// All rows.
    ///
    /// # Errors
    /// The file failed.
    pub fn rows(&self) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let read = || -> Result<BTreeMap<String, Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let mut all = BTreeMap::new();
            for row in transaction.open_table(VALUES)?.iter()? {
                let (key, value) = row?;
                let (plugin, key) = key.value();
                all.insert(value_name(plugin, key), value.value().to_vec());
            }
            let counts = match transaction.open_table(COUNTERS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(all),
                opened => opened?,
            };
            for row in counts.iter()? {
                let (key, value) = row?;
                all.insert(counter_name(key.value()), value.value().to_vec());
            }
            Ok(all)
        };
        read().map_err(|error| self.store_error(error))
    }

    /// Sets rows of another node in one transaction.
    ///
    /// # Errors
    /// A name is not the name of a row, or the file failed. In this case nothing is written.
    pub fn set_rows(&self, changes: &[RowChange]) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let mut transaction = self.database.begin_write()?;
            // Keys and values may be untrusted input.
            transaction.set_two_phase_commit(true);
            for (name, value) in changes {
                let row = parse(name)
                    .ok_or_else(|| std::io::Error::other(format!("{name:?} is not a valid row")))?;
                set_row(&transaction, &row, value.as_deref())?;
            }
            transaction.commit()?;
            Ok(())
        };
        let _committing = self.committing.lock();
        write().map_err(|error| self.store_error(error))
    }
}

fn set_row(transaction: &WriteTransaction, row: &RowName, value: Option<&[u8]>) -> Result<(), redb::Error> {
    match row {
        RowName::Value { plugin, key } => {
            let (plugin, key) = (plugin.as_str(), key.as_str());
            let mut usages = transaction.open_table(USAGE)?;
            let (keys, octets) = usages.get(plugin)?.map(|usage| usage.value()).unwrap_or_default();
            let mut values = transaction.open_table(VALUES)?;
            let old = match value {
                Some(value) => values.insert((plugin, key), value)?.map(|old| old.value().len()),
                None => values.remove((plugin, key))?.map(|old| old.value().len()),
            };
            let after = KvUsage { keys, octets }.after_change(key, old, value.map(<[u8]>::len));
            usages.insert(plugin, (after.keys, after.octets))?;
        }
        RowName::Counter { plugin, name, calendar, start, key } => {
            let mut counts = transaction.open_table(COUNTERS)?;
            let key = (plugin.as_str(), name.as_str(), calendar.as_str(), *start, key.as_slice());
            match value {
                Some(value) => drop(counts.insert(key, value)?),
                None => drop(counts.remove(key)?),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::KvStore as _;
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    fn store(folder: &std::path::Path, name: &str) -> RedbKvStore {
        RedbKvStore::open(&folder.join(name)).unwrap()
    }

    #[test]
    fn write_through_keeps_both_stores_equal() {
        let folder = tempfile::tempdir().unwrap();
        let (leader, follower) = (store(folder.path(), "leader"), store(folder.path(), "follower"));
        let written: Arc<Mutex<Vec<RowChange>>> = Arc::default();
        let changes = written.clone();
        leader.write_through(WriteThrough::new(move |rows| {
            changes.lock().extend_from_slice(rows);
            Ok(())
        }));
        leader.set("a", "k/1", b"one", 1_000).unwrap();
        leader.set("a", "k/1", b"three", 1_000).unwrap();
        leader.set("b", "", b"other", 1_000).unwrap();
        assert!(leader.set("b", "much", &[0; 2_000], 1_000).is_err());
        let row = super::super::CounterRow {
            plugin: "a",
            name: "daily",
            calendar: "day Europe/Berlin",
            start: 86_400_000,
            end: 172_800_000,
            key: &[0xff, b'/', 0],
            count: 7,
        };
        leader.write_counts([row].into_iter()).unwrap();
        assert!(leader.delete("b", "").unwrap());
        follower.set_rows(&written.lock()).unwrap();
        assert_eq!(follower.rows().unwrap(), leader.rows().unwrap());
        assert_eq!(leader.rows().unwrap().len(), 2);
        assert_eq!(follower.usages().unwrap(), leader.usages().unwrap());
        written.lock().clear();
        leader.clear("a").unwrap();
        follower.set_rows(&written.lock()).unwrap();
        assert!(follower.rows().unwrap().is_empty());
        assert_eq!(follower.usage("a").unwrap(), KvUsage::default());
    }

    #[test]
    fn a_failed_write_through_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), "kv");
        store.write_through(WriteThrough::new(|_| Err("etcd does not answer".to_owned())));
        let error = store.set("a", "k", b"one", 1_000).unwrap_err();
        assert!(error.to_string().contains("etcd does not answer"), "{error}");
        assert_eq!(store.get("a", "k").unwrap(), None);
    }

    #[test]
    fn a_foreign_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), "kv");
        for name in
            ["", "values", "values/a", "users/ann", "counters/[]", "counters/[\"a\",\"b\",\"c\",1,\"é\"]"]
        {
            assert!(store.set_rows(&[(name.to_owned(), None)]).is_err(), "{name:?}");
        }
    }
}
