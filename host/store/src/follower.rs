//! The tables of a follower: they receive the records that the leader appends.

use crate::pending::{Pending, RecordedBatch};
use crate::store::{FileFormats, Store, open_database, prepare, write};
use crate::tables::{self, FILE_FORMAT, META, META_APPLIED, META_CLUSTER, META_FORMAT};
use crate::{StoreError, checked};
use journal::{Journal, JournalRecord, Seq, Writer};
use redb::{Database, Durability};
use std::path::{Path, PathBuf};

/// The tables of a node that follows.
pub struct Follower {
    pub(crate) database: Database,
    path: PathBuf,
    /// The last record in the tables.
    applied: Seq,
    /// The last record that is durable in the tables.
    durable: Seq,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Follower")
            .field("path", &self.path)
            .field("applied", &self.applied)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// Opens the file for a node of the cluster with number `cluster`; creates it if it does not exist. `cache` as in
    /// [`StoreOptions`](crate::StoreOptions).
    ///
    /// A file of an appliance without a cluster joins with all its messages, if it was closed in order and the log of
    /// the cluster is empty (`log_is_empty`). An empty file can always join.
    ///
    /// # Errors
    /// The file belongs to another cluster or has messages of its own; and as [`Store::open`].
    pub fn open(path: &Path, cache: usize, cluster: u64, log_is_empty: bool) -> Result<Self, StoreError> {
        let database = open_database(path, cache)?;
        let prepared = prepare(&database, path)?;
        match prepared.cluster {
            Some(known) if known == cluster => {}
            Some(_) => return Err(StoreError::OtherCluster { path: path.to_owned() }),
            None if !prepared.is_closed => return Err(StoreError::NotClosed { path: path.to_owned() }),
            // A file that was written by a version without a journal has messages, but no record.
            None if !log_is_empty && (!prepared.is_empty || prepared.applied != Seq(0)) => {
                return Err(StoreError::HasOwnRecords { path: path.to_owned() });
            }
            None => join(&database, cluster, prepared.applied)?,
        }
        let applied = prepared.applied;
        Ok(Self { database, path: path.to_owned(), applied, durable: applied })
    }

    /// The last record in the tables.
    #[must_use]
    pub const fn applied(&self) -> Seq {
        self.applied
    }

    /// The last record that is durable in the tables.
    #[must_use]
    pub const fn durable(&self) -> Seq {
        self.durable
    }

    /// Applies the records after [`applied`](Self::applied). They are durable after the next
    /// [`checkpoint`](Self::checkpoint).
    ///
    /// # Errors
    /// [`StoreError::JournalRecord`]: a newer version wrote a record; the records before it are applied. Other errors:
    /// the disk fails, and the process must stop.
    pub fn apply(&mut self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let mut pending = Pending::default();
        let mut unreadable = None;
        for record in records {
            match RecordedBatch::read(record) {
                Ok(Some(batch)) => pending.merge(batch),
                Ok(None) => pending.skip(record.seq),
                Err(error) => {
                    unreadable = Some(error);
                    break;
                }
            }
        }
        let last = pending.last;
        if !pending.is_empty() {
            write(&self.database, &pending, Durability::None, None)?;
            self.applied = last;
        }
        unreadable.map_or(Ok(()), Err)
    }

    /// Makes the tables durable. Returns the last record in them.
    ///
    /// # Errors
    /// The disk fails, and the process must stop.
    pub fn checkpoint(&mut self) -> Result<Seq, StoreError> {
        if self.durable != self.applied {
            // A durable write makes all earlier ones durable, even if it changes nothing.
            let mut pending = Pending::default();
            pending.skip(self.applied);
            write(&self.database, &pending, Durability::Immediate, None)?;
            self.durable = self.applied;
        }
        Ok(self.durable)
    }

    /// Applies the records that the tables lack, and becomes the store of the leader. `writer` is a claim of this node.
    ///
    /// # Errors
    /// The journal lacks the records after those in the tables; and as [`Store::open`].
    pub fn lead(self, journal: Box<dyn Journal>, writer: Writer) -> Result<Store, StoreError> {
        let Self { database, path, applied, .. } = self;
        let format = FILE_FORMAT + tables::IN_CLUSTER;
        Store::recover_journal(
            database,
            &path,
            (journal, writer),
            FileFormats { open: format, closed: format },
            applied,
        )
    }
}

/// Marks the file as belonging to the cluster.
fn join(database: &Database, cluster: u64, applied: Seq) -> Result<(), StoreError> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_FORMAT, FILE_FORMAT + tables::IN_CLUSTER)?;
        meta.insert(META_APPLIED, applied.0)?;
        meta.insert(META_CLUSTER, cluster)?;
        checked::seal_meta(&mut meta)?;
    }
    transaction.commit()?;
    Ok(())
}
