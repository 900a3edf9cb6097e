//! The expected content of the store, in ordered maps: random batches, and a reference that applies them.

use super::ledger::{LedgerChanges, LedgerReference, ledger_changes};
use super::{dlr_state, ended, message, peer_id, progress};
use model::{
    Batch, ContentErasure, Dlr, FinalRecord, IdempotencyKey, IdempotencyKeyRecord, Message, MessageId,
    MessageProgress, OptOut, OrphanDlrRecord, PaceDay, PeerId, QueueAction, QueueActionId, QueueActionKind,
    QueueActionScope, QueueActionState, RecoveredMessage, RecoveredRecord, Refusal, RejectReason, StepKind,
    SubmitAttempt, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Store, StoredMessage};

/// A batch whose messages are not chosen yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    accepted: Vec<Message>,
    replaced: Vec<(Index, Message)>,
    progress: Vec<(Index, MessageProgress)>,
    finished: Vec<(Index, FinalRecord)>,
    dropped: Vec<Index>,
    submit_attempts: Vec<(Index, u16, u64)>,
    done: Vec<Index>,
    side_tables: SideTables,
}

/// The part of a batch other than messages.
#[derive(Debug, Clone)]
struct SideTables {
    idempotency_keys: Vec<(u32, Vec<u8>, u64)>,
    idempotency_keys_done: Option<Index>,
    orphan_dlrs: Vec<(u32, Dlr)>,
    orphan_dlrs_done: Vec<Index>,
    opt_outs: Vec<(Vec<u8>, Vec<u8>, bool)>,
    archived: Vec<Index>,
    erased: Vec<Index>,
    /// Id, kind and state by index, messages affected.
    queue_actions: Vec<(u32, Index, Index, u64)>,
    queue_actions_done: Vec<u32>,
    /// Bucket, beginning of its day, tokens taken.
    pace_days: Vec<(u32, u64, u64)>,
    ledger: LedgerChanges,
}

fn side_tables() -> impl Strategy<Value = SideTables> {
    let octets = || vec(0_u8..3, 0..3);
    let dlr = (peer_id(), dlr_state(), any::<bool>(), any::<u16>(), octets(), octets()).prop_map(
        |(id, state, intermediate, error, from, to)| Dlr {
            id,
            state,
            intermediate,
            error,
            network_error: intermediate.then_some([1, 2, 3]),
            done_at: (error % 2 == 0).then_some(Timestamp(u64::from(error))),
            from: from.into(),
            to: to.into(),
        },
    );
    (
        vec((any::<u32>(), octets(), any::<u64>()), 0..3),
        proptest::option::of(any::<Index>()),
        vec((any::<u32>(), dlr), 0..3),
        vec(any::<Index>(), 0..2),
        vec((octets(), octets(), any::<bool>()), 0..3),
        (vec(any::<Index>(), 0..2), vec(any::<Index>(), 0..2)),
        (
            vec((1_u32..6, any::<Index>(), any::<Index>(), any::<u64>()), 0..2),
            vec(1_u32..6, 0..2),
            vec((1_u32..4, any::<u64>(), any::<u64>()), 0..2),
        ),
        ledger_changes(),
    )
        .prop_map(
            |(
                idempotency_keys,
                idempotency_keys_done,
                orphan_dlrs,
                orphan_dlrs_done,
                opt_outs,
                (archived, erased),
                queue_actions,
                ledger,
            )| SideTables {
                idempotency_keys,
                idempotency_keys_done,
                orphan_dlrs,
                orphan_dlrs_done,
                opt_outs,
                archived,
                erased,
                queue_actions: queue_actions.0,
                queue_actions_done: queue_actions.1,
                pace_days: queue_actions.2,
                ledger,
            },
        )
}

/// Batches with every kind of change that the engine makes.
pub(crate) fn draft() -> impl Strategy<Value = Draft> {
    let index = any::<Index>;
    (
        vec(message(), 0..5),
        vec((index(), message()), 0..2),
        vec((index(), progress()), 0..4),
        vec((index(), ended()), 0..4),
        vec(index(), 0..2),
        vec((index(), 1_u16..9, 0_u64..1000), 0..4),
        vec(index(), 0..3),
        side_tables(),
    )
        .prop_map(
            |(accepted, replaced, progress, finished, dropped, submit_attempts, done, side_tables)| Draft {
                accepted,
                replaced,
                progress,
                finished,
                dropped,
                submit_attempts,
                done,
                side_tables,
            },
        )
}

