//! Journals on a simulated disk, and where their records are.

use journal::clock::Clock;
use journal::record::decode_record;
use journal::segment::{FRAME, HEADER, IDENTITY, JournalIdentity, parse_segment_name};
use journal::simulation::SimulatedDisk;
use journal::{Entry, Journal, JournalError, JournalOptions, JournalRecord, LocalJournal, Preparation, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A clock that only a test moves.
pub(crate) struct TestClock {
    start: Instant,
    millis: AtomicU64,
}

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), millis: AtomicU64::new(0) })
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.millis.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn wall_millis(&self) -> u64 {
        1_800_000_000_000 + self.millis.load(Ordering::Relaxed)
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

pub(crate) fn options(segment_octets: u64) -> JournalOptions {
    JournalOptions {
        segment_octets,
        preparation: Preparation::Inline,
        clock: TestClock::new(),
        ..JournalOptions::default()
    }
}

pub(crate) fn open(
    disk: &Arc<SimulatedDisk>,
    options: &JournalOptions,
    applied: u64,
) -> Result<LocalJournal, JournalError> {
    LocalJournal::open_on(disk.directory(), options.clone(), Seq(applied))
}

/// All records from `from` on.
pub(crate) fn read_all(journal: &mut LocalJournal, from: Seq) -> Result<Vec<JournalRecord>, JournalError> {
    let mut records = Vec::new();
    let mut next = from;
    loop {
        let more = journal.read(next, usize::MAX, Duration::ZERO)?;
        let Some(last) = more.last() else { return Ok(records) };
        next = last.seq.next();
        records.extend(more);
    }
}

pub(crate) fn payload(record: &JournalRecord) -> &[u8] {
    match &record.entry {
        Entry::Payload(octets) => octets,
        Entry::Claim { .. } => panic!("a claim"),
    }
}

/// The octets of one record in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) file: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) seq: Seq,
}

/// Where the records of an undamaged journal are, found without the code under test except for the codec.
pub(crate) fn frames(files: &Files) -> Vec<Frame> {
    let identity = JournalIdentity::decode(&files[IDENTITY]).unwrap();
    let mut frames = Vec::new();
    for (name, octets) in files {
        let Some(generation) = parse_segment_name(name) else { continue };
        let mark = identity.mark(generation).to_le_bytes();
        let mut start = HEADER;
        while octets.len() >= start + FRAME && octets[start..start + 8] == mark {
            let Ok(record) = decode_record(&octets[start + 8..]) else { break };
            let end = start + 8 + record.encoded_length();
            frames.push(Frame { file: name.clone(), start, end, seq: record.seq });
            start = end;
        }
    }
    frames
}
