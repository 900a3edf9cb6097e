//! Whose turn it is. A serial peer gets one message at a time for a subscriber; the others stand behind it, here, in their
//! order. Only subscribers for whom something is on its way, or has failed and waits, have an entry at all.

use crate::slab::{Entry, NONE, Slab, Slot};
use model::{MessageId, Priority};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// What names a subscriber to a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'a> {
    Imsi(&'a [u8]),
    /// Where no IMSI is known, the number without a leading plus sign.
    Number(&'a [u8]),
}

/// The turns of all subscribers of serial peers.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// By [`Turns::key`], which nobody outside can choose.
    table: FxHashMap<u64, Turn>,
    seed: u64,
}

/// The turn of one subscriber at one peer. Where anybody is behind, somebody has the turn or is called.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The message that has the turn: on its way, being decided, or waiting after a failure.
    pub(crate) holder: Option<MessageId>,
    /// The first of those behind, once nobody has the turn: on its way back into its queue, or there.
    pub(crate) called: Option<MessageId>,
    pub(crate) behind: Option<Box<Behind>>,
    /// The holder's place among the commands of the run in which it left.
    pub(crate) command: u32,
    /// The holder waits after a failure.
    pub(crate) parked: bool,
    /// The subscriber was heard of while the holder's attempt was under way.
    pub(crate) heard: bool,
}

impl Turns {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The key of a peer's subscriber; never 0. Where two should meet in 64 bits they take turns with each other.
    pub(crate) fn key(&self, peer: u32, name: Name<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(peer);
        let (kind, octets) = match name {
            Name::Imsi(octets) => (1, octets),
            Name::Number(octets) => (2, octets),
        };
        hasher.write_u8(kind);
        hasher.write(octets);
        hasher.finish().max(1)
    }

