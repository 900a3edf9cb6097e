use crate::pool_disk::PoolDisk;
use crate::simulation::ledger::ExpectedLedger;
use crate::simulation::pace_limits;
use model::{
    Balance, Batch, FinalRecord, IdempotencyKeyRecord, Message, MessageId, MessageKind, MessageProgress,
    OperationRecord, OptOut, OrphanDlrRecord, PaceDay, QueueAction, QueueActionId, RecoveredRecord,
    SUBMISSION_IDS, Settlement, SubmitAttempt,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The state that survives a crash.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Disk {
    pub(crate) messages: BTreeMap<MessageId, Arc<Message>>,
    pub(crate) progress: BTreeMap<MessageId, MessageProgress>,
    pub(crate) submit_attempts: BTreeMap<u64, Vec<SubmitAttempt>>,
    pub(crate) finished: BTreeMap<MessageId, FinalRecord>,
    /// Messages that the archive removed from `finished`.
    pub(crate) archived: BTreeMap<MessageId, FinalRecord>,
    /// The submission of every message submitted with others.
    pub(crate) submissions: BTreeMap<MessageId, MessageId>,
    pub(crate) idempotency_keys: BTreeMap<u64, IdempotencyKeyRecord>,
    pub(crate) orphan_dlrs: BTreeMap<u64, OrphanDlrRecord>,
    pub(crate) stopped: HashSet<OptOut>,
    pub(crate) queue_actions: BTreeMap<QueueActionId, QueueAction>,
    pub(crate) pace_days: BTreeMap<Arc<str>, PaceDay>,
    pub(crate) pace: pace_limits::Witness,
    pub(crate) balances: BTreeMap<Arc<str>, Balance>,
    pub(crate) operations: BTreeMap<u64, OperationRecord>,
    pub(crate) settlements: BTreeMap<u64, Settlement>,
    pub(crate) settled: Option<u64>,
    /// The expected ledger.
    pub(crate) expected_ledger: ExpectedLedger,
    pub(crate) pools: PoolDisk,
    /// Messages whose submitter has a final DLR.
    final_dlrs: HashSet<MessageId>,
    pub(crate) next_id: MessageId,
    pub(crate) next_submit_row: u64,
}

impl Disk {
    pub(crate) fn commit(&mut self, batch: Batch) {
        self.pace.committed(&batch);
        let wrote_ids = !batch.accepted.is_empty() || !batch.submit_attempts.is_empty();
        for message in &batch.accepted {
            if let MessageKind::Dlr(dlr) = &message.kind
                && !dlr.intermediate
            {
                assert!(self.final_dlrs.insert(dlr.of), "{:?} has two final DLRs", dlr.of);
            }
        }
        for message in batch.accepted.into_iter().chain(batch.replaced) {
            self.note_submission(&message);
            self.messages.insert(message.id, message);
        }
        for (id, progress) in batch.progress {
            self.progress.insert(id, progress);
        }
        for (id, ended) in batch.finished {
            let Some(message) = self.messages.remove(&id) else { panic!("{id:?} ended and not on disk") };
            self.expected_ledger.ended(&message, &ended);
            self.progress.remove(&id);
            assert!(self.finished.insert(id, ended).is_none(), "{id:?} ended twice");
        }
        for id in batch.dropped {
            assert!(self.messages.remove(&id).is_some(), "DLR {id:?} dropped twice");
            self.progress.remove(&id);
        }
        if !batch.submit_attempts.is_empty() {
            self.next_submit_row = batch.submit_row + 1;
            assert!(
                self.submit_attempts.insert(batch.submit_row, batch.submit_attempts).is_none(),
                "a handed row written twice"
            );
        }
        for seq in batch.submit_rows_done {
            self.submit_attempts.remove(&seq);
        }
        for record in batch.idempotency_keys {
            assert!(self.idempotency_keys.insert(record.serial, record).is_none(), "a key written twice");
        }
        if let Some(left) = batch.idempotency_keys_done {
            self.idempotency_keys = self.idempotency_keys.split_off(&left);
        }
        for record in batch.orphan_dlrs {
            assert!(self.orphan_dlrs.insert(record.number, record).is_none(), "an orphan DLR stored twice");
        }
        for number in batch.orphan_dlrs_done {
            assert!(self.orphan_dlrs.remove(&number).is_some(), "an orphan DLR removed that was not stored");
        }
        for (opt_out, stop) in batch.opt_outs {
            if stop {
                self.stopped.insert(opt_out);
            } else {
                self.stopped.remove(&opt_out);
            }
        }
        for order in batch.queue_actions {
            self.queue_actions.insert(order.id, order);
        }
        for id in batch.queue_actions_done {
            self.queue_actions.remove(&id);
        }
        for day in batch.pace_days {
            if day.used == 0 {
                self.pace_days.remove(&day.bucket);
            } else {
                self.pace_days.insert(day.bucket.clone(), day);
            }
        }
        for (account, balance) in batch.balances {
            self.balances.insert(account, balance);
        }
        for record in batch.operations {
            self.expected_ledger.operated(&record);
            assert!(self.operations.insert(record.serial, record).is_none(), "an operation written twice");
        }
        for settlement in batch.settlements {
            self.expected_ledger.settlement(&settlement);
            assert!(self.settlements.insert(settlement.serial, settlement).is_none(), "settled twice");
        }
        if let Some(upto) = batch.settled {
            self.settled = Some(upto);
            self.settlements = self.settlements.split_off(&(upto + 1));
        }
        self.expected_ledger.check(&self.balances, self.messages.values());
        self.pools.commit(batch.pools);
        for id in batch.archived {
            if let Some(ended) = self.finished.remove(&id) {
                self.archived.insert(id, ended);
            }
        }
        if wrote_ids {
            assert!(batch.next_id >= self.next_id, "ids went back");
            self.next_id = batch.next_id;
        }
    }

    /// Messages that share an id are within its range, and their DLRs carry it.
    fn note_submission(&mut self, message: &Message) {
        match (&message.kind, message.submission) {
            (MessageKind::Dlr(dlr), submission) => {
                assert_eq!(submission, self.submissions.get(&dlr.of).copied(), "{:?}", dlr.of);
            }
            (MessageKind::Text, Some(submission)) => {
                let range = submission.0..submission.0 + SUBMISSION_IDS;
                assert!(range.contains(&message.id.0), "{:?} of {submission:?}", message.id);
                self.submissions.insert(message.id, submission);
            }
            (MessageKind::Text, None) => {}
        }
    }

    /// Whether a live message has this id, or belongs to the submission with it.
    pub(crate) fn waits(&self, id: MessageId) -> bool {
        let all = id.0..id.0 + SUBMISSION_IDS;
        all.map(MessageId).any(|one| {
            (one == id || self.submissions.get(&one) == Some(&id)) && self.messages.contains_key(&one)
        })
    }

    /// The recovered records of the ledger.
    pub(crate) fn ledger_records(&self) -> Vec<RecoveredRecord> {
        let balances =
            self.balances.iter().map(|(name, balance)| RecoveredRecord::Balance(name.clone(), *balance));
        let operations = self.operations.values().cloned().map(RecoveredRecord::Operation);
        let settlements = self.settlements.values().cloned().map(RecoveredRecord::Settlement);
        let settled = self.settled.map(RecoveredRecord::BillerNotified);
        balances.chain(operations).chain(settled).chain(settlements).collect()
    }
}
