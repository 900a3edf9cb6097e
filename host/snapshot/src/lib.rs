//! Consistent copies of redb files that are in use.
//!
//! A [`Snapshot`] is a read transaction: the file as of one moment between two commits. Taking it is cheap, so
//! snapshots of several files can be taken before the first is copied. It blocks no writer, and later commits are not
//! in it. Its cost is disk space: redb does not reuse its pages until it is dropped.
//!
//! Reading a redb table requires its types. The owner of a file therefore lists its tables in a function of the type
//! [`CopyTables`]. A table missing from the list is an error, not a gap.
#![forbid(unsafe_code)]

use redb::{
    Database, Durability, Key, MultimapTableHandle as _, ReadTransaction, ReadableDatabase as _,
    ReadableTable as _, TableDefinition, TableError, TableHandle as _, Value,
};
use std::path::{Path, PathBuf};

/// The page cache of a copy, in octets.
const CACHE: usize = 32 << 20;
/// Octets of rows per write transaction of a copy; bounds memory whatever the size of the file.
const PART: usize = 8 << 20;
/// Rows per write transaction of a copy: small rows cost more than their octets.
const ROWS: usize = 50_000;

/// Reason why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read, or the copy cannot be written.
    #[error("copying {path}: {source}. Check whether the disk is full or failing")]
    Database {
        /// The file to copy.
        path: PathBuf,
        /// The cause.
        source: redb::Error,
    },
    /// A table is missing from the list, so the copy would be incomplete.
    #[error(
        "copying {path}: table {table} is missing from the list of tables to copy; this is an internal fault"
    )]
    Forgotten {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
    },
}

/// Lists all tables of a file, by calling [`Copier::table`].
pub type CopyTables = fn(&mut Copier<'_>) -> Result<(), redb::Error>;

/// A file as of one moment.
pub struct Snapshot {
    path: PathBuf,
    transaction: ReadTransaction,
    tables: CopyTables,
}

/// Copies the tables of one file.
pub struct Copier<'a> {
    from: &'a ReadTransaction,
    to: &'a Database,
    names: Vec<String>,
    rows: u64,
}

impl Snapshot {
    /// The file at `path`, which is open as `database`, as of its last commit.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn take(path: &Path, database: &Database, tables: CopyTables) -> Result<Self, SnapshotError> {
        let transaction = database
            .begin_read()
            .map_err(|error| SnapshotError::Database { path: path.to_owned(), source: error.into() })?;
        Ok(Self { path: path.to_owned(), transaction, tables })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies it into a new file, durable on return. Returns the number of rows.
    ///
    /// # Errors
    /// A file fails, `to` exists, or a table is missing from the list. The written part of `to` is then unusable.
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

/// Makes the previous non-durable commits durable.
fn seal(copy: &Database) -> Result<(), redb::Error> {
    let mut last = copy.begin_write()?;
    last.set_durability(Durability::Immediate)?;
    last.commit()?;
    Ok(())
}

impl Copier<'_> {
    /// Copies a table, if it exists.
    ///
    /// # Errors
    /// A file fails, or the table has other types.
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
            // An unfinished copy is unusable, so only its end must be durable.
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

impl Copier<'_> {
    /// Sets a row of the copy that differs from the original.
    ///
    /// # Errors
    /// A file fails, or the table has other types.
    pub fn set<'k, 'v, K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
        key: K::SelfType<'k>,
        value: V::SelfType<'v>,
    ) -> Result<(), redb::Error> {
        let mut transaction = self.to.begin_write()?;
        transaction.set_durability(Durability::None)?;
        transaction.open_table(definition)?.insert(key, value)?;
        Ok(transaction.commit()?)
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
    fn a_snapshot_excludes_later_commits() {
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
    fn a_table_missing_from_the_list_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let database = Database::create(&path).unwrap();
        write(&database, 0..3);
        let snapshot = Snapshot::take(&path, &database, some).unwrap();
        let error = snapshot.copy_to(&folder.path().join("b.redb")).unwrap_err().to_string();
        assert!(error.contains("table words"), "{error}");
    }
}
