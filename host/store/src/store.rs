use crate::apply::apply;
use crate::changes::{Changes, MAX_OCTETS};
use crate::pending::{Pending, RecordedBatch};
use crate::tables::{
    self, FILE_FORMAT, IN_CLUSTER, MESSAGES, META, META_APPLIED, META_CLUSTER, META_FINISHED, META_FORMAT,
    META_NEXT_ID, NAMES, SEALED_FILE_FORMAT, WITH_JOURNAL,
};
use crate::{StoreError, checked, finished};
use codec::{BatchFormat, ContentCipher, RecordDecoder};
use journal::{
    Journal, JournalError, JournalReader, JournalRecord, LeaderLease, LocalJournal, NodeId, Seq, Writer,
};
use model::{Batch, Directory, Message, MessageId, Timestamp};
use parking_lot::Mutex;
use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    ReadableTableMetadata as _, WriteTransaction,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Octets of journal records per step of a replay.
const REPLAY_PART: usize = 4 << 20;

/// Options of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Size of the page cache, in octets.
    pub cache: usize,
    /// Settings of the journal.
    pub journal: journal::JournalOptions,
    /// Cipher for the contents of messages; `None`: they are written in clear.
    pub cipher: Option<Arc<dyn ContentCipher>>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let journal =
            journal::JournalOptions { segment_octets: 16 << 20, ..journal::JournalOptions::default() };
        Self { cache: 256 << 20, journal, cipher: None }
    }
}

/// Statistics of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommitStats {
    /// Rows inserted, changed or removed.
    pub rows: u64,
    /// Octets of the journal's record.
    pub octets: u64,
}

/// The store: see the documentation of the crate.
pub struct Store {
    pub(crate) database: Database,
    path: PathBuf,
    /// Held from the append of a batch until its changes are pending, so that changes become pending in the order of the
    /// journal.
    journal: Mutex<JournalWriter>,
    changes: Changes,
    /// Held while changes are applied.
    applying: Mutex<()>,
    /// The last record that is durable in the tables. Held while the tables are made durable.
    durable: Mutex<Seq>,
    /// The same, readable without waiting.
    durable_record: AtomicU64,
    /// The last record of the journal.
    appended: AtomicU64,
    /// Whether the store is closed, so that another node may lead.
    closed: AtomicBool,
    /// Format of the file between an orderly end and the next start.
    closed_format: u64,
    pub(crate) cipher: Option<Arc<dyn ContentCipher>>,
    lease: Arc<LeaderLease>,
    /// Reader of the journal in files of this machine; `None` without such files.
    reader: Option<JournalReader>,
    /// Number of records that the durable tables may lack, since the journal overwrites older ones.
    most_records: Option<u64>,
}

/// The formats of a file.
#[derive(Clone, Copy)]
pub(crate) struct FileFormats {
    /// Format while the store is open.
    pub(crate) open: u64,
    /// Format after an orderly end.
    pub(crate) closed: u64,
}

