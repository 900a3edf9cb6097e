//! Checks of the files when a journal is opened: segments, their records, and the end of the journal.

use crate::directory::{JournalDirectory, JournalFile, read_full};
use crate::record::DecodeError;
use crate::segment::{
    HEADER, HeaderError, IDENTITY, JournalIdentity, MARK, SegmentHeader, parse_segment_name, segment_name,
};
use crate::window::Window;
use crate::{Head, JournalError, Seq};
use std::sync::Arc;

/// A segment with records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) generation: u64,
    /// The head of the journal before its first record.
    pub(crate) before: Head,
    /// Milliseconds since the Unix epoch.
    pub(crate) begun: u64,
}

impl Segment {
    pub(crate) const fn first(&self) -> Seq {
        self.before.seq.next()
    }
}

/// The last record, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastFrame {
    /// Offset of its frame.
    pub(crate) start: u64,
    /// Offset of the next frame.
    pub(crate) end: u64,
}

/// The file of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextFile {
    /// It does not exist.
    Missing,
    /// It exists, as the last file. It has no records, but perhaps a part of a header.
    Present,
}

/// The state of a journal's files.
#[derive(Debug)]
pub(crate) struct Scan {
    /// All segments with records, oldest first.
    pub(crate) segments: Vec<Segment>,
    pub(crate) head: Head,
    /// The last record, if the last segment has room for more. `None`: the next record begins the segment `next`.
    pub(crate) last: Option<LastFrame>,
    /// The generation of the next segment.
    pub(crate) next_generation: u64,
    pub(crate) next: NextFile,
    /// A torn write after the last record: generation and offset.
    pub(crate) torn: Option<(u64, u64)>,
}

const DAMAGED_HEADER: &str = "the header of the segment is damaged";
const DAMAGED_RECORD: &str = "a record is damaged, and others follow it";

/// A journal's directory and identity.
struct Scanner<'a> {
    directory: &'a dyn JournalDirectory,
    identity: JournalIdentity,
}

/// State of the file with the highest generation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewestSegment {
    /// A segment with a header.
    Started,
    /// A segment with a blank header.
    Prepared,
    /// A segment with a part of a header.
    Torn,
}

/// Reads the identity; `None` if there is no such file.
pub(crate) fn read_identity(
    directory: &dyn JournalDirectory,
) -> Result<Option<JournalIdentity>, JournalError> {
    let path = || directory.path(IDENTITY);
    let file = match directory.open(IDENTITY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(JournalError::io(path(), "opening"))?,
    };
    // One octet more than expected, to detect a file that is too long.
    let mut octets = [0; HEADER + 1];
    let read = read_full(&*file, 0, &mut octets).map_err(JournalError::io(path(), "reading"))?;
    JournalIdentity::decode(octets.get(..read).unwrap_or_default()).map(Some).map_err(|error| match error {
        HeaderError::UnknownFormat(found) => {
            JournalError::UnknownFormat { path: path(), found, known: crate::segment::FORMAT }
        }
        HeaderError::UnknownSection => {
            JournalError::UnknownContent { path: path(), offset: 0, what: "an unknown section".to_owned() }
        }
        HeaderError::Blank | HeaderError::Invalid => JournalError::Damaged {
            path: path(),
            offset: 0,
            seq: Seq(0),
            what: "the checksum of the file is wrong",
        },
    })
}

/// The generations of all segment files, ascending.
pub(crate) fn generations(directory: &dyn JournalDirectory) -> Result<Vec<u64>, JournalError> {
    let names = directory.names().map_err(JournalError::io(directory.path(""), "listing"))?;
    let mut generations: Vec<_> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    generations.sort_unstable();
    // A file that is renamed during the listing may appear twice.
    generations.dedup();
    Ok(generations)
}

