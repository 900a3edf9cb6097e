//! What the store should hold, in ordered maps: the batches of the engine, and a witness that applies them.

use super::money::{Money, MoneyReference, money};
use super::{ended, message, peer_id, progress, receipt_state};
use engine::{Batch, Consent, Handed, KeyRecord, ParkedRecord, Progress, Recovered, Remembered};
use model::{
    Final, Message, MessageId, Order, OrderId, OrderKind, OrderState, PeerId, Receipt, Refusal, RejectReason,
    Scope, SubmissionKey, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Found, Store};

/// A batch that does not know yet which messages it is about.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    accepted: Vec<Message>,
    replaced: Vec<(Index, Message)>,
    progress: Vec<(Index, Progress)>,
    finished: Vec<(Index, Final)>,
    dropped: Vec<Index>,
    handed: Vec<(Index, u16, u64)>,
    done: Vec<Index>,
    beside: Beside,
}

/// What a batch has beside messages.
#[derive(Debug, Clone)]
struct Beside {
    keys: Vec<(u32, Vec<u8>, u64)>,
    keys_done: Option<Index>,
    parked: Vec<(u32, Receipt)>,
    unparked: Vec<Index>,
    consents: Vec<(Vec<u8>, Vec<u8>, bool)>,
    archived: Vec<Index>,
    /// Number, kind and state by index, messages touched.
    orders: Vec<(u32, Index, Index, u64)>,
    orders_done: Vec<u32>,
    money: Money,
}

fn beside() -> impl Strategy<Value = Beside> {
    let octets = || vec(0_u8..3, 0..3);
    let receipt = (peer_id(), receipt_state(), any::<bool>(), any::<u16>(), octets(), octets()).prop_map(
        |(id, state, intermediate, error, from, to)| Receipt {
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
        vec((any::<u32>(), receipt), 0..3),
        vec(any::<Index>(), 0..2),
        vec((octets(), octets(), any::<bool>()), 0..3),
        vec(any::<Index>(), 0..2),
        (vec((1_u32..6, any::<Index>(), any::<Index>(), any::<u64>()), 0..2), vec(1_u32..6, 0..2)),
        money(),
    )
        .prop_map(|(keys, keys_done, parked, unparked, consents, archived, orders, money)| Beside {
            keys,
            keys_done,
            parked,
            unparked,
            consents,
            archived,
            orders: orders.0,
            orders_done: orders.1,
            money,
        })
}

/// Batches with everything that the engine may put into one.
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
        beside(),
    )
        .prop_map(|(accepted, replaced, progress, finished, dropped, handed, done, beside)| Draft {
            accepted,
            replaced,
            progress,
            finished,
            dropped,
            handed,
            done,
            beside,
        })
}

/// What the store should hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reference {
    messages: BTreeMap<u64, Message>,
    progress: BTreeMap<u64, Progress>,
    handed: BTreeMap<u64, Vec<Handed>>,
    finished: BTreeMap<u64, (Message, Final)>,
    keys: BTreeMap<u64, KeyRecord>,
    parked: BTreeMap<u64, ParkedRecord>,
    stopped: BTreeSet<Consent>,
    orders: BTreeMap<u32, Order>,
    money: MoneyReference,
    next_serial: u64,
    next_id: u64,
    next_handed: u64,
}

impl Reference {
    fn next_id(&self) -> u64 {
        self.next_id.max(MessageId::FIRST.0)
    }

    fn next_handed(&self) -> u64 {
        self.next_handed.max(1)
    }

