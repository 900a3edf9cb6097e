//! The journal of one machine: segment files in a directory.

use crate::clock::{Clock, SystemClock};
use crate::directory::{FileDirectory, JournalDirectory, JournalFile, read_full, write_all};
use crate::hold::JournalHold;
use crate::preparer::{Preparation, Preparer, create_or_replace, create_segment};
use crate::reader::{JournalReader, Shared, State};
use crate::record::{Entry, EntryRef, PayloadTooLong, encode_record};
use crate::scan::{LastFrame, NextFile, Scan, Segment, generations, read_identity, scan};
use crate::segment::{
    FRAME, HEADER, HeaderError, IDENTITY, JournalIdentity, NEW_IDENTITY, SegmentHeader, segment_name,
};
use crate::{Head, Journal, JournalError, JournalRecord, LeaderLease, NodeId, Seq, Term, Writer};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings of a local journal.
#[derive(Clone)]
pub struct JournalOptions {
    /// Length of a segment file in octets, at least 256. It is fixed when the journal is created; later values have no
    /// effect.
    pub segment_octets: u64,
    /// Number of full segments that stay, even if all their records are applied.
    pub keep_segments: usize,
    /// Time for which records stay after their segment is full, even if they are applied: a backup and the records
    /// since then give the state of any moment. Nothing removes them earlier, not even a full disk.
    pub keep_for: Duration,
    /// Execution of the preparer.
    pub preparation: Preparation,
    /// Clock for the times of records and the ages of segments.
    pub clock: Arc<dyn Clock>,
    /// The records that readers still need; `None` without readers.
    pub hold: Option<Arc<JournalHold>>,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            segment_octets: 64 * 1024 * 1024,
            keep_segments: 0,
            keep_for: Duration::ZERO,
            preparation: Preparation::default(),
            clock: Arc::new(SystemClock),
            hold: None,
        }
    }
}

impl fmt::Debug for JournalOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JournalOptions")
            .field("segment_octets", &self.segment_octets)
            .field("keep_segments", &self.keep_segments)
            .field("keep_for", &self.keep_for)
            .finish_non_exhaustive()
    }
}

/// Minimum length of a segment file, in octets.
const MIN_SEGMENT_LENGTH: u64 = 256;

/// Number of applied segments that are kept for reuse; more are removed.
const WAITING: usize = 1;

/// An incomplete record after the last one: a write that a crash interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedTail {
    /// The file.
    pub path: PathBuf,
    /// Offset in the file, in octets.
    pub offset: u64,
}

/// A [`Journal`] in the files of one directory, with one `fdatasync` a record.
pub struct LocalJournal {
    shared: Arc<Shared>,
    reader: JournalReader,
    preparer: Preparer,
    options: JournalOptions,
    /// The segment of the last record.
    active: Option<Active>,
    /// Generation of the next segment: it begins with the first record that does not fit into `active`.
    next_generation: u64,
    /// File of the next segment, once it is taken from the preparer.
    next: Option<Arc<dyn JournalFile>>,
    /// Times at which the segments became full, except for the last one; in the order of `shared.state.segments`.
    full: VecDeque<FullSegment>,
    head: Head,
    applied: Seq,
    poisoned: Option<String>,
    discarded: Option<DiscardedTail>,
    /// Reused for each write.
    buffer: Vec<u8>,
    /// Released last, after the preparer has ended.
    _lock: Box<dyn Send>,
}

struct Active {
    generation: u64,
    file: Arc<dyn JournalFile>,
    /// Offset of the next frame.
    offset: u64,
}

/// Time at which a segment became full. The wall clock determines it at the start; later jumps of that clock have no
/// effect.
#[derive(Clone, Copy)]
struct FullSegment {
    age_then: Duration,
    then: Instant,
}

impl LocalJournal {
    /// Opens the journal in `path`; creates it if there is none and `applied` is 0. `applied` is the last record that
    /// is durable in the tables. Checks all records after it, and all records of the last segment.
    ///
    /// # Errors
    /// Another process uses the directory; a newer daemon wrote it; acknowledged records are damaged or missing; the
    /// disk is full or fails.
    pub fn open(path: &Path, options: JournalOptions, applied: Seq) -> Result<Self, JournalError> {
        let directory = FileDirectory::create_all(path)
            .map_err(JournalError::io(path.to_owned(), "creating the directory"))?;
        Self::open_on(Arc::new(directory), options, applied)
    }

