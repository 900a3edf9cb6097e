use model::{
    DlrRequest, EarlierLeg, FinalRecord, Message, MessageId, Moment, Outcome, PeerId, Step, SubmittedSegment,
};
use std::sync::Arc;

/// The position of an entry in the [`Slab`].
pub(crate) type Slot = u32;

/// No entry.
pub(crate) const NONE: Slot = Slot::MAX;

/// The state of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// The slot is free.
    Free,
    /// The message has left; a queue still holds the slot.
    Tombstone,
    /// In its peer's queue.
    Queued,
    /// Behind a subscriber lock, at a serial peer: see [`crate::subscriber_lock`]. `due` is as for queued messages.
    SubscriberLocked,
    /// Held by a queue action: see [`crate::queue_actions::rules`]. `due` is as for queued messages.
    Suspended,
    /// Waits for a pace bucket or a send window: see [`crate::pace_limits`]. `due` is as for queued messages.
    Paced,
    /// On a link, unanswered.
    Submitted,
    /// Waiting for its next attempt or its scheduled time (`due`).
    Deferred,
    /// Held until it is routed again (`due`).
    Held,
    /// In quarantine until an admin decides.
    Quarantined,
    /// Waiting for the lookup of its number; at `due` it is routed without an answer.
    AwaitingLookup,
    /// Being routed again.
    Routing,
    /// Waiting for the resolver; `due` is the end of the leg's longest wait.
    Resolving,
    /// Refused; the delivery policy is deciding. `due` is the next attempt of the built-in schedule.
    Deciding,
    /// Sent and never answered; at `due` it becomes [`model::FinalState::Unknown`].
    Uncertain,
    /// Accepted by the peer; waits for its DLR until `due`.
    AwaitingDlr,
    /// Finished, but its content must be loaded for the DLR.
    Ending,
}

impl State {
    /// Whether no peer has the message, so that its submitter may cancel it.
    pub(crate) fn waits(self) -> bool {
        match self {
            Self::Queued
            | Self::SubscriberLocked
            | Self::Suspended
            | Self::Paced
            | Self::Deferred
            | Self::Held
            | Self::Quarantined
            | Self::AwaitingLookup
            | Self::Routing
            | Self::Resolving
            | Self::Deciding => true,
            Self::Free
            | Self::Tombstone
            | Self::Submitted
            | Self::Uncertain
            | Self::AwaitingDlr
            | Self::Ending => false,
        }
    }
}

/// Bits of [`Entry::flags`].
pub(crate) mod flag {
    /// A queue's arrival order holds the slot.
    pub(crate) const IN_FIFO: u8 = 1;
    /// The content is being loaded.
    pub(crate) const LOADING: u8 = 2;
    /// The peer was queried (query_sm).
    pub(crate) const QUERIED: u8 = 4;
    /// The entry is a DLR for a submitter, not a submitted message.
    pub(crate) const OWN_DLR: u8 = 8;
    /// The first of the three bits of the DLR request.
    pub(crate) const DLR_REQUEST_SHIFT: u8 = 4;
    /// An amount is reserved: the end of the message captures or releases it.
    pub(crate) const PRICED: u8 = 128;
}

/// Data of messages with a history; most messages end without it.
#[derive(Debug, Default)]
pub(crate) struct MessageHistory {
    /// Steps so far, without the acceptance.
    pub(crate) steps: Vec<Step>,
    /// Segments that the peer has accepted.
    pub(crate) segments: Vec<SubmittedSegment>,
    /// See [`model::MessageProgress::earlier`].
    pub(crate) earlier: Vec<EarlierLeg>,
}

/// A finish that waits for the content of its message.
#[derive(Debug)]
pub(crate) struct PendingFinish {
    pub(crate) ended: FinalRecord,
    pub(crate) wants_dlr: bool,
    /// For an attempt of another partition: the outcome to report, if none was reported.
    pub(crate) outcome: Option<Outcome>,
}

/// One message in memory. Ten million of them are common: every octet counts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    /// Keyed hash of origin, source and destination.
    pub(crate) pair: u64,
    /// Keyed hash of peer and subscriber if the peer is serial, see [`crate::subscriber_lock`]; otherwise 0.
    pub(crate) subscriber: u64,
    /// The content, while it is cached.
    pub(crate) message: Option<Arc<Message>>,
    /// See [`State`]; for queued messages, the end of the leg's longest wait.
    pub(crate) due: Moment,
    /// End of validity.
    pub(crate) expires: Moment,
    pub(crate) history: Option<Box<MessageHistory>>,
    pub(crate) origin: PeerId,
    /// The peer of its queue, link or DLR.
    pub(crate) peer: PeerId,
    /// Neighbours in the list of messages with the same pair.
    pub(crate) pair_next: Slot,
    pub(crate) pair_prev: Slot,
    /// Index of the link in the engine's list; in free slots, the next free slot. For messages behind a lock or held
    /// by a queue action, their successor; for paced messages, the limit.
    pub(crate) link: u32,
    /// Position in the link's list of unanswered messages. For messages behind a lock or held by a queue action,
    /// their predecessor.
    pub(crate) position: u32,
    /// Time of acceptance, in seconds since the epoch.
    pub(crate) accepted: u32,
    /// The queue action that holds it; 0 for none.
    pub(crate) held_by: u32,
    pub(crate) attempts: u16,
    /// Hash of the service type; 0 for none.
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

    pub(crate) fn dlr_request(&self) -> DlrRequest {
        DlrRequest::from_bits(self.flags >> flag::DLR_REQUEST_SHIFT)
    }

    pub(crate) fn set_dlr_request(&mut self, dlr_request: DlrRequest) {
        let others = self.flags & !(0b111 << flag::DLR_REQUEST_SHIFT);
        self.flags = others | dlr_request.bits() << flag::DLR_REQUEST_SHIFT;
    }

    pub(crate) fn history_mut(&mut self) -> &mut MessageHistory {
        self.history.get_or_insert_default()
    }

    pub(crate) fn blank() -> Self {
        Self {
            id: MessageId(0),
            pair: 0,
            subscriber: 0,
            message: None,
            due: Moment(u64::MAX),
            expires: Moment(u64::MAX),
            history: None,
            origin: PeerId(0),
            peer: PeerId(0),
            pair_next: NONE,
            pair_prev: NONE,
            link: NONE,
            position: 0,
            accepted: 0,
            held_by: 0,
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

/// Entries in chunks: growth neither copies entries nor doubles the memory for a moment.
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

    /// The number of slots ever allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// The number of slots in use, including tombstones.
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
        // Plus 11.5 octets in each of two hash tables at their emptiest, and 8 in a queue.
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
