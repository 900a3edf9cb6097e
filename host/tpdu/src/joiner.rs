//! Putting the parts of long messages together again.

use crate::coding::Alphabet;
use crate::smpp::{Carried, from_air};
use crate::{PartOf, UserData};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// What a [`Joiner`] keeps at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Messages that lack parts.
    pub messages: usize,
    /// Octets of user data in their parts.
    pub octets: usize,
    /// Milliseconds from a message's first part to its last.
    pub patience_ms: u64,
}

/// What came of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Joined {
    /// The message is whole, or was a message of its own: its text, with what its header says besides.
    Whole(Carried),
    /// Others are missing.
    Waiting,
    /// This part is here already.
    Duplicate,
}

/// A message that never became whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incomplete<K> {
    /// Whose it is.
    pub key: K,
    /// TP-DCS of its parts.
    pub data_coding: u8,
    /// Parts in all.
    pub total: u8,
    /// The parts that came, by number.
    pub parts: Vec<(u8, UserData)>,
}

/// Parts belong together that have the same owner, reference, number of parts and data coding scheme.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Id<K> {
    key: K,
    data_coding: u8,
    reference: u16,
    wide: bool,
    total: u8,
}

/// A place in the order of age: when the first part came, and a serial number.
type Age = (u64, u64);

struct Open {
    age: Age,
    /// By number.
    parts: Vec<(u8, UserData)>,
}

/// Keeps parts until their messages are whole. `K` says whose they are: two addresses, for one.
///
/// Time comes in as milliseconds of any clock that goes forward. Where a limit is reached, the oldest message gives way.
pub struct Joiner<K> {
    limits: Limits,
    open: HashMap<Id<K>, Open>,
    ages: BTreeMap<Age, Id<K>>,
    octets: usize,
    serial: u64,
    displaced: Vec<Incomplete<K>>,
}

impl<K: Clone + Eq + Hash> Joiner<K> {
    /// One that holds nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
            ages: BTreeMap::new(),
            octets: 0,
            serial: 0,
            displaced: Vec::new(),
        }
    }

    /// Takes a short message. A part that differs from the one that is here under its number begins another message
    /// under a reference that is used again: the older one gives way.
    pub fn add(&mut self, now: u64, key: K, data_coding: u8, part: UserData) -> Joined {
        let header = part.header(Alphabet::of(data_coding));
        let Some(place) = header.and_then(crate::Header::part_of) else {
            return Joined::Whole(from_air(data_coding, &part));
        };
        let PartOf { reference, wide, total, number } = place;
        let id = Id { key, data_coding, reference, wide, total };
        let known = self.open.get(&id).and_then(|open| open.parts.iter().find(|(known, _)| *known == number));
        match known {
            Some((_, known)) if *known == part => return Joined::Duplicate,
            Some(_) => self.displace(&id),
            None => {}
        }
        let octets = part.octets.len();
        let open = self.open.entry(id.clone()).or_insert_with(|| {
            self.serial += 1;
            self.ages.insert((now, self.serial), id.clone());
            Open { age: (now, self.serial), parts: Vec::new() }
        });
        let at = open.parts.partition_point(|(known, _)| *known < number);
        open.parts.insert(at, (number, part));
        self.octets += octets;
        if open.parts.len() == usize::from(total) {
            return match self.remove(&id) {
                Some(parts) => Joined::Whole(joined(data_coding, &parts)),
                None => Joined::Waiting,
            };
        }
        while self.open.len() > self.limits.messages || self.octets > self.limits.octets {
            let Some(oldest) = self.ages.values().next().cloned() else { break };
            self.displace(&oldest);
        }
        Joined::Waiting
    }

    /// The messages that gave way, and those whose time is up.
    pub fn incomplete(&mut self, now: u64) -> Vec<Incomplete<K>> {
        while let Some(((since, _), id)) = self.ages.first_key_value() {
            if since.saturating_add(self.limits.patience_ms) > now {
                break;
            }
            let id = id.clone();
            self.displace(&id);
        }
        std::mem::take(&mut self.displaced)
    }

    /// When the next message's time is up.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let ((since, _), _) = self.ages.first_key_value()?;
        Some(since.saturating_add(self.limits.patience_ms))
    }

    /// Messages that lack parts, and octets of user data that are here.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.open.len(), self.octets)
    }

    fn remove(&mut self, id: &Id<K>) -> Option<Vec<(u8, UserData)>> {
        let open = self.open.remove(id)?;
        self.ages.remove(&open.age);
        self.octets -= open.parts.iter().map(|(_, part)| part.octets.len()).sum::<usize>();
        Some(open.parts)
    }

    fn displace(&mut self, id: &Id<K>) {
        if let Some(parts) = self.remove(id) {
            let Id { key, data_coding, total, .. } = id.clone();
            self.displaced.push(Incomplete { key, data_coding, total, parts });
        }
    }
}

