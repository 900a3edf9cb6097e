//! All pools, and what the tables are to know of them.

use super::pool::Pool;
use super::senders::Senders;
use crate::{JournalPart, PoolRecord};
use model::{
    Moment, Now, NumberStanding, PoolAnswer, PoolId, PoolName, PoolNumber, PoolOperation, PoolOutcome,
    PoolRefusal, PoolRequest, PoolSettings, PoolSummary,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most pools.
const MOST_POOLS: usize = 100_000;

/// What is written of pools; see [`crate::Batch`].
#[derive(Debug, Default)]
pub struct PoolBatch {
    /// Pools that are new, were changed, or whose table is up to date again.
    pub records: Vec<PoolRecord>,
    /// What has happened, each part the continuation of its pool's journal.
    pub journal: Vec<JournalPart>,
    /// Numbers as they are now, for the table; `None`: it has left.
    pub numbers: Vec<(PoolId, PoolNumber, Option<model::NumberRow>)>,
    /// Entries of journals before these may go.
    pub trimmed: Vec<(PoolId, u64)>,
    /// A pool that is gone: so many of its rows are to be removed, or, in the last round, all that is left of it.
    pub purged: Option<(PoolId, Purge)>,
}

/// One round of the removal of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// At most this many rows.
    Some(usize),
    /// All that is left, and the pool's record with it.
    Rest,
}

impl PoolBatch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.journal.is_empty()
            && self.numbers.is_empty()
            && self.trimmed.is_empty()
            && self.purged.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(super) name: PoolName,
    pub(super) pool: Pool,
    /// As it stands in `due`.
    due: Option<Moment>,
    /// The number of the journal's next entry.
    pub(super) entries: u64,
    /// All entries before this one are in the table.
    folded: u64,
    pub(super) given: u64,
    pub(super) none: u64,
    /// Its part of the journal in the batch of this number.
    part: (u64, usize),
}

/// The journal of one pool is being written into the table.
#[derive(Debug)]
struct Fold {
    pool: PoolId,
    left: Vec<PoolNumber>,
    /// All entries before this one are in the table once nothing is left.
    upto: u64,
}

/// All pools.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pub(super) kept: FxHashMap<PoolId, Kept>,
    pub(super) names: BTreeMap<PoolName, PoolId>,
    due: BTreeSet<(Moment, PoolId)>,
    next: u32,
    numbers: usize,
    pub(super) unfolded: u64,
    fold: Option<Fold>,
    /// Pools that are gone, and how many rows they may still have.
    doomed: Vec<(PoolId, usize)>,
    /// The number of the batch that is being filled.
    batch: u64,
    seed: u64,
    pub(super) recovering: bool,
    pub(super) senders: Senders,
}