    /// As [`open`](Self::open), in any directory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        directory: Arc<dyn JournalDirectory>,
        options: JournalOptions,
        applied: Seq,
    ) -> Result<Self, JournalError> {
        let lock = lock(&*directory)?;
        let identity = match read_identity(&*directory)? {
            Some(identity) => identity,
            None if applied > Seq(0) => {
                return Err(JournalError::Missing { path: directory.path(""), applied });
            }
            None => create(&*directory, &options, Seq(0))?,
        };
        Self::start(directory, lock, identity, options, Some(applied))
    }

    /// Opens the copy of another journal in `path`, see [`append_copy`](Self::append_copy). No tables depend on a copy:
    /// only the records of the last segment are checked, and records that the hold of `options` does not need may be
    /// removed at once.
    ///
    /// # Errors
    /// [`JournalError::NotFound`]; another process uses the directory; a newer daemon wrote it; records are damaged; the
    /// disk is full or fails.
    pub fn open_copy(path: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        let directory = FileDirectory::create_all(path)
            .map_err(JournalError::io(path.to_owned(), "creating the directory"))?;
        let lock = lock(&directory)?;
        let identity = read_identity(&directory)?.ok_or_else(|| JournalError::NotFound(path.to_owned()))?;
        Self::start(Arc::new(directory), lock, identity, options, None)
    }

    /// Creates an empty journal in `path` whose first record follows `after`, for tables that have applied the records
    /// of another journal up to `after`.
    ///
    /// # Errors
    /// [`JournalError::Exists`]; another process uses the directory; the disk is full or fails.
    pub fn create(path: &Path, options: JournalOptions, after: Seq) -> Result<Self, JournalError> {
        let directory = FileDirectory::create_all(path)
            .map_err(JournalError::io(path.to_owned(), "creating the directory"))?;
        Self::create_on(Arc::new(directory), options, after)
    }

    /// As [`create`](Self::create), in any directory.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_on(
        directory: Arc<dyn JournalDirectory>,
        options: JournalOptions,
        after: Seq,
    ) -> Result<Self, JournalError> {
        let lock = lock(&*directory)?;
        if read_identity(&*directory)?.is_some() {
            return Err(JournalError::Exists(directory.path("")));
        }
        let identity = create(&*directory, &options, after)?;
        Self::start(directory, lock, identity, options, Some(after))
    }

    fn start(
        directory: Arc<dyn JournalDirectory>,
        lock: Box<dyn Send>,
        identity: JournalIdentity,
        options: JournalOptions,
        applied: Option<Seq>,
    ) -> Result<Self, JournalError> {
        // A killed process may have left directory entries that are not durable yet.
        directory.sync().map_err(JournalError::io(directory.path(""), "syncing"))?;
        let Scan { segments, head, last, next_generation, next, torn } =
            scan(&*directory, identity, applied)?;
        let preparer = Preparer::start(directory.clone(), identity.segment_octets, options.preparation)
            .map_err(JournalError::io(directory.path(""), "starting a thread"))?;
        if next == NextFile::Present {
            preparer.provide(next_generation, blank_header(&*directory, next_generation)?);
        }
        let active = match (segments.last(), last) {
            (Some(segment), Some(last)) => {
                Some(settle_end(&*directory, &identity, segment.generation, last)?)
            }
            _ => None,
        };
        if next == NextFile::Missing {
            preparer.want(next_generation, None);
        }
        let discarded = torn.map(|(generation, offset)| DiscardedTail {
            path: directory.path(&segment_name(generation)),
            offset,
        });
        if let Some(DiscardedTail { path, offset }) = &discarded {
            tracing::info!(
                "{}: an incomplete record at octet {offset} is discarded: the last write was interrupted",
                path.display()
            );
        }
        let full = full_since(&segments, &*options.clock);
        let shared = Arc::new(Shared {
            directory,
            identity,
            state: Mutex::new(State { segments: segments.into(), head }),
            is_foreign: false,
            grown: Condvar::new(),
        });
        let mut journal = Self {
            reader: JournalReader::new(shared.clone()),
            shared,
            preparer,
            options,
            active,
            next_generation,
            next: None,
            full,
            head,
            applied: applied.unwrap_or(head.seq),
            poisoned: None,
            discarded,
            buffer: Vec::new(),
            _lock: lock,
        };
        journal.retire();
        Ok(journal)
    }

    /// The last record.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The incomplete record that was found and discarded when the journal was opened.
    #[must_use]
    pub const fn discarded(&self) -> Option<&DiscardedTail> {
        self.discarded.as_ref()
    }

    /// The longest payload of a record in octets.
    #[must_use]
    pub fn longest_payload(&self) -> usize {
        self.shared.identity.longest_payload()
    }

    /// Minimum number of payload octets that can be appended as one record without further disk space: the rest of the
    /// segment, or a whole segment if the next one is prepared. A small number means that the disk is full.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.next.is_some() || self.preparer.is_ready() {
            return self.longest_payload();
        }
        let offset = self.active.as_ref().map_or(self.shared.identity.segment_octets, |active| active.offset);
        let left = self.shared.identity.segment_octets.saturating_sub(offset);
        usize::try_from(left).unwrap_or(usize::MAX).saturating_sub(FRAME)
    }

    /// A reader, for another thread.
    #[must_use]
    pub fn reader(&self) -> JournalReader {
        JournalReader::new(self.shared.clone())
    }

    /// Appends a record of another journal, with its number, term and time. The checksums are computed for this
    /// journal, so that a copy may begin at any record.
    ///
    /// # Errors
    /// [`JournalError::Poisoned`] if the record does not follow the last one; and as [`Journal::append`].
    pub fn append_copy(&mut self, record: &JournalRecord) -> Result<(), JournalError> {
        if record.seq != self.head.seq.next() {
            let cause = format!("record {} does not follow record {}", record.seq, self.head.seq);
            return Err(JournalError::Poisoned { cause });
        }
        let entry = match &record.entry {
            Entry::Claim { node } => EntryRef::Claim(*node),
            Entry::Payload(payload) => EntryRef::Payload(payload),
        };
        self.write(record.term.max(self.head.term), record.at, entry)
    }

    /// Writes the record after `head` in `term`, appended at this time.
    fn write(&mut self, term: Term, at: u64, entry: EntryRef<'_>) -> Result<(), JournalError> {
        if let Some(cause) = &self.poisoned {
            return Err(JournalError::Poisoned { cause: cause.clone() });
        }
        let identity = self.shared.identity;
        let limit = identity.longest_payload();
        if entry.length() > limit {
            return Err(JournalError::TooLarge { octets: entry.length(), limit });
        }
        let length = (FRAME + entry.length()) as u64;
        let fits = |active: &&Active| active.offset + length <= identity.segment_octets;
        let (generation, file, offset, fresh) = match self.active.as_ref().filter(fits) {
            Some(active) => (active.generation, active.file.clone(), active.offset, false),
            None => (self.next_generation, self.next_file()?, 0, true),
        };
        let mark = identity.mark(generation);
        self.buffer.clear();
        if fresh {
            let header = SegmentHeader { generation, mark, before: self.head, begun: at };
            self.buffer.extend_from_slice(&header.encode());
        }
        self.buffer.extend_from_slice(&mark.to_le_bytes());
        let crc = encode_record(&mut self.buffer, &self.head, term, at, entry)
            .map_err(|PayloadTooLong(octets)| JournalError::TooLarge { octets, limit })?;
        let path = || self.shared.directory.path(&segment_name(generation));
        // The space is allocated already: a full disk is detected earlier, in `next_file`.
        if let Err(source) = write_all(&*file, offset, &self.buffer) {
            let path = path();
            return Err(self.poison(path, "writing", source));
        }
        if let Err(source) = file.sync_data() {
            let path = path();
            return Err(self.poison(path, "fdatasync", source));
        }
        let before = self.head;
        self.head = Head { term, seq: before.seq.next(), crc };
        let offset = offset + self.buffer.len() as u64;
        {
            let mut state = self.shared.state.lock();
            if fresh {
                state.segments.push_back(Segment { generation, before, begun: at });
            }
            state.head = self.head;
        }
        self.shared.grown.notify_all();
        if fresh {
            self.begun(generation, file, offset);
        } else if let Some(active) = &mut self.active {
            active.offset = offset;
        }
        Ok(())
    }

    /// Returns the file of the next segment.
    fn next_file(&mut self) -> Result<Arc<dyn JournalFile>, JournalError> {
        if let Some(file) = &self.next {
            return Ok(file.clone());
        }
        let path = || self.shared.directory.path(&segment_name(self.next_generation));
        let file = self
            .preparer
            .take(self.next_generation)
            .map_err(JournalError::io(path(), "preparing the segment"))?;
        self.next = Some(file.clone());
        Ok(file)
    }

    /// Called when a segment has its first record: prepares the next segment.
    fn begun(&mut self, generation: u64, file: Arc<dyn JournalFile>, offset: u64) {
        self.active = Some(Active { generation, file, offset });
        self.next = None;
        self.next_generation = generation.saturating_add(1);
        if self.shared.state.lock().segments.len() > 1 {
            self.full.push_back(FullSegment { age_then: Duration::ZERO, then: self.options.clock.now() });
        }
        let recycled = if self.retirable() > 0 { self.pop_oldest() } else { None };
        self.preparer.want(self.next_generation, recycled);
    }

    /// Number of oldest segments that are neither needed nor kept.
    fn retirable(&self) -> usize {
        let now = self.options.clock.now();
        let state = self.shared.state.lock();
        let applied =
            state.segments.iter().skip(1).take_while(|next| next.before.seq <= self.applied).count();
        let old = self.full.iter().take_while(|full| full.age(now) >= self.options.keep_for).count();
        let read = self.options.hold.as_ref().map_or(applied, |hold| {
            let from = hold.from();
            let read = state.segments.iter().skip(1).take_while(|next| next.before.seq < from).count();
            // A reader that is further behind than the limit loses the oldest records.
            read.max(self.full.len().saturating_sub(hold.most_segments(self.shared.identity.segment_octets)))
        });
        applied.min(old).min(read).min(self.full.len().saturating_sub(self.options.keep_segments))
    }

    /// Removes the oldest segment from the list.
    fn pop_oldest(&mut self) -> Option<u64> {
        self.full.pop_front();
        self.shared.state.lock().segments.pop_front().map(|segment| segment.generation)
    }

    /// Removes segments that are neither needed nor kept, except those that are kept for reuse.
    fn retire(&mut self) {
        for _ in WAITING..self.retirable() {
            if let Some(generation) = self.pop_oldest() {
                self.preparer.retire(generation);
            }
        }
    }

    fn poison(&mut self, path: PathBuf, what: &'static str, source: io::Error) -> JournalError {
        let error = JournalError::Io { path, what, source };
        self.poisoned = Some(error.to_string());
        error
    }
}

