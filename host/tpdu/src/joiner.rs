//! Reassembly of concatenated messages.

use crate::coding::Alphabet;
use crate::smpp::{SmppText, from_air};
use crate::{Concatenation, UserData};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Limits of a [`Joiner`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinerLimits {
    /// Maximum number of incomplete messages.
    pub messages: usize,
    /// Maximum octets of user data in their segments.
    pub octets: usize,
    /// Maximum time from the first segment of a message to the last, in milliseconds.
    pub timeout_ms: u64,
}

/// The result of [`Joiner::add`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinOutcome {
    /// The message is complete, or was not concatenated: its text, with the other elements of its header.
    Complete(SmppText),
    /// Segments are missing.
    Pending,
    /// The segment was received before.
    Duplicate,
}

/// A message that was dropped before it was complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncompleteMessage<K> {
    /// The key given to [`Joiner::add`].
    pub key: K,
    /// TP-DCS of its segments.
    pub data_coding: u8,
    /// Number of segments of the message.
    pub total: u8,
    /// The received segments, by number.
    pub segments: Vec<(u8, UserData)>,
}

/// Segments belong to one message if key, reference, number of segments and data coding scheme are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct MessageKey<K> {
    key: K,
    data_coding: u8,
    reference: u16,
    wide: bool,
    total: u8,
}

/// Position in the order of age: time of the first segment, and a serial number.
type Age = (u64, u64);

struct PartialMessage {
    age: Age,
    /// Segments by number.
    segments: Vec<(u8, UserData)>,
}

/// Reassembles concatenated messages. `K` identifies sender and recipient, for example by two addresses.
///
/// Times are milliseconds of any monotonic clock. If a limit is reached, the oldest message is dropped.
pub struct Joiner<K> {
    limits: JoinerLimits,
    partial: HashMap<MessageKey<K>, PartialMessage>,
    ages: BTreeMap<Age, MessageKey<K>>,
    octets: usize,
    serial: u64,
    displaced: Vec<IncompleteMessage<K>>,
}

impl<K: Clone + Eq + Hash> Joiner<K> {
    /// Creates an empty joiner.
    #[must_use]
    pub fn new(limits: JoinerLimits) -> Self {
        Self {
            limits,
            partial: HashMap::new(),
            ages: BTreeMap::new(),
            octets: 0,
            serial: 0,
            displaced: Vec::new(),
        }
    }

    /// Adds a short message. A segment that differs from the one already stored under its number starts another message
    /// that reuses the reference; the older message is dropped.
    pub fn add(&mut self, now: u64, key: K, data_coding: u8, segment: UserData) -> JoinOutcome {
        let header = segment.header(Alphabet::of(data_coding));
        let Some(concatenation) = header.and_then(crate::Header::concatenation) else {
            return JoinOutcome::Complete(from_air(data_coding, &segment));
        };
        let Concatenation { reference, wide, total, number } = concatenation;
        let id = MessageKey { key, data_coding, reference, wide, total };
        let known = self
            .partial
            .get(&id)
            .and_then(|partial| partial.segments.iter().find(|(known, _)| *known == number));
        match known {
            Some((_, known)) if *known == segment => return JoinOutcome::Duplicate,
            Some(_) => self.displace(&id),
            None => {}
        }
        let octets = segment.octets.len();
        let partial = self.partial.entry(id.clone()).or_insert_with(|| {
            self.serial += 1;
            self.ages.insert((now, self.serial), id.clone());
            PartialMessage { age: (now, self.serial), segments: Vec::new() }
        });
        let at = partial.segments.partition_point(|(known, _)| *known < number);
        partial.segments.insert(at, (number, segment));
        self.octets += octets;
        if partial.segments.len() == usize::from(total) {
            return match self.remove(&id) {
                Some(segments) => JoinOutcome::Complete(join_segments(data_coding, &segments)),
                None => JoinOutcome::Pending,
            };
        }
        while self.partial.len() > self.limits.messages || self.octets > self.limits.octets {
            let Some(oldest) = self.ages.values().next().cloned() else { break };
            self.displace(&oldest);
        }
        JoinOutcome::Pending
    }

    /// Takes the messages that were dropped or have timed out.
    pub fn incomplete(&mut self, now: u64) -> Vec<IncompleteMessage<K>> {
        while let Some(((since, _), id)) = self.ages.first_key_value() {
            if since.saturating_add(self.limits.timeout_ms) > now {
                break;
            }
            let id = id.clone();
            self.displace(&id);
        }
        std::mem::take(&mut self.displaced)
    }

    /// The time at which the next message times out.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let ((since, _), _) = self.ages.first_key_value()?;
        Some(since.saturating_add(self.limits.timeout_ms))
    }

    /// Number of incomplete messages, and octets of user data in them.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.partial.len(), self.octets)
    }

    fn remove(&mut self, id: &MessageKey<K>) -> Option<Vec<(u8, UserData)>> {
        let partial = self.partial.remove(id)?;
        self.ages.remove(&partial.age);
        self.octets -= partial.segments.iter().map(|(_, segment)| segment.octets.len()).sum::<usize>();
        Some(partial.segments)
    }

    fn displace(&mut self, id: &MessageKey<K>) {
        if let Some(segments) = self.remove(id) {
            let MessageKey { key, data_coding, total, .. } = id.clone();
            self.displaced.push(IncompleteMessage { key, data_coding, total, segments });
        }
    }
}

