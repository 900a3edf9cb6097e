use model::{Message, MessageId, Moment, PeerId, ReceiptRequest, Step};
use std::sync::Arc;

use crate::Part;

/// The place of an entry in the [`Slab`].
pub(crate) type Slot = u32;

/// No entry.
pub(crate) const NONE: Slot = Slot::MAX;

/// What a message in memory is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// Nothing: the slot is free.
    Free,
    /// The message has left; the slot waits for its place in a queue to come up.
    Ghost,
    /// In its peer's queue.
    Queued,
    /// Behind another message to the same subscriber, at a serial peer: see [`crate::turns`]. `due` is as for queued
    /// messages.
    Aside,
    /// Its turn came, and an order holds it back: see [`crate::orders`]. `due` is as for queued messages.
    Suspended,
    /// On a link, unanswered.
    Submitted,
    /// Waiting for its next attempt or its scheduled time (`due`).
    Deferred,
    /// Held until it is routed again (`due`).
    Held,
    /// The routing chain has been asked.
    Routing,
    /// Waiting for the subscriber behind its number; `due` is when it has waited long enough for its leg.
    Resolving,
    /// Refused; the delivery policy has been asked what follows. `due` is when the built-in schedule would try again.
    Deciding,
    /// Written and never answered; `due` is when doubt becomes [`model::FinalState::Unknown`].
    Uncertain,
    /// Taken by the peer; waits for its receipt until `due`.
    Receipt,
    /// Ended, but its content must be read back to write the receipt of ours.
    Ending,
}

impl State {
    /// Whether nobody has the message but us, so that its submitter may take it back.
    pub(crate) fn waits(self) -> bool {
        match self {
            Self::Queued
            | Self::Aside
            | Self::Suspended
            | Self::Deferred
            | Self::Held
            | Self::Routing
            | Self::Resolving
            | Self::Deciding => true,
            Self::Free | Self::Ghost | Self::Submitted | Self::Uncertain | Self::Receipt | Self::Ending => {
                false
            }
        }
    }
}

/// Bits of [`Entry::flags`].
pub(crate) mod flag {
    /// A queue's arrival order holds the slot.
    pub(crate) const IN_FIFO: u8 = 1;
    /// The content has been asked for.
    pub(crate) const LOADING: u8 = 2;
    /// The peer was asked what became of it.
    pub(crate) const ASKED: u8 = 4;
    /// A receipt of ours, not a message of a submitter.
    pub(crate) const OWN_RECEIPT: u8 = 8;
    /// Where the three bits of the receipt request begin.
    pub(crate) const RECEIPT_SHIFT: u8 = 4;
    /// Money is reserved for it: its end captures it or gives it back.
    pub(crate) const PRICED: u8 = 128;
}

/// What only messages with a history need; most messages end without it.
#[derive(Debug, Default)]
pub(crate) struct Side {
    /// Steps so far, the acceptance left out.
    pub(crate) steps: Vec<Step>,
    /// Parts that a peer has taken.
    pub(crate) parts: Vec<Part>,
}

/// One message in memory. Ten million of them are an ordinary Tuesday: every field counts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    /// Keyed hash of origin, source and destination.
    pub(crate) pair: u64,
    /// Keyed hash of peer and subscriber where the peer is serial, see [`crate::turns`]; otherwise 0.
    pub(crate) subscriber: u64,
    /// The content, while it is held in memory.
    pub(crate) message: Option<Arc<Message>>,
    /// See [`State`]; for queued messages, when the leg's longest wait ends.
    pub(crate) due: Moment,
    /// End of validity.
    pub(crate) expires: Moment,
    pub(crate) side: Option<Box<Side>>,
    pub(crate) origin: PeerId,
    /// The peer whose queue, link or receipt it waits for.
    pub(crate) peer: PeerId,
    /// Neighbours in the list of messages with the same pair.
    pub(crate) pair_next: Slot,
    pub(crate) pair_prev: Slot,
    /// Index of the link in the engine's list; in free slots, the next free slot. For messages that are aside, or
    /// held back by an order, their successor.
    pub(crate) link: u32,
    /// Position in the link's list of unanswered messages. For messages that are aside, or held back, their
    /// predecessor.
    pub(crate) position: u32,
    /// Seconds since the epoch at acceptance.
    pub(crate) accepted: u32,
    /// The order that holds it back; 0 where none does.
    pub(crate) order: u32,
    pub(crate) attempts: u16,
    /// Hash of the service type; 0 when there is none.
    pub(crate) service: u16,
    pub(crate) leg: u8,
    pub(crate) priority: u8,
    pub(crate) state: State,
    pub(crate) flags: u8,
}