    pub(crate) fn get(&self, key: u64) -> Option<&Turn> {
        self.table.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut Turn> {
        self.table.get_mut(&key)
    }

    pub(crate) fn make(&mut self, key: u64) -> &mut Turn {
        self.table.entry(key).or_default()
    }

    /// Lets go of a turn that nobody has and nobody waits for.
    pub(crate) fn forget_idle(&mut self, key: u64) {
        if self
            .table
            .get(&key)
            .is_some_and(|turn| turn.holder.is_none() && turn.called.is_none() && turn.behind.is_none())
        {
            self.table.remove(&key);
        }
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Turn> {
        self.table.remove(&key)
    }

    /// Keys and turns, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Turn)> {
        self.table.iter().map(|(key, turn)| (*key, turn))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// By urgency, then by age: the least goes first.
pub(crate) fn rank(entry: &Entry) -> (Reverse<u8>, MessageId) {
    (Reverse(entry.priority), entry.id)
}

/// The messages behind a subscriber's turn.
///
/// They come by growing id, all but a few, and so stand in a list through their entries, one a priority: no octet more a
/// message. Those few stand in an ordered map beside it.
#[derive(Debug)]
pub(crate) struct Behind {
    lists: [List; Priority::LEVELS],
    strays: BTreeMap<(Reverse<u8>, MessageId), Slot>,
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: Slot,
    tail: Slot,
}

impl Default for Behind {
    fn default() -> Self {
        Self { lists: [List { head: NONE, tail: NONE }; Priority::LEVELS], strays: BTreeMap::new() }
    }
}

// A message behind a turn is on no link: `link` is its successor in the list, `position` its predecessor.
impl Behind {
    pub(crate) fn insert(&mut self, slab: &mut Slab, slot: Slot) {
        let (id, priority) = (slab[slot].id, slab[slot].priority);
        let list = &mut self.lists[usize::from(priority)];
        (slab[slot].link, slab[slot].position) = (NONE, NONE);
        if list.tail == NONE {
            *list = List { head: slot, tail: slot };
        } else if slab[list.tail].id < id {
            slab[list.tail].link = slot;
            slab[slot].position = list.tail;
            list.tail = slot;
        } else if id < slab[list.head].id {
            slab[list.head].position = slot;
            slab[slot].link = list.head;
            list.head = slot;
        } else {
            self.strays.insert((Reverse(priority), id), slot);
        }
    }

    pub(crate) fn remove(&mut self, slab: &mut Slab, slot: Slot) {
        let entry = &mut slab[slot];
        let (next, previous) = (entry.link, entry.position);
        (entry.link, entry.position) = (NONE, 0);
        let (priority, id) = (entry.priority, entry.id);
        if !self.strays.is_empty() && self.strays.remove(&(Reverse(priority), id)).is_some() {
            return;
        }
        let list = &mut self.lists[usize::from(priority)];
        if next == NONE {
            list.tail = previous;
        } else {
            slab[next].position = previous;
        }
        if previous == NONE {
            list.head = next;
        } else {
            slab[previous].link = next;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.strays.is_empty() && self.lists.iter().all(|list| list.head == NONE)
    }

    /// The most urgent, then oldest.
    pub(crate) fn first(&self, slab: &Slab) -> Option<Slot> {
        let listed = self.lists.iter().rev().map(|list| list.head).find(|head| *head != NONE);
        let stray = self.strays.values().next().copied();
        listed.into_iter().chain(stray).min_by_key(|slot| rank(&slab[*slot]))
    }

    /// The oldest of whatever urgency.
    pub(crate) fn oldest(&self, slab: &Slab) -> Option<MessageId> {
        let heads = self.lists.iter().map(|list| list.head).filter(|head| *head != NONE);
        // A stray is never older than the head of its list when it comes, but may outlive it.
        let strays = (0..Priority::LEVELS).filter_map(|level| {
            let level = Reverse(u8::try_from(level).unwrap_or(0));
            let mut of_level = self.strays.range((level, MessageId(0))..=(level, MessageId(u64::MAX)));
            of_level.next().map(|((_, id), _)| *id)
        });
        heads.map(|head| slab[head].id).chain(strays).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab_of(messages: &[(u64, u8)]) -> (Slab, Vec<Slot>) {
        let mut slab = Slab::new();
        let slots = messages
            .iter()
            .map(|(id, priority)| {
                slab.insert(Entry { id: MessageId(*id), priority: *priority, ..Entry::blank() })
            })
            .collect();
        (slab, slots)
    }

    fn drain(behind: &mut Behind, slab: &mut Slab) -> Vec<u64> {
        std::iter::from_fn(|| {
            let first = behind.first(slab)?;
            behind.remove(slab, first);
            Some(slab[first].id.0)
        })
        .collect()
    }

    #[test]
    fn they_leave_by_urgency_and_age_in_whatever_order_they_came() {
        let (mut slab, slots) =
            slab_of(&[(5, 0), (9, 0), (7, 0), (3, 0), (8, 2), (6, 2), (10, 0), (4, 0), (1, 1), (11, 2)]);
        let mut behind = Behind::default();
        slots.iter().for_each(|slot| behind.insert(&mut slab, *slot));
        assert_eq!(behind.oldest(&slab), Some(MessageId(1)));
        assert_eq!(drain(&mut behind, &mut slab), [6, 8, 11, 1, 3, 4, 5, 7, 9, 10]);
        assert!(behind.is_empty() && behind.oldest(&slab).is_none());
    }

    #[test]
    fn any_of_them_may_leave_at_any_time() {
        // All orders of five, and each of them removed first.
        for seed in 0..120_usize {
            let mut ids: Vec<u64> = (1..=5).collect();
            let mut left = seed;
            for place in 0..5 {
                ids.swap(place, place + left % (5 - place));
                left /= 5 - place;
            }
            for gone in 0..5 {
                let of = |id: &u64| (*id, u8::from(id.is_multiple_of(2)));
                let (mut slab, slots) = slab_of(&ids.iter().map(of).collect::<Vec<_>>());
                let mut behind = Behind::default();
                slots.iter().for_each(|slot| behind.insert(&mut slab, *slot));
                behind.remove(&mut slab, slots[gone]);
                let expected: Vec<u64> = [2, 4, 1, 3, 5].into_iter().filter(|id| *id != ids[gone]).collect();
                assert_eq!(behind.oldest(&slab).unwrap().0, *expected.iter().min().unwrap());
                assert_eq!(drain(&mut behind, &mut slab), expected, "{ids:?} without {}", ids[gone]);
            }
        }
    }
}
