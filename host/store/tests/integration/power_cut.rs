//! The store on a disk that loses power, and on one that fails.
//!
//! When the power fails, unsynced writes are kept, lost or torn at random. The state found afterwards must be the state
//! after a prefix of the commits, and include all commits that returned. A failure prints its seed;
//! `SEED=n cargo test -p store power_cut::` replays it.

use crate::support::open_on;
use crate::support::reference::{Reference, draft};
use journal::simulation::{DiskFault, SimulatedDisk};
use model::{Random, Timestamp};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use redb::StorageBackend;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard};

/// The atomic unit of a disk's writes.
const SECTOR: usize = 512;

#[derive(Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

/// The fault at the end of the countdown of writes and syncs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FaultKind {
    /// Power failure: this operation and all later ones fail.
    Cut,
    /// This one write or sync fails.
    Failure,
}

#[derive(Debug)]
struct DiskState {
    /// The durable content.
    durable: Vec<u8>,
    /// The content that the operating system shows, including unsynced writes.
    view: Vec<u8>,
    pending: Vec<Change>,
    powered: bool,
    fault_kind: Option<(FaultKind, u64)>,
    random: Random,
}

fn put(disk: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if disk.len() < offset + data.len() {
        disk.resize(offset + data.len(), 0);
    }
    disk[offset..offset + data.len()].copy_from_slice(data);
}