/// The journal, and the right to write to it.
struct JournalWriter {
    journal: Box<dyn Journal>,
    writer: Writer,
    /// Length of the last batch.
    octets: usize,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the file and the journal in the directory `FILE.journal` next to it; creates what does not exist. Applies
    /// the journal records that the tables lack.
    ///
    /// # Errors
    /// Another process uses the files, a newer daemon wrote them, or they cannot be read.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let database = open_database(path, options.cache)?;
        let Prepared { applied, is_closed, format, .. } = prepare_alone(&database, path)?;
        let directory = journal_path(path);
        let journal = if directory.join(journal::segment::IDENTITY).exists() {
            LocalJournal::open(&directory, options.journal, applied)?
        } else if is_closed {
            LocalJournal::create(&directory, options.journal, applied)?
        } else {
            return Err(StoreError::JournalMissing { path: path.to_owned(), journal: directory });
        };
        let mut store = Self::claim_without_cluster(
            database,
            path,
            Box::new(journal),
            (applied, if options.cipher.is_some() { SEALED_FILE_FORMAT } else { format }),
        )?;
        store.cipher = options.cipher;
        Ok(store)
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.closed_format == SEALED_FILE_FORMAT
    }

    /// The cipher of message contents; `None` if they are stored in clear.
    #[must_use]
    pub fn cipher(&self) -> Option<&Arc<dyn ContentCipher>> {
        self.cipher.as_ref()
    }

    /// A decoder for the records of this store.
    pub(crate) fn decoder(&self) -> RecordDecoder {
        RecordDecoder::with_cipher(self.cipher.clone())
    }

    /// Applies the records of another journal to a file that has no journal, in order to bring a restored backup up to
    /// date. Records that were appended after `until` are ignored.
    ///
    /// # Errors
    /// The journal lacks records after the backup, or is damaged; a file fails.
    pub fn follow(
        path: &Path,
        options: &StoreOptions,
        journal: &Path,
        until: Timestamp,
    ) -> Result<FollowedJournal, StoreError> {
        let failed =
            |error: redb::DatabaseError| StoreError::Open { path: path.to_owned(), source: error.into() };
        let database = Database::builder().set_cache_size(options.cache).open(path).map_err(failed)?;
        let Prepared { applied, .. } = prepare_alone(&database, path)?;
        let mut reader = JournalReader::open(journal)?;
        let read = |from| reader.read(from, REPLAY_PART, Duration::ZERO);
        Ok(replay(&database, applied, until, read)?.1)
    }

    /// Opens the tables on another storage with another journal, for tests of failing disks. `open_journal` gets the
    /// last record in the tables; `cache` as in [`StoreOptions`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        backend: impl redb::StorageBackend,
        open_journal: impl FnOnce(Seq) -> Result<Box<dyn Journal>, StoreError>,
        cache: usize,
    ) -> Result<Self, StoreError> {
        let path = Path::new("(backend)");
        let database = Database::builder()
            .set_cache_size(cache)
            .create_with_backend(backend)
            .map_err(|error| StoreError::Open { path: path.to_owned(), source: error.into() })?;
        let Prepared { applied, format, .. } = prepare(&database, path)?;
        let journal = open_journal(applied)?;
        Self::claim_without_cluster(database, path, journal, (applied, format))
    }

    /// Opens the store without a cluster: this process is the only writer of its journal.
    fn claim_without_cluster(
        database: Database,
        path: &Path,
        mut journal: Box<dyn Journal>,
        (applied, format): (Seq, u64),
    ) -> Result<Self, StoreError> {
        let writer = journal.claim(NodeId::default())?;
        let formats = FileFormats { open: format + WITH_JOURNAL, closed: format };
        Self::recover_journal(database, path, (journal, writer), formats, applied)
    }

    /// Applies the records that the tables lack.
    pub(crate) fn recover_journal(
        database: Database,
        path: &Path,
        (mut journal, writer): (Box<dyn Journal>, Writer),
        formats: FileFormats,
        applied: Seq,
    ) -> Result<Self, StoreError> {
        let read = |from| journal.read(from, REPLAY_PART, Duration::ZERO);
        let (applied, FollowedJournal { batches, .. }) =
            replay(&database, applied, Timestamp(u64::MAX), read)?;
        if batches > 0 {
            tracing::info!(batches, "records of the journal applied to the tables");
        }
        let store = Self {
            closed_format: formats.closed,
            cipher: None,
            lease: journal.lease(),
            reader: journal.reader(),
            most_records: journal.capacity().map(|capacity| capacity / 2),
            database,
            path: path.to_owned(),
            journal: Mutex::new(JournalWriter { journal, writer, octets: 0 }),
            changes: Changes::new(applied),
            applying: Mutex::new(()),
            durable: Mutex::new(applied),
            durable_record: AtomicU64::new(applied.0),
            appended: AtomicU64::new(applied.0),
            closed: AtomicBool::new(false),
        };
        store.make_durable(Some(formats.open))?;
        Ok(store)
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A transaction that is durable when it is committed.
    pub(crate) fn begin_durable(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        transaction.set_two_phase_commit(true);
        // This also writes the allocator's state, so that a start after a crash need not scan the whole file.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    /// A read transaction that sees all changes of earlier commits.
    pub(crate) fn read(&self) -> Result<ReadTransaction, StoreError> {
        self.apply()?;
        Ok(self.database.begin_read()?)
    }

    /// Writes a batch as one record of the journal, durable on return.
    ///
    /// # Errors
    /// The disk fails. No command of the batch may be executed then.
    pub fn commit(&self, batch: Batch) -> Result<CommitStats, StoreError> {
        self.commit_observed(batch, |_| {})
    }

    /// As [`commit`](Self::commit). Also passes the batch to `observe` as soon as it is durable and visible to readers.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_observed(
        &self,
        batch: Batch,
        observe: impl FnOnce(&Batch),
    ) -> Result<CommitStats, StoreError> {
        let mut guard = self.journal.lock();
        let JournalWriter { journal, writer, octets: before } = &mut *guard;
        let format = journal.payload_format().map_or(BatchFormat::NEWEST, BatchFormat::up_to);
        // The next batch is often about as long as the last one.
        let mut octets = Vec::with_capacity(*before + *before / 8);
        codec::encode_batch_as(format, &mut octets, &batch, self.cipher.as_deref())?;
        *before = octets.len();
        let seq = journal.append(writer, &octets)?;
        self.appended.store(seq.0, Relaxed);
        let done = CommitStats { rows: batch.rows() as u64, octets: octets.len() as u64 };
        let batch = Arc::new(batch);
        let recorded = RecordedBatch::new(seq, batch.clone(), octets.into())
            .map_err(|source| StoreError::JournalRecord { seq, source })?;
        let is_full = self.changes.add(recorded);
        drop(guard);
        observe(&batch);
        if is_full {
            self.apply()?;
        }
        if let Some(most) = self.most_records
            && seq.0 - self.durable_record.load(Relaxed) >= most
        {
            self.checkpoint()?;
        }
        Ok(done)
    }

    /// In a cluster: signals the other nodes that this leader lives, without a change.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn heartbeat(&self) -> Result<(), StoreError> {
        self.commit(Batch::default()).map(drop)
    }

    /// The last record that was appended.
    #[must_use]
    pub fn last_appended(&self) -> Seq {
        Seq(self.appended.load(Relaxed))
    }

    /// Whether the store is closed: another node may have claimed the journal since then.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// A reader of the journal, for another thread; `None` if the journal has no files on this machine.
    #[must_use]
    pub fn journal_reader(&self) -> Option<JournalReader> {
        self.reader.as_ref().map(JournalReader::another)
    }

    /// The lease under which messages of earlier commits may be submitted to links.
    #[must_use]
    pub fn lease(&self) -> Arc<LeaderLease> {
        self.lease.clone()
    }

    /// Number of changes that the tables lack, except for those that are being applied.
    #[must_use]
    pub fn pending_changes(&self) -> usize {
        self.changes.rows()
    }

    /// Merges the changes of earlier commits in memory. This frees their batches; messages remain as octets.
    pub fn merge(&self) {
        self.changes.merge();
    }

    /// Applies all changes of earlier commits to the tables. They are durable there after the next
    /// [`checkpoint`](Self::checkpoint).
    ///
    /// # Errors
    /// The disk fails, or a record is damaged. The process must stop; the journal has all changes.
    pub fn apply(&self) -> Result<(), StoreError> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let _applying = self.applying.lock();
        // The changes of a failed attempt come first: later changes must not overtake them.
        if let Some(unapplied) = self.changes.unapplied() {
            self.write_current(&unapplied)?;
        }
        match self.changes.take() {
            Some(pending) => self.write_current(&pending),
            None => Ok(()),
        }
    }

    fn write_current(&self, pending: &Pending) -> Result<(), StoreError> {
        write(&self.database, pending, Durability::None, self.cipher.as_deref())?;
        self.changes.set_applied(pending.last);
        Ok(())
    }

    /// Makes the tables durable with all changes of earlier commits, so that the journal may remove their records.
    /// Commits do not wait for it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.apply()?;
        self.make_durable(None)
    }

    /// Makes the present tables durable; with `format`, also changes the format of the file.
    fn make_durable(&self, format: Option<u64>) -> Result<(), StoreError> {
        // Two concurrent calls could report to the journal out of order.
        let mut durable = self.durable.lock();
        let applied = self.changes.applied();
        if format.is_none() && *durable == applied {
            return Ok(());
        }
        let transaction = self.begin_durable()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert(META_APPLIED, applied.0)?;
            if let Some(format) = format {
                meta.insert(META_FORMAT, format)?;
            }
            checked::seal_meta(&mut meta)?;
        }
        transaction.commit()?;
        *durable = applied;
        self.durable_record.store(applied.0, Relaxed);
        Ok(self.journal.lock().journal.applied(applied)?)
    }

    /// Closes the store: applies all changes to the tables. Without a cluster, versions without a journal can then open the
    /// file.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn close(&self) -> Result<(), StoreError> {
        self.apply()?;
        self.make_durable(Some(self.closed_format))?;
        let mut guard = self.journal.lock();
        let JournalWriter { journal, writer, .. } = &mut *guard;
        self.closed.store(true, Relaxed);
        if let Err(error) = journal.resign(writer) {
            tracing::warn!(%error, "resigning failed, another node will lead a little later");
        }
        Ok(())
    }

    /// Waiting messages by id; `None` for other ids.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn load(&self, ids: &[MessageId]) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        // The queues wait for this call, so it does not apply the pending changes first.
        let found = self.changes.contents_of(ids);
        let transaction = self.database.begin_read()?;
        self.load_stored(&transaction, ids.iter().copied().zip(found))
    }

    /// The number of waiting and of finished messages.
    ///
    /// # Errors
    /// The disk fails.
    pub fn counts(&self) -> Result<(u64, u64), StoreError> {
        // Called often, so it does not apply the pending changes first: traffic would wait.
        let begin = || -> Result<_, StoreError> {
            let transaction = self.database.begin_read()?;
            let applied =
                transaction.open_table(META)?.get(META_APPLIED)?.map_or(0, |applied| applied.value());
            Ok((transaction, Seq(applied)))
        };
        let (transaction, (waiting, finished)) = self.changes.counts_beyond(begin)?;
        let messages = transaction.open_table(MESSAGES)?.len()?;
        let ended = transaction.open_table(META)?.get(META_FINISHED)?.map_or(0, |count| count.value());
        Ok((messages.saturating_add_signed(waiting), ended.saturating_add_signed(finished)))
    }

    /// The directory of all peers. New names in `wanted` get ids; durable on return.
    ///
    /// # Errors
    /// The disk fails.
    pub fn directory(&self, wanted: &[String]) -> Result<Directory, StoreError> {
        let mut directory = Directory::new();
        {
            let transaction = self.read()?;
            for row in transaction.open_table(NAMES)?.iter()? {
                let (_, name) = row?;
                // Ids are consecutive, so reading the names in order assigns the same ids.
                let _ = directory.intern(name.value());
            }
        }
        let mut batch = Batch::default();
        for name in wanted {
            if let Ok((id, true)) = directory.intern(name) {
                batch.names.push((id, name.as_str().into()));
            }
        }
        if !batch.names.is_empty() {
            self.commit(batch)?;
        }
        Ok(directory)
    }
}

