//! Committed changes that are not in the tables yet.

use crate::pending::{Pending, PendingContent, RecordedBatch};
use journal::Seq;
use model::MessageId;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// Number of changes from which a commit applies them itself: the tables cannot keep up.
const MAX_ROWS: usize = 500_000;
/// The same limit for the octets of their records.
pub(crate) const MAX_OCTETS: usize = 64 << 20;

/// Committed changes that are not in the tables yet.
///
/// Commits lock only `committed`, and every holder of that lock only moves a list: merging thousands of batches takes
/// milliseconds, for which answers to submitters would have to wait.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Locked before `committed` where both are needed.
    merged: Mutex<MergedChanges>,
    committed: Mutex<Committed>,
}

/// Batches in the order of the journal.
#[derive(Debug, Default)]
struct Committed {
    /// They are merged when they are needed.
    batches: Vec<RecordedBatch>,
    /// Number of changes that are not being applied, and the octets of their records.
    rows: usize,
    octets: usize,
}

#[derive(Debug)]
struct MergedChanges {
    /// Merged changes, older than the committed batches.
    next: Pending,
    /// Changes that are being applied; older than `next`.
    current: Option<Arc<Pending>>,
    /// The last record in the tables, durable or not.
    applied: Seq,
}

impl MergedChanges {
    fn add(&mut self, batches: Vec<RecordedBatch>) {
        batches.into_iter().for_each(|batch| self.next.merge(batch));
    }
}

impl Changes {
    /// No changes; the tables have all records up to `applied`.
    pub(crate) fn new(applied: Seq) -> Self {
        let merged = MergedChanges { next: Pending::default(), current: None, applied };
        Self { merged: Mutex::new(merged), committed: Mutex::default() }
    }

    /// Adds a batch. Returns whether the limits are exceeded.
    pub(crate) fn add(&self, batch: RecordedBatch) -> bool {
        let mut committed = self.committed.lock();
        committed.rows += batch.rows();
        committed.octets += batch.octets();
        committed.batches.push(batch);
        committed.rows >= MAX_ROWS || committed.octets >= MAX_OCTETS
    }

    /// Number of changes, except for those that are being applied.
    pub(crate) fn rows(&self) -> usize {
        self.committed.lock().rows
    }

    /// Merges the committed batches.
    pub(crate) fn merge(&self) {
        drop(self.merge_committed());
    }

    /// Whether the tables have all changes.
    pub(crate) fn is_empty(&self) -> bool {
        let merged = self.merged.lock();
        merged.current.is_none() && merged.next.is_empty() && self.committed.lock().batches.is_empty()
    }

    /// The changes of a failed attempt to apply them.
    pub(crate) fn unapplied(&self) -> Option<Arc<Pending>> {
        self.merged.lock().current.clone()
    }

    /// Takes all changes, in order to apply them; `None` if there are none.
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

    /// Marks the taken changes as applied, up to record `last`.
    pub(crate) fn set_applied(&self, last: Seq) {
        let mut merged = self.merged.lock();
        merged.applied = last;
        merged.current = None;
    }

    /// The last record in the tables, durable or not.
    pub(crate) fn applied(&self) -> Seq {
        self.merged.lock().applied
    }

    /// Merges all committed batches. Until they are taken, they do not count as being applied.
    fn merge_committed(&self) -> MutexGuard<'_, MergedChanges> {
        let mut merged = self.merged.lock();
        let batches = std::mem::take(&mut self.committed.lock().batches);
        merged.add(batches);
        merged
    }

    /// Numbers of waiting and finished messages to add to those of the tables. `begin` begins to read the tables, and
    /// returns the last record in them; so each change is counted exactly once.
    ///
    /// # Errors
    /// The errors of `begin`.
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

    /// Contents of these waiting messages, as far as the pending changes have them.
    pub(crate) fn contents_of(&self, ids: &[MessageId]) -> Vec<PendingContent> {
        let merged = self.merge_committed();
        let contents = ids.iter().map(|id| match (merged.next.content_of(*id), &merged.current) {
            (PendingContent::AsStored, Some(current)) => current.content_of(*id),
            (content, _) => content,
        });
        contents.collect()
    }
}
