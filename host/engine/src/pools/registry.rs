//! The registry of all pools, and their writes.

use super::pool::Pool;
use super::sender_leases::SenderLeases;
use model::{
    JournalPart, Moment, Now, NumberStatus, PoolAnswer, PoolBatch, PoolId, PoolName, PoolNumber,
    PoolOperation, PoolOutcome, PoolPurge, PoolRecord, PoolRefusal, PoolRequest, PoolSettings, PoolSummary,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of pools.
const MAX_POOLS: usize = 100_000;

#[derive(Debug)]
pub(crate) struct ManagedPool {
    pub(super) name: PoolName,
    pub(super) pool: Pool,
    /// Its entry in `due`.
    due: Option<Moment>,
    /// The number of the journal's next entry.
    pub(super) entries: u64,
    /// All entries before this one are in table `numbers`.
    folded: u64,
    pub(super) acquired: u64,
    pub(super) none: u64,
    /// The index of its journal part in the batch of this number.
    part: (u64, usize),
}

/// A pool whose journal is being written into table `numbers`.
#[derive(Debug)]
struct TableUpdate {
    pool: PoolId,
    remaining: Vec<PoolNumber>,
    /// Once `remaining` is empty, all entries before this one are in table `numbers`.
    end: u64,
}

/// All pools.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pub(super) by_id: FxHashMap<PoolId, ManagedPool>,
    pub(super) names: BTreeMap<PoolName, PoolId>,
    due: BTreeSet<(Moment, PoolId)>,
    next: u32,
    numbers: usize,
    pub(super) unfolded: u64,
    fold: Option<TableUpdate>,
    /// Removed pools, and the greatest number of their remaining rows.
    removed_pools: Vec<(PoolId, usize)>,
    /// The number of the batch that is being filled.
    batch: u64,
    seed: u64,
    pub(super) recovering: bool,
    pub(super) senders: SenderLeases,
}

/// Limits of number pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// Maximum number of numbers in all pools; each takes some 100 octets of memory.
    pub numbers: usize,
    /// Journal entries that each pool keeps at least, for its history.
    pub history: u64,
    /// Maximum number of journal entries that table `numbers` lacks, or twice the number of numbers if that is
    /// greater; then the journal is folded.
    pub ahead: u64,
    /// Rows written or deleted per batch, when a journal is folded or a pool is removed.
    pub part: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { numbers: 20_000_000, history: 1_000_000, ahead: 200_000, part: 4096 }
    }
}

