//! The appliance's tables.

mod csv_reader;
mod string_arena;
mod table;
mod table_file;

pub use table::Table;

use crate::Error;
use api::{TableFillResult, TableKind};
use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Limits of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableStoreOptions {
    /// Maximum number of rows, including rows with repeated keys.
    pub rows: u64,
    /// Maximum size of a table's file, in octets; at most 4 GiB.
    pub octets: u64,
}

impl Default for TableStoreOptions {
    fn default() -> Self {
        Self { rows: 50_000_000, octets: 2 << 30 }
    }
}

/// The appliance's tables: uploaded by an admin, read by plugins. Each table is held once in memory and as a file in a
/// folder.
#[derive(Debug)]
pub struct TableStore {
    folder: PathBuf,
    options: TableStoreOptions,
    handles: ArcSwap<BTreeMap<String, TableHandle>>,
    /// Files that could not be read at the start.
    damaged: Vec<(String, Error)>,
    /// Lengths and times of the files that were read.
    stamps: Mutex<BTreeMap<String, FileStamp>>,
    /// Held while a table file is replaced or removed and memory is updated; not while an upload is read.
    replace_lock: Mutex<()>,
}

/// A handle of a table. The table may be replaced; the handle stays valid.
#[derive(Debug, Clone, Default)]
pub struct TableHandle(Arc<ArcSwapOption<Table>>);

impl TableHandle {
    /// The current table; `None`: it was removed. A reader keeps its table if it is replaced.
    #[must_use]
    pub fn table(&self) -> Option<Arc<Table>> {
        self.0.load_full()
    }

    /// Reads the current table. For one look-up this is cheaper than [`TableHandle::table`].
    pub fn read<T>(&self, look_up: impl FnOnce(&Table) -> T) -> Option<T> {
        self.0.load().as_deref().map(look_up)
    }
}

/// The length and the time of a file.
type FileStamp = (u64, SystemTime);

fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

impl TableStore {
    /// Reads all tables of a folder, and creates the folder if necessary. A damaged file is kept, logged and reported
    /// by [`TableStore::damaged`]; its table does not exist.
    ///
    /// # Errors
    /// The folder cannot be read or created.
    pub fn open(folder: &Path, options: TableStoreOptions) -> Result<Self, Error> {
        let mut handles = BTreeMap::new();
        let mut damaged = Vec::new();
        let mut stamps = BTreeMap::new();
        for (name, path) in table_file::list(folder)? {
            stamps.extend(stamp(&path).map(|stamp| (name.clone(), stamp)));
            match table_file::load(&path, options) {
                Ok(table) => {
                    let (rows, octets) = (table.info().rows, table.info().octets);
                    tracing::info!(table = name, rows, octets, "table read");
                    handles.insert(name, TableHandle(Arc::new(ArcSwapOption::from_pointee(table))));
                }
                Err(error) => {
                    tracing::error!(table = name, %error, "table not read");
                    damaged.push((name, error));
                }
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            options,
            handles: ArcSwap::from_pointee(handles),
            damaged,
            stamps: Mutex::new(stamps),
            replace_lock: Mutex::default(),
        })
    }

    /// Adds a table, or replaces one, from CSV. Each line has a key and a value; a later row with the same key replaces
    /// an earlier one; a first line `key,value` is skipped. Keys of a [`TableKind::Prefix`] table have at most 30
    /// decimal digits (the empty key matches everything), other keys and all values at most 256 octets of UTF-8.
    ///
    /// Slow for a large table: do not call it on a thread that must not block.
    ///
    /// # Errors
    /// The name or a line is invalid, a limit is exceeded, the upload was interrupted, or the disk failed. In this case
    /// nothing changes.
    pub fn put(&self, name: &str, kind: TableKind, csv: impl Read) -> Result<TableFillResult, Error> {
        let is_valid = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_'));
        if !is_valid {
            return Err(Error::TableName(name.to_owned()));
        }
        let (upload, table) = table_file::receive(&self.folder, kind, csv, self.options)?;
        let info = table.info();
        let _lock = self.replace_lock.lock();
        table_file::persist(upload, &self.folder, name)?;
        self.handle_for(name).0.store(Some(Arc::new(table)));
        Ok(info)
    }

    /// Applies changes to the folder that another program has made: added, replaced and removed files. A file that cannot be
    /// read changes nothing; it is logged.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn refresh(&self) -> Result<(), Error> {
        let _lock = self.replace_lock.lock();
        let mut stamps = self.stamps.lock();
        let files = table_file::list(&self.folder)?;
        for (name, path) in &files {
            let found = stamp(path);
            if found.is_none() || stamps.get(name) == found.as_ref() {
                continue;
            }
            match table_file::load(path, self.options) {
                Ok(table) => {
                    tracing::info!(table = name, rows = table.info().rows, "table read");
                    self.handle_for(name).0.store(Some(Arc::new(table)));
                }
                Err(error) => tracing::error!(table = name, %error, "table not read"),
            }
            stamps.extend(found.map(|found| (name.clone(), found)));
        }
        stamps.retain(|name, _| {
            let stays = files.iter().any(|(file, _)| file == name);
            if !stays && let Some(handle) = self.handles.load().get(name) {
                handle.0.store(None);
            }
            stays
        });
        Ok(())
    }

    /// The table of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.handles.load().get(name)?.table()
    }

    /// The handle of a table, for frequent readers; `None` if the table does not exist.
    #[must_use]
    pub fn handle(&self, name: &str) -> Option<TableHandle> {
        self.handles.load().get(name).filter(|handle| handle.0.load().is_some()).cloned()
    }

    /// Like [`Self::handle`], for a reader that keeps its handle while the table does not exist. `None`: the table's file
    /// could not be read at the start.
    #[must_use]
    pub fn handle_or_create(&self, name: &str) -> Option<TableHandle> {
        let _lock = self.replace_lock.lock();
        let handle = self.handles.load().get(name).cloned();
        handle.or_else(|| {
            self.damaged.iter().all(|(damaged, _)| damaged != name).then(|| self.handle_for(name))
        })
    }

    /// All tables, by name.
    #[must_use]
    pub fn list(&self) -> Vec<(String, TableFillResult)> {
        let handles = self.handles.load();
        handles.iter().filter_map(|(name, handle)| Some((name.clone(), handle.read(Table::info)?))).collect()
    }

    /// Files that could not be read at the start, and the reasons.
    #[must_use]
    pub fn damaged(&self) -> &[(String, Error)] {
        &self.damaged
    }

    /// Removes a table. Returns whether it existed.
    ///
    /// # Errors
    /// Its file cannot be removed; the table stays.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let _lock = self.replace_lock.lock();
        let Some(handle) = self.handle(name) else { return Ok(false) };
        table_file::remove(&self.folder, name)?;
        handle.0.store(None);
        Ok(true)
    }

    /// The handle of this name, created on first use. Call it with the lock held.
    fn handle_for(&self, name: &str) -> TableHandle {
        if let Some(handle) = self.handles.load().get(name) {
            return handle.clone();
        }
        let handle = TableHandle::default();
        let mut handles = BTreeMap::clone(&self.handles.load());
        handles.insert(name.to_owned(), handle.clone());
        self.handles.store(Arc::new(handles));
        handle
    }
}
