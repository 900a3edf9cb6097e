//! Damage to a journal with several segments: every changed octet, every cut and every missing file.

use crate::format::crc32c_by_definition;
use crate::support::{Files, Frame, frames, open, options, payload, read_all};
use journal::segment::{HEADER, IDENTITY, JournalIdentity, SegmentHeader, parse_segment_name, segment_name};
use journal::simulation::SimulatedDisk;
use journal::{Head, Journal, JournalError, JournalOptions, NodeId, Seq, Writer};
use std::path::Path;
use std::sync::Arc;

/// Segments 1 to 3 have records; 4 is prepared.
struct Fixture {
    disk: Arc<SimulatedDisk>,
    options: JournalOptions,
    files: Files,
    frames: Vec<Frame>,
}

const SEGMENT: u64 = 512;

impl Fixture {
    fn new() -> Self {
        let disk = SimulatedDisk::new(1);
        let options = JournalOptions { keep_segments: 5, ..options(SEGMENT) };
        let mut journal = open(&disk, &options, 0).unwrap();
        let mut writer = journal.claim(NodeId(u64::MAX)).unwrap();
        // No record ends with a 0, so that zeros change it.
        for number in 1..12_u8 {
            journal.append(&mut writer, &[number; 40]).unwrap();
        }
        drop(journal);
        let files = disk.files();
        let frames = frames(&files);
        assert_eq!(frames.len(), 12);
        assert_eq!(files.len(), 5);
        assert!(frames.iter().filter(|frame| frame.file == segment_name(3)).count() > 1);
        Self { disk, options, files, frames }
    }

    fn last(&self) -> &Frame {
        self.frames.last().unwrap()
    }

    /// The frame that contains an octet.
    fn frame(&self, file: &str, at: usize) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.file == file && (frame.start..frame.end).contains(&at))
    }

    fn end(&self, applied: u64) -> Result<Seq, JournalError> {
        open(&self.disk, &self.options, applied).map(|journal| journal.head().seq)
    }

    /// Checks that the journal can be opened, ends at `end`, accepts records, and can be opened again.
    fn check_works(&self, end: Seq, what: &str) {
        let mut journal =
            open(&self.disk, &self.options, 0).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(journal.head().seq, end, "{what}");
        assert_eq!(read_all(&mut journal, Seq(1)).unwrap().len() as u64, end.0, "{what}");
        let mut writer: Writer = journal.claim(NodeId(1)).unwrap();
        for _ in 0..5 {
            journal.append(&mut writer, b"more").unwrap();
        }
        drop(journal);
        let mut journal =
            open(&self.disk, &self.options, 0).unwrap_or_else(|error| panic!("{what}: {error}"));
        let records = read_all(&mut journal, Seq(1)).unwrap();
        assert_eq!(records.len() as u64, end.0 + 6, "{what}");
        assert_eq!(payload(records.last().unwrap()), b"more");
        drop(journal);
        self.disk.set_files(&self.files);
    }
}