impl Pools {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, next: 1, ..Self::default() }
    }

    /// The latest time of the next [`Pools::advance`].
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Ends the leases and quarantines that are due.
    pub(crate) fn advance(&mut self, now: Now, batch: &mut PoolBatch) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now.mono
        {
            match self.by_id.get_mut(&id) {
                Some(managed) => managed.pool.advance(now),
                None => {
                    self.due.remove(&(at, id));
                }
            }
            self.flush(id, batch);
        }
    }

    /// Handles a request to one pool.
    pub(crate) fn request(
        &mut self,
        now: Now,
        name: &PoolName,
        request: PoolRequest,
        (by, limits): (&Arc<str>, PoolLimits),
        batch: &mut PoolBatch,
    ) -> PoolAnswer {
        self.advance(now, batch);
        match request {
            PoolRequest::Operation(operation) => {
                match self.operate(now, name, operation, (by, limits), batch) {
                    Some(outcome) => PoolAnswer::Outcome(outcome),
                    None => PoolAnswer::TooMany,
                }
            }
            PoolRequest::Operations(operations) => {
                let mut outcomes = Vec::with_capacity(operations.len());
                for operation in operations {
                    let done = self.operate(now, name, operation, (by, limits), batch);
                    outcomes.push(done.unwrap_or(PoolOutcome::Refused(PoolRefusal::Full)));
                }
                PoolAnswer::Outcomes(outcomes)
            }
            PoolRequest::Configure(settings) => {
                let Some(id) = self.find_or_create(name, batch) else { return PoolAnswer::TooMany };
                if let Some(managed) = self.by_id.get_mut(&id) {
                    managed.pool.configure(settings);
                }
                self.record(id, batch);
                self.summary(now, id)
            }
            PoolRequest::Remove { with_numbers } => self.remove(name, with_numbers, limits, batch),
            PoolRequest::Show => match self.names.get(name) {
                Some(id) => self.summary(now, *id),
                None => PoolAnswer::NoPool,
            },
            PoolRequest::Number(number) => {
                let row = self.find(name).and_then(|managed| managed.pool.row(number, now));
                PoolAnswer::Number(row.map(|row| Box::new(NumberStatus { number, row })))
            }
            PoolRequest::Numbers { from, most, state, prefix } => match self.find(name) {
                Some(managed) => {
                    let (numbers, next) = managed.pool.numbers(now, (from, most), state, prefix);
                    PoolAnswer::Numbers { numbers, next }
                }
                None => PoolAnswer::NoPool,
            },
            PoolRequest::Idle { skip, most } => match self.find(name) {
                Some(managed) => PoolAnswer::Idle {
                    numbers: managed.pool.idle(skip, most.min(PoolRequest::SCAN_LIMIT as usize)),
                    total: managed.pool.ready(),
                },
                None => PoolAnswer::NoPool,
            },
        }
    }

    /// `None`: the limit of pools is reached.
    fn operate(
        &mut self,
        now: Now,
        name: &PoolName,
        operation: PoolOperation,
        (by, limits): (&Arc<str>, PoolLimits),
        batch: &mut PoolBatch,
    ) -> Option<PoolOutcome> {
        let adds = matches!(operation, PoolOperation::Add { .. });
        let id = match self.names.get(name) {
            Some(id) => *id,
            None if adds => self.find_or_create(name, batch)?,
            None => {
                return Some(match operation {
                    PoolOperation::Del { .. } => PoolOutcome::Done(None),
                    PoolOperation::Call(call) if call.number.is_none() => {
                        PoolOutcome::Refused(PoolRefusal::Empty)
                    }
                    _ => PoolOutcome::Refused(PoolRefusal::NotInPool),
                });
            }
        };
        let full = self.numbers >= limits.numbers;
        let managed = self.by_id.get_mut(&id)?;
        if let PoolOperation::Add { number, .. } = &operation
            && full
            && managed.pool.find(*number).is_none()
        {
            return Some(PoolOutcome::Refused(PoolRefusal::Full));
        }
        let before = managed.pool.len();
        let called = matches!(operation, PoolOperation::Call(_));
        let outcome = managed.pool.apply(now, operation, by);
        if called {
            match outcome {
                PoolOutcome::Acquired { .. } => managed.acquired += 1,
                _ => managed.none += 1,
            }
        }
        self.numbers = self.numbers + managed.pool.len() - before;
        self.flush(id, batch);
        Some(outcome)
    }

    pub(super) fn find(&self, name: &PoolName) -> Option<&ManagedPool> {
        self.by_id.get(self.names.get(name)?)
    }

    fn find_or_create(&mut self, name: &PoolName, batch: &mut PoolBatch) -> Option<PoolId> {
        if let Some(id) = self.names.get(name) {
            return Some(*id);
        }
        if self.names.len() >= MAX_POOLS {
            return None;
        }
        let id = PoolId(self.next);
        self.next = self.next.checked_add(1)?;
        self.enter(id, name.clone(), PoolSettings::default());
        self.record(id, batch);
        Some(id)
    }

    fn enter(&mut self, id: PoolId, name: PoolName, settings: PoolSettings) {
        let pool = Pool::new(settings, self.seed ^ u64::from(id.0));
        self.names.insert(name.clone(), id);
        let managed = ManagedPool {
            name,
            pool,
            due: None,
            entries: 0,
            folded: 0,
            acquired: 0,
            none: 0,
            part: (u64::MAX, 0),
        };
        self.by_id.insert(id, managed);
    }

    fn remove(
        &mut self,
        name: &PoolName,
        with_numbers: bool,
        limits: PoolLimits,
        batch: &mut PoolBatch,
    ) -> PoolAnswer {
        let Some(id) = self.names.get(name).copied() else { return PoolAnswer::NoPool };
        let Some(managed) = self.by_id.get(&id) else { return PoolAnswer::NoPool };
        if !(managed.pool.is_empty() || with_numbers) {
            return PoolAnswer::NotEmpty;
        }
        batch.records.push(PoolRecord { removed: true, ..managed.record(id) });
        self.names.remove(name);
        self.drop_waiters(id);
        if let Some(managed) = self.by_id.remove(&id) {
            self.numbers -= managed.pool.len();
            self.unfolded -= managed.pool.unfolded;
            if let Some(at) = managed.due {
                self.due.remove(&(at, id));
            }
            let journal = managed.entries.min(limits.history.saturating_mul(2) + managed.pool.unfolded);
            let journal = usize::try_from(journal).unwrap_or(usize::MAX);
            self.removed_pools.push((id, managed.pool.len() + managed.pool.unwritten.len() + journal));
        }
        if self.fold.as_ref().is_some_and(|fold| fold.pool == id) {
            self.fold = None;
        }
        batch.numbers.retain(|(pool, _, _)| *pool != id);
        batch.trimmed.retain(|(pool, _)| *pool != id);
        PoolAnswer::Removed
    }

    fn record(&self, id: PoolId, batch: &mut PoolBatch) {
        batch.records.extend(self.by_id.get(&id).map(|managed| managed.record(id)));
    }

    /// After a change of a pool: writes its journal and updates its deadline.
    pub(super) fn flush(&mut self, id: PoolId, batch: &mut PoolBatch) {
        let Some(managed) = self.by_id.get_mut(&id) else { return };
        let due = managed.pool.deadline();
        if due != managed.due {
            if let Some(at) = managed.due {
                self.due.remove(&(at, id));
            }
            if let Some(at) = due {
                self.due.insert((at, id));
            }
            managed.due = due;
        }
        if managed.pool.entries_made.is_empty() {
            return;
        }
        let made = managed.pool.entries_made.len() as u64;
        let (number, index) = managed.part;
        let part = if number == self.batch { batch.journal.get_mut(index) } else { None };
        match part {
            Some(part) if part.entries.len() < JournalPart::MAX_ENTRIES => {
                part.entries.append(&mut managed.pool.entries_made);
                part.serial = managed.pool.serial();
            }
            _ => {
                managed.part = (self.batch, batch.journal.len());
                batch.journal.push(JournalPart {
                    pool: id,
                    first: managed.entries,
                    serial: managed.pool.serial(),
                    entries: managed.pool.take_entries(),
                });
            }
        }
        managed.entries += made;
        self.unfolded += made;
        self.offer_to_waiters(id);
    }

    fn summary(&self, now: Now, id: PoolId) -> PoolAnswer {
        match self.by_id.get(&id) {
            Some(managed) => PoolAnswer::Pool(Box::new(managed.summary(id, now))),
            None => PoolAnswer::NoPool,
        }
    }

    /// All pools, by name.
    pub(crate) fn summaries(&self, now: Now) -> Vec<PoolSummary> {
        self.names.values().filter_map(|id| Some(self.by_id.get(id)?.summary(*id, now))).collect()
    }

    /// Folds a part of a long journal into table `numbers`, and deletes a part of a removed pool; one part per batch.
    pub(crate) fn maintain(&mut self, now: Now, limits: PoolLimits, batch: &mut PoolBatch) {
        if !batch.numbers.is_empty() || batch.purged.is_some() {
            return;
        }
        if self.fold.is_none() && self.unfolded >= limits.ahead.max(2 * self.numbers as u64) {
            self.begin_fold();
        }
        if let Some(fold) = &mut self.fold
            && let Some(managed) = self.by_id.get_mut(&fold.pool)
        {
            // From the end, so that the rest need not move.
            let from = fold.remaining.len().saturating_sub(limits.part);
            for number in fold.remaining.drain(from..) {
                batch.numbers.push((fold.pool, number, managed.pool.written(number, now)));
            }
            if fold.remaining.is_empty() {
                managed.folded = fold.end;
                let (id, end) = (fold.pool, fold.end);
                let old = end.min(managed.entries.saturating_sub(limits.history));
                self.fold = None;
                self.record(id, batch);
                if old > 0 {
                    batch.trimmed.push((id, old));
                }
            }
        } else if let Some((id, rows)) = self.removed_pools.pop() {
            let purge = if rows > limits.part { PoolPurge::Some(limits.part) } else { PoolPurge::Rest };
            if purge != PoolPurge::Rest {
                self.removed_pools.push((id, rows - limits.part));
            }
            batch.purged = Some((id, purge));
        }
    }

    fn begin_fold(&mut self) {
        let longest = self.by_id.iter_mut().max_by_key(|(id, managed)| (managed.pool.unfolded, id.0));
        let Some((id, managed)) = longest else { return };
        let mut remaining = std::mem::take(&mut managed.pool.unwritten);
        remaining.sort_unstable();
        remaining.dedup();
        self.unfolded -= std::mem::take(&mut managed.pool.unfolded);
        self.fold = Some(TableUpdate { pool: *id, remaining, end: managed.entries });
    }

    /// Starts the next batch.
    pub(crate) fn sealed(&mut self) {
        self.batch += 1;
    }

    /// Recovers a pool, before its numbers and its journal.
    pub(crate) fn recover(&mut self, record: PoolRecord) {
        self.recovering = true;
        self.next = self.next.max(record.id.0.saturating_add(1));
        self.enter(record.id, record.name, record.settings);
        if let Some(managed) = self.by_id.get_mut(&record.id) {
            managed.entries = record.entries;
            managed.folded = record.folded;
            managed.pool.serial = record.serial;
        }
    }

    pub(crate) fn recover_removed(&mut self, id: PoolId, rows: usize) {
        self.next = self.next.max(id.0.saturating_add(1));
        self.removed_pools.push((id, rows));
    }

    pub(crate) fn recover_number(&mut self, now: Now, id: PoolId, number: PoolNumber, row: model::NumberRow) {
        if let Some(managed) = self.by_id.get_mut(&id) {
            managed.pool.recover(number, Some(row), false, now);
        }
    }

    pub(crate) fn recover_journal(&mut self, now: Now, part: JournalPart) {
        if let Some(managed) = self.by_id.get_mut(&part.pool) {
            managed.pool.serial = managed.pool.serial.max(part.serial);
            managed.entries = managed.entries.max(part.first + part.entries.len() as u64);
            let behind = usize::try_from(managed.folded.saturating_sub(part.first)).unwrap_or(usize::MAX);
            for entry in part.entries.into_iter().skip(behind) {
                managed.pool.recover(entry.number, entry.row, true, now);
            }
        }
    }

    /// Ends recovery of pools, numbers and journals.
    pub(crate) fn recovered(&mut self) {
        if !std::mem::take(&mut self.recovering) {
            return;
        }
        for (id, managed) in &mut self.by_id {
            managed.pool.recovered();
            self.numbers += managed.pool.len();
            self.unfolded += managed.pool.unfolded;
            managed.due = managed.pool.deadline();
            if let Some(at) = managed.due {
                self.due.insert((at, *id));
            }
        }
        self.recover_holdings();
    }
}

impl ManagedPool {
    fn record(&self, id: PoolId) -> PoolRecord {
        PoolRecord {
            id,
            name: self.name.clone(),
            settings: self.pool.settings,
            serial: self.pool.serial(),
            entries: self.entries,
            folded: self.folded,
            removed: false,
        }
    }

    fn summary(&self, id: PoolId, now: Now) -> PoolSummary {
        PoolSummary {
            id,
            name: self.name.clone(),
            settings: self.pool.settings,
            counts: self.pool.counts(),
            ready: self.pool.ready(),
            next: self.pool.deadline().map(|at| at - now.mono),
            entries: self.entries,
            acquired: self.acquired,
            none: self.none,
            lapsed: self.pool.lapsed,
        }
    }
}
