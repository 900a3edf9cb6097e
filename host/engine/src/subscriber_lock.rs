//! Subscriber locks: a serial peer gets one message at a time per subscriber; the others wait here, in order. Only
//! subscribers with a message in delivery or in back-off have an entry.

use crate::slab::{Entry, NONE, Slab, Slot};
use model::{MessageId, Priority};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// The identity of a subscriber at a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SubscriberKey<'a> {
    Imsi(&'a [u8]),
    /// Without an IMSI: the number without leading plus signs.
    Number(&'a [u8]),
}

/// The locks of all subscribers of serial peers.
#[derive(Debug, Default)]
pub(crate) struct SubscriberLocks {
    /// By [`SubscriberLocks::key`], a keyed hash that no peer can choose.
    table: FxHashMap<u64, SubscriberLock>,
    seed: u64,
}

/// The lock of one subscriber at one peer. With waiters, it has a holder or a next message.
#[derive(Debug, Default)]
pub(crate) struct SubscriberLock {
    /// The holder: being sent, being decided, or in back-off.
    pub(crate) holder: Option<MessageId>,
    /// The first waiter, once the lock is free: on its way to its queue, or in it.
    pub(crate) next_up: Option<MessageId>,
    pub(crate) waiters: Option<Box<LockWaiters>>,
    /// The index of the holder's command in the run in which it was sent.
    pub(crate) command: u32,
    /// The holder is in back-off.
    pub(crate) backing_off: bool,
    /// The subscriber was alerted during the holder's attempt.
    pub(crate) alerted: bool,
}

impl SubscriberLocks {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The key of a peer's subscriber; never 0. Two subscribers with the same 64-bit key would share a lock.
    pub(crate) fn key(&self, peer: u32, name: SubscriberKey<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(peer);
        let (kind, octets) = match name {
            SubscriberKey::Imsi(octets) => (1, octets),
            SubscriberKey::Number(octets) => (2, octets),
        };
        hasher.write_u8(kind);
        hasher.write(octets);
        hasher.finish().max(1)
    }

    pub(crate) fn get(&self, key: u64) -> Option<&SubscriberLock> {
        self.table.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut SubscriberLock> {
        self.table.get_mut(&key)
    }

    pub(crate) fn make(&mut self, key: u64) -> &mut SubscriberLock {
        self.table.entry(key).or_default()
    }

    /// Removes a lock without holder and waiters.
    pub(crate) fn forget_idle(&mut self, key: u64) {
        if self
            .table
            .get(&key)
            .is_some_and(|lock| lock.holder.is_none() && lock.next_up.is_none() && lock.waiters.is_none())
        {
            self.table.remove(&key);
        }
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<SubscriberLock> {
        self.table.remove(&key)
    }

    /// Keys and locks, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &SubscriberLock)> {
        self.table.iter().map(|(key, lock)| (*key, lock))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// The order of messages: priority, then age; the smallest first.
pub(crate) fn rank(entry: &Entry) -> (Reverse<u8>, MessageId) {
    (Reverse(entry.priority), entry.id)
}

/// The waiters of a lock.
///
/// Nearly all waiters arrive by ascending id. They are linked through their entries, in one list per priority, without extra
/// memory. The others are in an ordered map.
#[derive(Debug)]
pub(crate) struct LockWaiters {
    lists: [List; Priority::LEVELS],
    out_of_order: BTreeMap<(Reverse<u8>, MessageId), Slot>,
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: Slot,
    tail: Slot,
}

impl Default for LockWaiters {
    fn default() -> Self {
        Self { lists: [List { head: NONE, tail: NONE }; Priority::LEVELS], out_of_order: BTreeMap::new() }
    }
}

// A waiter is on no link: `link` is its successor in the list, `position` its predecessor.
impl LockWaiters {
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
            self.out_of_order.insert((Reverse(priority), id), slot);
        }
    }

    pub(crate) fn remove(&mut self, slab: &mut Slab, slot: Slot) {
        let entry = &mut slab[slot];
        let (next, previous) = (entry.link, entry.position);
        (entry.link, entry.position) = (NONE, 0);
        let (priority, id) = (entry.priority, entry.id);
        if !self.out_of_order.is_empty() && self.out_of_order.remove(&(Reverse(priority), id)).is_some() {
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
        self.out_of_order.is_empty() && self.lists.iter().all(|list| list.head == NONE)
    }

    /// The most urgent, then oldest waiter.
    pub(crate) fn first(&self, slab: &Slab) -> Option<Slot> {
        let listed = self.lists.iter().rev().map(|list| list.head).find(|head| *head != NONE);
        let unlisted = self.out_of_order.values().next().copied();
        listed.into_iter().chain(unlisted).min_by_key(|slot| rank(&slab[*slot]))
    }

    /// The oldest waiter of any priority.
    pub(crate) fn oldest(&self, slab: &Slab) -> Option<MessageId> {
        let heads = self.lists.iter().map(|list| list.head).filter(|head| *head != NONE);
        // An unlisted waiter is never older than the head of its list when it arrives, but may outlive it.
        let out_of_order = (0..Priority::LEVELS).filter_map(|level| {
            let level = Reverse(u8::try_from(level).unwrap_or(0));
            let mut of_level = self.out_of_order.range((level, MessageId(0))..=(level, MessageId(u64::MAX)));
            of_level.next().map(|((_, id), _)| *id)
        });
        heads.map(|head| slab[head].id).chain(out_of_order).min()
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

    fn drain(waiters: &mut LockWaiters, slab: &mut Slab) -> Vec<u64> {
        std::iter::from_fn(|| {
            let first = waiters.first(slab)?;
            waiters.remove(slab, first);
            Some(slab[first].id.0)
        })
        .collect()
    }

    #[test]
    fn waiters_leave_by_priority_then_age() {
        let (mut slab, slots) =
            slab_of(&[(5, 0), (9, 0), (7, 0), (3, 0), (8, 2), (6, 2), (10, 0), (4, 0), (1, 1), (11, 2)]);
        let mut waiters = LockWaiters::default();
        slots.iter().for_each(|slot| waiters.insert(&mut slab, *slot));
        assert_eq!(waiters.oldest(&slab), Some(MessageId(1)));
        assert_eq!(drain(&mut waiters, &mut slab), [6, 8, 11, 1, 3, 4, 5, 7, 9, 10]);
        assert!(waiters.is_empty() && waiters.oldest(&slab).is_none());
    }

    #[test]
    fn any_waiter_can_leave_at_any_time() {
        // All permutations of five, and each of the five removed first.
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
                let mut waiters = LockWaiters::default();
                slots.iter().for_each(|slot| waiters.insert(&mut slab, *slot));
                waiters.remove(&mut slab, slots[gone]);
                let expected: Vec<u64> = [2, 4, 1, 3, 5].into_iter().filter(|id| *id != ids[gone]).collect();
                assert_eq!(waiters.oldest(&slab).unwrap().0, *expected.iter().min().unwrap());
                assert_eq!(drain(&mut waiters, &mut slab), expected, "{ids:?} without {}", ids[gone]);
            }
        }
    }
}