    /// Settles what a draft is about. Ends are spread over 100 ms, so that trimming finds something to stop at.
    pub(crate) fn batch(&self, draft: Draft) -> Batch {
        let mut batch = Batch { handed_seq: self.next_handed(), ..Batch::default() };
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
            if !self.handed.is_empty() {
                batch.handed_done.extend(self.handed.keys().nth(seq.index(self.handed.len())));
            }
        }
        self.put_beside(draft.beside, &mut batch);
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
        batch.handed = draft
            .handed
            .into_iter()
            .map(|(index, attempt, at)| Handed { id: some(index), attempt, leg: 0, at: Timestamp(at) })
            .collect();
        batch
    }

    fn put_beside(&self, beside: Beside, batch: &mut Batch) {
        let some = |index: Index, keys: Vec<u64>| (!keys.is_empty()).then(|| keys[index.index(keys.len())]);
        let mut serial = self.next_serial;
        for (origin, octets, digest) in beside.keys {
            let key =
                SubmissionKey { octets: octets.as_slice().into(), digest, required: true, lifetime: None };
            let results = vec![Ok(MessageId(digest)), Err(Refusal::Rejected(RejectReason::OptedOut))];
            let at = Timestamp(digest);
            batch.keys.push(KeyRecord { serial, origin: PeerId(origin), key, at, results });
            serial += 1;
        }
        batch.keys_done = beside.keys_done.and_then(|index| some(index, self.keys.keys().copied().collect()));
        for (peer, receipt) in beside.parked {
            batch.parked.push(ParkedRecord { number: serial, peer: PeerId(peer), at: Timestamp(5), receipt });
            serial += 1;
        }
        for index in beside.unparked {
            batch.unparked.extend(some(index, self.parked.keys().copied().collect()));
        }
        for (sender, subscriber, stop) in beside.consents {
            let consent = Consent { sender: sender.into(), subscriber: subscriber.into() };
            batch.consents.push((consent, stop));
        }
        for index in beside.archived {
            batch.archived.extend(some(index, self.finished.keys().copied().collect()).map(MessageId));
        }
        for (id, kind, state, touched) in beside.orders {
            let kind = OrderKind::ALL[kind.index(OrderKind::ALL.len())];
            let state = OrderState::ALL[state.index(OrderState::ALL.len())];
            let scope = Scope { peer: Some(PeerId(id)), ..Scope::default() };
            let (at, upto) = (Timestamp(touched), MessageId(touched));
            let (by, why, id) = ("ada".into(), "why".into(), OrderId(id));
            let order =
                Order { id, kind, scope, to: None, by, why, at, upto, undo_until: None, state, touched };
            batch.orders.push(order);
        }
        batch.orders_done = beside.orders_done.into_iter().map(OrderId).collect();
        self.money.put(beside.money, batch);
    }

    fn apply_beside(&mut self, batch: &Batch) {
        for record in &batch.keys {
            self.next_serial = self.next_serial.max(record.serial + 1);
            self.keys.insert(record.serial, record.clone());
        }
        if let Some(left) = batch.keys_done {
            self.keys = self.keys.split_off(&left);
        }
        for record in &batch.parked {
            self.next_serial = self.next_serial.max(record.number + 1);
            self.parked.insert(record.number, record.clone());
        }
        for number in &batch.unparked {
            self.parked.remove(number);
        }
        for (consent, stop) in &batch.consents {
            if *stop {
                self.stopped.insert(consent.clone());
            } else {
                self.stopped.remove(consent);
            }
        }
        for order in &batch.orders {
            self.orders.insert(order.id.0, order.clone());
        }
        for id in &batch.orders_done {
            self.orders.remove(&id.0);
        }
        for id in &batch.archived {
            self.finished.remove(&id.0);
        }
        self.money.apply(batch);
    }

    /// What a commit comes to.
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
        for id in &batch.dropped {
            self.progress.remove(&id.0);
            self.messages.remove(&id.0);
        }
        if !batch.handed.is_empty() {
            self.handed.insert(batch.handed_seq, batch.handed.clone());
            self.next_handed = batch.handed_seq + 1;
        }
        for seq in &batch.handed_done {
            self.handed.remove(seq);
        }
        self.next_id = self.next_id.max(batch.next_id.0);
        self.apply_beside(batch);
    }

    /// Forgets finished messages as [`Store::trim_finished`] should; how many went.
    pub(crate) fn trim(&mut self, before: Timestamp, most: usize) -> usize {
        let old = self.finished.iter().take(most).take_while(|(_, (_, ended))| ended.at < before);
        let gone: Vec<u64> = old.map(|(id, _)| *id).collect();
        for id in &gone {
            self.finished.remove(id);
        }
        gone.len()
    }

    /// How many wait, and how many have ended.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.messages.len() as u64, self.finished.len() as u64)
    }

    /// The first difference between this and the store, in words.
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
        let numbers = (recovery.messages, recovery.next_id.0, recovery.next_handed_seq);
        let wanted = (self.messages.len() as u64, self.next_id(), self.next_handed());
        if numbers != wanted {
            return differs("messages, next id, next handed", &numbers, &wanted);
        }
        let rows: Vec<u64> = self.handed.keys().copied().collect();
        if recovery.rows != rows {
            return differs("handed rows", &recovery.rows, &rows);
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
        let mut money = MoneyReference::default();
        store
            .recover_remembered(|found| match found {
                Remembered::Key(record) => keys.push(record),
                Remembered::Parked(record) => parked.push(record),
                Remembered::Stopped(consent) => {
                    stopped.insert(consent);
                }
                Remembered::Order(order) => orders.push(order),
                found => money.found(found),
            })
            .map_err(failed)?;
        if !keys.iter().eq(self.keys.values()) {
            return differs("keys", &keys, &self.keys);
        }
        if !parked.iter().eq(self.parked.values()) {
            return differs("parked", &parked, &self.parked);
        }
        if !orders.iter().eq(self.orders.values()) {
            return differs("orders", &orders, &self.orders);
        }
        if stopped != self.stopped {
            return differs("opted out", &stopped, &self.stopped);
        }
        if money != self.money {
            return differs("money", &money, &self.money);
        }
        money.compare_audit(store)?;
        let all = store.finished_after(MessageId(0), usize::MAX).map_err(failed)?;
        if !all.iter().map(|(message, _)| message.id.0).eq(self.finished.keys().copied()) {
            return differs("finished", &all.len(), &self.finished.len());
        }
        // The first id that never was is asked for as well.
        for id in MessageId::FIRST.0..=self.next_id() {
            let found = store.find(MessageId(id)).map_err(failed)?;
            let same = match (&found, self.messages.get(&id), self.finished.get(&id)) {
                (Some(Found::Waiting(message, progress)), Some(wanted), None) => {
                    message == wanted && progress.as_ref() == self.progress.get(&id)
                }
                (Some(Found::Finished(message, ended)), None, Some(wanted)) => {
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

    fn compare_one(&self, found: &Recovered, id: u64, message: &Message) -> Result<(), String> {
        let newest = self.handed.iter().rev().find_map(|(seq, row)| {
            row.iter().rev().find(|handed| handed.id.0 == id).map(|handed| (*handed, *seq))
        });
        let same = found.message == *message
            && found.progress.as_ref() == self.progress.get(&id)
            && found.handed == newest.map(|(handed, _)| handed)
            && found.handed_seq == newest.map_or(0, |(_, seq)| seq);
        if same { Ok(()) } else { Err(format!("recovered {id}: {found:?}")) }
    }
}
