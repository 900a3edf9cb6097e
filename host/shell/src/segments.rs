//! Joins the segments of concatenated messages to one text for display.

use crate::ShellRecord;
use model::{MessageId, Segment, Text};
use ports::text;
use std::collections::BTreeMap;
use std::time::Duration;

/// Segments accepted further apart belong to different texts, since senders reuse references.
pub(crate) const MAX_SEGMENT_SPREAD: Duration = Duration::from_secs(3600);

/// Marks missing segments in a text.
const GAP_MARK: &str = "[...]";

/// Whether both are segments of texts with the same reference, length, sender and recipient.
pub(crate) fn are_segments_of_same_text(one: &ShellRecord, other: &ShellRecord) -> bool {
    let (Some(first), Some(second)) = (&one.segment, &other.segment) else { return false };
    first.is_of_same_text(second) && one.source == other.source && one.destination == other.destination
}

/// The segments of the text that contains message `id`, by ascending id. A text has each segment once: if a reference
/// was reused, segments are assigned to the earlier text first.
pub(crate) fn group_containing(
    id: MessageId,
    candidates: BTreeMap<MessageId, ShellRecord>,
) -> Vec<ShellRecord> {
    let mut texts: Vec<Vec<ShellRecord>> = Vec::new();
    for record in candidates.into_values() {
        let takes = |text: &&mut Vec<ShellRecord>| {
            let number = |record: &ShellRecord| record.segment.map(|segment| segment.number);
            let is_near = text
                .first()
                .is_some_and(|first| record.accepted_at <= first.accepted_at + MAX_SEGMENT_SPREAD);
            is_near && text.iter().all(|other| number(other) != number(&record))
        };
        match texts.iter_mut().find(takes) {
            Some(text) => text.push(record),
            None => texts.push(vec![record]),
        }
    }
    texts.into_iter().find(|text| text.iter().any(|record| record.id == id)).unwrap_or_default()
}

/// The segments of a message's text among these messages.
pub(crate) fn text_in_page(record: &ShellRecord, messages: &[ShellRecord]) -> Vec<ShellRecord> {
    let own = std::iter::once(record);
    let candidates = own.chain(messages.iter().filter(|other| are_segments_of_same_text(record, other)));
    group_containing(record.id, candidates.map(|record| (record.id, record.clone())).collect())
}

/// Whether all segments are present.
pub(crate) fn is_complete(text: &[ShellRecord]) -> bool {
    text.first()
        .and_then(|record| record.segment)
        .is_none_or(|segment| text.len() >= usize::from(segment.total))
}

/// The octets of a segment without its user data header.
fn without_header(text: &Text) -> &[u8] {
    let header = if text.udhi { smpp::segmentation::header_length(&text.octets).unwrap_or(0) } else { 0 };
    text.octets.get(header..).unwrap_or_default()
}

/// Joins the segments, with a mark for missing ones; `None` if one is not text. Adjacent segments are decoded together,
/// since a character may be split.
pub(crate) fn joined_text(text: &[ShellRecord]) -> Option<String> {
    let total = text.first()?.segment?.total;
    let by_number: BTreeMap<u8, &Text> = text
        .iter()
        .filter_map(|record| record.segment.map(|Segment { number, .. }| (number, &record.text)))
        .collect();
    let mut runs: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut pieces = Vec::new();
    for number in 1..=total {
        match (by_number.get(&number), runs.last_mut()) {
            (Some(next), Some((coding, octets))) if *coding == next.data_coding => {
                octets.extend_from_slice(without_header(next));
            }
            (Some(next), _) => {
                flush_runs(&mut runs, &mut pieces)?;
                runs.push((next.data_coding, without_header(next).to_vec()));
            }
            (None, _) => {
                flush_runs(&mut runs, &mut pieces)?;
                if pieces.last().is_none_or(|last| last != GAP_MARK) {
                    pieces.push(GAP_MARK.to_owned());
                }
            }
        }
    }
    flush_runs(&mut runs, &mut pieces)?;
    let mut joined_text = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        let next_to_gap =
            piece == GAP_MARK || index.checked_sub(1).is_some_and(|last| pieces[last] == GAP_MARK);
        if next_to_gap && index > 0 {
            joined_text.push(' ');
        }
        joined_text.push_str(piece);
    }
    Some(joined_text)
}

