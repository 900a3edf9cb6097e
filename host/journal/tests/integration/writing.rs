//! Claims, appends, reads, and disks that fail or are full.

use crate::support::{open, options, payload, read_all};
use journal::record::MAX_PAYLOAD;
use journal::simulation::{DiskFault, SimulatedDisk};
use journal::{Entry, Journal, JournalError, LocalJournal, NodeId, Seq, Term};
use std::time::Duration;

#[test]
fn records_are_read_as_they_were_appended() {
    let disk = SimulatedDisk::new(1);
    let options = options(400);
    let mut journal = open(&disk, &options, 0).unwrap();
    assert_eq!(read_all(&mut journal, Seq(1)).unwrap(), []);
    let mut writer = journal.claim(NodeId(7)).unwrap();
    assert_eq!((writer.term(), writer.last()), (Term(1), Seq(1)));
    for number in 2..20_u8 {
        let seq = journal.append(&mut writer, &vec![number; usize::from(number)]).unwrap();
        assert_eq!((seq, writer.last()), (Seq(number.into()), Seq(number.into())));
    }
    drop(journal);
    let mut journal = open(&disk, &options, 0).unwrap();
    let records = read_all(&mut journal, Seq(1)).unwrap();
    assert_eq!(records.len(), 19);
    assert_eq!(records[0].entry, Entry::Claim { node: NodeId(7) });
    for (record, number) in records[1..].iter().zip(2_u8..) {
        assert_eq!(payload(record), vec![number; usize::from(number)]);
    }
    assert!(records.windows(2).all(|pair| pair[1].continues(&pair[0].head())));
    // In parts, each begun where the last ended.
    let mut next = Seq(1);
    let mut parts = Vec::new();
    loop {
        let part = journal.read(next, 25, Duration::from_secs(60)).unwrap();
        let Some(last) = part.last() else { break };
        next = last.seq.next();
        parts.extend(part);
    }
    assert_eq!(parts, records);
    assert_eq!(read_all(&mut journal, Seq(12)).unwrap(), records[11..]);
    assert!(journal.lease().holds());
}

#[test]
fn a_reader_sees_records_that_are_appended_later() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(4000), 0).unwrap();
    let mut reader = journal.reader();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for number in 2..120_u8 {
        journal.append(&mut writer, &[number]).unwrap();
        let read = reader.read(Seq(number.into()), 1000, Duration::ZERO).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(payload(&read[0]), [number]);
    }
    assert_eq!(reader.segments().len(), 2);
    assert_eq!(reader.segments()[1].last, Seq(119));
    assert_eq!(reader.head(), writer.head());
}

#[test]
fn a_claim_fences_the_last_writer() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(1000), 0).unwrap();
    let mut old = journal.claim(NodeId(1)).unwrap();
    journal.append(&mut old, b"one").unwrap();
    let mut new = journal.claim(NodeId(2)).unwrap();
    assert!(matches!(journal.append(&mut old, b"two"), Err(JournalError::Fenced { by: Term(2) })));
    assert_eq!(journal.append(&mut new, b"three").unwrap(), Seq(4));
}

#[test]
fn a_record_that_fits_into_no_segment_is_refused() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(1000), 0).unwrap();
    let mut writer = journal.claim(NodeId(1)).unwrap();
    let limit = journal.longest_payload();
    assert_eq!(limit, 1000 - 64 - 56);
    let error = journal.append(&mut writer, &vec![0; limit + 1]).unwrap_err();
    assert!(
        matches!(error, JournalError::TooLarge { octets, limit: told } if octets == limit + 1 && told == limit)
    );
    journal.append(&mut writer, &vec![1; limit]).unwrap();
    journal.append(&mut writer, &[]).unwrap();
    assert_eq!(read_all(&mut journal, Seq(3)).unwrap().len(), 1);
}

#[test]
fn a_record_has_a_maximum_in_any_segment() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(MAX_PAYLOAD as u64 + 4096), 0).unwrap();
    let mut writer = journal.claim(NodeId(1)).unwrap();
    assert_eq!(journal.longest_payload(), MAX_PAYLOAD);
    let payload = vec![1; MAX_PAYLOAD + 1];
    let error = journal.append(&mut writer, &payload).unwrap_err();
    assert!(matches!(error, JournalError::TooLarge { limit: MAX_PAYLOAD, .. }), "{error}");
    // Nothing is written, and the next one succeeds.
    assert_eq!(journal.append(&mut writer, &payload[1..]).unwrap(), Seq(2));
    assert_eq!(read_all(&mut journal, Seq(2)).unwrap().len(), 1);
}