/// The text of all parts, after what the first one's header says besides.
fn joined(data_coding: u8, parts: &[(u8, UserData)]) -> Carried {
    let alphabet = Alphabet::of(data_coding);
    let first = parts.first().and_then(|(_, part)| part.header(alphabet));
    let elements = first.map(crate::Header::without_concatenation).unwrap_or_default();
    let text: Vec<u8> = parts.iter().flat_map(|(_, part)| part.text(alphabet)).collect();
    // It was part of a header whose length is one octet.
    let header = [&[elements.len() as u8][..], &elements].concat();
    let whole = Carried { udhi: !elements.is_empty(), ..from_air(data_coding, &UserData::default()) };
    let header = if whole.udhi { header } else { Vec::new() };
    Carried { octets: [header, text].concat().into(), ..whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, split};

    const LIMITS: Limits = Limits { messages: 3, octets: 1000, patience_ms: 60_000 };

    fn parts(data_coding: u8, text: &[u8], reference: u8) -> Vec<UserData> {
        split(data_coding, &[], text, Reference::Short(reference)).unwrap()
    }

    fn whole(joined: Joined) -> Carried {
        match joined {
            Joined::Whole(carried) => carried,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_in_any_order_make_up_the_text() {
        let text = b"abc\x1B\x65".repeat(80);
        let parts = parts(0, &text, 9);
        assert_eq!(parts.len(), 3);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut joiner = Joiner::new(LIMITS);
            let mut last = Joined::Waiting;
            for at in order {
                assert_eq!(last, Joined::Waiting);
                last = joiner.add(5, "someone", 0, parts[at].clone());
            }
            let carried = whole(last);
            assert_eq!((carried.data_coding, carried.udhi), (0, false));
            assert_eq!(carried.octets, text);
            assert_eq!((joiner.load(), joiner.deadline()), ((0, 0), None));
        }
    }

    #[test]
    fn what_the_header_says_besides_is_kept() {
        let mut joiner = Joiner::new(LIMITS);
        let parts = split(0xF1, &[0x24, 1, 1], &[0x41; 200], Reference::Wide(700)).unwrap();
        assert_eq!(joiner.add(0, 1, 0xF1, parts[0].clone()), Joined::Waiting);
        let carried = whole(joiner.add(0, 1, 0xF1, parts[1].clone()));
        assert_eq!((carried.data_coding, carried.udhi), (0xF1, true));
        assert_eq!(carried.octets, [&[3, 0x24, 1, 1][..], &[0x41; 200]].concat());
    }

    #[test]
    fn a_message_of_its_own_is_whole_at_once() {
        let mut joiner = Joiner::new(LIMITS);
        let [alone] = &parts(8, b"\x4F\x60", 1)[..] else { panic!() };
        let carried = whole(joiner.add(0, 1, 8, alone.clone()));
        assert_eq!((carried.data_coding, &carried.octets[..]), (8, &b"\x4F\x60"[..]));
    }

    #[test]
    fn parts_of_different_messages_stay_apart() {
        let mut joiner = Joiner::new(Limits { messages: 10, ..LIMITS });
        let two = parts(4, &[1; 200], 9);
        let three = parts(4, &[1; 300], 9);
        let add =
            |joiner: &mut Joiner<_>, key, coding, part: &UserData| joiner.add(0, key, coding, part.clone());
        assert_eq!(add(&mut joiner, 'a', 4, &two[0]), Joined::Waiting);
        assert_eq!(add(&mut joiner, 'b', 4, &two[1]), Joined::Waiting);
        assert_eq!(add(&mut joiner, 'a', 4, &three[1]), Joined::Waiting, "another total");
        assert_eq!(add(&mut joiner, 'a', 0xF4, &two[1]), Joined::Waiting, "another coding");
        assert_eq!(add(&mut joiner, 'a', 4, &two[0]), Joined::Duplicate);
        assert_eq!(whole(add(&mut joiner, 'a', 4, &two[1])).octets, [1; 200][..]);
        assert_eq!((joiner.load().0, joiner.incomplete(0)), (3, vec![]));
    }

    #[test]
    fn a_reference_that_is_used_again_begins_anew() {
        let mut joiner = Joiner::new(LIMITS);
        let (old, new) = (parts(4, &[1; 200], 9), parts(4, &[2; 200], 9));
        assert_eq!(joiner.add(0, (), 4, old[0].clone()), Joined::Waiting);
        assert_eq!(joiner.add(1, (), 4, new[0].clone()), Joined::Waiting);
        assert_eq!(whole(joiner.add(2, (), 4, new[1].clone())).octets, [2; 200][..]);
        let gone = Incomplete { key: (), data_coding: 4, total: 2, parts: vec![(1, old[0].clone())] };
        assert_eq!(joiner.incomplete(2), [gone]);
    }

    #[test]
    fn time_and_room_are_limited() {
        let mut joiner = Joiner::new(LIMITS);
        for key in 0..4 {
            assert_eq!(joiner.add(key, key, 4, parts(4, &[1; 200], 9)[0].clone()), Joined::Waiting);
        }
        let gone: Vec<u64> = joiner.incomplete(4).into_iter().map(|each| each.key).collect();
        assert_eq!((gone, joiner.load()), (vec![0], (3, 420)));
        assert_eq!(joiner.deadline(), Some(60_001));
        assert_eq!(joiner.incomplete(60_000), []);
        assert_eq!(joiner.incomplete(60_002).len(), 2);
        let mut small = Joiner::new(Limits { octets: 300, messages: 100, ..LIMITS });
        let many = parts(4, &[1; 1000], 9);
        for part in &many[..3] {
            assert_eq!(small.add(0, (), 4, part.clone()), Joined::Waiting);
        }
        assert_eq!(small.load(), (0, 0), "a message alone may be too much");
        assert_eq!(small.incomplete(0)[0].parts.len(), 3);
    }
}
