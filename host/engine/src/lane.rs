use crate::slab::{Slab, Slot, State, flag};
use model::MessageId;
use std::collections::{BTreeMap, VecDeque};

/// The waiting messages of one peer and priority, by age.
///
/// New messages are in a plain queue in arrival order, four octets each. Messages that return (throttled, retried,
/// not sent) go to their own place, not to the tail: a small ordered map holds them.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    fifo: VecDeque<Slot>,
    returned: BTreeMap<MessageId, Slot>,
    tombstones: usize,
    /// How many slots from the front of `fifo` [`Lane::next_to_load`] has checked.
    checked: usize,
}

impl Lane {
    /// Adds a new arrival; its id is greater than all before.
    pub(crate) fn push(&mut self, slab: &mut Slab, slot: Slot) {
        slab[slot].set(flag::IN_FIFO, true);
        self.fifo.push_back(slot);
    }

    /// Returns an older message to its place.
    pub(crate) fn reinsert(&mut self, slab: &Slab, slot: Slot) {
        self.returned.insert(slab[slot].id, slot);
    }

    /// Removes a message from `returned`.
    pub(crate) fn remove_returned(&mut self, id: MessageId) -> bool {
        self.returned.remove(&id).is_some()
    }

    /// Records that a slot of the queue became a tombstone. Once most slots are tombstones, they are removed.
    pub(crate) fn add_tombstone(&mut self, slab: &mut Slab) {
        self.tombstones += 1;
        if self.tombstones > 4096 && self.tombstones * 2 > self.fifo.len() {
            self.fifo.retain(|slot| {
                let gone = slab[*slot].state == State::Tombstone;
                if gone {
                    slab.remove(*slot);
                }
                !gone
            });
            self.tombstones = 0;
            self.checked = 0;
        }
    }

    fn remove_tombstones(&mut self, slab: &mut Slab) {
        while let Some(slot) = self.fifo.front() {
            if slab[*slot].state != State::Tombstone {
                break;
            }
            slab.remove(*slot);
            self.fifo.pop_front();
            self.tombstones = self.tombstones.saturating_sub(1);
            self.checked = self.checked.saturating_sub(1);
        }
    }

    /// The oldest message, without removing it.
    pub(crate) fn peek(&mut self, slab: &mut Slab) -> Option<Slot> {
        self.remove_tombstones(slab);
        match (self.fifo.front(), self.returned.first_key_value()) {
            (Some(front), Some((id, slot))) => Some(if *id < slab[*front].id { *slot } else { *front }),
            (Some(front), None) => Some(*front),
            (None, Some((_, slot))) => Some(*slot),
            (None, None) => None,
        }
    }

    /// Removes the oldest message, which [`Lane::peek`] has just returned.
    pub(crate) fn pop(&mut self, slab: &mut Slab, slot: Slot) {
        if slab[slot].has(flag::IN_FIFO) {
            self.fifo.pop_front();
            self.checked = self.checked.saturating_sub(1);
            slab[slot].set(flag::IN_FIFO, false);
        } else {
            self.returned.remove(&slab[slot].id);
        }
    }

    /// Collects messages near the front whose content is neither cached nor loading. Each place is checked once.
    pub(crate) fn next_to_load(
        &mut self,
        slab: &mut Slab,
        low_water: usize,
        run: usize,
        found: &mut Vec<MessageId>,
    ) {
        if self.checked > low_water {
            return;
        }
        let end = (self.checked + run).min(self.fifo.len());
        for slot in self.fifo.range(self.checked..end) {
            let entry = &mut slab[*slot];
            if entry.state == State::Queued && entry.message.is_none() && !entry.has(flag::LOADING) {
                entry.set(flag::LOADING, true);
                found.push(entry.id);
            }
        }
        self.checked = end;
    }

    /// Collects messages among the first returned ones whose content is not cached.
    pub(crate) fn returned_to_load(&self, slab: &mut Slab, run: usize, found: &mut Vec<MessageId>) {
        for slot in self.returned.values().take(run) {
            let entry = &mut slab[*slot];
            if entry.message.is_none() && !entry.has(flag::LOADING) {
                entry.set(flag::LOADING, true);
                found.push(entry.id);
            }
        }
    }

    /// The oldest live message, for the "oldest age" of a queue; may skip many tombstones.
    pub(crate) fn oldest(&self, slab: &Slab) -> Option<Slot> {
        let front = self.fifo.iter().copied().find(|slot| slab[*slot].state != State::Tombstone);
        match (front, self.returned.first_key_value()) {
            (Some(front), Some((id, slot))) => Some(if *id < slab[front].id { *slot } else { front }),
            (Some(front), None) => Some(front),
            (None, returned) => returned.map(|(_, slot)| *slot),
        }
    }
}