impl Entry {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    pub(crate) fn receipts(&self) -> ReceiptRequest {
        ReceiptRequest::from_bits(self.flags >> flag::RECEIPT_SHIFT)
    }

    pub(crate) fn set_receipts(&mut self, receipts: ReceiptRequest) {
        let others = self.flags & !(0b111 << flag::RECEIPT_SHIFT);
        self.flags = others | receipts.bits() << flag::RECEIPT_SHIFT;
    }

    pub(crate) fn side(&mut self) -> &mut Side {
        self.side.get_or_insert_default()
    }

    pub(crate) fn blank() -> Self {
        Self {
            id: MessageId(0),
            pair: 0,
            subscriber: 0,
            message: None,
            due: Moment(u64::MAX),
            expires: Moment(u64::MAX),
            side: None,
            origin: PeerId(0),
            peer: PeerId(0),
            pair_next: NONE,
            pair_prev: NONE,
            link: NONE,
            position: 0,
            accepted: 0,
            order: 0,
            attempts: 0,
            service: 0,
            leg: 0,
            priority: 0,
            state: State::Free,
            flags: 0,
        }
    }
}

const CHUNK: usize = 4096;

/// Entries in chunks, so that growth never copies what is there nor doubles the memory for a moment.
#[derive(Debug)]
pub(crate) struct Slab {
    chunks: Vec<Box<[Entry]>>,
    free: Slot,
    used: usize,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, used: 0 }
    }

    /// How many slots have ever been made.
    pub(crate) fn capacity(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// How many slots are in use, ghosts included.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> Slot {
        if self.free == NONE {
            let base = self.capacity();
            let mut chunk: Vec<Entry> = Vec::with_capacity(CHUNK);
            for i in 0..CHUNK {
                let mut blank = Entry::blank();
                blank.link = if i + 1 < CHUNK { (base + i + 1) as Slot } else { NONE };
                chunk.push(blank);
            }
            self.chunks.push(chunk.into_boxed_slice());
            self.free = base as Slot;
        }
        let slot = self.free;
        let place = &mut self[slot];
        let next = place.link;
        *place = entry;
        self.free = next;
        self.used += 1;
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Entry {
        let mut blank = Entry::blank();
        blank.link = self.free;
        let entry = std::mem::replace(&mut self[slot], blank);
        self.free = slot;
        self.used -= 1;
        entry
    }
}

impl std::ops::Index<Slot> for Slab {
    type Output = Entry;
    fn index(&self, slot: Slot) -> &Entry {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

impl std::ops::IndexMut<Slot> for Slab {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_leaves_room_for_its_indexes_within_128_octets() {
        // 11.5 octets in each of two hash tables at their emptiest, 8 in a queue.
        assert!(std::mem::size_of::<Entry>() + 23 + 8 <= 128, "{}", std::mem::size_of::<Entry>());
    }

    #[test]
    fn slots_are_reused() {
        let mut slab = Slab::new();
        let a = slab.insert(Entry::blank());
        let b = slab.insert(Entry::blank());
        assert_ne!(a, b);
        slab.remove(a);
        assert_eq!(slab.insert(Entry::blank()), a);
        assert_eq!(slab.used(), 2);
    }
}