/// Checks the files of the journal: all records of the last segment, and all records after `applied` if it is given.
///
/// Another process may append during the scan.
pub(crate) fn scan(
    directory: &dyn JournalDirectory,
    identity: JournalIdentity,
    applied: Option<Seq>,
) -> Result<Scan, JournalError> {
    let scanner = Scanner { directory, identity };
    let generations = generations(directory)?;
    if generations.is_empty() {
        return Err(JournalError::Damaged {
            path: directory.path(""),
            offset: 0,
            seq: identity.after.next(),
            what: "all segment files are missing",
        });
    }
    let (segments, newest) = scanner.headers(&generations)?;
    let last = generations.last().copied().unwrap_or(0);
    let mut scan = Scan {
        segments,
        head: Head { seq: identity.after, ..Head::default() },
        last: None,
        next_generation: if newest == NewestSegment::Started { last.saturating_add(1) } else { last },
        next: if newest == NewestSegment::Started { NextFile::Missing } else { NextFile::Present },
        torn: (newest == NewestSegment::Torn).then_some((last, 0)),
    };
    let begin = scan.segments.first().map_or(scan.head, |oldest| oldest.before);
    let last_begin = scan.segments.last().map_or(begin, |last| last.before);
    let applied = applied.unwrap_or(last_begin.seq);
    let from_the_start = generations.first() == Some(&1);
    if from_the_start && begin != scan.head {
        return Err(scanner.damaged(1, 0, scan.head.seq.next(), "the first record has the wrong number"));
    }
    if begin.seq > applied || (scan.segments.is_empty() && !from_the_start) {
        return Err(JournalError::Damaged {
            path: directory.path(""),
            offset: 0,
            seq: applied.next(),
            what: "the files with the records after those that the tables have applied are missing",
        });
    }
    scanner.records(&mut scan, newest, applied)?;
    if scan.head.seq < applied {
        return Err(JournalError::MissingRecords { path: directory.path(""), end: scan.head.seq, applied });
    }
    Ok(scan)
}