/// Result of [`Store::follow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedJournal {
    /// The number of batches.
    pub batches: u64,
    /// The time of the last record; `None` if there was none.
    pub last: Option<Timestamp>,
}

/// Applies the records of a journal after `applied`, up to the time `until`, durably. `read` returns the records from a
/// number on, and none at the end. Returns the last record in the tables.
fn replay(
    database: &Database,
    mut applied: Seq,
    until: Timestamp,
    mut read: impl FnMut(Seq) -> Result<Vec<JournalRecord>, JournalError>,
) -> Result<(Seq, FollowedJournal), StoreError> {
    let mut followed = FollowedJournal { batches: 0, last: None };
    let (mut pending, mut octets) = (Pending::default(), 0);
    loop {
        let records = read(applied.next())?;
        let is_end = records.is_empty();
        let mut records = records.into_iter().take_while(|record| record.at <= until.0).peekable();
        let is_over = records.peek().is_none();
        for record in records {
            applied = record.seq;
            followed.last = Some(Timestamp(record.at));
            octets += record.payload().map_or(0, <[u8]>::len);
            match RecordedBatch::read(&record)? {
                Some(batch) => {
                    followed.batches += 1;
                    pending.merge(batch);
                }
                None => pending.skip(applied),
            }
        }
        let is_last = is_end || is_over;
        if !pending.is_empty() && (is_last || octets >= MAX_OCTETS) {
            octets = 0;
            // Contents in the records are already encrypted, and are not changed.
            write(database, &pending.take(), Durability::Immediate, None)?;
        }
        if is_last {
            return Ok((applied, followed));
        }
    }
}