fn assert_damaged(result: Result<Seq, JournalError>, file: &str, at: u64, what: &str) {
    match result {
        Err(JournalError::Damaged { path, offset, .. }) => {
            assert_eq!(path, Path::new("/simulated").join(file), "{what}");
            assert_eq!(offset, at, "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn every_changed_octet_has_its_verdict() {
    let fixture = Fixture::new();
    let prepared = segment_name(4);
    let last = fixture.last().clone();
    for (file, octets) in &fixture.files {
        for at in 0..octets.len() {
            for bits in [0x01, 0x80, 0xff] {
                let what = format!("{file}, octet {at}, {bits:#x}");
                fixture.disk.flip(file, at, bits);
                match fixture.frame(file, at) {
                    _ if file == IDENTITY => assert_damaged(fixture.end(0), file, 0, &what),
                    // The last record may be a write that a crash interrupted.
                    Some(frame) if frame.seq == last.seq => {
                        let early = fixture.end(last.seq.0).unwrap_err();
                        assert!(matches!(early, JournalError::MissingRecords { .. }), "{what}: {early}");
                        fixture.check_works(Seq(last.seq.0 - 1), &what);
                    }
                    Some(frame) => assert_damaged(fixture.end(0), file, frame.start as u64, &what),
                    None if at < HEADER && *file != prepared => {
                        assert_damaged(fixture.end(0), file, 0, &what);
                    }
                    None => fixture.check_works(last.seq, &what),
                }
                fixture.disk.set_files(&fixture.files);
            }
        }
    }
}

#[test]
fn a_damaged_record_that_is_applied_is_found_when_it_is_read() {
    let fixture = Fixture::new();
    let first_of_last_segment =
        fixture.frames.iter().find(|frame| frame.file == fixture.last().file).unwrap().seq;
    for frame in fixture.frames.iter().filter(|frame| frame.seq < first_of_last_segment) {
        for at in frame.start..frame.end {
            fixture.disk.flip(&frame.file, at, 0x10);
            let mut journal = open(&fixture.disk, &fixture.options, first_of_last_segment.0 - 1).unwrap();
            let error = read_all(&mut journal, Seq(1)).map(|_| Seq(0));
            // All unapplied records are there.
            assert!(read_all(&mut journal, first_of_last_segment).is_ok());
            assert_damaged(error, &frame.file, frame.start as u64, &format!("{frame:?}, {at}"));
            drop(journal);
            fixture.disk.set_files(&fixture.files);
        }
    }
}

#[test]
fn a_file_of_any_other_length_is_damage() {
    let fixture = Fixture::new();
    for (file, octets) in &fixture.files {
        for length in (0..octets.len()).chain([octets.len() + 1]) {
            let mut files = fixture.files.clone();
            files.get_mut(file).unwrap().resize(length, 0);
            fixture.disk.set_files(&files);
            let what = format!("{file}, {length} octets");
            let at = if file == IDENTITY { 0 } else { length.min(octets.len()) as u64 };
            assert_damaged(fixture.end(0), file, at, &what);
        }
    }
}

/// Zeros from an offset on: as a file system that loses blocks leaves a file.
#[test]
fn zeros_from_anywhere_on_are_damage_unless_they_begin_in_the_last_record() {
    let fixture = Fixture::new();
    let last = fixture.last().clone();
    for (file, octets) in fixture.files.iter().filter(|(file, _)| *file != IDENTITY) {
        let generation = parse_segment_name(file).unwrap();
        for from in 0..octets.len() {
            let mut files = fixture.files.clone();
            files.get_mut(file).unwrap()[from..].fill(0);
            fixture.disk.set_files(&files);
            let what = format!("{file}, zeros from {from}");
            let header_changed = files[file][..HEADER] != octets[..HEADER];
            let lost = fixture.frames.iter().find(|frame| frame.file == *file && frame.end > from);
            match lost {
                None => assert_eq!(fixture.end(0).unwrap(), last.seq, "{what}"),
                Some(_) if files[file] == fixture.files[file] => {}
                Some(frame) if generation < 3 => {
                    let at = if header_changed { 0 } else { frame.start as u64 };
                    assert_damaged(fixture.end(0), file, at, &what);
                }
                // A segment that is followed by another has at least one record.
                Some(frame) if frame.start == HEADER => {
                    let at = if header_changed { 0 } else { HEADER as u64 };
                    assert_damaged(fixture.end(0), file, at, &what);
                }
                // No mark shows that there were records; the tables may.
                Some(frame) => {
                    assert_eq!(fixture.end(0).unwrap(), Seq(frame.seq.0 - 1), "{what}");
                    let early = fixture.end(last.seq.0).unwrap_err();
                    assert!(matches!(early, JournalError::MissingRecords { .. }), "{what}: {early}");
                }
            }
        }
    }
}

#[test]
fn a_missing_file_is_damage_unless_it_is_the_prepared_one() {
    let fixture = Fixture::new();
    for file in fixture.files.keys() {
        let mut files = fixture.files.clone();
        files.remove(file);
        fixture.disk.set_files(&files);
        if *file == segment_name(4) {
            fixture.check_works(fixture.last().seq, file);
            continue;
        }
        let damaged = fixture.end(0).unwrap_err();
        assert!(matches!(damaged, JournalError::Damaged { .. }), "{file}: {damaged}");
    }
    fixture.disk.set_files(&[(IDENTITY.to_owned(), fixture.files[IDENTITY].clone())].into());
    assert!(matches!(fixture.end(0), Err(JournalError::Damaged { .. })));
}

#[test]
fn exchanged_files_are_damage() {
    let fixture = Fixture::new();
    for (one, other) in [(1, 2), (2, 3), (3, 4), (1, 4)] {
        let mut files = fixture.files.clone();
        files.insert(segment_name(one), fixture.files[&segment_name(other)].clone());
        files.insert(segment_name(other), fixture.files[&segment_name(one)].clone());
        fixture.disk.set_files(&files);
        assert!(matches!(fixture.end(0), Err(JournalError::Damaged { .. })), "{one} and {other}");
    }
}

#[test]
fn a_segment_whose_first_record_is_torn_is_begun_again() {
    let fixture = Fixture::new();
    let identity = JournalIdentity::decode(&fixture.files[IDENTITY]).unwrap();
    let head = open(&fixture.disk, &fixture.options, 0).unwrap().head();
    let header = SegmentHeader { generation: 4, mark: identity.mark(4), before: head, begun: 0 }.encode();
    for kept in 1..=HEADER {
        let mut files = fixture.files.clone();
        files.get_mut(&segment_name(4)).unwrap()[..kept].copy_from_slice(&header[..kept]);
        fixture.disk.set_files(&files);
        let journal = open(&fixture.disk, &fixture.options, 0).unwrap();
        assert_eq!(journal.discarded().map(|tail| tail.offset), Some(0));
        drop(journal);
        fixture.check_works(head.seq, &format!("{kept} octets of the header"));
    }
    // The last record of the previous segment is not torn: it was durable when the header was written.
    let last = fixture.last().clone();
    let mut files = fixture.files.clone();
    files.get_mut(&segment_name(4)).unwrap()[..20].copy_from_slice(&header[..20]);
    files.get_mut(&last.file).unwrap()[last.end - 1] ^= 1;
    fixture.disk.set_files(&files);
    assert_damaged(fixture.end(0), &last.file, last.start as u64, "a damaged record before a torn header");
    // A header that refers to records which do not exist.
    let before = Head { seq: head.seq.next(), ..head };
    let header = SegmentHeader { generation: 4, mark: identity.mark(4), before, begun: 0 }.encode();
    let mut files = fixture.files.clone();
    files.get_mut(&segment_name(4)).unwrap()[..HEADER].copy_from_slice(&header);
    fixture.disk.set_files(&files);
    assert_damaged(fixture.end(0), &segment_name(3), fixture.last().end as u64, "a lost record");
}

#[test]
fn a_torn_record_is_discarded_and_reported() {
    let fixture = Fixture::new();
    let last = fixture.last().clone();
    for kept in 0..last.end - last.start {
        let mut files = fixture.files.clone();
        files.get_mut(&last.file).unwrap()[last.start + kept..last.end]
            .iter_mut()
            .for_each(|octet| *octet = !*octet);
        fixture.disk.set_files(&files);
        let journal = open(&fixture.disk, &fixture.options, 0).unwrap();
        let told = journal.discarded().map(|tail| tail.offset);
        assert_eq!(told, (kept >= 8).then_some(last.start as u64));
        drop(journal);
        fixture.check_works(Seq(last.seq.0 - 1), &format!("{kept} octets"));
    }
}

/// The new record overwrites an old one of the same length, anywhere in a reused segment.
#[test]
fn a_write_torn_at_any_octet_over_old_records_is_discarded() {
    let disk = SimulatedDisk::new(1);
    let options = options(SEGMENT);
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(u64::MAX)).unwrap();
    for number in 1..60_u8 {
        let applied = writer.last();
        journal.applied(applied).unwrap();
        let before = disk.files();
        journal.append(&mut writer, &[number; 40]).unwrap();
        let after = disk.files();
        let frame = frames(&after).into_iter().find(|frame| frame.seq == writer.last()).unwrap();
        let start = if frame.start == HEADER { 0 } else { frame.start };
        for kept in start..=frame.end {
            // The segment that is prepared afterwards does not exist yet.
            let mut files = before.clone();
            let octets = files.get_mut(&frame.file).unwrap();
            octets[..kept].copy_from_slice(&after[&frame.file][..kept]);
            let torn = SimulatedDisk::new(1);
            torn.set_files(&files);
            let end =
                open(&torn, &options, applied.0).unwrap_or_else(|error| panic!("{kept}: {error}")).head().seq;
            let complete = files[&frame.file][..frame.end] == after[&frame.file][..frame.end];
            assert_eq!(end, if complete { frame.seq } else { applied }, "{number}, {kept}");
        }
    }
}

/// The text of a message must not look like a record after a torn one.
#[test]
fn records_inside_of_a_payload_are_not_records() {
    let fixture = Fixture::new();
    let frame = fixture.frames[4].clone();
    let mut journal = open(&fixture.disk, &fixture.options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    // A whole record except for the mark, at any alignment, with a later number and the right checksum.
    let mut forged = fixture.files[&frame.file][frame.start + 8..frame.end].to_vec();
    forged[24..32].copy_from_slice(&1000_u64.to_le_bytes());
    let crc = crc32c_by_definition(&forged[8..]);
    forged[4..8].copy_from_slice(&crc.to_le_bytes());
    let text: Vec<u8> = [0_u8; 8].into_iter().chain(forged).chain([0; 3]).collect();
    // Not the first one of its segment, since another segment follows that one.
    journal.append(&mut writer, &[1; 40]).unwrap();
    journal.append(&mut writer, &[2; 40]).unwrap();
    journal.append(&mut writer, &text.repeat(2)).unwrap();
    let seq = journal.head().seq;
    drop(journal);
    let frame = frames(&fixture.disk.files()).last().unwrap().clone();
    assert_eq!(frame.seq, seq);
    fixture.disk.flip(&frame.file, frame.start + 8 + 48, 1);
    assert_eq!(fixture.end(0).unwrap(), Seq(seq.0 - 1));
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let fixture = Fixture::new();
    let reseal = |file: &str, at: usize, value: u8| {
        let mut files = fixture.files.clone();
        let octets = files.get_mut(file).unwrap();
        octets[at] = value;
        let crc = crc32c_by_definition(&octets[..60]);
        octets[60..64].copy_from_slice(&crc.to_le_bytes());
        fixture.disk.set_files(&files);
        fixture.end(0).unwrap_err()
    };
    for file in [IDENTITY.to_owned(), segment_name(1), segment_name(3)] {
        let error = reseal(&file, 8, 2);
        assert!(matches!(error, JournalError::UnknownFormat { found: 2, known: 1, .. }), "{error}");
        let error = reseal(&file, 57, 1);
        assert!(matches!(error, JournalError::UnknownContent { offset: 0, .. }), "{error}");
    }
    for frame in [&fixture.frames[3], fixture.last()] {
        let mut files = fixture.files.clone();
        let record = &mut files.get_mut(&frame.file).unwrap()[frame.start + 8..frame.end];
        record[40] = 9;
        let crc = crc32c_by_definition(&record[8..]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
        fixture.disk.set_files(&files);
        let error = fixture.end(0).unwrap_err();
        let at = frame.start as u64;
        assert!(matches!(error, JournalError::UnknownContent { offset, .. } if offset == at), "{error}");
    }
}

#[test]
fn errors_name_a_remedy() {
    let fixture = Fixture::new();
    fixture.disk.flip(&segment_name(2), 100, 1);
    assert_eq!(
        fixture.end(0).unwrap_err().to_string(),
        "/simulated/00000000000000000002.segment is damaged at octet 64: a record is damaged, and others follow it. \
         Records from 6 on cannot be trusted. Check the disk, keep a copy of the directory, and restore the last \
         backup; deleting the file loses acknowledged messages"
    );
}
