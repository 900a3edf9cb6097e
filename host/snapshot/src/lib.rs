//! Copies of redb files, made while they are written to.
//!
//! A [`Snapshot`] is a read transaction: a file as it stood at one moment, between two commits. It costs next to nothing to
//! take, so that of several files all can be taken before the first is copied, and it holds nobody up: what is committed
//! meanwhile is not in it. What it does cost is room: pages that it still shows are not used again until it is dropped.
//!
//! redb gives the rows of a table only to who knows its types, so whoever owns a file says which tables are in it, in a
//! function of the type [`Tables`]. A table that it forgets is an error, not a gap.
#![forbid(unsafe_code)]

use redb::{
    Database, Durability, Key, MultimapTableHandle as _, ReadTransaction, ReadableDatabase as _,
    ReadableTable as _, TableDefinition, TableError, TableHandle as _, Value,
};
use std::path::{Path, PathBuf};

/// Octets of pages that a copy holds in memory while it is made.
const CACHE: usize = 32 << 20;
/// Octets of rows after which what was copied is written, so that memory is bounded whatever the size of the file.
const PART: usize = 8 << 20;
/// Rows after which it is, too: small ones cost more than their octets.
const ROWS: usize = 50_000;

/// A copy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read, or its copy not be written.
    #[error("copying {path}: {source}. Look whether the disk is full or failing")]
    Database {
        /// The file that was to be copied.
        path: PathBuf,
        /// Why.
        source: redb::Error,
    },
    /// A table that nobody has named: the copy would not be whole.
    #[error("copying {path}: table {table} is not among those that are copied; this is a fault of ours")]
    Forgotten {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
    },
}

/// Names all tables of a file, by [`Copier::table`].
pub type Tables = fn(&mut Copier<'_>) -> Result<(), redb::Error>;

/// A file as it stood at one moment.
pub struct Snapshot {
    path: PathBuf,
    transaction: ReadTransaction,
    tables: Tables,
}

/// Copies one file's tables.
pub struct Copier<'a> {
    from: &'a ReadTransaction,
    to: &'a Database,
    names: Vec<String>,
    rows: u64,
}

impl Snapshot {
    /// The file at `path`, which is open as `database`, as its last commit left it.
    ///
    /// # Errors
    /// When the file fails.
    pub fn take(path: &Path, database: &Database, tables: Tables) -> Result<Self, SnapshotError> {
        let transaction = database
            .begin_read()
            .map_err(|error| SnapshotError::Database { path: path.to_owned(), source: error.into() })?;
        Ok(Self { path: path.to_owned(), transaction, tables })
    }

    /// Where the file is that this shows.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it into a new file, durable when this returns. Says how many rows that were.
    ///
    /// # Errors
    /// When a file fails, `to` is there already, or a table was forgotten. What was written of `to` is then of no use.
    pub fn copy_to(&self, to: &Path) -> Result<u64, SnapshotError> {
        let failed = |source| SnapshotError::Database { path: self.path.clone(), source };
        let taken = std::io::Error::new(std::io::ErrorKind::AlreadyExists, to.display().to_string());
        if to.exists() {
            return Err(failed(redb::Error::Io(taken)));
        }
        let copy =
            Database::builder().set_cache_size(CACHE).create(to).map_err(|error| failed(error.into()))?;
        let mut copier = Copier { from: &self.transaction, to: &copy, names: Vec::new(), rows: 0 };
        (self.tables)(&mut copier).map_err(failed)?;
        let (names, rows) = (copier.names, copier.rows);
        let all = self.names().map_err(failed)?;
        if let Some(table) = all.into_iter().find(|table| !names.contains(table)) {
            return Err(SnapshotError::Forgotten { path: self.path.clone(), table });
        }
        seal(&copy).map_err(failed)?;
        Ok(rows)
    }