#[test]
fn a_failed_sync_is_not_repeated() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(4000), 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    journal.append(&mut writer, b"one").unwrap();
    // An append is a write and a sync.
    disk.plan(1, DiskFault::Fail);
    let error = journal.append(&mut writer, b"two").unwrap_err();
    assert!(matches!(&error, JournalError::Io { what: "fdatasync", .. }), "{error}");
    let operations = disk.operations();
    for _ in 0..2 {
        let again = journal.append(&mut writer, b"two").unwrap_err();
        assert!(matches!(&again, JournalError::Poisoned { cause } if *cause == error.to_string()), "{again}");
    }
    assert!(matches!(journal.claim(NodeId(0)), Err(JournalError::Poisoned { .. })));
    assert_eq!(disk.operations(), operations);
    assert_eq!(read_all(&mut journal, Seq(2)).unwrap().len(), 1);
}

#[test]
fn records_found_after_a_failed_sync_stay() {
    // The cache has the record, the disk has parts of it, and the system takes it for written.
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let options = options(4000);
        let mut journal = open(&disk, &options, 0).unwrap();
        let mut writer = journal.claim(NodeId(0)).unwrap();
        disk.plan(1, DiskFault::Fail);
        journal.append(&mut writer, &[5; 2000]).unwrap_err();
        drop(journal);
        disk.restart();
        let mut found = open(&disk, &options, 0).unwrap();
        assert_eq!(found.head().seq, Seq(2));
        let expected = read_all(&mut found, Seq(1)).unwrap();
        drop(found);
        disk.cut_power();
        let mut after = open(&disk, &options, 0).unwrap();
        assert_eq!(read_all(&mut after, Seq(1)).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn a_full_disk_is_reported_before_anything_is_written() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(1000), 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    assert_eq!(journal.room(), journal.longest_payload());
    // Two appends are four operations; the third segment is then removed, created and allocated.
    disk.plan(6, DiskFault::Full);
    journal.append(&mut writer, &[1; 600]).unwrap();
    journal.append(&mut writer, &[2; 600]).unwrap();
    assert_eq!(journal.room(), 1000 - 64 - 56 - 600 - 56);
    // It is tried again when it is needed.
    disk.plan(2, DiskFault::Full);
    let before = journal.head();
    let error = journal.append(&mut writer, &[3; 600]).unwrap_err();
    assert!(matches!(error, JournalError::Full { .. }), "{error}");
    assert_eq!(journal.head(), before);
    // A short record still fits, and with room on the disk all is as before.
    journal.append(&mut writer, &[4; 100]).unwrap();
    journal.append(&mut writer, &[5; 600]).unwrap();
    let lengths: Vec<_> =
        read_all(&mut journal, Seq(2)).unwrap().iter().map(|record| payload(record).len()).collect();
    assert_eq!(lengths, [600, 600, 100, 600]);
}

#[test]
fn freed_disk_space_is_used_in_advance() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(1000), 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    disk.plan(6, DiskFault::Full);
    journal.append(&mut writer, &[1; 600]).unwrap();
    journal.append(&mut writer, &[2; 600]).unwrap();
    assert!(journal.room() < 300);
    journal.applied(Seq(0)).unwrap();
    assert_eq!(journal.room(), journal.longest_payload());
}

#[test]
fn an_empty_directory_is_not_taken_for_an_empty_journal() {
    let disk = SimulatedDisk::new(1);
    let missing = open(&disk, &options(1000), 9).map(|_| ()).unwrap_err();
    assert!(matches!(missing, JournalError::Missing { applied: Seq(9), .. }), "{missing}");
    let mut journal = LocalJournal::create_on(disk.directory(), options(1000), Seq(9)).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    assert_eq!(journal.append(&mut writer, b"eleven").unwrap(), Seq(11));
    assert!(matches!(read_all(&mut journal, Seq(9)), Err(JournalError::Behind { oldest: Seq(10) })));
    drop(journal);
    let exists = LocalJournal::create_on(disk.directory(), options(1000), Seq(9)).map(|_| ()).unwrap_err();
    assert!(matches!(exists, JournalError::Exists(_)), "{exists}");
    // Tables that lack records which the journal does not have.
    assert!(matches!(open(&disk, &options(1000), 8), Err(JournalError::Damaged { seq: Seq(9), .. })));
    let early = open(&disk, &options(1000), 12).map(|_| ()).unwrap_err();
    assert!(matches!(early, JournalError::MissingRecords { end: Seq(11), applied: Seq(12), .. }), "{early}");
    assert_eq!(open(&disk, &options(1000), 11).unwrap().head().seq, Seq(11));
}

#[test]
fn one_process_at_a_time() {
    let disk = SimulatedDisk::new(1);
    let journal = open(&disk, &options(1000), 0).unwrap();
    assert!(matches!(open(&disk, &options(1000), 0), Err(JournalError::InUse(_))));
    drop(journal);
    open(&disk, &options(1000), 0).unwrap();
}