pub(crate) fn write(
    database: &Database,
    pending: &Pending,
    durability: Durability,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), StoreError> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(matches!(durability, Durability::Immediate));
    transaction.set_durability(durability)?;
    apply(&transaction, pending, cipher)?;
    Ok(transaction.commit()?)
}

/// The directory of the journal of a file.
#[must_use]
pub fn journal_path(path: &Path) -> PathBuf {
    path.with_extension("journal")
}

/// Opens the file; creates it if it does not exist.
pub(crate) fn open_database(path: &Path, cache: usize) -> Result<Database, StoreError> {
    let failed = |error: redb::DatabaseError| match error {
        redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.to_owned()),
        other => StoreError::Open { path: path.to_owned(), source: other.into() },
    };
    if !path.exists() {
        create_file(path).map_err(failed)?;
    }
    Database::builder().set_cache_size(cache).create(path).map_err(failed)
}

/// The state of the tables before the journal is opened.
pub(crate) struct Prepared {
    /// The last record of the journal that they have.
    pub(crate) applied: Seq,
    /// Whether the tables have all records of their journal.
    pub(crate) is_closed: bool,
    /// The cluster whose log the tables follow, or followed when a backup was taken.
    pub(crate) cluster: Option<u64>,
    /// Whether the tables never had a message or a peer.
    pub(crate) is_empty: bool,
    /// Format of the closed file with the same records: [`FILE_FORMAT`] or [`SEALED_FILE_FORMAT`].
    pub(crate) format: u64,
}

