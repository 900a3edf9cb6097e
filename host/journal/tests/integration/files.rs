//! Journals in real files, with the preparer's thread.

use crate::support::payload;
use journal::segment::{IDENTITY, parse_segment_name};
use journal::{Journal, JournalError, JournalOptions, JournalReader, LocalJournal, NodeId, Seq};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn options() -> JournalOptions {
    JournalOptions { segment_octets: 64 * 1024, ..JournalOptions::default() }
}

fn segments(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| parse_segment_name(name.to_str().unwrap()).is_some()).count()
}

#[test]
fn records_survive_in_files_that_are_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not yet/there");
    let mut journal = LocalJournal::open(&path, options(), Seq(0)).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for round in 0..40_u8 {
        for _ in 0..10 {
            journal.append(&mut writer, &[round; 5000]).unwrap();
        }
        journal.applied(Seq(writer.last().0 - 5)).unwrap();
    }
    drop(journal);
    assert!(segments(&path) <= 6, "{}", segments(&path));
    let applied = Seq(writer.last().0 - 5);
    let mut journal = LocalJournal::open(&path, options(), applied).unwrap();
    let records = journal.read(applied.next(), usize::MAX, Duration::ZERO).unwrap();
    assert_eq!(records.len(), 5);
    assert!(records.iter().all(|record| payload(record) == [39; 5000]));
}

#[test]
fn a_reader_on_another_thread_waits_for_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
    let mut reader = journal.reader();
    let thread = std::thread::spawn(move || {
        let mut next = Seq(1);
        let mut sum = 0;
        while next <= Seq(301) {
            for record in reader.read(next, 3000, Duration::from_secs(20)).unwrap() {
                assert_eq!(record.seq, next);
                next = next.next();
                if next > Seq(2) {
                    sum += payload(&record).len();
                }
            }
        }
        sum
    });
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for number in 1..=300 {
        journal.append(&mut writer, &vec![7; number]).unwrap();
    }
    assert_eq!(thread.join().unwrap(), 300 * 301 / 2);
    assert_eq!(journal.reader().read(Seq(302), 1, Duration::from_millis(1)).unwrap(), []);
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let journal = LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
    let error = LocalJournal::open(folder.path(), options(), Seq(0)).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the journal {} is in use by another process: stop the other switchyard, or name another data directory",
            folder.path().display()
        )
    );
    drop(journal);
    LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
}

#[test]
fn a_journal_is_read_without_its_daemon() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(JournalReader::open(folder.path()), Err(JournalError::NotFound(_))));
    let mut journal = LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for _ in 0..30 {
        journal.append(&mut writer, &[1; 5000]).unwrap();
    }
    journal.applied(Seq(25)).unwrap();
    drop(journal);
    let mut reader = JournalReader::open(folder.path()).unwrap();
    let segments = reader.segments();
    assert_eq!(segments.last().map(|segment| segment.last), Some(Seq(31)));
    assert!(segments.windows(2).all(|pair| pair[1].first == pair[0].last.next()));
    let oldest = reader.oldest();
    assert_eq!(reader.read(oldest, usize::MAX, Duration::ZERO).unwrap().len() as u64, 32 - oldest.0);
    let mut octets = std::fs::read(folder.path().join(IDENTITY)).unwrap();
    octets[20] ^= 1;
    std::fs::write(folder.path().join(IDENTITY), octets).unwrap();
    assert!(matches!(JournalReader::open(folder.path()), Err(JournalError::Damaged { .. })));
}

/// As `switchyard journal verify` does it.
#[test]
fn a_journal_is_verified_record_by_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for number in 2..=60_u8 {
        journal.append(&mut writer, &[number; 5000]).unwrap();
    }
    drop(journal);
    let mut reader = JournalReader::open(folder.path()).unwrap();
    let seqs: Vec<_> = reader.records(Seq(1)).map(|record| record.unwrap().seq.0).collect();
    assert_eq!(seqs, (1..=60).collect::<Vec<_>>());
    assert_eq!(reader.records(Seq(61)).count(), 0);
    assert!(matches!(reader.records(Seq(0)).next(), Some(Err(JournalError::Behind { oldest: Seq(1) }))));
    // Damage in a segment that is not read when the journal is opened.
    let second = reader.segments()[1].clone();
    let mut octets = std::fs::read(&second.path).unwrap();
    assert_eq!(octets.len() as u64, second.octets);
    octets[3000] ^= 1;
    std::fs::write(&second.path, octets).unwrap();
    let mut reader = JournalReader::open(folder.path()).unwrap();
    let results: Vec<_> = reader.records(Seq(1)).collect();
    assert_eq!(results.len() as u64, second.first.0);
    assert!(results[..results.len() - 1].iter().all(Result::is_ok));
    let Some(Err(JournalError::Damaged { path, seq, offset: 64, .. })) = results.last() else {
        panic!("{:?}", results.last())
    };
    assert_eq!((path, *seq), (&second.path, second.first));
}

/// Readers of this process and of others see consecutive records, or an error that the records are gone.
#[test]
fn records_are_read_while_segments_are_used_again() {
    const RECORDS: u64 = 1500;
    let folder = tempfile::tempdir().unwrap();
    let mut journal = LocalJournal::open(folder.path(), options(), Seq(0)).unwrap();
    let mut follower = journal.reader();
    let follow = std::thread::spawn(move || {
        let (mut next, mut seen) = (Seq(1), 0_u64);
        while next <= Seq(RECORDS) {
            match follower.read(next, 20_000, Duration::from_secs(20)) {
                Ok(records) => {
                    for record in records {
                        assert_eq!(record.seq, next);
                        next = next.next();
                        seen += 1;
                    }
                }
                Err(JournalError::Behind { oldest }) => next = oldest,
                Err(error) => panic!("{error}"),
            }
        }
        seen
    });
    let path = folder.path().to_owned();
    let inspect = std::thread::spawn(move || {
        let (mut opened, mut end) = (0, Seq(0));
        while end < Seq(RECORDS) {
            let mut reader = JournalReader::open(&path).unwrap();
            assert!(reader.head().seq >= end);
            end = reader.head().seq;
            let mut next = reader.oldest();
            for record in reader.records(next) {
                match record {
                    Ok(record) => {
                        assert_eq!(record.seq, next);
                        next = next.next();
                    }
                    Err(JournalError::Behind { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            opened += 1;
        }
        opened
    });
    let mut writer = journal.claim(NodeId(0)).unwrap();
    for number in 2..=RECORDS {
        journal.append(&mut writer, &vec![7; usize::try_from(number % 50 * 100).unwrap()]).unwrap();
        if number % 20 == 0 {
            journal.applied(Seq(number - 10)).unwrap();
        }
    }
    assert!(follow.join().unwrap() > 0);
    assert!(inspect.join().unwrap() > 0);
    assert!(segments(folder.path()) <= 8);
}

#[test]
fn files_are_readable_by_their_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/journal");
    let journal = LocalJournal::open(&path, options(), Seq(0)).unwrap();
    drop(journal);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}