    fn names(&self) -> Result<Vec<String>, redb::Error> {
        let tables = self.transaction.list_tables()?.map(|table| table.name().to_owned());
        let multimaps = self.transaction.list_multimap_tables()?.map(|table| table.name().to_owned());
        Ok(tables.chain(multimaps).collect())
    }
}

/// Makes durable what was written without being so.
fn seal(copy: &Database) -> Result<(), redb::Error> {
    let mut last = copy.begin_write()?;
    last.set_durability(Durability::Immediate)?;
    last.commit()?;
    Ok(())
}

impl Copier<'_> {
    /// Copies a table, or passes over one that is not there.
    ///
    /// # Errors
    /// When a file fails, or the table has other types.
    pub fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<(), redb::Error> {
        self.names.push(definition.name().to_owned());
        let table = match self.from.open_table(definition) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            opened => opened?,
        };
        let mut rows = table.iter()?;
        loop {
            let mut part = self.to.begin_write()?;
            // A copy that is not finished is of no use, so only its end need be on disk for certain.
            part.set_durability(Durability::None)?;
            let (mut count, mut octets) = (0, 0);
            {
                let mut copy = part.open_table(definition)?;
                while count < ROWS && octets < PART {
                    let Some(row) = rows.next() else { break };
                    let (key, value) = row?;
                    octets +=
                        K::as_bytes(&key.value()).as_ref().len() + V::as_bytes(&value.value()).as_ref().len();
                    copy.insert(key.value(), value.value())?;
                    count += 1;
                }
            }
            part.commit()?;
            self.rows += count as u64;
            if count < ROWS && octets < PART {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::ReadableTableMetadata as _;

    const NUMBERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("numbers");
    const WORDS: TableDefinition<'_, (&str, u64), ()> = TableDefinition::new("words");
    const ABSENT: TableDefinition<'_, u64, u64> = TableDefinition::new("absent");

    fn all(copier: &mut Copier<'_>) -> Result<(), redb::Error> {
        copier.table(NUMBERS)?;
        copier.table(WORDS)?;
        copier.table(ABSENT)
    }

    fn some(copier: &mut Copier<'_>) -> Result<(), redb::Error> {
        copier.table(NUMBERS)
    }

    fn write(database: &Database, numbers: std::ops::Range<u64>) {
        let transaction = database.begin_write().unwrap();
        {
            let mut table = transaction.open_table(NUMBERS).unwrap();
            for number in numbers {
                table.insert(number, number.to_le_bytes().repeat(20).as_slice()).unwrap();
            }
            transaction.open_table(WORDS).unwrap().insert(("word", 7), ()).unwrap();
        }
        transaction.commit().unwrap();
    }

    #[test]
    fn a_copy_is_what_was_there_and_nothing_of_what_came_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let database = Database::create(&path).unwrap();
        write(&database, 0..120_000);
        let snapshot = Snapshot::take(&path, &database, all).unwrap();
        write(&database, 120_000..120_010);
        let copy = folder.path().join("b.redb");
        assert_eq!(snapshot.copy_to(&copy).unwrap(), 120_001);
        let read = Database::open(&copy).unwrap().begin_read().unwrap();
        let numbers = read.open_table(NUMBERS).unwrap();
        assert_eq!(numbers.len().unwrap(), 120_000);
        for row in numbers.iter().unwrap() {
            let (number, value) = row.unwrap();
            assert_eq!(value.value(), number.value().to_le_bytes().repeat(20));
        }
        assert!(read.open_table(WORDS).unwrap().get(("word", 7)).unwrap().is_some());
        assert!(matches!(snapshot.copy_to(&copy), Err(SnapshotError::Database { .. })));
    }

    #[test]
    fn a_table_that_was_forgotten_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let database = Database::create(&path).unwrap();
        write(&database, 0..3);
        let snapshot = Snapshot::take(&path, &database, some).unwrap();
        let told = snapshot.copy_to(&folder.path().join("b.redb")).unwrap_err().to_string();
        assert!(told.contains("table words"), "{told}");
    }
}