/// The expected content.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reference {
    messages: BTreeMap<u64, Message>,
    progress: BTreeMap<u64, MessageProgress>,
    submit_attempts: BTreeMap<u64, Vec<SubmitAttempt>>,
    finished: BTreeMap<u64, (Message, FinalRecord)>,
    idempotency_keys: BTreeMap<u64, IdempotencyKeyRecord>,
    orphan_dlrs: BTreeMap<u64, OrphanDlrRecord>,
    stopped: BTreeSet<OptOut>,
    queue_actions: BTreeMap<u32, QueueAction>,
    pace_days: BTreeMap<Arc<str>, PaceDay>,
    ledger: LedgerReference,
    next_serial: u64,
    next_id: u64,
    next_submit_row: u64,
}

impl Reference {
    fn next_id(&self) -> u64 {
        self.next_id.max(MessageId::FIRST.0)
    }

    fn next_submit_row(&self) -> u64 {
        self.next_submit_row.max(1)
    }

    /// Chooses the messages of a draft. Ends are spread over 100 ms, so that trimming stops within them.
    pub(crate) fn batch(&self, draft: Draft) -> Batch {
        let mut batch = Batch { submit_row: self.next_submit_row(), ..Batch::default() };
        let mut next = self.next_id();
        let mut waiting: Vec<u64> = self.messages.keys().copied().collect();
        for mut message in draft.accepted {
            message.id = MessageId(next);
            waiting.push(next);
            next += 1;
            batch.accepted.push(Arc::new(message));
        }
        batch.next_id = MessageId(next);
        for seq in draft.done {
            if !self.submit_attempts.is_empty() {
                batch
                    .submit_rows_done
                    .extend(self.submit_attempts.keys().nth(seq.index(self.submit_attempts.len())));
            }
        }
        self.put_side_tables(draft.side_tables, &mut batch);
        if waiting.is_empty() {
            return batch;
        }
        let some = |index: Index| MessageId(waiting[index.index(waiting.len())]);
        for (index, mut message) in draft.replaced {
            message.id = some(index);
            batch.replaced.push(Arc::new(message));
        }
        batch.progress =
            draft.progress.into_iter().map(|(index, progress)| (some(index), progress)).collect();
        for (index, mut ended) in draft.finished {
            ended.at = Timestamp(ended.at.0 % 100);
            // Only an erasure writes this step, and it leaves no content that another erasure would find.
            ended.steps.retain(|step| !matches!(step.kind, StepKind::ContentErased { .. }));
            // A message ends once.
            if !batch.finished.iter().any(|(id, _)| *id == some(index)) {
                batch.finished.push((some(index), ended));
            }
        }
        for index in draft.dropped {
            if !batch.finished.iter().any(|(id, _)| *id == some(index)) {
                batch.dropped.push(some(index));
            }
        }
        batch.submit_attempts = draft
            .submit_attempts
            .into_iter()
            .map(|(index, attempt, at)| SubmitAttempt { id: some(index), attempt, leg: 0, at: Timestamp(at) })
            .collect();
        batch
    }

    fn put_side_tables(&self, side_tables: SideTables, batch: &mut Batch) {
        let some = |index: Index, ids: Vec<u64>| (!ids.is_empty()).then(|| ids[index.index(ids.len())]);
        let mut serial = self.next_serial;
        for (origin, octets, digest) in side_tables.idempotency_keys {
            let key =
                IdempotencyKey { octets: octets.as_slice().into(), digest, required: true, lifetime: None };
            let results = vec![Ok(MessageId(digest)), Err(Refusal::Rejected(RejectReason::OptedOut))];
            let at = Timestamp(digest);
            batch.idempotency_keys.push(IdempotencyKeyRecord {
                serial,
                origin: PeerId(origin),
                key,
                at,
                results,
            });
            serial += 1;
        }
        batch.idempotency_keys_done = side_tables
            .idempotency_keys_done
            .and_then(|index| some(index, self.idempotency_keys.keys().copied().collect()));
        for (peer, dlr) in side_tables.orphan_dlrs {
            batch.orphan_dlrs.push(OrphanDlrRecord {
                number: serial,
                peer: PeerId(peer),
                at: Timestamp(5),
                dlr,
            });
            serial += 1;
        }
        for index in side_tables.orphan_dlrs_done {
            batch.orphan_dlrs_done.extend(some(index, self.orphan_dlrs.keys().copied().collect()));
        }
        for (sender, subscriber, stop) in side_tables.opt_outs {
            let opt_out = OptOut { sender: sender.into(), subscriber: subscriber.into() };
            batch.opt_outs.push((opt_out, stop));
        }
        for index in side_tables.archived {
            batch.archived.extend(some(index, self.finished.keys().copied().collect()).map(MessageId));
        }
        for index in side_tables.erased {
            let ids = self.finished.keys().chain(batch.finished.iter().map(|(id, _)| &id.0));
            if let Some(id) = some(index, ids.copied().collect()) {
                batch.erased.push(ContentErasure { id: MessageId(id), at: Timestamp(id), by: "ada".into() });
            }
        }
        for (id, kind, state, affected) in side_tables.queue_actions {
            let kind = QueueActionKind::ALL[kind.index(QueueActionKind::ALL.len())];
            let state = QueueActionState::ALL[state.index(QueueActionState::ALL.len())];
            let scope = QueueActionScope { peer: Some(PeerId(id)), ..QueueActionScope::default() };
            let (at, before_id) = (Timestamp(affected), MessageId(affected));
            let (by, reason, id) = ("ada".into(), "why".into(), QueueActionId(id));
            let order = QueueAction {
                id,
                kind,
                scope,
                to: None,
                by,
                reason,
                at,
                before_id,
                undo_until: None,
                state,
                affected,
            };
            batch.queue_actions.push(order);
        }
        let pace_day = |(bucket, start, used): (u32, u64, u64)| PaceDay {
            bucket: format!("bucket-{bucket}").into(),
            start: Timestamp(start),
            end: Timestamp(start.saturating_add(86_400_000)),
            // 0 removes the row.
            used: used % 3,
            defined: None,
        };
        batch.pace_days = side_tables.pace_days.into_iter().map(pace_day).collect();
        batch.queue_actions_done = side_tables.queue_actions_done.into_iter().map(QueueActionId).collect();
        self.ledger.put(side_tables.ledger, batch);
    }

