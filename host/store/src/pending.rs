//! Merged changes that are durable in the journal and not yet in the tables.
//!
//! A message that is accepted and finished between two writes of the tables costs one row; if it is also archived, it costs
//! none.

use crate::StoreError;
use crate::decoding::decode_record;
use bytes::Bytes;
use codec::{MessageRecord, MessageRecordKind, RecordError};
use journal::{JournalRecord, Seq};
use model::{
    Balance, Batch, ContentErasure, JournalPart, MessageId, PoolBatch, PoolId, PoolPurge, SubmitAttempt,
};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::mem::take;
use std::sync::Arc;

/// A batch, and its record in the journal.
#[derive(Debug)]
pub(crate) struct RecordedBatch {
    seq: Seq,
    batch: Arc<Batch>,
    octets: Bytes,
    messages: Vec<MessageRecord>,
}

impl RecordedBatch {
    /// `octets`: the encoded batch.
    ///
    /// # Errors
    /// The octets are not a batch.
    pub(crate) fn new(seq: Seq, batch: Arc<Batch>, octets: Bytes) -> Result<Self, RecordError> {
        let messages = codec::message_records(&octets)?;
        Ok(Self { seq, batch, octets, messages })
    }

    /// Reads a record of the journal; `None` for a claim.
    ///
    /// # Errors
    /// As [`decode_record`].
    pub(crate) fn read(record: &JournalRecord) -> Result<Option<Self>, StoreError> {
        let (Some(batch), Some(octets)) = (decode_record(record)?, record.payload()) else { return Ok(None) };
        let seq = record.seq;
        let recorded = Self::new(seq, Arc::new(batch), Bytes::copy_from_slice(octets));
        recorded.map(Some).map_err(|source| StoreError::JournalRecord { seq, source })
    }

    /// Number of its changes.
    pub(crate) fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Length of the encoded batch.
    pub(crate) fn octets(&self) -> usize {
        self.octets.len()
    }
}

/// A record of a message: the number of its batch in [`Pending`], and its place there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordPlace {
    batch: u32,
    begin: u32,
    end: u32,
}

/// The table that has a row of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredIn {
    /// No table: the message is new.
    NoTable,
    /// Table `messages`, perhaps also `progress`.
    Messages,
    /// Table `finished`.
    Finished,
}

/// The state of a message after all pending changes.
#[derive(Debug)]
pub(crate) enum MessageState {
    /// It waits; a field that is `None` is unchanged in the tables.
    Waiting { message: Option<RecordPlace>, progress: Option<RecordPlace> },
    /// It is finished; without `message`, its content is unchanged in the tables.
    Finished { message: Option<RecordPlace>, ended: RecordPlace, erased: Option<Box<ContentErasure>> },
    /// It is finished, its final record is in the tables, and its content is erased.
    ContentErased(Box<ContentErasure>),
    /// It is removed from all tables.
    Removed,
}

/// The pending change of one message.
#[derive(Debug)]
pub(crate) struct MessageChange {
    pub(crate) stored: StoredIn,
    pub(crate) state: MessageState,
}

/// The pending content of a waiting message.
#[derive(Debug)]
pub(crate) enum PendingContent {
    /// Its record.
    Known(Bytes),
    /// The message does not wait any more.
    Ended,
    /// No pending change: the tables have it.
    AsStored,
}

/// Merged changes of several batches.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// The newest journal record in the changes.
    pub(crate) last: Seq,
    /// Changes by message id.
    pub(crate) messages: FxHashMap<u64, MessageChange>,
    /// Submit attempts by row.
    pub(crate) submit_attempts: FxHashMap<u64, Vec<SubmitAttempt>>,
    pub(crate) submit_rows_done: Vec<u64>,
    /// The next message id; `None` if no message was accepted.
    pub(crate) next_id: Option<MessageId>,
    /// The next row of submit attempts; `None` if there were none.
    pub(crate) next_submit_row: Option<u64>,
    pub(crate) balances: FxHashMap<Arc<str>, Balance>,
    pub(crate) purged: Vec<(PoolId, PoolPurge)>,
    /// All other parts of the batches, concatenated.
    pub(crate) rest: Batch,
    /// Index in `rest` of the newest part of each pool's journal.
    newest_parts: FxHashMap<u32, usize>,
    batches: usize,
    /// The batches that have records of messages.
    octets: Vec<Bytes>,
}