impl Journal for LocalJournal {
    fn claim(&mut self, node: NodeId) -> Result<Writer, JournalError> {
        let at = self.options.clock.wall_millis();
        self.write(self.head.term.next(), at, EntryRef::Claim(node))?;
        Ok(Writer::new(self.head))
    }

    fn append(&mut self, writer: &mut Writer, payload: &[u8]) -> Result<Seq, JournalError> {
        if writer.head() != self.head {
            return Err(JournalError::Fenced { by: self.head.term });
        }
        let at = self.options.clock.wall_millis();
        self.write(self.head.term, at, EntryRef::Payload(payload))?;
        writer.advance(self.head.seq, self.head.crc);
        Ok(self.head.seq)
    }

    fn read(
        &mut self,
        from: Seq,
        octets: usize,
        _timeout: Duration,
    ) -> Result<Vec<JournalRecord>, JournalError> {
        // Nobody can append while this is borrowed.
        self.reader.read(from, octets, Duration::ZERO)
    }

    fn applied(&mut self, seq: Seq) -> Result<(), JournalError> {
        self.applied = self.applied.max(seq.min(self.head.seq));
        self.retire();
        self.preparer.retry();
        Ok(())
    }

    fn lease(&self) -> Arc<LeaderLease> {
        Arc::new(LeaderLease::unlimited())
    }