    fn apply_side_records(&mut self, batch: &Batch) {
        for record in &batch.idempotency_keys {
            self.next_serial = self.next_serial.max(record.serial + 1);
            self.idempotency_keys.insert(record.serial, record.clone());
        }
        if let Some(left) = batch.idempotency_keys_done {
            self.idempotency_keys = self.idempotency_keys.split_off(&left);
        }
        for record in &batch.orphan_dlrs {
            self.next_serial = self.next_serial.max(record.number + 1);
            self.orphan_dlrs.insert(record.number, record.clone());
        }
        for number in &batch.orphan_dlrs_done {
            self.orphan_dlrs.remove(number);
        }
        for (opt_out, stop) in &batch.opt_outs {
            if *stop {
                self.stopped.insert(opt_out.clone());
            } else {
                self.stopped.remove(opt_out);
            }
        }
        for day in &batch.pace_days {
            self.pace_days.insert(day.bucket.clone(), day.clone());
            if day.used == 0 {
                self.pace_days.remove(&day.bucket);
            }
        }
        for order in &batch.queue_actions {
            self.queue_actions.insert(order.id.0, order.clone());
        }
        for id in &batch.queue_actions_done {
            self.queue_actions.remove(&id.0);
        }
        self.ledger.apply(batch);
    }

    /// Applies a batch.
    pub(crate) fn apply(&mut self, batch: &Batch) {
        for message in batch.accepted.iter().chain(&batch.replaced) {
            self.messages.insert(message.id.0, (**message).clone());
        }
        for (id, progress) in &batch.progress {
            self.progress.insert(id.0, progress.clone());
        }
        for (id, ended) in &batch.finished {
            self.progress.remove(&id.0);
            if let Some(message) = self.messages.remove(&id.0) {
                self.finished.insert(id.0, (message, ended.clone()));
            }
        }
        for erasure in &batch.erased {
            if let Some((message, ended)) = self.finished.get_mut(&erasure.id.0) {
                erasure.apply(message, ended);
            }
        }
        for id in &batch.archived {
            self.finished.remove(&id.0);
        }
        for id in &batch.dropped {
            self.progress.remove(&id.0);
            self.messages.remove(&id.0);
        }
        if !batch.submit_attempts.is_empty() {
            self.submit_attempts.insert(batch.submit_row, batch.submit_attempts.clone());
            self.next_submit_row = batch.submit_row + 1;
        }
        for seq in &batch.submit_rows_done {
            self.submit_attempts.remove(seq);
        }
        self.next_id = self.next_id.max(batch.next_id.0);
        self.apply_side_records(batch);
    }

    /// Removes finished messages as [`Store::trim_finished`] should; returns their number.
    pub(crate) fn trim(&mut self, before: Timestamp, most: usize) -> usize {
        let old = self.finished.iter().take(most).take_while(|(_, (_, ended))| ended.at < before);
        let gone: Vec<u64> = old.map(|(id, _)| *id).collect();
        for id in &gone {
            self.finished.remove(id);
        }
        gone.len()
    }

