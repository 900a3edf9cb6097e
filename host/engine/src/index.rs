use crate::slab::{NONE, Slab, Slot};
use hashbrown::HashTable;
use model::{AddressBytes, MessageId, PeerId};
use std::hash::{DefaultHasher, Hasher};

/// Finds entries by id. Costs five octets per entry: the key is in the slab.
#[derive(Debug, Default)]
pub(crate) struct IdIndex {
    table: HashTable<Slot>,
}

fn hash_id(id: MessageId) -> u64 {
    // Ids are consecutive: the multiplication spreads them over both ends that the table uses.
    id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26) ^ id.0
}

impl IdIndex {
    pub(crate) fn insert(&mut self, slab: &Slab, slot: Slot) {
        self.table.insert_unique(hash_id(slab[slot].id), slot, |slot| hash_id(slab[*slot].id));
    }

    pub(crate) fn get(&self, slab: &Slab, id: MessageId) -> Option<Slot> {
        self.table.find(hash_id(id), |slot| slab[*slot].id == id).copied()
    }

    pub(crate) fn remove(&mut self, slab: &Slab, id: MessageId) {
        if let Ok(found) = self.table.find_entry(hash_id(id), |slot| slab[*slot].id == id) {
            found.remove();
        }
    }

    /// The entry of `id` has moved.
    pub(crate) fn moved(&mut self, slab: &Slab, id: MessageId, from: Slot, to: Slot) {
        if let Some(slot) = self.table.find_mut(hash_id(id), |slot| *slot == from || slab[*slot].id == id) {
            *slot = to;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

/// Finds entries by origin, source and destination: one table entry per distinct pair, and a list through the slab
/// entries. A million messages of one pair cost as much as a million of distinct pairs.
#[derive(Debug, Default)]
pub(crate) struct PairIndex {
    table: HashTable<Slot>,
    seed: u64,
}

impl PairIndex {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashTable::new(), seed }
    }

    /// The keyed hash of a pair. With 64 bits, two pairs among ten million waiting messages collide with a
    /// probability of 1 in 360,000; an attacker who does not know the seed cannot force one.
    pub(crate) fn key(&self, origin: PeerId, source: &AddressBytes, destination: &AddressBytes) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(origin.0);
        hasher.write_usize(source.len());
        hasher.write(source);
        hasher.write(destination);
        hasher.finish()
    }

    pub(crate) fn insert(&mut self, slab: &mut Slab, slot: Slot) {
        let pair = slab[slot].pair;
        let head = self.table.find_mut(pair, |head| slab[*head].pair == pair);
        match head {
            Some(head) => {
                let old = std::mem::replace(head, slot);
                slab[slot].pair_next = old;
                slab[slot].pair_prev = NONE;
                slab[old].pair_prev = slot;
            }
            None => {
                slab[slot].pair_next = NONE;
                slab[slot].pair_prev = NONE;
                self.table.insert_unique(pair, slot, |slot| slab[*slot].pair);
            }
        }
    }

    pub(crate) fn remove(&mut self, slab: &mut Slab, slot: Slot) {
        let (pair, next, previous) = (slab[slot].pair, slab[slot].pair_next, slab[slot].pair_prev);
        if next != NONE {
            slab[next].pair_prev = previous;
        }
        if previous != NONE {
            slab[previous].pair_next = next;
        } else if let Ok(mut found) = self.table.find_entry(pair, |head| *head == slot) {
            if next == NONE {
                found.remove();
            } else {
                *found.get_mut() = next;
            }
        }
    }

    /// All entries of a pair, newest first.
    pub(crate) fn all(&self, slab: &Slab, pair: u64) -> Vec<Slot> {
        let mut found = Vec::new();
        let mut next = self.table.find(pair, |head| slab[*head].pair == pair).copied().unwrap_or(NONE);
        while next != NONE {
            found.push(next);
            next = slab[next].pair_next;
        }
        found
    }
}