    fn reader(&self) -> Option<JournalReader> {
        Some(Self::reader(self))
    }
}

impl FullSegment {
    fn age(&self, now: Instant) -> Duration {
        self.age_then.saturating_add(now.saturating_duration_since(self.then))
    }
}

fn full_since(segments: &[Segment], clock: &dyn Clock) -> VecDeque<FullSegment> {
    let (wall, then) = (clock.wall_millis(), clock.now());
    let age = |next: &Segment| Duration::from_millis(wall.saturating_sub(next.begun));
    segments.iter().skip(1).map(|next| FullSegment { age_then: age(next), then }).collect()
}

fn lock(directory: &dyn JournalDirectory) -> Result<Box<dyn Send>, JournalError> {
    let path = directory.path("");
    match directory.lock().map_err(JournalError::io(path.clone(), "locking"))? {
        Some(lock) => Ok(lock),
        None => Err(JournalError::InUse(path)),
    }
}

/// Creates the first segment and then the identity: a directory with an identity has a segment.
fn create(
    directory: &dyn JournalDirectory,
    options: &JournalOptions,
    after: Seq,
) -> Result<JournalIdentity, JournalError> {
    let first = segment_name(1);
    match generations(directory)?.as_slice() {
        [] => {}
        // An interrupted creation leaves a blank first segment.
        [1] if is_blank(directory, &first)? => {}
        _ => {
            return Err(JournalError::Damaged {
                path: directory.path(IDENTITY),
                offset: 0,
                seq: after.next(),
                what: "the file is missing, but there are segments",
            });
        }
    }
    let path = || directory.path(IDENTITY);
    let key = getrandom::u64().map_err(|error| {
        JournalError::io(path(), "making a random number")(io::Error::other(error.to_string()))
    })?;
    let identity = JournalIdentity {
        key,
        segment_octets: options.segment_octets.max(MIN_SEGMENT_LENGTH),
        after,
        created: options.clock.wall_millis(),
    };
    create_segment(directory, identity.segment_octets, 1, &|| false)
        .map_err(JournalError::io(directory.path(&first), "creating"))?;
    let write = || {
        let file = create_or_replace(directory, NEW_IDENTITY)?;
        write_all(&*file, 0, &identity.encode())?;
        file.sync_data()?;
        directory.rename(NEW_IDENTITY, IDENTITY)?;
        directory.sync()
    };
    write().map_err(JournalError::io(path(), "creating"))?;
    Ok(identity)
}