impl Pending {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches == 0
    }

    /// The octets of a record.
    pub(crate) fn octets(&self, place: RecordPlace) -> &[u8] {
        let batch = self.octets.get(place.batch as usize);
        batch.and_then(|octets| octets.get(place.begin as usize..place.end as usize)).unwrap_or_default()
    }

    /// Adds a batch.
    pub(crate) fn merge(&mut self, recorded: RecordedBatch) {
        let RecordedBatch { seq, batch, octets, messages } = recorded;
        self.batches += 1;
        self.last = seq;
        if !batch.accepted.is_empty() || !batch.submit_attempts.is_empty() {
            self.next_id = Some(batch.next_id);
        }
        let Batch {
            names,
            group_names,
            groups,
            // The records of messages are taken as they are in the journal.
            accepted: _,
            replaced: _,
            submit_attempts,
            submit_row,
            submit_rows_done,
            progress: _,
            finished: _,
            dropped,
            idempotency_keys,
            idempotency_keys_done,
            orphan_dlrs,
            orphan_dlrs_done,
            opt_outs,
            balances,
            operations,
            settlements,
            settled,
            pace_days,
            // Notices are for readers of the journal only.
            notices: _,
            queue_actions,
            queue_actions_done,
            erased,
            archived,
            pools,
            next_id: _,
        } = Arc::unwrap_or_clone(batch);
        self.merge_messages(octets, messages);
        for id in dropped {
            self.remove(id, StoredIn::Messages);
        }
        for erasure in erased {
            self.erase_content(erasure);
        }
        for id in archived {
            self.remove(id, StoredIn::Finished);
        }
        if !submit_attempts.is_empty() {
            self.next_submit_row = Some(submit_row + 1);
            self.submit_attempts.insert(submit_row, submit_attempts);
        }
        for row in submit_rows_done {
            if self.submit_attempts.remove(&row).is_none() {
                self.submit_rows_done.push(row);
            }
        }
        self.balances.extend(balances);
        self.merge_pools(pools);
        let rest = &mut self.rest;
        rest.names.extend(names);
        rest.group_names.extend(group_names);
        rest.groups.extend(groups);
        rest.idempotency_keys.extend(idempotency_keys);
        rest.idempotency_keys_done = idempotency_keys_done.or(rest.idempotency_keys_done);
        rest.orphan_dlrs.extend(orphan_dlrs);
        rest.orphan_dlrs_done.extend(orphan_dlrs_done);
        rest.opt_outs.extend(opt_outs);
        rest.pace_days.extend(pace_days);
        rest.operations.extend(operations);
        rest.settlements.extend(settlements);
        rest.settled = settled.or(rest.settled);
        if let Some(upto) = settled {
            rest.settlements.retain(|settlement| settlement.serial > upto);
        }
        if let Some(left) = idempotency_keys_done {
            rest.idempotency_keys.retain(|record| record.serial >= left);
        }
        for action in queue_actions {
            rest.queue_actions_done.retain(|id| *id != action.id);
            rest.queue_actions.push(action);
        }
        for id in queue_actions_done {
            rest.queue_actions.retain(|action| action.id != id);
            rest.queue_actions_done.push(id);
        }
    }

    fn merge_messages(&mut self, octets: Bytes, messages: Vec<MessageRecord>) {
        if messages.is_empty() {
            return;
        }
        let batch = self.octets.len() as u32;
        self.octets.push(octets);
        for MessageRecord { kind, id, octets } in messages {
            let place = RecordPlace { batch, begin: octets.start as u32, end: octets.end as u32 };
            if kind == MessageRecordKind::Accepted {
                let state = MessageState::Waiting { message: Some(place), progress: None };
                self.messages.insert(id.0, MessageChange { stored: StoredIn::NoTable, state });
                continue;
            }
            let state = self.state_of(id);
            if let MessageState::Waiting { message, progress } = state {
                match kind {
                    MessageRecordKind::Accepted | MessageRecordKind::Replaced => *message = Some(place),
                    MessageRecordKind::Progress => *progress = Some(place),
                    MessageRecordKind::Finished => {
                        *state = MessageState::Finished { message: *message, ended: place, erased: None };
                    }
                }
            }
        }
    }

    /// Advances past a record that changes nothing.
    pub(crate) fn skip(&mut self, seq: Seq) {
        self.batches += 1;
        self.last = seq;
    }

    /// The pending content of a waiting message.
    pub(crate) fn content_of(&self, id: MessageId) -> PendingContent {
        match self.messages.get(&id.0).map(|change| &change.state) {
            None | Some(MessageState::Waiting { message: None, .. }) => PendingContent::AsStored,
            Some(MessageState::Waiting { message: Some(place), .. }) => {
                PendingContent::Known(Bytes::copy_from_slice(self.octets(*place)))
            }
            Some(MessageState::Finished { .. } | MessageState::ContentErased(_) | MessageState::Removed) => {
                PendingContent::Ended
            }
        }
    }

    /// Differences of the numbers of waiting and of finished messages from those in the tables.
    pub(crate) fn count_changes(&self) -> (i64, i64) {
        let (mut waiting, mut finished) = (0, 0);
        for change in self.messages.values() {
            match change.stored {
                StoredIn::NoTable => {}
                StoredIn::Messages => waiting -= 1,
                StoredIn::Finished => finished -= 1,
            }
            match change.state {
                MessageState::Waiting { .. } => waiting += 1,
                MessageState::Finished { .. } | MessageState::ContentErased(_) => finished += 1,
                MessageState::Removed => {}
            }
        }
        (waiting, finished)
    }

    fn state_of(&mut self, id: MessageId) -> &mut MessageState {
        let change = self.messages.entry(id.0).or_insert_with(|| MessageChange {
            stored: StoredIn::Messages,
            state: MessageState::Waiting { message: None, progress: None },
        });
        &mut change.state
    }

    /// Erases the content of a finished message.
    fn erase_content(&mut self, erasure: ContentErasure) {
        match self.messages.entry(erasure.id.0) {
            Entry::Occupied(mut entry) => {
                if let MessageState::Finished { erased, .. } = &mut entry.get_mut().state {
                    // A second erasure has no effect.
                    erased.get_or_insert_with(|| Box::new(erasure));
                }
            }
            Entry::Vacant(entry) => {
                let state = MessageState::ContentErased(Box::new(erasure));
                entry.insert(MessageChange { stored: StoredIn::Finished, state });
            }
        }
    }

    /// Removes a message. `stored` is the table that has its row if it has no other pending change.
    fn remove(&mut self, id: MessageId, stored: StoredIn) {
        match self.messages.entry(id.0) {
            Entry::Occupied(entry) if entry.get().stored == StoredIn::NoTable => drop(entry.remove()),
            Entry::Occupied(mut entry) => entry.get_mut().state = MessageState::Removed,
            Entry::Vacant(entry) => {
                entry.insert(MessageChange { stored, state: MessageState::Removed });
            }
        }
    }

    fn merge_pools(&mut self, pools: PoolBatch) {
        let PoolBatch { records, journal, numbers, trimmed, purged } = pools;
        let into = &mut self.rest.pools;
        into.records.extend(records);
        for mut part in journal {
            let newest = self.newest_parts.get(&part.pool.0).and_then(|at| into.journal.get_mut(*at));
            match newest {
                Some(newest) if continues(&part, newest) => {
                    newest.serial = part.serial;
                    newest.entries.append(&mut part.entries);
                }
                _ => {
                    self.newest_parts.insert(part.pool.0, into.journal.len());
                    into.journal.push(part);
                }
            }
        }
        into.numbers.extend(numbers);
        into.trimmed.extend(trimmed);
        self.purged.extend(purged);
    }

    /// Takes all changes and leaves `self` empty.
    pub(crate) fn take(&mut self) -> Self {
        take(self)
    }
}

/// Whether a part of a pool's journal can share a row with the part before it.
fn continues(part: &JournalPart, before: &JournalPart) -> bool {
    before.entries.len() < JournalPart::MAX_ENTRIES
        && part.first == before.first.saturating_add(before.entries.len() as u64)
}
