use crate::record::RecordError;
use std::path::PathBuf;

/// What can go wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the file.
    #[error("{0} is in use by another process: stop the other switchyard, or name another data directory")]
    InUse(PathBuf),
    /// A newer daemon wrote it.
    #[error(
        "{path} has record format {found}, and this switchyard knows formats up to {known}: start the newer version \
         that wrote it, or name another data directory"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// The file cannot be opened.
    #[error(
        "{path} cannot be opened: {source}. Look whether the disk is full or failing and who owns the file"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: redb::Error,
    },
    /// Reading or writing failed. After a failed commit nothing of it is visible; the daemon must stop.
    #[error("the store failed: {0}")]
    Database(#[from] redb::Error),
    /// A record that cannot be understood.
    #[error("table {table}, id {id}: {source}; the record is damaged or was written by something else")]
    Record {
        /// The table.
        table: &'static str,
        /// The key.
        id: u64,
        /// What is wrong.
        source: RecordError,
    },
    /// The free space of the disk cannot be told.
    #[error("free space of {path} cannot be told: {source}")]
    FreeSpace {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

macro_rules! from_redb {
    ($($kind:ty),*) => { $(impl From<$kind> for StoreError {
        fn from(error: $kind) -> Self { Self::Database(error.into()) }
    })* };
}

from_redb!(
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError,
    redb::SetDurabilityError
);