impl DiskState {
    /// Whether the next write or sync may succeed.
    fn step(&mut self) -> Result<()> {
        if !self.powered {
            return Err(Error::other("the power is off"));
        }
        match &mut self.fault_kind {
            Some((fault_kind, 0)) => {
                self.powered = *fault_kind == FaultKind::Failure;
                self.fault_kind = None;
                Err(Error::other("the disk failed, as asked"))
            }
            Some((_, countdown)) => {
                *countdown -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn settle(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Write(offset, data) => put(&mut self.durable, offset as usize, &data),
                Change::Length(length) => self.durable.resize(length as usize, 0),
            }
        }
    }

    /// Each unsynced change is kept, lost or torn.
    fn lose_unsynced(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            let fate = self.random.below(3);
            match change {
                _ if fate == 0 => {}
                Change::Length(length) => self.durable.resize(length as usize, 0),
                Change::Write(offset, data) if fate == 1 => put(&mut self.durable, offset as usize, &data),
                Change::Write(offset, data) => {
                    for (index, sector) in data.chunks(SECTOR).enumerate() {
                        let at = offset as usize + index * SECTOR;
                        match self.random.below(5) {
                            0 | 1 => put(&mut self.durable, at, sector),
                            2 => {
                                let torn = self.random.below(sector.len() as u64) as usize;
                                put(&mut self.durable, at, &sector[..torn]);
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}

/// A simulated disk. Its clones are the same disk.
#[derive(Debug, Clone)]
struct Disk(Arc<Mutex<DiskState>>);

impl Disk {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(DiskState {
            durable: Vec::new(),
            view: Vec::new(),
            pending: Vec::new(),
            powered: true,
            fault_kind: None,
            random: Random::new(seed),
        })))
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    fn cut(&self) {
        self.state().powered = false;
    }

    /// Restarts the machine: durable content stays, other content may be lost.
    fn power_on(&self) {
        let mut state = self.state();
        state.lose_unsynced();
        state.view = state.durable.clone();
        state.powered = true;
        state.fault_kind = None;
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64> {
        Ok(self.state().view.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let state = self.state();
        let offset = offset as usize;
        let part = state.view.get(offset..offset + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut state = self.state();
        state.step()?;
        state.view.resize(length as usize, 0);
        state.pending.push(Change::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.state();
        let done = state.step();
        match &done {
            Ok(()) => state.settle(),
            // After a failed sync the system forgets what it could not write, and the next sync does not report it.
            Err(_) if state.powered => state.lose_unsynced(),
            Err(_) => {}
        }
        done
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state();
        if !state.powered {
            return Err(Error::other("the power is off"));
        }
        let done = state.step();
        // A failed write may have been done in part.
        let data = if done.is_ok() { data } else { &data[..state.random.below(data.len() as u64) as usize] };
        put(&mut state.view, offset as usize, data);
        state.pending.push(Change::Write(offset, data.to_vec()));
        done
    }
}

/// The number of seeds per run.
const SEEDS: u64 = 40;

fn run(fault_kind: FaultKind) {
    match std::env::var("SEED") {
        Ok(seed) => live(seed.parse().expect("SEED is a number"), fault_kind),
        Err(_) => (0..SEEDS).for_each(|seed| live(seed, fault_kind)),
    }
}

/// Runs the daemon several times on one disk; a fault ends each run.
fn live(seed: u64, fault_kind: FaultKind) {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut random = Random::new(seed ^ 0x5eed);
    let disk = Disk::new(seed);
    let journal_disk = SimulatedDisk::new(seed);
    let mut reference = Reference::default();
    let mut names: Vec<String> = Vec::new();
    drop(open_on(disk.clone(), &journal_disk).unwrap());
    for life in 0..4 {
        // Some faults happen while the file is opened and repaired; some never happen.
        let early = random.below(4) == 0;
        let countdown = random.below(if early { 12 } else { 90 });
        let in_journal = random.below(2) == 0;
        let plan = || {
            if in_journal {
                let fault = if fault_kind == FaultKind::Cut { DiskFault::Stop } else { DiskFault::Fail };
                journal_disk.plan(countdown, fault);
            } else {
                disk.state().fault_kind = Some((fault_kind, countdown));
            }
        };
        if early {
            plan();
        }
        let mut after = reference.clone();
        if let Ok(store) = open_on(disk.clone(), &journal_disk) {
            if !early {
                plan();
            }
            for _ in 0..=random.below(12) {
                if random.below(4) == 0 {
                    let name = format!("peer-{}-{life}", names.len());
                    if store.directory(std::slice::from_ref(&name)).is_err() {
                        break;
                    }
                    names.push(name);
                }
                let batch = reference.batch(draft().new_tree(&mut runner).unwrap().current());
                after.apply(&batch);
                if store.commit(batch.clone()).is_err() {
                    // None of the failed commit's writes may be visible afterwards.
                    if let Ok(counts) = store.counts() {
                        assert_eq!(
                            counts,
                            reference.counts(),
                            "SEED={seed}, life {life}: seen, but not durable"
                        );
                    }
                    break;
                }
                reference.apply(&batch);
                let followed = match random.below(6) {
                    0 => store.apply(),
                    1 => store.checkpoint(),
                    2 => store.trim_finished(Timestamp(0), 1).map(drop),
                    _ => Ok(()),
                };
                if followed.is_err() {
                    break;
                }
            }
            if fault_kind == FaultKind::Cut {
                disk.cut();
            }
            drop(store);
        }
        disk.power_on();
        journal_disk.forget_plan();
        if fault_kind == FaultKind::Cut || random.below(2) == 0 {
            journal_disk.cut_power();
        } else {
            journal_disk.restart();
        }
        let store = open_on(disk.clone(), &journal_disk)
            .unwrap_or_else(|error| panic!("SEED={seed}, life {life}: not opened again: {error}"));
        // All durable commits; perhaps also the next one, which failed at an unknown point.
        if let Err(without) = reference.compare(&store) {
            if let Err(with) = after.compare(&store) {
                panic!(
                    "SEED={seed}, life {life}: neither without the last commit ({without}) nor with it ({with})"
                );
            }
            reference = after;
        }
        // Messages contain peer ids: each id keeps its name for ever.
        let directory = store.directory(&[]).unwrap();
        let found: Vec<String> = directory.iter().map(|(_, name)| name.to_string()).collect();
        assert!(
            found.starts_with(&names) && found.len() <= names.len() + 1,
            "SEED={seed}, life {life}: {found:?} instead of {names:?}"
        );
        names = found;
    }
}

#[test]
fn no_power_cut_loses_durable_rows() {
    run(FaultKind::Cut);
}

#[test]
fn no_failed_write_loses_durable_rows() {
    run(FaultKind::Failure);
}
