//! The appliance's tables.

mod file;
mod reading;
mod strings;
mod table;

pub use table::{Table, TableInfo, TableKind};

use crate::Error;
use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limits of a table.
#[derive(Debug, Clone, Copy)]
pub struct ShelfOptions {
    /// Rows that a table may have; with one key or not.
    pub rows: u64,
    /// Octets that a table's file may have; at most 4 GiB.
    pub octets: u64,
}

impl Default for ShelfOptions {
    fn default() -> Self {
        Self { rows: 50_000_000, octets: 2 << 30 }
    }
}

/// The appliance's tables: uploaded by an admin, read by plugins. Each is in memory once, and as a file in a folder.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    options: ShelfOptions,
    slots: ArcSwap<BTreeMap<String, Slot>>,
    /// Files that could not be read at the start.
    damaged: Vec<(String, Error)>,
    /// Held while a file is put in its place and memory follows it; not while it is read.
    exchange: Mutex<()>,
}

/// The place of a table. What stands in it may be replaced; the place stays.
#[derive(Debug, Clone, Default)]
pub struct Slot(Arc<ArcSwapOption<Table>>);

impl Slot {
    /// The table that stands here now; `None`: it was removed. Readers that have it keep it while it is replaced.
    #[must_use]
    pub fn table(&self) -> Option<Arc<Table>> {
        self.0.load_full()
    }

    /// Reads in the table that stands here now: cheaper than [`Slot::table`] for one look-up.
    pub fn read<T>(&self, look_up: impl FnOnce(&Table) -> T) -> Option<T> {
        self.0.load().as_deref().map(look_up)
    }
}

impl Shelf {
    /// Reads all tables of a folder, which is made where there is none. A damaged file is left where it is, told in the log
    /// and by [`Shelf::damaged`], and its table is not there.
    ///
    /// # Errors
    /// The folder cannot be read or made.
    pub fn open(folder: &Path, options: ShelfOptions) -> Result<Self, Error> {
        let mut slots = BTreeMap::new();
        let mut damaged = Vec::new();
        for (name, path) in file::names(folder)? {
            match file::load(&path, options) {
                Ok(table) => {
                    let (rows, octets) = (table.info().rows, table.info().octets);
                    tracing::info!(table = name, rows, octets, "table read");
                    slots.insert(name, Slot(Arc::new(ArcSwapOption::from_pointee(table))));
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
            slots: ArcSwap::from_pointee(slots),
            damaged,
            exchange: Mutex::default(),
        })
    }

    /// Puts a table on the shelf, in the place of an older one if there is one, from CSV: a key and a value a line, of rows
    /// with one key the last counts, a first line `key,value` is left out. Keys of a [`TableKind::Prefix`] table are at most
    /// 30 decimal digits (the empty one matches everything), of others at most 256 octets of UTF-8, as are values.
    ///
    /// Takes its time with a large table: not for a thread that must not wait.
    ///
    /// # Errors
    /// The name, a line, a limit, the upload or the disk. All is as it was then.
    pub fn put(&self, name: &str, kind: TableKind, csv: impl Read) -> Result<TableInfo, Error> {
        let well = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_'));
        if !well {
            return Err(Error::TableName(name.to_owned()));
        }
        let (incoming, table) = file::receive(&self.folder, kind, csv, self.options)?;
        let info = table.info();
        let _exchange = self.exchange.lock();
        file::keep(incoming, &self.folder, name)?;
        self.slot(name).0.store(Some(Arc::new(table)));
        Ok(info)
    }

    /// The table of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.slots.load().get(name)?.table()
    }

    /// The place of the table of this name, for those who read it often; `None`: there is no such table.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<Slot> {
        self.slots.load().get(name).filter(|slot| slot.0.load().is_some()).cloned()
    }

    /// The same for one that had the place before, and keeps it while there is no such table. `None`: there is one, and its
    /// file could not be read at the start.
    #[must_use]
    pub fn promised(&self, name: &str) -> Option<Slot> {
        let _exchange = self.exchange.lock();
        let slot = self.slots.load().get(name).cloned();
        slot.or_else(|| self.damaged.iter().all(|(damaged, _)| damaged != name).then(|| self.slot(name)))
    }

    /// All tables, by name.
    #[must_use]
    pub fn list(&self) -> Vec<(String, TableInfo)> {
        let slots = self.slots.load();
        slots.iter().filter_map(|(name, slot)| Some((name.clone(), slot.read(Table::info)?))).collect()
    }

    /// Files that could not be read at the start, and why.
    #[must_use]
    pub fn damaged(&self) -> &[(String, Error)] {
        &self.damaged
    }

    /// Removes a table. Says whether there was one.
    ///
    /// # Errors
    /// Its file cannot be removed; the table stays.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let _exchange = self.exchange.lock();
        let Some(slot) = self.place(name) else { return Ok(false) };
        file::remove(&self.folder, name)?;
        slot.0.store(None);
        Ok(true)
    }

    /// The place of this name, made where there is none. Under the lock.
    fn slot(&self, name: &str) -> Slot {
        if let Some(slot) = self.slots.load().get(name) {
            return slot.clone();
        }
        let slot = Slot::default();
        let mut slots = BTreeMap::clone(&self.slots.load());
        slots.insert(name.to_owned(), slot.clone());
        self.slots.store(Arc::new(slots));
        slot
    }
}
