//! An in-memory disk that fails like real disks, for tests of journals and their users.
//!
//! A write is in the cache at once, and on the disk after a sync. After a power cut, each sector has the contents that
//! the cache had at some time since the last sync, independently of other sectors; some sectors are torn at any octet;
//! any subset of the unsynced name changes is kept. A failed sync leaves unwritten octets in the cache, and no later
//! sync writes them. Reads see the cache.

mod replicated_log;

pub use replicated_log::{ReplicatedJournal, ReplicatedLog, RequestFault};

use crate::directory::{JournalDirectory, JournalFile};
use model::Random;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Octets that a disk usually writes as a whole or not at all.
pub const SECTOR: usize = 512;

/// Fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The operation happens in part or not at all, and all later ones fail until [`SimulatedDisk::restart`] or
    /// [`SimulatedDisk::cut_power`].
    Stop,
    /// The operation fails. A write or a sync may have happened in part.
    Fail,
    /// The disk is full; for writes and allocations.
    Full,
}

/// A disk with one directory.
pub struct SimulatedDisk {
    state: Mutex<State>,
}

struct State {
    random: Random,
    files: Vec<Contents>,
    /// Names in the cache and on the disk.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    operations: u64,
    plan: BTreeMap<u64, DiskFault>,
    stopped: bool,
    locked: bool,
    short_writes: bool,
}

#[derive(Clone)]
enum NameChange {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

#[derive(Default)]
struct Contents {
    cache: Vec<u8>,
    disk: Vec<u8>,
    pending: Vec<Write>,
}

struct Write {
    offset: usize,
    octets: Vec<u8>,
}

/// The disk as a directory of a journal.
#[derive(Clone)]
pub struct SimulatedDirectory(Arc<SimulatedDisk>);

struct SimulatedFile {
    disk: Arc<SimulatedDisk>,
    file: usize,
}

struct Lock(Arc<SimulatedDisk>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state.lock().locked = false;
    }
}

impl SimulatedDisk {
    /// An empty disk whose faults are derived from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                random: Random::new(seed),
                files: Vec::new(),
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                changes: Vec::new(),
                operations: 0,
                plan: BTreeMap::new(),
                stopped: false,
                locked: false,
                short_writes: false,
            }),
        })
    }

    /// The directory.
    #[must_use]
    pub fn directory(self: &Arc<Self>) -> Arc<SimulatedDirectory> {
        Arc::new(SimulatedDirectory(self.clone()))
    }

    /// Number of attempted operations that change something.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Plans a fault for the operation after `count` others.
    pub fn plan(&self, count: u64, fault: DiskFault) {
        let mut state = self.state.lock();
        let at = state.operations + count;
        state.plan.insert(at, fault);
    }

    /// Cancels all planned faults.
    pub fn forget_plan(&self) {
        self.state.lock().plan.clear();
    }

    /// From now on, writes are often shorter than requested.
    pub fn write_short(&self) {
        self.state.lock().short_writes = true;
    }

    /// Whether a fault has stopped the disk.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Simulates a restart of the process: the cache stays.
    pub fn restart(&self) {
        let mut state = self.state.lock();
        state.stopped = false;
        state.locked = false;
    }

    /// Simulates a power cut: any part of the unsynced changes is lost.
    pub fn cut_power(&self) {
        let mut state = self.state.lock();
        let State { random, files, .. } = &mut *state;
        for contents in files.iter_mut() {
            contents.lose(random);
        }
        for change in std::mem::take(&mut state.changes) {
            if state.random.below(2) == 0 {
                change.apply(&mut state.durable_names);
            }
        }
        state.names = state.durable_names.clone();
        state.stopped = false;
        state.locked = false;
    }

    /// The names and contents of all files.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.lock();
        let contents = |file: &usize| state.files.get(*file).map(|contents| contents.cache.clone());
        state.names.iter().map(|(name, file)| (name.clone(), contents(file).unwrap_or_default())).collect()
    }

    /// Replaces all files, durably.
    pub fn set_files(&self, files: &BTreeMap<String, Vec<u8>>) {
        let mut state = self.state.lock();
        state.files.clear();
        state.names.clear();
        state.changes.clear();
        for (name, octets) in files {
            let number = state.files.len();
            state.files.push(Contents { cache: octets.clone(), disk: octets.clone(), pending: Vec::new() });
            state.names.insert(name.clone(), number);
        }
        state.durable_names = state.names.clone();
    }

    /// Flips bits of the octet at `offset` of a file on the disk, if that exists.
    pub fn flip(&self, name: &str, offset: usize, bits: u8) {
        let mut state = self.state.lock();
        let Some(file) = state.names.get(name).copied() else { return };
        let Some(contents) = state.files.get_mut(file) else { return };
        for octets in [&mut contents.cache, &mut contents.disk] {
            if let Some(octet) = octets.get_mut(offset) {
                *octet ^= bits;
            }
        }
    }
}

impl State {
    /// Counts an operation and returns its fault.
    fn begin(&mut self) -> io::Result<Option<DiskFault>> {
        if self.stopped {
            return Err(io::Error::other("the simulated disk has stopped"));
        }
        let fault = self.plan.remove(&self.operations);
        self.operations += 1;
        self.stopped = fault == Some(DiskFault::Stop);
        Ok(fault)
    }

    /// An operation that happens as a whole or not at all.
    fn whole(&mut self) -> io::Result<()> {
        match self.begin()? {
            None | Some(DiskFault::Full) => Ok(()),
            Some(DiskFault::Stop | DiskFault::Fail) => Err(io::Error::other("a simulated fault")),
        }
    }

