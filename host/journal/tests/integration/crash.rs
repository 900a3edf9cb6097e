//! Crashes, power cuts and failing disks at random operations, derived from seeds.
//!
//! `JOURNAL_SEEDS=100000 cargo test -p journal --test integration crash`; one seed: `JOURNAL_SEED=17`.

use crate::support::{Files, frames, open, options, read_all};
use journal::simulation::{DiskFault, SECTOR, SimulatedDisk};
use journal::{
    Entry, Journal, JournalError, JournalOptions, JournalRecord, LocalJournal, NodeId, Seq, Writer,
};
use model::Random;
use std::sync::Arc;

const SEEDS: u64 = 20_000;

/// Model of the journal's contents, as its user knows them.
struct World {
    seed: u64,
    random: Random,
    disk: Arc<SimulatedDisk>,
    options: JournalOptions,
    /// Acknowledged entries, and entries found after a crash, in order.
    entries: Vec<Entry>,
    /// An entry that was written but not acknowledged.
    in_flight: Option<Entry>,
    /// The last record that is durable in the tables.
    applied: u64,
    crashes: u64,
    damages: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.next());
        if random.below(3) == 0 {
            disk.write_short();
        }
        let options = JournalOptions {
            keep_segments: usize::try_from(random.below(3)).unwrap(),
            ..options(256 + random.below(4000))
        };
        Self {
            seed,
            random,
            disk,
            options,
            entries: Vec::new(),
            in_flight: None,
            applied: 0,
            crashes: 0,
            damages: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..=self.random.below(8) {
            self.plan();
            match open(&self.disk, &self.options, self.applied) {
                Ok(mut journal) => {
                    self.check(&mut journal);
                    self.work(&mut journal);
                }
                Err(error) => self.expect_fault(&error),
            }
            self.crash();
        }
        let mut journal = open(&self.disk, &self.options, self.applied)
            .unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.check(&mut journal);
        drop(journal);
        self.damage();
    }

    fn plan(&mut self) {
        let horizon = 1 + self.random.below(80);
        let fault = match self.random.below(8) {
            0 => DiskFault::Full,
            1 | 2 => DiskFault::Fail,
            _ => DiskFault::Stop,
        };
        let at = self.random.below(horizon);
        self.disk.plan(at, fault);
        if self.random.below(4) == 0 {
            let at = self.random.below(horizon);
            self.disk.plan(at, DiskFault::Full);
        }
    }

    fn expect_fault(&self, error: &JournalError) {
        assert!(
            matches!(
                error,
                JournalError::Io { .. } | JournalError::Full { .. } | JournalError::Poisoned { .. }
            ),
            "seed {}: {error}",
            self.seed
        );
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.disk.forget_plan();
        if self.random.below(3) == 0 {
            self.disk.restart();
        } else {
            self.disk.cut_power();
        }
    }

    /// Checks that the journal has all acknowledged entries and otherwise at most the one in flight.
    fn check(&mut self, journal: &mut LocalJournal) {
        let seed = self.seed;
        let end = journal.head().seq.0;
        let known = self.entries.len() as u64;
        let from = journal.reader().oldest();
        assert!(from.0 <= self.applied + 1, "seed {seed}: records from {} on are gone", self.applied + 1);
        let records = read_all(journal, from).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(records.last().map_or(from.0 - 1, |record| record.seq.0), end, "seed {seed}");
        if end == known + 1 {
            let found = &records.last().unwrap().entry;
            assert_eq!(Some(found), self.in_flight.as_ref(), "seed {seed}: nobody wrote the last record");
            self.entries.push(found.clone());
        }
        assert_eq!(end, self.entries.len() as u64, "seed {seed}: {known} records were acknowledged");
        let expected = &self.entries[usize::try_from(from.0 - 1).unwrap()..];
        let same = |(record, entry): (&JournalRecord, &Entry)| record.entry == *entry;
        assert!(records.iter().zip(expected).all(same), "seed {seed}: other records");
        self.in_flight = None;
    }

    fn work(&mut self, journal: &mut LocalJournal) {
        let node = NodeId(self.random.next());
        self.in_flight = Some(Entry::Claim { node });
        let mut writer = loop {
            match journal.claim(node) {
                Ok(writer) => break writer,
                Err(JournalError::Full { .. }) => {}
                Err(error) => return self.expect_fault(&error),
            }
        };
        self.acknowledge(journal);
        for _ in 0..self.random.below(30) {
            if self.random.below(5) == 0 {
                let seq = self.applied + self.random.below(self.entries.len() as u64 - self.applied + 1);
                journal.applied(Seq(seq)).unwrap();
                self.applied = seq;
            }
            if !self.append(journal, &mut writer) {
                return;
            }
        }
    }

    fn append(&mut self, journal: &mut LocalJournal, writer: &mut Writer) -> bool {
        let limit = journal.longest_payload() as u64;
        let length = if self.random.below(6) == 0 { limit } else { limit / 4 };
        let length = usize::try_from(self.random.below(length + 1)).unwrap();
        let octet = u8::try_from(self.random.below(256)).unwrap();
        let payload: Vec<u8> =
            (0..length).map(|at| octet.wrapping_add(u8::try_from(at % 251).unwrap())).collect();
        self.in_flight = Some(Entry::Payload(payload.clone()));
        match journal.append(writer, &payload) {
            Ok(seq) => {
                assert_eq!(seq.0, self.entries.len() as u64 + 1, "seed {}", self.seed);
                self.acknowledge(journal);
                true
            }
            Err(JournalError::Full { .. }) => {
                self.in_flight = None;
                true
            }
            Err(error) => {
                self.expect_fault(&error);
                let again = journal.append(writer, &payload);
                // Failed preparations are retried; failed writes are not.
                if let Ok(seq) = again {
                    assert_eq!(seq.0, self.entries.len() as u64 + 1, "seed {}", self.seed);
                    self.acknowledge(journal);
                    return true;
                }
                false
            }
        }
    }

    fn acknowledge(&mut self, journal: &LocalJournal) {
        self.entries.extend(self.in_flight.take());
        assert_eq!(journal.head().seq.0, self.entries.len() as u64, "seed {}", self.seed);
    }

    /// Flips an octet in any unapplied record except the last one.
    fn damage(&mut self) {
        let files = self.disk.files();
        let frames: Vec<_> = frames(&files)
            .into_iter()
            .filter(|frame| frame.seq.0 > self.applied && frame.seq.0 < self.entries.len() as u64)
            .collect();
        if frames.is_empty() {
            return;
        }
        let frame = &frames[usize::try_from(self.random.below(frames.len() as u64)).unwrap()];
        let at = frame.start + usize::try_from(self.random.below((frame.end - frame.start) as u64)).unwrap();
        let bits = u8::try_from(1 + self.random.below(255)).unwrap();
        self.disk.flip(&frame.file, at, bits);
        match open(&self.disk, &self.options, self.applied) {
            Err(JournalError::Damaged { path, offset, seq, .. }) => {
                assert!(path.ends_with(&frame.file), "seed {}", self.seed);
                assert_eq!((offset, seq), (frame.start as u64, frame.seq), "seed {}", self.seed);
                self.damages += 1;
            }
            other => panic!("seed {}: {frame:?}, octet {at}: {:?}", self.seed, other.map(|_| ())),
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn acknowledged_records_survive_every_crash() {
    let seeds = match number("JOURNAL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("JOURNAL_SEEDS").unwrap_or(SEEDS),
    };
    let (mut crashes, mut damages, mut records) = (0, 0, 0);
    for seed in seeds.clone() {
        let mut world = World::new(seed);
        world.run();
        crashes += world.crashes;
        damages += world.damages;
        records += world.entries.len();
    }
    if seeds.end - seeds.start >= SEEDS {
        // The seeds must reach the interesting cases.
        assert!(crashes > 3 * SEEDS && damages > SEEDS / 2 && records as u64 > 20 * SEEDS);
    }
}

/// A stop at each operation of one history, with each way to continue.
#[test]
fn a_crash_at_every_operation() {
    let mut operation = 0;
    loop {
        let mut finished = false;
        for cut in [false, true] {
            let mut world = World::new(1);
            world.options = JournalOptions { keep_segments: 0, ..options(600) };
            world.disk.plan(operation, DiskFault::Stop);
            match open(&world.disk, &world.options, 0) {
                Ok(mut journal) => {
                    world.check(&mut journal);
                    world.fill_and_recycle(&mut journal);
                    finished = !world.disk.is_stopped();
                }
                Err(error) => world.expect_fault(&error),
            }
            world.disk.forget_plan();
            if cut {
                world.disk.cut_power();
            } else {
                world.disk.restart();
            }
            let mut journal = open(&world.disk, &world.options, world.applied)
                .unwrap_or_else(|error| panic!("operation {operation}, cut {cut}: {error}"));
            world.check(&mut journal);
        }
        if finished {
            break;
        }
        operation += 1;
    }
    assert!(operation > 150, "{operation}");
}

/// The possible files after a power cut during a write: each subset of its sectors, and whether it is the whole write.
fn subsets(before: &Files, after: &Files) -> Vec<(Files, bool)> {
    assert!(before.keys().eq(after.keys()));
    let changed: Vec<(&String, usize)> = before
        .iter()
        .flat_map(|(name, octets)| (0..octets.len()).step_by(SECTOR).map(move |at| (name, at)))
        .filter(|(name, at)| {
            before[*name][*at..].chunks(SECTOR).next() != after[*name][*at..].chunks(SECTOR).next()
        })
        .collect();
    (0..1_usize << changed.len())
        .map(|subset| {
            let mut files = before.clone();
            for (bit, (name, at)) in changed.iter().enumerate() {
                if subset >> bit & 1 == 1 {
                    let end = (at + SECTOR).min(after[*name].len());
                    files.get_mut(*name).unwrap()[*at..end].copy_from_slice(&after[*name][*at..end]);
                }
            }
            (files, subset + 1 == 1 << changed.len())
        })
        .collect()
}

/// Each subset of a record's sectors over old records, then each subset of the claim that overwrites it.
#[test]
fn a_power_cut_keeps_any_subset_of_sectors() {
    let options = options(4096);
    let disk = SimulatedDisk::new(1);
    let mut journal = open(&disk, &options, 0).unwrap();
    let mut writer = journal.claim(NodeId(1)).unwrap();
    let mut records = 1_u64;
    let mut tried = 0;
    for number in 0..50_u8 {
        journal.applied(Seq(records)).unwrap();
        let before = disk.files();
        journal.append(&mut writer, &vec![number; 1000 + usize::from(number) * 20]).unwrap();
        records += 1;
        let after = disk.files();
        if !before.keys().eq(after.keys()) {
            // It begins a segment, and the next one is prepared after it.
            continue;
        }
        for (files, complete) in subsets(&before, &after) {
            let torn = SimulatedDisk::new(1);
            torn.set_files(&files);
            let mut journal = open(&torn, &options, records - 1).unwrap();
            let end = records - u64::from(!complete);
            assert_eq!(journal.head().seq, Seq(end));
            let before = torn.files();
            journal.claim(NodeId(2)).unwrap();
            drop(journal);
            let after = torn.files();
            if !before.keys().eq(after.keys()) {
                continue;
            }
            for (files, complete) in subsets(&before, &after) {
                torn.set_files(&files);
                let mut journal = open(&torn, &options, records - 1).unwrap();
                assert_eq!(journal.head().seq, Seq(end + u64::from(complete)));
                let mut writer = journal.claim(NodeId(3)).unwrap();
                journal.append(&mut writer, b"more").unwrap();
                drop(journal);
                let mut journal = open(&torn, &options, records - 1).unwrap();
                assert_eq!(journal.head(), writer.head());
                read_all(&mut journal, Seq(records)).unwrap();
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

impl World {
    /// Fills segments, applies their records, and reuses the files.
    fn fill_and_recycle(&mut self, journal: &mut LocalJournal) {
        let node = NodeId(1);
        self.in_flight = Some(Entry::Claim { node });
        let Ok(mut writer) = journal.claim(node) else { return };
        self.acknowledge(journal);
        for number in 0..60_u8 {
            let payload = vec![number; 150];
            self.in_flight = Some(Entry::Payload(payload.clone()));
            if journal.append(&mut writer, &payload).is_err() {
                return;
            }
            self.acknowledge(journal);
            if number % 5 == 4 {
                self.applied = self.entries.len() as u64 - 2;
                journal.applied(Seq(self.applied)).unwrap();
            }
        }
    }
}
