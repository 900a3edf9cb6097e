//! Which segments stay.

use crate::support::{Files, TestClock, open, options, read_all};
use journal::segment::{HEADER, parse_segment_name, segment_name};
use journal::simulation::SimulatedDisk;
use journal::{Journal, JournalError, JournalHold, JournalOptions, LocalJournal, NodeId, Seq, Writer};
use std::sync::Arc;
use std::time::Duration;

fn segments(files: &Files) -> Vec<u64> {
    files.keys().filter_map(|name| parse_segment_name(name)).collect()
}

/// Each append fills a segment.
fn fill(journal: &mut LocalJournal, writer: &mut Writer, count: usize) {
    for _ in 0..count {
        journal.append(writer, &[9; 700]).unwrap();
    }
}

#[test]
fn an_applied_segment_becomes_the_next_one() {
    let disk = SimulatedDisk::new(1);
    let options = options(1000);
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 3);
    assert_eq!(segments(&disk.files()), [1, 2, 3, 4]);
    journal.applied(Seq(2)).unwrap();
    assert_eq!(segments(&disk.files()), [1, 2, 3, 4], "one waits for being used again");
    fill(&mut journal, &mut writer, 1);
    let files = disk.files();
    assert_eq!(segments(&files), [2, 3, 4, 5]);
    // The old records are still in it, under a blank header.
    let recycled = &files[&segment_name(5)];
    assert_eq!(recycled[..HEADER], [0; HEADER]);
    assert!(recycled[HEADER..].iter().any(|octet| *octet != 0));
    for _ in 0..50 {
        let last = writer.last();
        journal.applied(last).unwrap();
        fill(&mut journal, &mut writer, 1);
        assert!(segments(&disk.files()).len() <= 4);
        journal.applied(Seq(0)).unwrap();
    }
    drop(journal);
    let last = writer.last();
    let mut journal = open(&disk, &options, last.0 - 1).unwrap();
    assert_eq!(read_all(&mut journal, last).unwrap().len(), 1);
}

#[test]
fn many_applied_segments_are_removed() {
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options(1000), 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 20);
    assert_eq!(segments(&disk.files()).len(), 21);
    let mut reader = journal.reader();
    assert_eq!(reader.read(Seq(1), 1, Duration::ZERO).unwrap().len(), 1);
    journal.applied(writer.last()).unwrap();
    // The active one, the prepared one, and one that waits.
    assert_eq!(segments(&disk.files()), [19, 20, 21]);
    let behind = reader.read(Seq(2), 1, Duration::ZERO).unwrap_err();
    assert!(matches!(behind, JournalError::Behind { oldest: Seq(20) }), "{behind}");
}

#[test]
fn segments_are_kept_by_number() {
    let disk = SimulatedDisk::new(1);
    let options = JournalOptions { keep_segments: 3, ..options(1000) };
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 10);
    journal.applied(writer.last()).unwrap();
    assert_eq!(segments(&disk.files()), [6, 7, 8, 9, 10, 11]);
}

#[test]
fn segments_are_kept_by_age_and_the_age_survives_a_restart() {
    let disk = SimulatedDisk::new(1);
    let clock = TestClock::new();
    let options =
        JournalOptions { keep_for: Duration::from_secs(600), clock: clock.clone(), ..options(1000) };
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 5);
    clock.advance(Duration::from_secs(400));
    fill(&mut journal, &mut writer, 5);
    journal.applied(writer.last()).unwrap();
    assert_eq!(segments(&disk.files()).len(), 11);
    clock.advance(Duration::from_secs(201));
    journal.applied(writer.last()).unwrap();
    // Segments 1 to 4 are full for 601 s, and one of them waits for being used again.
    assert_eq!(segments(&disk.files()), (4..=11).collect::<Vec<_>>());
    drop(journal);
    clock.advance(Duration::from_secs(398));
    let mut journal = open(&disk, &options, writer.last().0).unwrap();
    journal.applied(writer.last()).unwrap();
    assert_eq!(segments(&disk.files()), (4..=11).collect::<Vec<_>>());
    clock.advance(Duration::from_secs(2));
    journal.applied(writer.last()).unwrap();
    assert_eq!(segments(&disk.files()), [9, 10, 11]);
}

#[test]
fn nothing_is_removed_that_is_not_applied() {
    let disk = SimulatedDisk::new(1);
    let options = options(1000);
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 10);
    journal.applied(Seq(4)).unwrap();
    assert_eq!(read_all(&mut journal, Seq(5)).unwrap().len(), 7);
    // More than there is cannot be applied.
    journal.applied(Seq(1000)).unwrap();
    fill(&mut journal, &mut writer, 3);
    assert_eq!(read_all(&mut journal, Seq(12)).unwrap().len(), 3);
}

#[test]
fn segments_are_kept_for_readers_up_to_a_bound() {
    let disk = SimulatedDisk::new(1);
    let hold = Arc::new(JournalHold::new(Seq(3), 6000));
    let options = JournalOptions { hold: Some(hold.clone()), ..options(1000) };
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(0)).unwrap();
    fill(&mut journal, &mut writer, 5);
    journal.applied(writer.last()).unwrap();
    let oldest = |journal: &LocalJournal| journal.reader().oldest();
    assert!(oldest(&journal) <= Seq(3), "{}", oldest(&journal));
    let kept = segments(&disk.files());
    // The reader goes on, and the next checkpoint gives up what it has read.
    hold.set(Seq(5));
    journal.applied(writer.last()).unwrap();
    assert!(segments(&disk.files()).len() < kept.len());
    assert!(oldest(&journal) <= Seq(5), "{}", oldest(&journal));
    // It stops: six segments of the journal are kept, and no more.
    fill(&mut journal, &mut writer, 20);
    journal.applied(writer.last()).unwrap();
    assert!(oldest(&journal) > Seq(5), "{}", oldest(&journal));
    assert_eq!(segments(&disk.files()).len(), 6 + 3);
    drop(journal);
    // The hold of the next process applies before its first record.
    let journal = open(&disk, &options, writer.last().0).unwrap();
    assert_eq!(segments(&disk.files()).len(), 6 + 3, "{}", oldest(&journal));
}
