use crate::ReplyTo;
use model::{Dlr, Moment, OrphanDlrRecord, PeerId, PeerMessageId, Timestamp};
use std::collections::{HashMap, VecDeque};

/// An orphan DLR: it has overtaken its submit response, or that response was lost.
#[derive(Debug)]
pub(crate) struct OrphanDlr {
    /// The peer that sent it, and its group.
    pub(crate) peer: PeerId,
    pub(crate) group: u32,
    pub(crate) dlr: Dlr,
    /// The time of receipt.
    pub(crate) at: Timestamp,
    pub(crate) until: Moment,
    /// It is in table `parked`.
    pub(crate) written: bool,
    /// The pending answer to the peer, and its time.
    pub(crate) reply: Option<(ReplyTo, Moment)>,
}

impl OrphanDlr {
    pub(crate) fn record(&self, number: u64) -> OrphanDlrRecord {
        OrphanDlrRecord { number, peer: self.peer, at: self.at, dlr: self.dlr.clone() }
    }
}

/// All orphan DLRs, by key and by age.
#[derive(Debug, Default)]
pub(crate) struct OrphanDlrs {
    by_key: HashMap<u64, Vec<u64>>,
    by_number: HashMap<u64, (u64, OrphanDlr)>,
    by_age: VecDeque<u64>,
    /// Orphan DLRs with a pending answer, oldest first.
    unanswered: VecDeque<u64>,
    next: u64,
}

impl OrphanDlrs {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn insert(&mut self, key: u64, orphan: OrphanDlr) -> u64 {
        let number = self.next;
        self.insert_numbered(number, key, orphan);
        number
    }

    /// Adds an orphan DLR under its number; numbers must ascend.
    pub(crate) fn insert_numbered(&mut self, number: u64, key: u64, orphan: OrphanDlr) {
        self.next = number + 1;
        if orphan.reply.is_some() {
            self.unanswered.push_back(number);
        }
        self.by_key.entry(key).or_default().push(number);
        self.by_number.insert(number, (key, orphan));
        self.by_age.push_back(number);
    }

    pub(crate) fn holds(&self, key: u64) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Removes the orphan DLRs of a peer message id, oldest first.
    pub(crate) fn claim(&mut self, key: u64, group: u32, id: &PeerMessageId) -> Vec<(u64, OrphanDlr)> {
        let Some(numbers) = self.by_key.remove(&key) else { return Vec::new() };
        let (mine, others): (Vec<u64>, Vec<u64>) = numbers.into_iter().partition(|number| {
            self.by_number
                .get(number)
                .is_some_and(|(_, orphan)| orphan.group == group && orphan.dlr.id == *id)
        });
        if !others.is_empty() {
            self.by_key.insert(key, others);
        }
        mine.into_iter()
            .filter_map(|number| self.by_number.remove(&number).map(|(_, orphan)| (number, orphan)))
            .collect()
    }

    /// Moves a peer's orphan DLRs to another group. `key` is the new key of a peer message id.
    pub(crate) fn regroup(&mut self, peer: PeerId, group: u32, key: impl Fn(&PeerMessageId) -> u64) {
        for (number, (old, orphan)) in &mut self.by_number {
            if orphan.peer != peer || orphan.group == group {
                continue;
            }
            if let Some(numbers) = self.by_key.get_mut(old) {
                numbers.retain(|other| other != number);
                if numbers.is_empty() {
                    self.by_key.remove(old);
                }
            }
            (*old, orphan.group) = (key(&orphan.dlr.id), group);
            let numbers = self.by_key.entry(*old).or_default();
            let place = numbers.partition_point(|other| other < number);
            numbers.insert(place, *number);
        }
    }

    /// Removes and returns expired orphan DLRs, and the oldest beyond `limit`.
    pub(crate) fn expired(&mut self, now: Moment, limit: usize) -> Vec<(u64, OrphanDlr)> {
        let mut gone = Vec::new();
        while let Some(number) = self.by_age.front() {
            match self.by_number.get(number) {
                None => {}
                Some((_, orphan)) if orphan.until <= now || self.by_number.len() > limit => {
                    if let Some((key, orphan)) = self.by_number.remove(number) {
                        if let Some(numbers) = self.by_key.get_mut(&key) {
                            numbers.retain(|other| other != number);
                            if numbers.is_empty() {
                                self.by_key.remove(&key);
                            }
                        }
                        gone.push((*number, orphan));
                    }
                }
                Some(_) => break,
            }
            self.by_age.pop_front();
        }
        gone
    }

    /// The orphan DLRs whose pending answer is due, and the oldest beyond `most` pending ones, oldest first. The caller
    /// stores and answers them.
    pub(crate) fn overdue(&mut self, now: Moment, most: usize) -> Vec<(ReplyTo, OrphanDlrRecord)> {
        let mut due = Vec::new();
        while let Some(number) = self.unanswered.front() {
            if let Some((_, orphan)) = self.by_number.get_mut(number) {
                match orphan.reply {
                    Some((_, at)) if at > now && self.unanswered.len() <= most => break,
                    Some((reply, _)) => {
                        orphan.reply = None;
                        orphan.written = true;
                        due.push((reply, orphan.record(*number)));
                    }
                    None => {}
                }
            }
            self.unanswered.pop_front();
        }
        due
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = OrphanDlrRecord> {
        self.by_age.iter().filter_map(|number| Some(self.by_number.get(number)?.1.record(*number)))
    }
}
