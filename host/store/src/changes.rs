//! Committed changes that the tables lack, on their way from commits to the tables.

use crate::pending::{Pending, PendingContent};
use journal::Seq;
use model::{Batch, MessageId};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// With so many changes, a commit applies them itself: the tables cannot keep up.
const MOST_ROWS: usize = 500_000;
/// The same for the octets of their records.
pub(crate) const MOST_OCTETS: usize = 64 << 20;

/// Changes that the tables lack.
///
/// Commits only lock `committed`, and nobody holds that lock for longer than it takes to move a list: merging thousands of
/// batches takes milliseconds, which answers to senders would have to wait for.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Locked before `committed` by those who need both.
    merged: Mutex<Merged>,
    committed: Mutex<Committed>,
}

/// Batches in the order of the journal.
#[derive(Debug, Default)]
struct Committed {
    /// With the numbers of their records. They are merged when somebody needs them.
    batches: Vec<(Seq, Arc<Batch>)>,
    /// The changes that are not being applied, and the octets of their records.
    rows: usize,
    octets: usize,
}

#[derive(Debug)]
struct Merged {
    /// Older than the committed batches.
    next: Pending,
    /// Changes that are being applied; older than `next`.
    current: Option<Arc<Pending>>,
    /// The last record in the tables, durable or not.
    applied: Seq,
}

impl Merged {
    fn add(&mut self, batches: Vec<(Seq, Arc<Batch>)>) {
        for (seq, batch) in batches {
            self.next.merge(seq, Arc::unwrap_or_clone(batch));
        }
    }
}

impl Changes {
    /// No changes; the tables have all records up to `applied`.
    pub(crate) fn new(applied: Seq) -> Self {
        let merged = Merged { next: Pending::default(), current: None, applied };
        Self { merged: Mutex::new(merged), committed: Mutex::default() }
    }

    /// Adds the batch of record `seq`. Returns whether there are too many changes.
    pub(crate) fn add(&self, seq: Seq, octets: usize, batch: Arc<Batch>) -> bool {
        let mut committed = self.committed.lock();
        committed.rows += batch.rows();
        committed.octets += octets;
        committed.batches.push((seq, batch));
        committed.rows >= MOST_ROWS || committed.octets >= MOST_OCTETS
    }

    /// The number of changes, apart from those that are being applied.
    pub(crate) fn rows(&self) -> usize {
        self.committed.lock().rows
    }

    /// Whether the tables have everything.
    pub(crate) fn is_empty(&self) -> bool {
        let merged = self.merged.lock();
        merged.current.is_none() && merged.next.is_empty() && self.committed.lock().batches.is_empty()
    }

    /// The changes of an attempt to apply them that failed.
    pub(crate) fn unapplied(&self) -> Option<Arc<Pending>> {
        self.merged.lock().current.clone()
    }

    /// Takes all changes to apply them; `None` if there are none.
    pub(crate) fn take(&self) -> Option<Arc<Pending>> {
        let mut merged = self.merged.lock();
        let Committed { batches, .. } = std::mem::take(&mut *self.committed.lock());
        merged.add(batches);
        if merged.next.is_empty() {
            return None;
        }
        let pending = Arc::new(merged.next.take());
        merged.current = Some(pending.clone());
        Some(pending)
    }

    /// The tables have the changes that were taken, up to record `last`.
    pub(crate) fn set_applied(&self, last: Seq) {
        let mut merged = self.merged.lock();
        merged.applied = last;
        merged.current = None;
    }

    /// The last record in the tables, durable or not.
    pub(crate) fn applied(&self) -> Seq {
        self.merged.lock().applied
    }

    /// Merges all committed batches. They count as changes that are not being applied until they are taken.
    fn merge_committed(&self) -> MutexGuard<'_, Merged> {
        let mut merged = self.merged.lock();
        let batches = std::mem::take(&mut self.committed.lock().batches);
        merged.add(batches);
        merged
    }

    /// How many waiting and how many finished messages there are more than in the tables. `begin` begins to read the tables, and tells the
    /// last record in them: no change is in both, or in neither.
    ///
    /// # Errors
    /// Those of `begin`.
    pub(crate) fn counts_beyond<T, E>(
        &self,
        begin: impl FnOnce() -> Result<(T, Seq), E>,
    ) -> Result<(T, (i64, i64)), E> {
        let merged = self.merge_committed();
        let (tables, applied) = begin()?;
        let (mut waiting, mut finished) = merged.next.count_changes();
        if let Some(current) = merged.current.as_ref().filter(|current| current.last > applied) {
            let more = current.count_changes();
            (waiting, finished) = (waiting + more.0, finished + more.1);
        }
        Ok((tables, (waiting, finished)))
    }

    /// What is known of these waiting messages without the tables.
    pub(crate) fn contents_of(&self, ids: &[MessageId]) -> Vec<PendingContent> {
        let merged = self.merge_committed();
        let contents = ids.iter().map(|id| match (merged.next.content_of(*id), &merged.current) {
            (PendingContent::AsStored, Some(current)) => current.content_of(*id),
            (content, _) => content,
        });
        contents.collect()
    }
}
