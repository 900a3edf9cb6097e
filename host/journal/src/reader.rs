//! Readers of a journal, concurrent with its writer.

use crate::directory::{FileDirectory, JournalDirectory};
use crate::record::{DecodeError, Entry};
use crate::scan::{Segment, read_identity, scan};
use crate::segment::{HEADER, JournalIdentity, MARK, segment_name};
use crate::window::Window;
use crate::{Head, JournalError, JournalRecord, Seq};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of tries to open a journal that another process is changing.
const TRIES: usize = 5;

/// Octets of payload that [`Records`] reads at a time.
const CHUNK: usize = 1024 * 1024;

/// State that writer and readers share.
pub(crate) struct Shared {
    pub(crate) directory: Arc<dyn JournalDirectory>,
    pub(crate) identity: JournalIdentity,
    pub(crate) state: Mutex<State>,
    /// Whether the writer is another process, which may reuse segments: then the file names tell which segments are still
    /// in the journal.
    pub(crate) is_foreign: bool,
    /// Signals new records.
    pub(crate) grown: Condvar,
}

/// Segments and head, for readers.
pub(crate) struct State {
    /// Segments, oldest first. A file that is no longer listed may be overwritten.
    pub(crate) segments: VecDeque<Segment>,
    /// The last durable record.
    pub(crate) head: Head,
}

impl State {
    /// The oldest record; without records, the number of the next one.
    pub(crate) fn oldest(&self) -> Seq {
        self.segments.front().map_or(self.head.seq.next(), Segment::first)
    }
}

/// Description of a segment, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// The file.
    pub path: PathBuf,
    /// The first record.
    pub first: Seq,
    /// The last record.
    pub last: Seq,
    /// When the segment was begun, milliseconds since the Unix epoch.
    pub begun: u64,
    /// The length of the file.
    pub octets: u64,
}

/// Reader of the durable records of a journal. It may run on another thread than the writer.
pub struct JournalReader {
    shared: Arc<Shared>,
    cursor: Option<Cursor>,
}

/// The records of a journal in order; see [`JournalReader::records`]. Ends after an error.
pub struct Records<'a> {
    reader: &'a mut JournalReader,
    next: Seq,
    end: Seq,
    chunk: VecDeque<JournalRecord>,
}

impl Iterator for Records<'_> {
    type Item = Result<JournalRecord, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.chunk.is_empty() && self.next <= self.end {
            match self.reader.read(self.next, CHUNK, Duration::ZERO) {
                Ok(records) => self.chunk = records.into(),
                Err(error) => {
                    self.end = Seq(0);
                    return Some(Err(error));
                }
            }
        }
        let record = self.chunk.pop_front()?;
        self.next = record.seq.next();
        (record.seq <= self.end).then_some(Ok(record))
    }
}

/// Position after the last record that was read.
struct Cursor {
    generation: u64,
    window: Window,
    offset: u64,
    head: Head,
    /// The record up to which the window is current: later frames in it may be outdated.
    filled_to: Seq,
}

