use crate::slab::Slot;
use hashbrown::HashTable;
use model::PeerMessageId;
use std::hash::{DefaultHasher, Hasher};

/// Index of messages that wait for a DLR, by peer group and peer message id.
#[derive(Debug, Default)]
pub(crate) struct DlrIndex {
    table: HashTable<(u64, Slot)>,
    seed: u64,
}

impl DlrIndex {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashTable::new(), seed }
    }

    /// The keyed hash of a peer's id within a group; ids come from outside. The caller compares the id itself.
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

    /// The slot under a key that `matches`; several exist only if a peer assigned an id twice.
    pub(crate) fn find(&self, key: u64, matches: impl Fn(Slot) -> bool) -> Option<Slot> {
        self.table.find(key, |(found, slot)| *found == key && matches(*slot)).map(|(_, slot)| *slot)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
