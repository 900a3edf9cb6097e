use crate::slab::Slot;
use hashbrown::HashTable;
use model::{Moment, PeerId, PeerMessageId, Receipt, ReceiptState, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use crate::{ParkedRecord, Part, ReplyTo};

/// Finds messages that wait for a receipt, by peer group and the peer's id.
#[derive(Debug, Default)]
pub(crate) struct ReceiptIndex {
    table: HashTable<(u64, Slot)>,
    seed: u64,
}

impl ReceiptIndex {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashTable::new(), seed }
    }

    /// The key of a peer's id within a group: a keyed hash, since ids come from outside. Whoever finds a slot by it
    /// compares the id itself.
    pub(crate) fn key(&self, group: u32, id: &PeerMessageId) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(group);
        hasher.write(&id.0);
        hasher.finish()
    }

    pub(crate) fn insert(&mut self, key: u64, slot: Slot) {
        self.table.insert_unique(key, (key, slot), |(key, _)| *key);
    }

    pub(crate) fn remove(&mut self, key: u64, slot: Slot) {
        if let Ok(found) = self.table.find_entry(key, |entry| *entry == (key, slot)) {
            found.remove();
        }
    }

    /// Slots under a key; more than one only if a peer gave one id twice.
    pub(crate) fn find(&self, key: u64, matches: impl Fn(Slot) -> bool) -> Option<Slot> {
        self.table.find(key, |(found, slot)| *found == key && matches(*slot)).map(|(_, slot)| *slot)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

/// A receipt that matches nothing yet: it may have overtaken its answer, or its answer was lost.
#[derive(Debug)]
pub(crate) struct Parked {
    /// The peer that sent it, and the peer's group.
    pub(crate) peer: PeerId,
    pub(crate) group: u32,
    pub(crate) receipt: Receipt,
    /// When it came.
    pub(crate) at: Timestamp,
    pub(crate) until: Moment,
    /// It stands in the table `parked`.
    pub(crate) written: bool,
    /// The peer still waits for our answer to it.
    pub(crate) reply: Option<(ReplyTo, Moment)>,
}

impl Parked {
    pub(crate) fn record(&self, number: u64) -> ParkedRecord {
        ParkedRecord { number, peer: self.peer, at: self.at, receipt: self.receipt.clone() }
    }
}

/// Parked receipts, findable by key, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    by_key: HashMap<u64, Vec<u64>>,
    parked: HashMap<u64, (u64, Parked)>,
    order: VecDeque<u64>,
    /// Those whose peers still wait for an answer, oldest first.
    unanswered: VecDeque<u64>,
    next: u64,
}

impl Parking {
    pub(crate) fn len(&self) -> usize {
        self.parked.len()
    }

    pub(crate) fn park(&mut self, key: u64, parked: Parked) -> u64 {
        let number = self.next;
        self.put(number, key, parked);
        number
    }

    /// Puts one in under its number; numbers must grow.
    pub(crate) fn put(&mut self, number: u64, key: u64, parked: Parked) {
        self.next = number + 1;
        if parked.reply.is_some() {
            self.unanswered.push_back(number);
        }
        self.by_key.entry(key).or_default().push(number);
        self.parked.insert(number, (key, parked));
        self.order.push_back(number);
    }

    pub(crate) fn holds(&self, key: u64) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Takes out everything parked under a key, oldest first.
    pub(crate) fn claim(&mut self, key: u64, group: u32, id: &PeerMessageId) -> Vec<(u64, Parked)> {
        let Some(numbers) = self.by_key.remove(&key) else { return Vec::new() };
        let (mine, others): (Vec<u64>, Vec<u64>) = numbers.into_iter().partition(|number| {
            self.parked
                .get(number)
                .is_some_and(|(_, parked)| parked.group == group && parked.receipt.id == *id)
        });
        if !others.is_empty() {
            self.by_key.insert(key, others);
        }
        mine.into_iter()
            .filter_map(|number| self.parked.remove(&number).map(|(_, parked)| (number, parked)))
            .collect()
    }