fn is_blank(directory: &dyn JournalDirectory, name: &str) -> Result<bool, JournalError> {
    let mut header = [0; HEADER];
    let read = directory.open(name).and_then(|file| read_full(&*file, 0, &mut header));
    let read = read.map_err(JournalError::io(directory.path(name), "reading"))?;
    Ok(SegmentHeader::decode(header.get(..read).unwrap_or_default()) == Err(HeaderError::Blank))
}

/// Makes the last record durable, with the header if the record is the first of its segment, and erases the octets after
/// it.
///
/// The process that wrote the record may have been killed before its sync, or after a failed one. After a failed sync,
/// the system takes the octets for written although they are not on the disk, and another sync writes nothing. So they
/// are written again.
///
/// The octets after the record may be parts of a discarded record. If the next write is torn, too, it could complete
/// that record. So the place of the next record's header is blanked first.
fn settle_end(
    directory: &dyn JournalDirectory,
    identity: &JournalIdentity,
    generation: u64,
    last: LastFrame,
) -> Result<Active, JournalError> {
    let name = segment_name(generation);
    let start = if last.start == HEADER as u64 { 0 } else { last.start };
    let blanked = identity.segment_octets.saturating_sub(last.end).min(FRAME as u64);
    let settle = || {
        let file = directory.open(&name)?;
        let mut octets = vec![0; usize::try_from(last.end - start).unwrap_or(0)];
        let read = read_full(&*file, start, &mut octets)?;
        octets.truncate(read);
        octets.resize(read + usize::try_from(blanked).unwrap_or(0), 0);
        write_all(&*file, start, &octets)?;
        file.sync_data()?;
        Ok(file)
    };
    let file = settle().map_err(JournalError::io(directory.path(&name), "writing"))?;
    Ok(Active { generation, file, offset: last.end })
}

/// Blanks the header of the next segment, whose first write may have been torn.
///
/// This is necessary even if the header reads as blank: after a failed sync, only the cache may be blank.
fn blank_header(
    directory: &dyn JournalDirectory,
    generation: u64,
) -> Result<Arc<dyn JournalFile>, JournalError> {
    let name = segment_name(generation);
    let blank = || {
        let file = directory.open(&name)?;
        write_all(&*file, 0, &[0; HEADER + FRAME])?;
        file.sync_data()?;
        Ok(file)
    };
    blank().map_err(JournalError::io(directory.path(&name), "writing"))
}