fn flush_runs(runs: &mut Vec<(u8, Vec<u8>)>, pieces: &mut Vec<String>) -> Option<()> {
    for (data_coding, octets) in runs.drain(..) {
        let run = Text { octets: octets.into(), data_coding, udhi: false, payload: false };
        let (joined_text, coding) = text::display(&run);
        if coding == "binary" {
            return None;
        }
        pieces.push(joined_text);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::{Address, Timestamp};

    /// A segment with id, acceptance time in seconds, number (of three) and octets.
    fn segment(id: u64, at: u64, number: u8, data_coding: u8, octets: &[u8]) -> ShellRecord {
        let octets = [&[5, 0, 3, 7, 3, number], octets].concat();
        let text = Text { octets: Bytes::from(octets), data_coding, udhi: true, payload: false };
        ShellRecord {
            id: MessageId(id),
            source: Address::international("4915100001"),
            destination: Address::international("4915100002"),
            segment: Segment::of(&text, &[]),
            text,
            accepted_at: Timestamp(at * 1000),
            end: None,
        }
    }

    fn ids(id: u64, candidates: &[(u64, u64, u8)]) -> Vec<u64> {
        let candidates =
            candidates.iter().map(|(id, at, number)| (MessageId(*id), segment(*id, *at, *number, 0, b"x")));
        group_containing(MessageId(id), candidates.collect()).iter().map(|record| record.id.0).collect()
    }

    #[test]
    fn reused_reference_starts_another_text() {
        let one_after_the_other = [(1, 0, 1), (2, 0, 2), (3, 1, 3), (4, 60, 1), (5, 60, 2)];
        assert_eq!(ids(2, &one_after_the_other), [1, 2, 3]);
        assert_eq!(ids(4, &one_after_the_other), [4, 5]);
        let mixed = [(1, 0, 1), (2, 0, 1), (3, 0, 2), (4, 0, 2)];
        assert_eq!((ids(1, &mixed), ids(4, &mixed)), (vec![1, 3], vec![2, 4]));
        let late = [(1, 0, 1), (2, 0, 3), (3, 3601, 2)];
        assert_eq!((ids(1, &late), ids(3, &late)), (vec![1, 2], vec![3]));
    }

    #[test]
    fn segments_are_joined_in_order_with_a_gap_mark() {
        let pieces =
            [segment(1, 0, 3, 0, b"three"), segment(2, 0, 1, 0, b"one "), segment(3, 0, 2, 0, b"two ")];
        assert_eq!(joined_text(&pieces).as_deref(), Some("one two three"));
        assert!(is_complete(&pieces) && !is_complete(&pieces[1..]));
        assert_eq!(joined_text(&pieces[..2]).as_deref(), Some("one  [...] three"));
        assert_eq!(joined_text(&pieces[..1]).as_deref(), Some("[...] three"));
        assert_eq!(joined_text(&pieces[1..2]).as_deref(), Some("one  [...]"));
    }

    #[test]
    fn character_split_across_segments_is_decoded() {
        // U+1F600 in UTF-16, with its surrogates in two segments.
        let pieces = [
            segment(1, 0, 1, 8, &[0, b'a', 0xD8, 0x3D]),
            segment(2, 0, 2, 8, &[0xDE, 0x00]),
            segment(3, 0, 3, 0, b"b"),
        ];
        assert_eq!(joined_text(&pieces).as_deref(), Some("a\u{1F600}b"));
        assert_eq!(joined_text(&[segment(1, 0, 1, 0, b"a"), segment(2, 0, 2, 4, b"\0")]), None);
    }
}