    /// The numbers of waiting and of finished messages.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.messages.len() as u64, self.finished.len() as u64)
    }

    /// Describes the first difference from the store.
    pub(crate) fn compare(&self, store: &Store) -> Result<(), String> {
        let differs = |what: &str, found: &dyn std::fmt::Debug, wanted: &dyn std::fmt::Debug| {
            Err(format!("{what}: found {found:?}, wanted {wanted:?}"))
        };
        let failed = |error: store::StoreError| error.to_string();
        let counts = store.counts().map_err(failed)?;
        if counts != self.counts() {
            return differs("counts", &counts, &self.counts());
        }
        let mut found = Vec::new();
        let recovery = store.recover(|one| found.push(one)).map_err(failed)?;
        let numbers = (recovery.messages, recovery.next_id.0, recovery.next_submit_row);
        let wanted = (self.messages.len() as u64, self.next_id(), self.next_submit_row());
        if numbers != wanted {
            return differs("messages, next id, next submit row", &numbers, &wanted);
        }
        let rows: Vec<u64> = self.submit_attempts.keys().copied().collect();
        if recovery.rows != rows {
            return differs("submit attempt rows", &recovery.rows, &rows);
        }
        if found.len() != self.messages.len() {
            return differs("recovered", &found.len(), &self.messages.len());
        }
        for (found, (id, message)) in found.iter().zip(&self.messages) {
            self.compare_one(found, *id, message)?;
        }
        let mut keys = Vec::new();
        let mut parked = Vec::new();
        let mut stopped = BTreeSet::new();
        let mut orders = Vec::new();
        let mut pace_days = BTreeMap::new();
        let mut ledger = LedgerReference::default();
        store
            .recover_records(|found| match found {
                RecoveredRecord::IdempotencyKey(record) => keys.push(record),
                RecoveredRecord::OrphanDlr(record) => parked.push(record),
                RecoveredRecord::OptOut(opt_out) => {
                    stopped.insert(opt_out);
                }
                RecoveredRecord::QueueAction(order) => orders.push(order),
                RecoveredRecord::PaceDay(day) => {
                    pace_days.insert(day.bucket.clone(), day);
                }
                found => ledger.found(found),
            })
            .map_err(failed)?;
        if !keys.iter().eq(self.idempotency_keys.values()) {
            return differs("keys", &keys, &self.idempotency_keys);
        }
        if !parked.iter().eq(self.orphan_dlrs.values()) {
            return differs("parked", &parked, &self.orphan_dlrs);
        }
        if !orders.iter().eq(self.queue_actions.values()) {
            return differs("orders", &orders, &self.queue_actions);
        }
        if stopped != self.stopped {
            return differs("opted out", &stopped, &self.stopped);
        }
        if pace_days != self.pace_days {
            return differs("pace days", &pace_days, &self.pace_days);
        }
        if ledger != self.ledger {
            return differs("ledger", &ledger, &self.ledger);
        }
        ledger.compare_audit(store)?;
        let all = store.finished_after(MessageId(0), usize::MAX).map_err(failed)?;
        if !all.iter().map(|(message, _)| message.id.0).eq(self.finished.keys().copied()) {
            return differs("finished", &all.len(), &self.finished.len());
        }
        // Also reads the first id that was never assigned.
        for id in MessageId::FIRST.0..=self.next_id() {
            let found = store.find(MessageId(id)).map_err(failed)?;
            let same = match (&found, self.messages.get(&id), self.finished.get(&id)) {
                (Some(StoredMessage::Waiting(message, progress)), Some(wanted), None) => {
                    message == wanted && progress.as_ref() == self.progress.get(&id)
                }
                (Some(StoredMessage::Finished(message, ended)), None, Some(wanted)) => {
                    (message, ended) == (&wanted.0, &wanted.1)
                }
                (None, None, None) => true,
                _ => false,
            };
            if !same {
                return Err(format!("find {id}: {found:?}"));
            }
        }
        let ids: Vec<MessageId> = (MessageId::FIRST.0..=self.next_id()).rev().map(MessageId).collect();
        for (id, loaded) in ids.iter().zip(store.load(&ids).map_err(failed)?) {
            if loaded.as_deref() != self.messages.get(&id.0) {
                return differs("loaded", &loaded, &self.messages.get(&id.0));
            }
        }
        Ok(())
    }

    fn compare_one(&self, found: &RecoveredMessage, id: u64, message: &Message) -> Result<(), String> {
        let newest = self.submit_attempts.iter().rev().find_map(|(seq, row)| {
            row.iter().rev().find(|attempt| attempt.id.0 == id).map(|attempt| (*attempt, *seq))
        });
        let same = found.message == *message
            && found.progress.as_ref() == self.progress.get(&id)
            && found.attempt == newest.map(|(attempt, _)| attempt)
            && found.submit_row == newest.map_or(0, |(_, seq)| seq);
        if same { Ok(()) } else { Err(format!("recovered {id}: {found:?}")) }
    }
}
