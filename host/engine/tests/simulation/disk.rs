use crate::money::Purse;
use crate::pool_disk::PoolDisk;
use engine::{Batch, Consent, Handed, KeyRecord, OperationRecord, ParkedRecord, Progress, Remembered};
use model::{Balance, Final, Kind, Message, MessageId, Order, OrderId, SUBMISSION_IDS, Settlement};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What survives a crash.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) messages: BTreeMap<MessageId, Arc<Message>>,
    pub(crate) progress: BTreeMap<MessageId, Progress>,
    pub(crate) handed: BTreeMap<u64, Vec<Handed>>,
    pub(crate) finished: BTreeMap<MessageId, Final>,
    /// What the archive took out of `finished`.
    pub(crate) archived: BTreeMap<MessageId, Final>,
    /// The submission of every message that was ever part of one to several destinations.
    pub(crate) submissions: BTreeMap<MessageId, MessageId>,
    pub(crate) keys: BTreeMap<u64, KeyRecord>,
    pub(crate) parked: BTreeMap<u64, ParkedRecord>,
    pub(crate) stopped: HashSet<Consent>,
    pub(crate) orders: BTreeMap<OrderId, Order>,
    pub(crate) balances: BTreeMap<Arc<str>, Balance>,
    pub(crate) operations: BTreeMap<u64, OperationRecord>,
    pub(crate) settlements: BTreeMap<u64, Settlement>,
    pub(crate) settled: Option<u64>,
    /// What the ledger should have come to.
    pub(crate) purse: Purse,
    pub(crate) pools: PoolDisk,
    pub(crate) next_id: MessageId,
    pub(crate) next_handed: u64,
}

impl Disk {
    pub(crate) fn commit(&mut self, batch: Batch) {
        let wrote_ids = !batch.accepted.is_empty() || !batch.handed.is_empty();
        for message in batch.accepted.into_iter().chain(batch.replaced) {
            self.note_submission(&message);
            self.messages.insert(message.id, message);
        }
        for (id, progress) in batch.progress {
            self.progress.insert(id, progress);
        }
        for (id, ended) in batch.finished {
            let Some(message) = self.messages.remove(&id) else { panic!("{id:?} ended without being there") };
            self.purse.ended(&message, &ended);
            self.progress.remove(&id);
            assert!(self.finished.insert(id, ended).is_none(), "{id:?} ended twice");
        }
        for id in batch.dropped {
            assert!(self.messages.remove(&id).is_some(), "receipt {id:?} dropped twice");
            self.progress.remove(&id);
        }
        if !batch.handed.is_empty() {
            self.next_handed = batch.handed_seq + 1;
            assert!(
                self.handed.insert(batch.handed_seq, batch.handed).is_none(),
                "a handed row written twice"
            );
        }
        for seq in batch.handed_done {
            self.handed.remove(&seq);
        }
        for record in batch.keys {
            assert!(self.keys.insert(record.serial, record).is_none(), "a key written twice");
        }
        if let Some(left) = batch.keys_done {
            self.keys = self.keys.split_off(&left);
        }
        for record in batch.parked {
            assert!(self.parked.insert(record.number, record).is_none(), "a receipt parked twice");
        }
        for number in batch.unparked {
            assert!(self.parked.remove(&number).is_some(), "a receipt unparked that was not parked");
        }
        for (consent, stop) in batch.consents {
            if stop {
                self.stopped.insert(consent);
            } else {
                self.stopped.remove(&consent);
            }
        }
        for order in batch.orders {
            self.orders.insert(order.id, order);
        }
        for id in batch.orders_done {
            self.orders.remove(&id);
        }
        for (account, balance) in batch.balances {
            self.balances.insert(account, balance);
        }
        for record in batch.operations {
            self.purse.operated(&record);
            assert!(self.operations.insert(record.serial, record).is_none(), "an operation written twice");
        }
        for settlement in batch.settlements {
            self.purse.settlement(&settlement);
            assert!(self.settlements.insert(settlement.serial, settlement).is_none(), "settled twice");
        }
        if let Some(upto) = batch.settled {
            self.settled = Some(upto);
            self.settlements = self.settlements.split_off(&(upto + 1));
        }
        self.purse.check(&self.balances, self.messages.values());
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

    /// Messages that share an id lie within its range, and their receipts carry it.
    fn note_submission(&mut self, message: &Message) {
        match (&message.kind, message.submission) {
            (Kind::Receipt(receipt), submission) => {
                assert_eq!(submission, self.submissions.get(&receipt.of).copied(), "{:?}", receipt.of);
            }
            (Kind::Text, Some(submission)) => {
                let range = submission.0..submission.0 + SUBMISSION_IDS;
                assert!(range.contains(&message.id.0), "{:?} of {submission:?}", message.id);
                self.submissions.insert(message.id, submission);
            }
            (Kind::Text, None) => {}
        }
    }

    /// Whether a message has not ended that is, or is part of, what its submitter knows by this id.
    pub(crate) fn waits(&self, id: MessageId) -> bool {
        let all = id.0..id.0 + SUBMISSION_IDS;
        all.map(MessageId).any(|one| {
            (one == id || self.submissions.get(&one) == Some(&id)) && self.messages.contains_key(&one)
        })
    }

    /// What a start finds of the ledger.
    pub(crate) fn remembered_money(&self) -> Vec<Remembered> {
        let balances =
            self.balances.iter().map(|(name, balance)| Remembered::Balance(name.clone(), *balance));
        let operations = self.operations.values().cloned().map(Remembered::Operation);
        let settlements = self.settlements.values().cloned().map(Remembered::Settlement);
        let settled = self.settled.map(Remembered::Settled);
        balances.chain(operations).chain(settled).chain(settlements).collect()
    }
}