    fn number(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, file) => {
                names.insert(name.clone(), *file);
            }
            Self::Rename(from, to, file) => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

/// Copies octets into `into`, which grows as needed.
fn put(into: &mut Vec<u8>, offset: usize, octets: &[u8]) {
    let end = offset + octets.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[offset..end].copy_from_slice(octets);
}

impl Contents {
    fn write(&mut self, offset: usize, octets: &[u8]) {
        put(&mut self.cache, offset, octets);
        self.pending.push(Write { offset, octets: octets.to_vec() });
    }

    fn sync(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            put(&mut self.disk, write.offset, &write.octets);
        }
    }

    /// Writes each sector of the pending writes to the disk, with the contents that the cache had at some time since
    /// the last sync; in one of eight sectors, the next write is torn. Contents that are not written now are lost.
    fn write_partially(&mut self, random: &mut Random) {
        let mode = random.below(4);
        let mut sectors: BTreeMap<usize, Vec<(usize, Vec<u8>)>> = BTreeMap::new();
        for write in std::mem::take(&mut self.pending) {
            let mut at = 0;
            while at < write.octets.len() {
                let absolute = write.offset + at;
                let count = (SECTOR - absolute % SECTOR).min(write.octets.len() - at);
                let octets = write.octets.get(at..at + count).unwrap_or_default().to_vec();
                sectors.entry(absolute / SECTOR).or_default().push((absolute, octets));
                at += count;
            }
        }
        for writes in sectors.values() {
            let whole = match mode {
                0 => 0,
                1 => writes.len(),
                _ => size_below(random, writes.len() + 1),
            };
            for (offset, octets) in writes.iter().take(whole) {
                put(&mut self.disk, *offset, octets);
            }
            if let Some((offset, octets)) = writes.get(whole).filter(|_| mode > 1 && random.below(8) == 0) {
                let torn = size_below(random, octets.len());
                put(&mut self.disk, *offset, octets.get(..torn).unwrap_or_default());
            }
        }
    }

    fn lose(&mut self, random: &mut Random) {
        self.write_partially(random);
        self.cache.clone_from(&self.disk);
    }
}

impl JournalDirectory for SimulatedDirectory {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }

    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let mut state = self.0.state.lock();
        if std::mem::replace(&mut state.locked, true) {
            return Ok(None);
        }
        Ok(Some(Box::new(Lock(self.0.clone()))))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.state.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        let file = self.0.state.lock().number(name)?;
        Ok(Arc::new(SimulatedFile { disk: self.0.clone(), file }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        let mut state = self.0.state.lock();
        state.whole()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.files.len();
        state.files.push(Contents::default());
        state.change(NameChange::Create(name.to_owned(), file));
        Ok(Arc::new(SimulatedFile { disk: self.0.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.whole()?;
        let file = state.number(from)?;
        state.change(NameChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.whole()?;
        state.number(name)?;
        state.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.whole()?;
        for change in std::mem::take(&mut state.changes) {
            change.apply(&mut state.durable_names);
        }
        Ok(())
    }
}

impl SimulatedFile {
    fn with<T>(&self, act: impl FnOnce(&mut Contents) -> T) -> io::Result<T> {
        let mut state = self.disk.state.lock();
        state.files.get_mut(self.file).map(act).ok_or_else(|| io::Error::other("no such file"))
    }
}

fn to_size(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl JournalFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        self.with(|contents| contents.cache.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.with(|contents| {
            let rest = contents.cache.get(to_size(offset)..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            count
        })
    }

    fn write_at(&self, offset: u64, octets: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state.lock();
        let fault = state.begin()?;
        let count = match fault {
            None if state.short_writes && state.random.below(2) == 0 => {
                1 + size_below(&mut state.random, octets.len())
            }
            None => octets.len(),
            Some(_) => size_below(&mut state.random, octets.len() + 1),
        };
        let count = count.min(octets.len());
        let contents = state.files.get_mut(self.file).ok_or_else(|| io::Error::other("no such file"))?;
        contents.write(to_size(offset), octets.get(..count).unwrap_or_default());
        match fault {
            None => Ok(count),
            Some(DiskFault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(_) => Err(io::Error::other("a simulated fault")),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let fault = state.begin()?;
        let State { random, files, .. } = &mut *state;
        let contents = files.get_mut(self.file).ok_or_else(|| io::Error::other("no such file"))?;
        match fault {
            None | Some(DiskFault::Full) => contents.sync(),
            // The process sees no result. A power cut decides which parts of it and of later writes stay.
            Some(DiskFault::Stop) => {}
            Some(DiskFault::Fail) => contents.write_partially(random),
        }
        if matches!(fault, Some(DiskFault::Stop | DiskFault::Fail)) {
            return Err(io::Error::other("a simulated fault"));
        }
        Ok(())
    }

    fn allocate(&self, octets: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        match state.begin()? {
            None => {}
            Some(DiskFault::Full) => return Err(io::ErrorKind::StorageFull.into()),
            Some(_) => return Err(io::Error::other("a simulated fault")),
        }
        let contents = state.files.get_mut(self.file).ok_or_else(|| io::Error::other("no such file"))?;
        let length = contents.cache.len();
        let zeros = vec![0; to_size(octets).saturating_sub(length)];
        contents.write(length, &zeros);
        Ok(())
    }
}

fn size_below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).unwrap_or(0)
}