    /// The peer has another group: what it sent is found under the new one. `key` is the new key of a receipt's id.
    pub(crate) fn regroup(&mut self, peer: PeerId, group: u32, key: impl Fn(&PeerMessageId) -> u64) {
        for (number, (old, parked)) in &mut self.parked {
            if parked.peer != peer || parked.group == group {
                continue;
            }
            if let Some(numbers) = self.by_key.get_mut(old) {
                numbers.retain(|other| other != number);
                if numbers.is_empty() {
                    self.by_key.remove(old);
                }
            }
            (*old, parked.group) = (key(&parked.receipt.id), group);
            let numbers = self.by_key.entry(*old).or_default();
            let place = numbers.partition_point(|other| other < number);
            numbers.insert(place, *number);
        }
    }

    /// Takes out what has been parked long enough, and the oldest if there is more than `limit`.
    pub(crate) fn expired(&mut self, now: Moment, limit: usize) -> Vec<(u64, Parked)> {
        let mut gone = Vec::new();
        while let Some(number) = self.order.front() {
            match self.parked.get(number) {
                None => {}
                Some((_, parked)) if parked.until <= now || self.parked.len() > limit => {
                    if let Some((key, parked)) = self.parked.remove(number) {
                        if let Some(numbers) = self.by_key.get_mut(&key) {
                            numbers.retain(|other| other != number);
                            if numbers.is_empty() {
                                self.by_key.remove(&key);
                            }
                        }
                        gone.push((*number, parked));
                    }
                }
                Some(_) => break,
            }
            self.order.pop_front();
        }
        gone
    }

    /// Those whose answers have been held back long enough: they are to be written down, and answered. Oldest first.
    pub(crate) fn overdue(&mut self, now: Moment) -> Vec<(ReplyTo, ParkedRecord)> {
        let mut due = Vec::new();
        while let Some(number) = self.unanswered.front() {
            if let Some((_, parked)) = self.parked.get_mut(number) {
                match parked.reply {
                    Some((_, at)) if at > now => break,
                    Some((reply, _)) => {
                        parked.reply = None;
                        parked.written = true;
                        due.push((reply, parked.record(*number)));
                    }
                    None => {}
                }
            }
            self.unanswered.pop_front();
        }
        due
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ParkedRecord> {
        self.order.iter().filter_map(|number| Some(self.parked.get(number)?.1.record(*number)))
    }
}

/// What all parts of a message together have come to: `None` while one of them is still open.
pub(crate) fn verdict_of_parts(parts: &[Part]) -> Option<ReceiptState> {
    let mut worst = ReceiptState::Delivered;
    for part in parts {
        match part.state {
            None | Some(ReceiptState::Scheduled | ReceiptState::Enroute | ReceiptState::Accepted) => {
                return None;
            }
            Some(ReceiptState::Delivered) => {}
            Some(other) => worst = other,
        }
    }
    (!parts.is_empty()).then_some(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(state: Option<ReceiptState>) -> Part {
        Part { id: PeerMessageId::default(), state }
    }

    #[test]
    fn a_message_is_delivered_when_all_its_parts_are() {
        use ReceiptState::{Accepted, Delivered, Enroute, Undeliverable};
        assert_eq!(verdict_of_parts(&[]), None);
        assert_eq!(verdict_of_parts(&[part(Some(Delivered)), part(None)]), None);
        assert_eq!(verdict_of_parts(&[part(Some(Delivered)), part(Some(Enroute))]), None);
        assert_eq!(verdict_of_parts(&[part(Some(Accepted))]), None);
        assert_eq!(verdict_of_parts(&[part(Some(Delivered)), part(Some(Delivered))]), Some(Delivered));
        assert_eq!(
            verdict_of_parts(&[part(Some(Undeliverable)), part(Some(Delivered))]),
            Some(Undeliverable)
        );
    }
}