impl JournalReader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, cursor: None }
    }

    /// Opens the journal in `path` read-only, also while a daemon uses it. Checks the headers of all segments and the
    /// records of the last one; [`records`](Self::records) checks the others. The reader does not see records that are
    /// appended later. The last record may not be durable yet.
    ///
    /// # Errors
    /// [`JournalError::NotFound`]; all errors of [`LocalJournal::open`](crate::LocalJournal::open) about the files.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(FileDirectory::new(path)))
    }

    /// As [`open`](Self::open), in any directory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(directory: Arc<dyn JournalDirectory>) -> Result<Self, JournalError> {
        // While a daemon renames files, an intact journal can appear damaged.
        for _ in 0..TRIES {
            match Self::try_open(directory.clone()) {
                Err(JournalError::Damaged { .. } | JournalError::Io { .. }) => {}
                result => return result,
            }
        }
        Self::try_open(directory)
    }

    fn try_open(directory: Arc<dyn JournalDirectory>) -> Result<Self, JournalError> {
        let Some(identity) = read_identity(&*directory)? else {
            return Err(JournalError::NotFound(directory.path("")));
        };
        let found = scan(&*directory, identity, None)?;
        Ok(Self::new(Arc::new(Shared {
            directory,
            identity,
            state: Mutex::new(State { segments: found.segments.into(), head: found.head }),
            is_foreign: true,
            grown: Condvar::new(),
        })))
    }

    /// Another reader of the same journal, positioned at its beginning.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(self.shared.clone())
    }

    /// Time of creation in milliseconds since the Unix epoch. It distinguishes this journal from others, for example
    /// from the one after a restore.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.shared.identity.created
    }

    /// The last durable record.
    #[must_use]
    pub fn head(&self) -> Head {
        self.shared.state.lock().head
    }

    /// The oldest record; without records, the number of the next one.
    #[must_use]
    pub fn oldest(&self) -> Seq {
        self.shared.state.lock().oldest()
    }

    /// All segments with records, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentSummary> {
        let state = self.shared.state.lock();
        let lasts = state.segments.iter().skip(1).map(|next| next.before.seq).chain([state.head.seq]);
        let summary = |(segment, last): (&Segment, Seq)| SegmentSummary {
            path: self.shared.directory.path(&segment_name(segment.generation)),
            first: segment.first(),
            last,
            begun: segment.begun,
            octets: self.shared.identity.segment_octets,
        };
        state.segments.iter().zip(lasts).map(summary).collect()
    }

    /// The records from `from` on, until their payloads have `octets` octets together; at least one if there is one.
    /// Waits up to `timeout` for the first record. An error after the first record is returned by the next call.
    ///
    /// # Errors
    /// [`JournalError::Behind`]: the record is no longer in the journal. [`JournalError::Damaged`],
    /// [`JournalError::Io`].
    pub fn read(
        &mut self,
        from: Seq,
        octets: usize,
        timeout: Duration,
    ) -> Result<Vec<JournalRecord>, JournalError> {
        self.wait(from, timeout);
        let mut records = Vec::new();
        let mut left = octets.max(1);
        let mut next = from;
        while let Some((segment, last)) = self.segment_of(next)? {
            let result = self.read_segment(&segment, last, next, &mut left, &mut records);
            if let Err(error) = result {
                self.cursor = None;
                if !records.is_empty() {
                    // The next call returns the error.
                    break;
                }
                // The file may have been reused for a later generation.
                return Err(self.behind(segment.generation).unwrap_or(error));
            }
            next = last.next();
            if left == 0 {
                break;
            }
        }
        Ok(records)
    }

    /// Iterates over the records from `from` to the current end of the journal, each checked against its predecessor:
    /// for replay, and for the verification of a whole journal, from [`oldest`](Self::oldest) on.
    pub fn records(&mut self, from: Seq) -> Records<'_> {
        let end = self.head().seq;
        Records { reader: self, next: from, end, chunk: VecDeque::new() }
    }

    /// Waits until record `from` is durable, up to `timeout`. A reader of another process does not see new records.
    fn wait(&self, from: Seq, timeout: Duration) {
        let mut state = self.shared.state.lock();
        if self.shared.is_foreign || timeout.is_zero() {
            return;
        }
        let deadline = Instant::now().checked_add(timeout);
        while state.head.seq < from {
            match deadline {
                Some(deadline) => {
                    if self.shared.grown.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
                None => self.shared.grown.wait(&mut state),
            }
        }
    }

    /// The segment that contains record `seq`, and the segment's last record.
    fn segment_of(&self, seq: Seq) -> Result<Option<(Segment, Seq)>, JournalError> {
        let state = self.shared.state.lock();
        if seq < state.oldest() {
            return Err(JournalError::Behind { oldest: state.oldest() });
        }
        if seq > state.head.seq {
            return Ok(None);
        }
        let following = state.segments.partition_point(|segment| segment.first() <= seq);
        let last = state.segments.get(following).map_or(state.head.seq, |next| next.before.seq);
        Ok(following.checked_sub(1).and_then(|at| state.segments.get(at)).map(|segment| (*segment, last)))
    }

    /// The error if the segment has left the journal.
    fn behind(&self, generation: u64) -> Option<JournalError> {
        let mut state = self.shared.state.lock();
        if self.shared.is_foreign && self.is_removed(generation) {
            state.segments.retain(|segment| segment.generation > generation);
        }
        let gone = state.segments.iter().all(|segment| segment.generation != generation);
        gone.then(|| JournalError::Behind { oldest: state.oldest() })
    }

    /// Whether the file has gone: it is removed or renamed before its contents change.
    fn is_removed(&self, generation: u64) -> bool {
        let file = self.shared.directory.open(&segment_name(generation));
        file.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Appends the records `from` to `last` of a segment to `records`, until `left` octets are used up.
    fn read_segment(
        &mut self,
        segment: &Segment,
        last: Seq,
        from: Seq,
        left: &mut usize,
        records: &mut Vec<JournalRecord>,
    ) -> Result<(), JournalError> {
        let name = segment_name(segment.generation);
        let path = || self.shared.directory.path(&name);
        let mut cursor = match self.cursor.take() {
            Some(cursor) if cursor.generation == segment.generation && cursor.head.seq < from => cursor,
            previous => {
                let end = previous.map_or(segment.before, |previous| previous.head);
                if end.seq == segment.before.seq && end != segment.before {
                    return Err(JournalError::Damaged {
                        path: path(),
                        offset: 0,
                        seq: segment.first(),
                        what: "the segment does not continue the one before",
                    });
                }
                let file = self.shared.directory.open(&name).map_err(JournalError::io(path(), "opening"))?;
                let identity = &self.shared.identity;
                let mark = identity.mark(segment.generation);
                Cursor {
                    generation: segment.generation,
                    window: Window::new(file, identity.segment_octets, mark),
                    offset: HEADER as u64,
                    head: segment.before,
                    filled_to: last,
                }
            }
        };
        if cursor.filled_to < last {
            cursor.window.forget();
            cursor.filled_to = last;
        }
        while cursor.head.seq < last && *left > 0 {
            let offset = cursor.offset;
            let read = cursor
                .window
                .record(offset, cursor.head.seq.next())
                .map_err(JournalError::io(path(), "reading"))?;
            let damaged =
                |what| JournalError::Damaged { path: path(), offset, seq: cursor.head.seq.next(), what };
            let record = match read {
                Ok(record) if record.continues(&cursor.head) => record,
                Ok(_) => return Err(damaged("the record does not continue the one before")),
                Err(DecodeError::Invalid) => return Err(damaged("the checksum of the record is wrong")),
                Err(error) => {
                    return Err(JournalError::UnknownContent {
                        path: path(),
                        offset,
                        what: error.to_string(),
                    });
                }
            };
            cursor.offset += (MARK + record.encoded_length()) as u64;
            cursor.head = record.head();
            if record.seq >= from {
                let length = if let Entry::Payload(octets) = &record.entry { octets.len() } else { 0 };
                // A record counts as one octet at least, so that a list of empty records ends, too.
                *left = left.saturating_sub(length.max(1));
                records.push(record);
            }
        }
        self.cursor = Some(cursor);
        Ok(())
    }
}
