use codec::RecordError;
use std::path::PathBuf;

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses the file.
    #[error("{0} is in use by another process: stop the other switchyard, or name another data directory")]
    InUse(PathBuf),
    /// A newer daemon wrote the file.
    #[error(
        "{path} has record format {found}, and this switchyard knows formats up to {known}: start the newer version \
         that wrote it, or name another data directory"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
        /// The newest known format.
        known: u64,
    },
    /// The file cannot be opened.
    #[error(
        "{path} cannot be opened: {source}. Check whether the disk is full or failing, and who owns the file"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: redb::Error,
    },
    /// Reading or writing failed. After a failed commit, none of its writes is visible; the process must stop.
    #[error("the store failed: {0}")]
    Database(#[from] redb::Error),
    /// A record cannot be decoded.
    #[error("table {table}, id {id}: {source}; the record is damaged or was written by something else")]
    Record {
        /// The table.
        table: &'static str,
        /// The key.
        id: u64,
        /// The cause.
        source: RecordError,
    },
    /// A page does not match its checksum.
    #[error("{path} is damaged: pages do not match their checksums; restore a backup")]
    DamagedFile {
        /// The file.
        path: PathBuf,
    },
    /// A small table does not match its checksum.
    #[error("table {table} is damaged: its checksum does not match; restore a backup")]
    DamagedTable {
        /// The table.
        table: &'static str,
    },
    /// The journal cannot be opened, read or written. After a failed append, the daemon must stop.
    #[error(transparent)]
    Journal(#[from] journal::JournalError),
    /// A content cannot be encrypted. The process must stop: the content must not be written in clear.
    #[error("texts cannot be encrypted: {0}")]
    Cipher(#[from] codec::CipherError),
    /// A record of the journal is intact, but cannot be decoded.
    #[error(
        "record {seq} of the journal: {source}; a newer switchyard wrote it: start that version, or name another data \
         directory"
    )]
    JournalRecord {
        /// The record.
        seq: journal::Seq,
        /// The cause.
        source: RecordError,
    },
    /// The file was not closed in order, and its journal is missing.
    #[error(
        "{path} was in use when its journal was removed: accepted messages may be in the journal only. Put the directory \
         {journal} back, or restore a backup"
    )]
    JournalMissing {
        /// The file.
        path: PathBuf,
        /// The directory of its journal.
        journal: PathBuf,
    },
    /// The file belongs to a cluster node, and the configuration has no cluster.
    #[error(
        "{path} belongs to a node of a cluster, and the configuration has no section [cluster]: put the section back, or \
         restore a backup to continue without the cluster"
    )]
    InCluster {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to another cluster.
    #[error(
        "{path} belongs to another cluster: check `endpoints` and `prefix` in [cluster], or name another data directory"
    )]
    OtherCluster {
        /// The file.
        path: PathBuf,
    },
    /// The file of an appliance that should join a cluster was not closed in order.
    #[error(
        "{path} was not closed: start the appliance without [cluster], stop it with SIGTERM, and start it again with \
         [cluster]"
    )]
    NotClosed {
        /// The file.
        path: PathBuf,
    },
    /// The file has messages, and the cluster already has a log.
    #[error(
        "{path} has records of its own, and the cluster has other ones: a node joins a running cluster with an empty data \
         directory. A restored backup founds a cluster: name a new prefix in [cluster]"
    )]
    HasOwnRecords {
        /// The file.
        path: PathBuf,
    },
    /// A snapshot cannot be taken.
    #[error(transparent)]
    Snapshot(#[from] snapshot::SnapshotError),
    /// The free disk space is unknown.
    #[error("free space of {path} is unknown: {source}")]
    FreeSpace {
        /// The path.
        path: PathBuf,
        /// The cause.
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
