//! Arbitrary octets as the files of a journal; the first octet selects the layout. A journal that opens can be read as
//! a whole, accepts records, and has all of them when it is opened again. Anything else is refused as damaged or
//! unknown.
#![no_main]

use journal::record::{EntryRef, decode_record, encode_record};
use journal::segment::{FRAME, HEADER, IDENTITY, JournalIdentity, SegmentHeader, segment_name};
use journal::simulation::SimulatedDisk;
use journal::{
    Entry, Head, Journal, JournalError, JournalOptions, LocalJournal, NodeId, Preparation, Seq, Term,
};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::time::Duration;

type Files = BTreeMap<String, Vec<u8>>;

const IDENTITY_VALUE: JournalIdentity =
    JournalIdentity { key: 7, segment_octets: 1024, after: Seq(0), created: 0 };

fn encode(octets: &mut Vec<u8>, generation: u64, head: &mut Head, term: Term, payload: &[u8]) {
    octets.extend_from_slice(&IDENTITY_VALUE.mark(generation).to_le_bytes());
    let crc = encode_record(octets, head, term, 0, EntryRef::Payload(payload)).expect("short");
    *head = Head { term, seq: head.seq.next(), crc };
}

fn header(generation: u64, before: Head) -> Vec<u8> {
    SegmentHeader { generation, mark: IDENTITY_VALUE.mark(generation), before, begun: 0 }.encode().to_vec()
}

/// Two segments with records, and a prepared one.
fn base() -> Files {
    let mut files = Files::from([(IDENTITY.to_owned(), IDENTITY_VALUE.encode().to_vec())]);
    let mut head = Head::default();
    for generation in 1..=2 {
        let mut octets = header(generation, head);
        for length in [0, 8, 200] {
            encode(&mut octets, generation, &mut head, Term(1), &vec![b'x'; length]);
        }
        octets.resize(1024, 0);
        files.insert(segment_name(generation), octets);
    }
    files.insert(segment_name(3), vec![0; 1024]);
    files
}

/// Each four octets change one octet of a file; the checksum of its header is corrected if the file's octet is odd.
fn edit(files: &mut Files, edits: &[u8]) {
    let count = files.len();
    for edit in edits.chunks_exact(4) {
        let Some(octets) = files.values_mut().nth(usize::from(edit[0] >> 1) % count) else { continue };
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % octets.len();
        octets[at] = edit[3];
        if edit[0] & 1 == 1 {
            let crc = crc32c::crc32c(&octets[..60]);
            octets[60..64].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Records in the first segment, each with a valid checksum: a gap before it, its length, and the errors of its number and its term.
fn compose(files: &mut Files, plan: &[u8]) {
    let mut head = Head::default();
    let mut octets = header(1, head);
    let mut term = Term(1);
    for step in plan.chunks_exact(4) {
        octets.resize(octets.len() + usize::from(step[0] & 0x0f), step[0]);
        head.seq = Seq(head.seq.0.wrapping_add(u64::from(step[2] & 3)));
        term = Term((term.0 + u64::from(step[3] & 3)).saturating_sub(u64::from(step[3] >> 6)));
        if octets.len() + FRAME + usize::from(step[1]) > 1024 {
            break;
        }
        encode(&mut octets, 1, &mut head, term, &vec![step[1]; usize::from(step[1])]);
    }
    octets.resize(1024, 0);
    files.insert(segment_name(1), octets);
    if plan.first().is_some_and(|first| first & 0x80 != 0) {
        files.insert(segment_name(2), vec![0; 1024]);
    } else {
        files.remove(&segment_name(2));
    }
    files.remove(&segment_name(3));
}

/// Opens the journal. Returns the number of the last record; `None` if it is refused.
fn open(files: &Files, applied: Seq) -> Option<u64> {
    let disk = SimulatedDisk::new(1);
    disk.set_files(files);
    let options = JournalOptions { preparation: Preparation::Inline, ..JournalOptions::default() };
    let mut journal = match LocalJournal::open_on(disk.directory(), options.clone(), applied) {
        Ok(journal) => journal,
        Err(error) => {
            assert!(
                matches!(
                    error,
                    JournalError::Damaged { .. }
                        | JournalError::MissingRecords { .. }
                        | JournalError::UnknownFormat { .. }
                        | JournalError::UnknownContent { .. }
                ),
                "{error}"
            );
            return None;
        }
    };
    let end = journal.head().seq;
    if end.0 > u64::MAX - 100 {
        return None;
    }
    let read = |journal: &mut LocalJournal| journal.read(applied.next(), usize::MAX, Duration::ZERO).unwrap();
    let before = read(&mut journal);
    assert_eq!(before.len() as u64, end.0 - applied.0);
    let mut writer = journal.claim(NodeId(1)).unwrap();
    for octet in 0..10 {
        journal.append(&mut writer, &[octet; 100]).unwrap();
    }
    drop(journal);
    let mut journal = LocalJournal::open_on(disk.directory(), options, applied).unwrap();
    assert_eq!(journal.head(), writer.head());
    let after = read(&mut journal);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()].entry, Entry::Claim { node: NodeId(1) });
    assert_eq!(after.len(), before.len() + 11);
    Some(end.0)
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, octets)) = input.split_first() else { return };
    match mode % 4 {
        0 => {
            let Ok(record) = decode_record(octets) else { return };
            let head =
                Head { term: record.term, seq: Seq(record.seq.0.wrapping_sub(1)), crc: record.predecessor };
            let entry = match &record.entry {
                Entry::Claim { node } => EntryRef::Claim(*node),
                Entry::Payload(payload) => EntryRef::Payload(payload),
            };
            let mut written = Vec::new();
            encode_record(&mut written, &head, record.term, record.at, entry).expect("as long as before");
            assert_eq!(written, octets[..record.encoded_length()]);
        }
        1 => {
            let mut files = base();
            let applied = octets.first().map_or(0, |octet| u64::from(octet % 8));
            edit(&mut files, octets.get(1..).unwrap_or_default());
            open(&files, Seq(applied));
        }
        2 => {
            let mut files = base();
            compose(&mut files, octets);
            open(&files, Seq(0));
        }
        _ => {
            // The end of a file is lost.
            let mut files = base();
            let Some((&file, rest)) = octets.split_first() else { return };
            let length = usize::from(rest.first_chunk().map_or(0, |octets| u16::from_le_bytes(*octets)))
                % (1024 - HEADER);
            let count = files.len();
            let Some(octets) = files.values_mut().nth(usize::from(file) % count) else { return };
            if octets.len() <= length {
                return;
            }
            octets.truncate(length);
            assert_eq!(open(&files, Seq(0)), None);
        }
    }
});