/// What pools are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// Numbers in all pools together; each takes some 100 octets of memory.
    pub numbers: usize,
    /// Entries of its journal that each pool keeps at least, for its history.
    pub history: u64,
    /// Entries that the journals may be ahead of the table of numbers, or twice as many as there are numbers where that is
    /// more: then they are folded into it.
    pub ahead: u64,
    /// Rows that are written, or removed, in one batch to keep house: when a journal is folded into the table, and when a
    /// pool is removed.
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

    /// When [`Pools::advance`] wants to be called, at the latest.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Ends what is due.
    pub(crate) fn advance(&mut self, now: Now, batch: &mut PoolBatch) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now.mono
        {
            match self.kept.get_mut(&id) {
                Some(kept) => kept.pool.advance(now),
                None => {
                    self.due.remove(&(at, id));
                }
            }
            self.tidy(id, batch);
        }
    }

    /// Does what is wanted, but for what concerns no single pool.
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
            PoolRequest::Do(operation) => match self.operate(now, name, operation, (by, limits), batch) {
                Some(outcome) => PoolAnswer::Outcome(outcome),
                None => PoolAnswer::TooMany,
            },
            PoolRequest::DoAll(operations) => {
                let mut outcomes = Vec::with_capacity(operations.len());
                for operation in operations {
                    let done = self.operate(now, name, operation, (by, limits), batch);
                    outcomes.push(done.unwrap_or(PoolOutcome::Refused(PoolRefusal::Full)));
                }
                PoolAnswer::Outcomes(outcomes)
            }
            PoolRequest::Configure(settings) => {
                let Some(id) = self.known_or_made(name, batch) else { return PoolAnswer::TooMany };
                if let Some(kept) = self.kept.get_mut(&id) {
                    kept.pool.configure(settings);
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
                let row = self.find(name).and_then(|kept| kept.pool.row(number, now));
                PoolAnswer::Number(row.map(|row| Box::new(NumberStanding { number, row })))
            }
            PoolRequest::Numbers { from, most, state, prefix } => match self.find(name) {
                Some(kept) => {
                    let (numbers, next) = kept.pool.numbers(now, (from, most), state, prefix);
                    PoolAnswer::Numbers { numbers, next }
                }
                None => PoolAnswer::NoPool,
            },
            PoolRequest::Idle { skip, most } => match self.find(name) {
                Some(kept) => PoolAnswer::Idle {
                    numbers: kept.pool.idle(skip, most.min(PoolRequest::MOST_LOOKED_AT as usize)),
                    total: kept.pool.ready(),
                },
                None => PoolAnswer::NoPool,
            },
        }
    }

    /// `None`: there is no room for another pool.
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
            None if adds => self.known_or_made(name, batch)?,
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
        let kept = self.kept.get_mut(&id)?;
        if let PoolOperation::Add { number, .. } = &operation
            && full
            && kept.pool.find(*number).is_none()
        {
            return Some(PoolOutcome::Refused(PoolRefusal::Full));
        }
        let before = kept.pool.len();
        let called = matches!(operation, PoolOperation::Call(_));
        let outcome = kept.pool.apply(now, operation, by);
        if called {
            match outcome {
                PoolOutcome::Given { .. } => kept.given += 1,
                _ => kept.none += 1,
            }
        }
        self.numbers = self.numbers + kept.pool.len() - before;
        self.tidy(id, batch);
        Some(outcome)
    }

    pub(super) fn find(&self, name: &PoolName) -> Option<&Kept> {
        self.kept.get(self.names.get(name)?)
    }

    fn known_or_made(&mut self, name: &PoolName, batch: &mut PoolBatch) -> Option<PoolId> {
        if let Some(id) = self.names.get(name) {
            return Some(*id);
        }
        if self.names.len() >= MOST_POOLS {
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
        let kept =
            Kept { name, pool, due: None, entries: 0, folded: 0, given: 0, none: 0, part: (u64::MAX, 0) };
        self.kept.insert(id, kept);
    }

    fn remove(
        &mut self,
        name: &PoolName,
        with_numbers: bool,
        limits: PoolLimits,
        batch: &mut PoolBatch,
    ) -> PoolAnswer {
        let Some(id) = self.names.get(name).copied() else { return PoolAnswer::NoPool };
        let Some(kept) = self.kept.get(&id) else { return PoolAnswer::NoPool };
        if !(kept.pool.is_empty() || with_numbers) {
            return PoolAnswer::NotEmpty;
        }
        batch.records.push(PoolRecord { gone: true, ..kept.record(id) });
        self.names.remove(name);
        self.end_line(id);
        if let Some(kept) = self.kept.remove(&id) {
            self.numbers -= kept.pool.len();
            self.unfolded -= kept.pool.unfolded;
            if let Some(at) = kept.due {
                self.due.remove(&(at, id));
            }
            let journal = kept.entries.min(limits.history.saturating_mul(2) + kept.pool.unfolded);
            let journal = usize::try_from(journal).unwrap_or(usize::MAX);
            self.doomed.push((id, kept.pool.len() + kept.pool.unwritten.len() + journal));
        }
        if self.fold.as_ref().is_some_and(|fold| fold.pool == id) {
            self.fold = None;
        }
        batch.numbers.retain(|(pool, _, _)| *pool != id);
        batch.trimmed.retain(|(pool, _)| *pool != id);
        PoolAnswer::Removed
    }

    fn record(&self, id: PoolId, batch: &mut PoolBatch) {
        batch.records.extend(self.kept.get(&id).map(|kept| kept.record(id)));
    }

    /// After something has happened to a pool: enters it into the journal, and when it wants to be looked at again.
    pub(super) fn tidy(&mut self, id: PoolId, batch: &mut PoolBatch) {
        let Some(kept) = self.kept.get_mut(&id) else { return };
        let due = kept.pool.deadline();
        if due != kept.due {
            if let Some(at) = kept.due {
                self.due.remove(&(at, id));
            }
            if let Some(at) = due {
                self.due.insert((at, id));
            }
            kept.due = due;
        }
        if kept.pool.entries_made.is_empty() {
            return;
        }
        let made = kept.pool.entries_made.len() as u64;
        let (number, index) = kept.part;
        let part = if number == self.batch { batch.journal.get_mut(index) } else { None };
        match part {
            Some(part) if part.entries.len() < JournalPart::LONGEST => {
                part.entries.append(&mut kept.pool.entries_made);
                part.serial = kept.pool.serial();
            }
            _ => {
                kept.part = (self.batch, batch.journal.len());
                batch.journal.push(JournalPart {
                    pool: id,
                    first: kept.entries,
                    serial: kept.pool.serial(),
                    entries: kept.pool.take_entries(),
                });
            }
        }
        kept.entries += made;
        self.unfolded += made;
        self.stir(id);
    }

    fn summary(&self, now: Now, id: PoolId) -> PoolAnswer {
        match self.kept.get(&id) {
            Some(kept) => PoolAnswer::Pool(Box::new(kept.summary(id, now))),
            None => PoolAnswer::NoPool,
        }
    }

    /// All pools, by name.
    pub(crate) fn summaries(&self, now: Now) -> Vec<PoolSummary> {
        self.names.values().filter_map(|id| Some(self.kept.get(id)?.summary(*id, now))).collect()
    }

    /// Brings the table a part nearer to what the journal says, where that has grown long, and removes a part of what is
    /// left of pools that are gone. A batch takes one part of it.
    pub(crate) fn housekeep(&mut self, now: Now, limits: PoolLimits, batch: &mut PoolBatch) {
        if !batch.numbers.is_empty() || batch.purged.is_some() {
            return;
        }
        if self.fold.is_none() && self.unfolded >= limits.ahead.max(2 * self.numbers as u64) {
            self.begin_fold();
        }
        if let Some(fold) = &mut self.fold
            && let Some(kept) = self.kept.get_mut(&fold.pool)
        {
            // From the end, so that what is left need not move.
            let from = fold.left.len().saturating_sub(limits.part);
            for number in fold.left.drain(from..) {
                batch.numbers.push((fold.pool, number, kept.pool.written(number, now)));
            }
            if fold.left.is_empty() {
                kept.folded = fold.upto;
                let (id, upto) = (fold.pool, fold.upto);
                let old = upto.min(kept.entries.saturating_sub(limits.history));
                self.fold = None;
                self.record(id, batch);
                if old > 0 {
                    batch.trimmed.push((id, old));
                }
            }
        } else if let Some((id, rows)) = self.doomed.pop() {
            let purge = if rows > limits.part { Purge::Some(limits.part) } else { Purge::Rest };
            if purge != Purge::Rest {
                self.doomed.push((id, rows - limits.part));
            }
            batch.purged = Some((id, purge));
        }
    }

    fn begin_fold(&mut self) {
        let longest = self.kept.iter_mut().max_by_key(|(id, kept)| (kept.pool.unfolded, id.0));
        let Some((id, kept)) = longest else { return };
        let mut left = std::mem::take(&mut kept.pool.unwritten);
        left.sort_unstable();
        left.dedup();
        self.unfolded -= std::mem::take(&mut kept.pool.unfolded);
        self.fold = Some(Fold { pool: *id, left, upto: kept.entries });
    }

    /// What follows belongs to the next batch.
    pub(crate) fn sealed(&mut self) {
        self.batch += 1;
    }

    /// Takes a pool as it was found on disk, before its numbers and its journal.
    pub(crate) fn recover(&mut self, record: PoolRecord) {
        self.recovering = true;
        self.next = self.next.max(record.id.0.saturating_add(1));
        self.enter(record.id, record.name, record.settings);
        if let Some(kept) = self.kept.get_mut(&record.id) {
            kept.entries = record.entries;
            kept.folded = record.folded;
            kept.pool.serial = record.serial;
        }
    }

    pub(crate) fn recover_gone(&mut self, id: PoolId, rows: usize) {
        self.next = self.next.max(id.0.saturating_add(1));
        self.doomed.push((id, rows));
    }

    pub(crate) fn recover_number(&mut self, now: Now, id: PoolId, number: PoolNumber, row: model::NumberRow) {
        if let Some(kept) = self.kept.get_mut(&id) {
            kept.pool.recover(number, Some(row), false, now);
        }
    }

    pub(crate) fn recover_journal(&mut self, now: Now, part: JournalPart) {
        if let Some(kept) = self.kept.get_mut(&part.pool) {
            kept.pool.serial = kept.pool.serial.max(part.serial);
            kept.entries = kept.entries.max(part.first + part.entries.len() as u64);
            let behind = usize::try_from(kept.folded.saturating_sub(part.first)).unwrap_or(usize::MAX);
            for entry in part.entries.into_iter().skip(behind) {
                kept.pool.recover(entry.number, entry.row, true, now);
            }
        }
    }

    /// All pools, their numbers and their journals have been taken.
    pub(crate) fn recovered(&mut self) {
        if !std::mem::take(&mut self.recovering) {
            return;
        }
        for (id, kept) in &mut self.kept {
            kept.pool.recovered();
            self.numbers += kept.pool.len();
            self.unfolded += kept.pool.unfolded;
            kept.due = kept.pool.deadline();
            if let Some(at) = kept.due {
                self.due.insert((at, *id));
            }
        }
        self.recover_holdings();
    }
}

impl Kept {
    fn record(&self, id: PoolId) -> PoolRecord {
        PoolRecord {
            id,
            name: self.name.clone(),
            settings: self.pool.settings,
            serial: self.pool.serial(),
            entries: self.entries,
            folded: self.folded,
            gone: false,
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
            given: self.given,
            none: self.none,
            lapsed: self.pool.lapsed,
        }
    }
}
