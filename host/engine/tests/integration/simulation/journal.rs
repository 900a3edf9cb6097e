//! The journal of a world: every batch goes through it, encoded and decoded, on a disk that fails.

use ::journal::simulation::{DiskFault, SimulatedDisk};
use ::journal::{
    Entry, Journal as _, JournalError, JournalOptions, LocalJournal, NodeId, Preparation, Seq, Writer,
};
use model::Batch;
use std::sync::Arc;
use std::time::Duration;

/// A journal on a simulated disk, and its writer.
pub(crate) struct SimulatedJournal {
    disk: Arc<SimulatedDisk>,
    open: Option<(LocalJournal, Writer)>,
    /// The last record whose batch the tables have.
    applied: Seq,
    seed: u64,
}

impl SimulatedJournal {
    pub(crate) fn new(seed: u64) -> Self {
        let mut journal = Self { disk: SimulatedDisk::new(seed), open: None, applied: Seq::default(), seed };
        assert!(journal.reopen().is_empty());
        journal
    }

    /// Plans a fault of the disk `after` some operations: with `ends` the process ends there, otherwise it gets the error.
    pub(crate) fn plan_fault(&self, after: u64, ends: bool) {
        self.disk.plan(after, if ends { DiskFault::Stop } else { DiskFault::Fail });
    }

    /// From now on the disk does not fail.
    pub(crate) fn recover(&self) {
        self.disk.forget_plan();
    }

    /// Appends a batch. Returns the batch as a reader of the journal gets it.
    ///
    /// # Errors
    /// It is unknown whether the batch is durable.
    pub(crate) fn append(&mut self, batch: &Batch) -> Result<Batch, JournalError> {
        let (journal, writer) = self.open.as_mut().unwrap();
        let mut octets = Vec::new();
        codec::encode_batch(&mut octets, batch);
        self.applied = journal.append(writer, &octets)?;
        Ok(codec::decode_batch(&octets).unwrap())
    }

    /// The tables have everything; segments are used again.
    pub(crate) fn checkpoint(&mut self) -> Result<(), JournalError> {
        let (journal, _) = self.open.as_mut().unwrap();
        journal.applied(self.applied)
    }

    /// Starts again after a crash, perhaps of the whole machine. Returns the batches that the tables lack.
    pub(crate) fn restart(&mut self, power_cut: bool) -> Vec<Batch> {
        self.open = None;
        self.disk.forget_plan();
        if power_cut {
            self.disk.cut_power();
        } else {
            self.disk.restart();
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Vec<Batch> {
        let options = JournalOptions {
            segment_octets: 1 << 16,
            preparation: Preparation::Inline,
            ..JournalOptions::default()
        };
        let mut journal = LocalJournal::open_on(self.disk.directory(), options, self.applied)
            .unwrap_or_else(|error| panic!("SEED={}: {error}", self.seed));
        assert!(journal.head().seq >= self.applied, "SEED={}: a durable batch is lost", self.seed);
        let mut batches = Vec::new();
        for record in journal.read(self.applied.next(), usize::MAX, Duration::ZERO).unwrap() {
            if let Entry::Payload(payload) = record.entry {
                batches.push(codec::decode_batch(&payload).unwrap());
            }
        }
        let writer = journal.claim(NodeId::default()).unwrap();
        self.applied = writer.last();
        self.open = Some((journal, writer));
        batches
    }
}