impl Scanner<'_> {
    fn damaged(&self, generation: u64, offset: u64, seq: Seq, what: &'static str) -> JournalError {
        JournalError::Damaged { path: self.directory.path(&segment_name(generation)), offset, seq, what }
    }

    fn open(&self, generation: u64) -> Result<Arc<dyn JournalFile>, JournalError> {
        let name = segment_name(generation);
        self.directory.open(&name).map_err(JournalError::io(self.directory.path(&name), "opening"))
    }

    fn window(&self, generation: u64) -> Result<Window, JournalError> {
        let mark = self.identity.mark(generation);
        Ok(Window::new(self.open(generation)?, self.identity.segment_octets, mark))
    }

    fn reading(&self, generation: u64) -> impl FnOnce(std::io::Error) -> JournalError {
        JournalError::io(self.directory.path(&segment_name(generation)), "reading")
    }

    fn header(
        &self,
        generation: u64,
        file: &dyn JournalFile,
    ) -> Result<Result<SegmentHeader, HeaderError>, JournalError> {
        let mut octets = [0; HEADER];
        let read = read_full(file, 0, &mut octets).map_err(self.reading(generation))?;
        Ok(SegmentHeader::decode(octets.get(..read).unwrap_or_default()))
    }

    /// Checks names, lengths and headers of all files.
    fn headers(&self, generations: &[u64]) -> Result<(Vec<Segment>, NewestSegment), JournalError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(generations.len());
        let mut newest = NewestSegment::Started;
        for (&generation, following) in
            generations.iter().zip(generations.iter().skip(1).map(Some).chain([None]))
        {
            let seq = segments.last().map_or(self.identity.after.next(), Segment::first);
            if following.is_some_and(|following| *following != generation + 1) {
                return Err(self.damaged(generation + 1, 0, seq, "the file is missing"));
            }
            let file = self.open(generation)?;
            let length = file.length().map_err(self.reading(generation))?;
            if length != self.identity.segment_octets {
                let offset = length.min(self.identity.segment_octets);
                return Err(self.damaged(
                    generation,
                    offset,
                    seq,
                    "the file has another length than it was given",
                ));
            }
            let mut header = self.header(generation, &*file)?;
            if matches!(header, Err(HeaderError::Blank | HeaderError::Invalid)) {
                // A prepared segment is the last file, and has only records of earlier generations. If it has one of
                // its own, another process may have begun it during the scan: then it has a header by now.
                if self.window(generation)?.has_record_from(0, seq).map_err(self.reading(generation))? {
                    header = self.header(generation, &*file)?;
                    if header.is_err() {
                        return Err(self.damaged(generation, 0, seq, DAMAGED_HEADER));
                    }
                }
            }
            match header {
                Ok(header)
                    if header.generation == generation && header.mark == self.identity.mark(generation) =>
                {
                    segments.push(Segment { generation, before: header.before, begun: header.begun });
                }
                Ok(_) => {
                    return Err(self.damaged(
                        generation,
                        0,
                        seq,
                        "the file is of another journal or has another name",
                    ));
                }
                Err(HeaderError::UnknownFormat(found)) => {
                    return Err(JournalError::UnknownFormat {
                        path: self.directory.path(&segment_name(generation)),
                        found,
                        known: crate::segment::FORMAT,
                    });
                }
                Err(HeaderError::UnknownSection) => {
                    return Err(JournalError::UnknownContent {
                        path: self.directory.path(&segment_name(generation)),
                        offset: 0,
                        what: "a header with an unknown section".to_owned(),
                    });
                }
                Err(_) if following.is_some() => {
                    return Err(self.damaged(generation, 0, seq, DAMAGED_HEADER));
                }
                Err(HeaderError::Blank) => newest = NewestSegment::Prepared,
                Err(HeaderError::Invalid) => newest = NewestSegment::Torn,
            }
        }
        Ok((segments, newest))
    }

    /// Checks the records after `applied` and all records of the last segment; finds the end.
    fn records(&self, scan: &mut Scan, newest: NewestSegment, applied: Seq) -> Result<(), JournalError> {
        // Segments whose records are all applied are checked when they are read.
        let begin = scan.segments.iter().rposition(|segment| segment.before.seq <= applied).unwrap_or(0);
        let checked: Vec<_> = scan.segments.iter().skip(begin).copied().collect();
        let mut previous: Option<(u64, u64)> = None;
        for segment in &checked {
            match previous {
                Some((generation, end)) => self.check_joint(segment, &scan.head, generation, end)?,
                None => scan.head = segment.before,
            }
            scan.last = self.segment(segment.generation, HEADER as u64, &mut scan.head)?;
            previous = Some((segment.generation, scan.last.map_or(HEADER as u64, |last| last.end)));
        }
        let Some((generation, mut end)) = previous else { return Ok(()) };
        let mut window = self.window(generation)?;
        while window.has_record_from(end, scan.head.seq.next()).map_err(self.reading(generation))? {
            // If another process was appending the last record during the scan, the record is complete by now, since
            // records are written in order.
            let Some(last) = self.segment(generation, end, &mut scan.head)? else {
                return Err(self.damaged(generation, end, scan.head.seq.next(), DAMAGED_RECORD));
            };
            scan.last = Some(last);
            end = last.end;
            window.forget();
        }
        let seq = scan.head.seq.next();
        if window.has_mark(end).map_err(self.reading(generation))? {
            if newest == NewestSegment::Torn {
                // A segment is begun only after all records of the previous one are durable.
                return Err(self.damaged(generation, end, seq, DAMAGED_RECORD));
            }
            scan.torn = Some((generation, end));
        }
        if scan.last.is_none() {
            // Only the header of the segment's first write is on the disk.
            if scan.next == NextFile::Present || (scan.segments.len() == 1 && generation != 1) {
                return Err(self.damaged(generation, end, seq, "the first record of the segment is damaged"));
            }
            scan.segments.pop();
            scan.next_generation = generation;
            scan.next = NextFile::Present;
            scan.torn = Some((generation, 0));
        }
        Ok(())
    }

    /// Reads the records of a segment from `offset` to the first that is not valid.
    fn segment(
        &self,
        generation: u64,
        mut offset: u64,
        head: &mut Head,
    ) -> Result<Option<LastFrame>, JournalError> {
        let mut window = self.window(generation)?;
        let mut last = None;
        loop {
            match window.record(offset, head.seq.next()).map_err(self.reading(generation))? {
                Ok(record) if record.continues(head) => {
                    let end = offset + (MARK + record.encoded_length()) as u64;
                    last = Some(LastFrame { start: offset, end });
                    *head = record.head();
                    offset = end;
                }
                Ok(_) => {
                    let what = "the record does not continue the one before";
                    return Err(self.damaged(generation, offset, head.seq.next(), what));
                }
                Err(DecodeError::Invalid) => return Ok(last),
                Err(error) => {
                    return Err(JournalError::UnknownContent {
                        path: self.directory.path(&segment_name(generation)),
                        offset,
                        what: error.to_string(),
                    });
                }
            }
        }
    }

    /// Checks that a segment continues the previous one, `generation`, whose records end at `end` with `head`.
    fn check_joint(
        &self,
        segment: &Segment,
        head: &Head,
        generation: u64,
        end: u64,
    ) -> Result<(), JournalError> {
        if segment.before.seq > head.seq {
            return Err(self.damaged(generation, end, head.seq.next(), DAMAGED_RECORD));
        }
        if segment.before != *head {
            let what = "the segment does not continue the one before";
            return Err(self.damaged(segment.generation, 0, segment.first(), what));
        }
        Ok(())
    }
}
