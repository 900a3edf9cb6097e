//! Concatenated messages: their segments, each a message of its own, shown as one text.

use crate::Kept;
use doors::text;
use model::{MessageId, Segment, Text};
use std::collections::BTreeMap;
use std::time::Duration;

/// Segments that were accepted further apart than this belong to different texts, because senders use references again.
pub(crate) const SPAN: Duration = Duration::from_secs(3600);

/// Stands in a text where segments are missing.
const MISSING: &str = "[...]";

/// Whether both are segments of texts with the same reference, length and parties.
pub(crate) fn are_alike(one: &Kept, other: &Kept) -> bool {
    let (Some(first), Some(second)) = (&one.segment, &other.segment) else { return false };
    first.is_of_same_text(second) && one.source == other.source && one.destination == other.destination
}

/// The segments, among these that are all alike, of the text that the message `id` belongs to, by growing id. A text has each
/// segment once: where a sender has used a reference twice, the earlier text takes a segment first.
pub(crate) fn text_of(id: MessageId, alike: BTreeMap<MessageId, Kept>) -> Vec<Kept> {
    let mut texts: Vec<Vec<Kept>> = Vec::new();
    for kept in alike.into_values() {
        let takes = |text: &&mut Vec<Kept>| {
            let number = |kept: &Kept| kept.segment.map(|segment| segment.number);
            let is_near = text.first().is_some_and(|first| kept.accepted_at <= first.accepted_at + SPAN);
            is_near && text.iter().all(|other| number(other) != number(&kept))
        };
        match texts.iter_mut().find(takes) {
            Some(text) => text.push(kept),
            None => texts.push(vec![kept]),
        }
    }
    texts.into_iter().find(|text| text.iter().any(|kept| kept.id == id)).unwrap_or_default()
}

/// The text that a message belongs to, with the segments that are among these messages.
pub(crate) fn text_among(kept: &Kept, messages: &[Kept]) -> Vec<Kept> {
    let own = std::iter::once(kept);
    let alike = own.chain(messages.iter().filter(|other| are_alike(kept, other)));
    text_of(kept.id, alike.map(|kept| (kept.id, kept.clone())).collect())
}

/// Whether all segments of a text are there.
pub(crate) fn is_complete(text: &[Kept]) -> bool {
    text.first().and_then(|kept| kept.segment).is_none_or(|segment| text.len() >= usize::from(segment.total))
}

/// The octets of a segment without its user data header.
fn body(text: &Text) -> &[u8] {
    let header = if text.udhi { smpp::concat::header_length(&text.octets).unwrap_or(0) } else { 0 };
    text.octets.get(header..).unwrap_or_default()
}

/// What the segments that are there say together, with a mark where some are missing; `None` where one is no text. What stands
/// next to each other is decoded as one, because a character may be cut in two.
pub(crate) fn words(text: &[Kept]) -> Option<String> {
    let total = text.first()?.segment?.total;
    let by_number: BTreeMap<u8, &Text> = text
        .iter()
        .filter_map(|kept| kept.segment.map(|Segment { number, .. }| (number, &kept.text)))
        .collect();
    let mut runs: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut all = Vec::new();
    for number in 1..=total {
        match (by_number.get(&number), runs.last_mut()) {
            (Some(next), Some((coding, octets))) if *coding == next.data_coding => {
                octets.extend_from_slice(body(next));
            }
            (Some(next), _) => {
                close(&mut runs, &mut all)?;
                runs.push((next.data_coding, body(next).to_vec()));
            }
            (None, _) => {
                close(&mut runs, &mut all)?;
                if all.last().is_none_or(|last| last != MISSING) {
                    all.push(MISSING.to_owned());
                }
            }
        }
    }
    close(&mut runs, &mut all)?;
    let mut words = String::new();
    for (index, piece) in all.iter().enumerate() {
        let next_to_gap = piece == MISSING || index.checked_sub(1).is_some_and(|last| all[last] == MISSING);
        if next_to_gap && index > 0 {
            words.push(' ');
        }
        words.push_str(piece);
    }
    Some(words)
}

fn close(runs: &mut Vec<(u8, Vec<u8>)>, all: &mut Vec<String>) -> Option<()> {
    for (data_coding, octets) in runs.drain(..) {
        let run = Text { octets: octets.into(), data_coding, udhi: false, payload: false };
        let (words, coding) = text::show(&run);
        if coding == "binary" {
            return None;
        }
        all.push(words);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::{Address, Timestamp};

    /// A segment: its id, when it was accepted in seconds, its number of three, and its octets.
    fn segment(id: u64, at: u64, number: u8, data_coding: u8, octets: &[u8]) -> Kept {
        let octets = [&[5, 0, 3, 7, 3, number], octets].concat();
        let text = Text { octets: Bytes::from(octets), data_coding, udhi: true, payload: false };
        Kept {
            id: MessageId(id),
            source: Address::international("4915100001"),
            destination: Address::international("4915100002"),
            segment: Segment::of(&text, &[]),
            text,
            accepted_at: Timestamp(at * 1000),
            ended: None,
        }
    }

    fn ids(id: u64, alike: &[(u64, u64, u8)]) -> Vec<u64> {
        let alike =
            alike.iter().map(|(id, at, number)| (MessageId(*id), segment(*id, *at, *number, 0, b"x")));
        text_of(MessageId(id), alike.collect()).iter().map(|kept| kept.id.0).collect()
    }

    #[test]
    fn a_reference_that_is_used_again_is_another_text() {
        let one_after_the_other = [(1, 0, 1), (2, 0, 2), (3, 1, 3), (4, 60, 1), (5, 60, 2)];
        assert_eq!(ids(2, &one_after_the_other), [1, 2, 3]);
        assert_eq!(ids(4, &one_after_the_other), [4, 5]);
        let mixed = [(1, 0, 1), (2, 0, 1), (3, 0, 2), (4, 0, 2)];
        assert_eq!((ids(1, &mixed), ids(4, &mixed)), (vec![1, 3], vec![2, 4]));
        let late = [(1, 0, 1), (2, 0, 3), (3, 3601, 2)];
        assert_eq!((ids(1, &late), ids(3, &late)), (vec![1, 2], vec![3]));
    }

    #[test]
    fn words_come_in_order_with_a_mark_where_some_are_missing() {
        let all = [segment(1, 0, 3, 0, b"three"), segment(2, 0, 1, 0, b"one "), segment(3, 0, 2, 0, b"two ")];
        assert_eq!(words(&all).as_deref(), Some("one two three"));
        assert!(is_complete(&all) && !is_complete(&all[1..]));
        assert_eq!(words(&all[..2]).as_deref(), Some("one  [...] three"));
        assert_eq!(words(&all[..1]).as_deref(), Some("[...] three"));
        assert_eq!(words(&all[1..2]).as_deref(), Some("one  [...]"));
    }

    #[test]
    fn a_character_that_is_cut_in_two_is_read_as_one() {
        // U+1F600 in UTF-16, its surrogates in two segments.
        let all = [
            segment(1, 0, 1, 8, &[0, b'a', 0xD8, 0x3D]),
            segment(2, 0, 2, 8, &[0xDE, 0x00]),
            segment(3, 0, 3, 0, b"b"),
        ];
        assert_eq!(words(&all).as_deref(), Some("a\u{1F600}b"));
        assert_eq!(words(&[segment(1, 0, 1, 0, b"a"), segment(2, 0, 2, 4, b"\0")]), None);
    }
}