/// Creates the tables for an appliance without a cluster, if they do not exist.
fn prepare_alone(database: &Database, path: &Path) -> Result<Prepared, StoreError> {
    let prepared = prepare(database, path)?;
    if prepared.cluster.is_some() {
        if !prepared.is_closed {
            return Err(StoreError::InCluster { path: path.to_owned() });
        }
        // A restored backup: from now on, it has a journal of its own.
        let mut transaction = database.begin_write()?;
        transaction.set_two_phase_commit(true);
        {
            let mut meta = transaction.open_table(META)?;
            meta.remove(META_CLUSTER)?;
            checked::seal_meta(&mut meta)?;
        }
        transaction.commit()?;
    }
    Ok(prepared)
}

/// Creates the tables, if they do not exist.
pub(crate) fn prepare(database: &Database, path: &Path) -> Result<Prepared, StoreError> {
    let known = SEALED_FILE_FORMAT;
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    let prepared = {
        let mut meta = transaction.open_table(META)?;
        checked::check_meta(&meta)?;
        let found = meta.get(META_FORMAT)?.map(|format| format.value());
        let applied = meta.get(META_APPLIED)?.map(|applied| applied.value());
        let cluster = meta.get(META_CLUSTER)?.map(|cluster| cluster.value());
        let is_empty = meta.get(META_NEXT_ID)?.is_none() && transaction.open_table(NAMES)?.is_empty()?;
        match found {
            Some(found) if found % WITH_JOURNAL > known || found > IN_CLUSTER + known => {
                let found = if found < IN_CLUSTER + WITH_JOURNAL { found % WITH_JOURNAL } else { found };
                return Err(StoreError::TooNew { path: path.to_owned(), found, known });
            }
            Some(found) => {
                if applied.is_none() {
                    tracing::info!(format = found, "store converted: it has a journal from now on");
                }
            }
            None => {
                meta.insert(META_FORMAT, FILE_FORMAT)?;
            }
        }
        Prepared {
            format: found.map_or(FILE_FORMAT, tables::newest_format),
            applied: Seq(applied.unwrap_or_default()),
            is_closed: found.is_none_or(|format| format <= WITH_JOURNAL),
            cluster,
            is_empty,
        }
    };
    tables::create_all(&transaction)?;
    finished::convert_rows(&transaction)?;
    checked::check_small_tables(&transaction)?;
    transaction.commit()?;
    Ok(prepared)
}

/// Creates an empty file under a temporary name, and links it to its final name when it is complete: a power cut leaves no
/// partial file.
///
/// Two daemons may do so at the same time. Each has its own temporary name, and unlike a rename, a link never replaces
/// an existing file: the second daemon opens the file of the first one, and finds it in use.
fn create_file(path: &Path) -> Result<(), redb::DatabaseError> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    ignore_not_found(std::fs::remove_file(&new))?;
    drop(Database::create(&new)?);
    std::fs::File::open(&new)?.sync_all()?;
    match std::fs::hard_link(&new, path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    ignore_not_found(std::fs::remove_file(&new))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// A missing file need not be removed.
fn ignore_not_found(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether another process has a store open.
///
/// # Errors
/// The file cannot be opened, or the lock cannot be tested.
pub fn is_in_use(path: &Path) -> std::io::Result<bool> {
    // redb holds this lock on open files; this function's lock ends with its file handle.
    let file = std::fs::File::open(path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Free octets on the disk of `path` for an unprivileged user.
///
/// # Errors
/// The file system cannot be queried.
pub fn free_space(path: &Path) -> Result<u64, StoreError> {
    let stat = rustix::fs::statvfs(path)
        .map_err(|error| StoreError::FreeSpace { path: path.to_owned(), source: error.into() })?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
