//! The ready numbers of a pool, in the form that its strategy needs.

use super::Entry;
use model::{PoolNumber, Random, Strategy};
use std::collections::BTreeSet;

/// No slot.
const NONE: u32 = u32::MAX;

/// The greatest weight; the least is 1. Drawing by weight checks this many lists, whatever the pool's size.
pub(super) const MAX_WEIGHT: u8 = 16;

/// The list of ready numbers. Joining, leaving and picking cost O(1), or O(log n) with an order other than time.
#[derive(Debug)]
pub(super) enum IdleList {
    /// A chain through the entries, the longest idle first.
    Queue { first: u32, last: u32, len: usize },
    /// Slots in any order, one list per weight (index: weight less 1).
    Urns(Vec<Vec<u32>>),
    /// By the number's point on a ring: the first at or after the caller's point is picked.
    Ring(BTreeSet<(u64, u32)>),
    /// By number.
    Numbers(BTreeSet<(PoolNumber, u32)>),
}

impl IdleList {
    pub(super) fn new(strategy: Strategy) -> Self {
        match strategy {
            Strategy::LongestIdle => Self::Queue { first: NONE, last: NONE, len: 0 },
            Strategy::Random => Self::Urns(vec![Vec::new()]),
            Strategy::Weighted => Self::Urns(vec![Vec::new(); usize::from(MAX_WEIGHT)]),
            Strategy::Sticky => Self::Ring(BTreeSet::new()),
            Strategy::Nearest => Self::Numbers(BTreeSet::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Queue { len, .. } => *len,
            Self::Urns(urns) => urns.iter().map(Vec::len).sum(),
            Self::Ring(ring) => ring.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Adds a slot, at the end if the list has an order.
    pub(super) fn join(&mut self, entries: &mut [Entry], slot: u32) {
        let at = slot as usize;
        debug_assert!(!entries[at].listed);
        entries[at].listed = true;
        match self {
            Self::Queue { first, last, len } => {
                entries[at].before = *last;
                entries[at].after = NONE;
                if *last == NONE {
                    *first = slot;
                } else {
                    entries[*last as usize].after = slot;
                }
                *last = slot;
                *len += 1;
            }
            Self::Urns(urns) => {
                let urn = urn_of(urns, entries[at].weight);
                entries[at].before = u32::try_from(urn.len()).unwrap_or(NONE);
                urn.push(slot);
            }
            Self::Ring(ring) => {
                ring.insert((point(entries[at].number), slot));
            }
            Self::Numbers(numbers) => {
                numbers.insert((entries[at].number, slot));
            }
        }
    }

    /// Removes a slot, if it is in the list.
    pub(super) fn leave(&mut self, entries: &mut [Entry], slot: u32) {
        let at = slot as usize;
        if !entries[at].listed {
            return;
        }
        entries[at].listed = false;
        match self {
            Self::Queue { first, last, len } => {
                let (before, after) = (entries[at].before, entries[at].after);
                if before == NONE {
                    *first = after;
                } else {
                    entries[before as usize].after = after;
                }
                if after == NONE {
                    *last = before;
                } else {
                    entries[after as usize].before = before;
                }
                *len -= 1;
            }
            Self::Urns(urns) => {
                let place = entries[at].before;
                let urn = urn_of(urns, entries[at].weight);
                urn.swap_remove(place as usize);
                if let Some(moved) = urn.get(place as usize) {
                    entries[*moved as usize].before = place;
                }
            }
            Self::Ring(ring) => {
                ring.remove(&(point(entries[at].number), slot));
            }
            Self::Numbers(numbers) => {
                numbers.remove(&(entries[at].number, slot));
            }
        }
    }

    /// The weight of a listed slot changed from `old`. Its position in an order does not.
    pub(super) fn reweigh(&mut self, entries: &mut [Entry], slot: u32, old: u8) {
        if !matches!(self, Self::Urns(_)) {
            return;
        }
        let at = slot as usize;
        let new = std::mem::replace(&mut entries[at].weight, old);
        self.leave(entries, slot);
        entries[at].weight = new;
        self.join(entries, slot);
    }

    /// A part of the list, in the order of leasing if there is one.
    pub(super) fn slots(&self, entries: &[Entry], skip: usize, most: usize) -> Vec<u32> {
        match self {
            Self::Queue { first, .. } => {
                let next = |slot: &u32| match entries[*slot as usize].after {
                    NONE => None,
                    after => Some(after),
                };
                let begin = (*first != NONE).then_some(*first);
                std::iter::successors(begin, next).skip(skip).take(most).collect()
            }
            Self::Urns(urns) => urns.iter().flatten().skip(skip).take(most).copied().collect(),
            Self::Ring(ring) => ring.iter().skip(skip).take(most).map(|(_, slot)| *slot).collect(),
            Self::Numbers(numbers) => numbers.iter().skip(skip).take(most).map(|(_, slot)| *slot).collect(),
        }
    }

    /// The slot for a caller; it stays in the list.
    pub(super) fn pick(&self, random: &mut Random, user: &str, callee: &str) -> Option<u32> {
        match self {
            Self::Queue { first, .. } => (*first != NONE).then_some(*first),
            Self::Urns(urns) => {
                let weight = |(i, urn): (usize, &Vec<u32>)| (i as u64 + 1) * urn.len() as u64;
                let mut drawn = random.below(urns.iter().enumerate().map(weight).sum());
                for (i, urn) in urns.iter().enumerate() {
                    let share = weight((i, urn));
                    if drawn < share {
                        let place = usize::try_from(drawn / (i as u64 + 1)).ok()?;
                        return urn.get(place).copied();
                    }
                    drawn -= share;
                }
                None
            }
            Self::Ring(ring) => {
                let from = (pair_point(user, callee), 0);
                ring.range(from..).next().or_else(|| ring.first()).map(|(_, slot)| *slot)
            }
            Self::Numbers(numbers) => {
                let Some(callee) = PoolNumber::beginning_of(callee) else {
                    return numbers.first().map(|(_, slot)| *slot);
                };
                // In the order of numbers, the number with the longest common prefix is a neighbour of the callee.
                let below = numbers.range(..(callee, 0)).next_back();
                let above = numbers.range((callee, 0)..).next();
                let common = |found: &(PoolNumber, u32)| found.0.common_prefix(callee);
                match (below, above) {
                    (Some(below), Some(above)) if common(above) > common(below) => Some(above.1),
                    (Some(below), _) => Some(below.1),
                    (None, above) => above.map(|(_, slot)| *slot),
                }
            }
        }
    }
}

fn urn_of(urns: &mut [Vec<u32>], weight: u8) -> &mut Vec<u32> {
    let last = urns.len() - 1;
    &mut urns[usize::from(weight.max(1) - 1).min(last)]
}

/// Points are the same in every run and on every machine, so sticky pairs survive a restart without being stored.
fn point(number: PoolNumber) -> u64 {
    Random::new(u64::from_be_bytes(number.octets())).next()
}

fn pair_point(user: &str, callee: &str) -> u64 {
    // FNV-1a; 0xFF is in no UTF-8 text and separates the two.
    let octets = user.bytes().chain([0xFF]).chain(callee.bytes());
    let hash = octets.fold(0xCBF2_9CE4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    Random::new(hash).next()
}