/// Joins the text of all segments and prepends the other elements of the first header.
fn join_segments(data_coding: u8, segments: &[(u8, UserData)]) -> SmppText {
    let alphabet = Alphabet::of(data_coding);
    let first = segments.first().and_then(|(_, segment)| segment.header(alphabet));
    let elements = first.map(crate::Header::without_concatenation).unwrap_or_default();
    let text: Vec<u8> = segments.iter().flat_map(|(_, segment)| segment.text(alphabet)).collect();
    // The elements come from a header with a one-octet length.
    let header = [&[elements.len() as u8][..], &elements].concat();
    let complete = SmppText { udhi: !elements.is_empty(), ..from_air(data_coding, &UserData::default()) };
    let header = if complete.udhi { header } else { Vec::new() };
    SmppText { octets: [header, text].concat().into(), ..complete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConcatReference, split};

    const LIMITS: JoinerLimits = JoinerLimits { messages: 3, octets: 1000, timeout_ms: 60_000 };

    fn segments(data_coding: u8, text: &[u8], reference: u8) -> Vec<UserData> {
        split(data_coding, &[], text, ConcatReference::Short(reference)).unwrap()
    }

    fn complete(join_segments: JoinOutcome) -> SmppText {
        match join_segments {
            JoinOutcome::Complete(carried) => carried,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn segments_in_any_order_are_joined() {
        let text = b"abc\x1B\x65".repeat(80);
        let segments = segments(0, &text, 9);
        assert_eq!(segments.len(), 3);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut joiner = Joiner::new(LIMITS);
            let mut last = JoinOutcome::Pending;
            for at in order {
                assert_eq!(last, JoinOutcome::Pending);
                last = joiner.add(5, "someone", 0, segments[at].clone());
            }
            let carried = complete(last);
            assert_eq!((carried.data_coding, carried.udhi), (0, false));
            assert_eq!(carried.octets, text);
            assert_eq!((joiner.load(), joiner.deadline()), ((0, 0), None));
        }
    }

    #[test]
    fn other_header_elements_are_kept() {
        let mut joiner = Joiner::new(LIMITS);
        let segments = split(0xF1, &[0x24, 1, 1], &[0x41; 200], ConcatReference::Wide(700)).unwrap();
        assert_eq!(joiner.add(0, 1, 0xF1, segments[0].clone()), JoinOutcome::Pending);
        let carried = complete(joiner.add(0, 1, 0xF1, segments[1].clone()));
        assert_eq!((carried.data_coding, carried.udhi), (0xF1, true));
        assert_eq!(carried.octets, [&[3, 0x24, 1, 1][..], &[0x41; 200]].concat());
    }

    #[test]
    fn single_message_is_complete_at_once() {
        let mut joiner = Joiner::new(LIMITS);
        let [alone] = &segments(8, b"\x4F\x60", 1)[..] else { panic!() };
        let carried = complete(joiner.add(0, 1, 8, alone.clone()));
        assert_eq!((carried.data_coding, &carried.octets[..]), (8, &b"\x4F\x60"[..]));
    }

    #[test]
    fn segments_of_different_messages_are_not_mixed() {
        let mut joiner = Joiner::new(JoinerLimits { messages: 10, ..LIMITS });
        let two = segments(4, &[1; 200], 9);
        let three = segments(4, &[1; 300], 9);
        let add = |joiner: &mut Joiner<_>, key, coding, segment: &UserData| {
            joiner.add(0, key, coding, segment.clone())
        };
        assert_eq!(add(&mut joiner, 'a', 4, &two[0]), JoinOutcome::Pending);
        assert_eq!(add(&mut joiner, 'b', 4, &two[1]), JoinOutcome::Pending);
        assert_eq!(add(&mut joiner, 'a', 4, &three[1]), JoinOutcome::Pending, "another total");
        assert_eq!(add(&mut joiner, 'a', 0xF4, &two[1]), JoinOutcome::Pending, "another coding");
        assert_eq!(add(&mut joiner, 'a', 4, &two[0]), JoinOutcome::Duplicate);
        assert_eq!(complete(add(&mut joiner, 'a', 4, &two[1])).octets, [1; 200][..]);
        assert_eq!((joiner.load().0, joiner.incomplete(0)), (3, vec![]));
    }

    #[test]
    fn reused_reference_starts_a_new_message() {
        let mut joiner = Joiner::new(LIMITS);
        let (old, new) = (segments(4, &[1; 200], 9), segments(4, &[2; 200], 9));
        assert_eq!(joiner.add(0, (), 4, old[0].clone()), JoinOutcome::Pending);
        assert_eq!(joiner.add(1, (), 4, new[0].clone()), JoinOutcome::Pending);
        assert_eq!(complete(joiner.add(2, (), 4, new[1].clone())).octets, [2; 200][..]);
        let gone =
            IncompleteMessage { key: (), data_coding: 4, total: 2, segments: vec![(1, old[0].clone())] };
        assert_eq!(joiner.incomplete(2), [gone]);
    }

    #[test]
    fn time_and_memory_are_limited() {
        let mut joiner = Joiner::new(LIMITS);
        for key in 0..4 {
            assert_eq!(joiner.add(key, key, 4, segments(4, &[1; 200], 9)[0].clone()), JoinOutcome::Pending);
        }
        let gone: Vec<u64> = joiner.incomplete(4).into_iter().map(|each| each.key).collect();
        assert_eq!((gone, joiner.load()), (vec![0], (3, 420)));
        assert_eq!(joiner.deadline(), Some(60_001));
        assert_eq!(joiner.incomplete(60_000), []);
        assert_eq!(joiner.incomplete(60_002).len(), 2);
        let mut small = Joiner::new(JoinerLimits { octets: 300, messages: 100, ..LIMITS });
        let many = segments(4, &[1; 1000], 9);
        for segment in &many[..3] {
            assert_eq!(small.add(0, (), 4, segment.clone()), JoinOutcome::Pending);
        }
        assert_eq!(small.load(), (0, 0), "a message alone may be too much");
        assert_eq!(small.incomplete(0)[0].segments.len(), 3);
    }
}
