//! Concatenated messages: segments with a UDH (3GPP TS 23.040 §9.2.3.24.1) or with SAR TLVs (34 §5.3.2.22 to §5.3.2.24).

use crate::text::{SmppAlphabet, alphabet};
use crate::{Tlvs, tag};
use bytes::{BufMut, Bytes, BytesMut};

/// esm_class: the text begins with a UDH.
pub const ESM_UDHI: u8 = 0x40;

/// The position of a segment in a concatenated message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SegmentInfo {
    /// The message's reference; a reference of 8 bits and one of 16 bits never match.
    pub reference: u16,
    /// Whether the reference has 16 bits.
    pub wide: bool,
    /// The number of segments.
    pub total: u8,
    /// The number of this segment, from 1.
    pub number: u8,
}

impl SegmentInfo {
    fn validated(self) -> Option<Self> {
        (self.number >= 1 && self.number <= self.total && self.total > 1).then_some(self)
    }
}

/// The length of the UDH at the front, including its length octet; `None` if it is longer than the text.
#[must_use]
pub fn header_length(text: &[u8]) -> Option<usize> {
    let length = usize::from(*text.first()?) + 1;
    (length <= text.len()).then_some(length)
}

/// The segment information of a PDU; `None` for a single message, and if the numbers are invalid. A UDH takes
/// precedence over TLVs.
#[must_use]
pub fn segment_info(udhi: bool, text: &[u8], tlvs: &Tlvs) -> Option<SegmentInfo> {
    if udhi {
        let header = text.get(1..header_length(text)?)?;
        let mut at = 0;
        while let Some([id, length]) = header.get(at..at + 2) {
            let value = header.get(at + 2..at + 2 + usize::from(*length))?;
            match (id, value) {
                (0x00, [reference, total, number]) => {
                    let part = SegmentInfo {
                        reference: u16::from(*reference),
                        wide: false,
                        total: *total,
                        number: *number,
                    };
                    return part.validated();
                }
                (0x08, [high, low, total, number]) => {
                    let reference = u16::from_be_bytes([*high, *low]);
                    return SegmentInfo { reference, wide: true, total: *total, number: *number }.validated();
                }
                _ => at += 2 + usize::from(*length),
            }
        }
        return None;
    }
    let reference = tlvs.u16(tag::SAR_MSG_REF_NUM)?;
    let (total, number) = (tlvs.u8(tag::SAR_TOTAL_SEGMENTS)?, tlvs.u8(tag::SAR_SEGMENT_SEQNUM)?);
    SegmentInfo { reference, wide: true, total, number }.validated()
}

/// Splits a text into pieces of at most `max_octets` octets, without splitting an escape sequence or a surrogate pair.
#[must_use]
pub fn split_text(data_coding: u8, text: &Bytes, max_octets: usize) -> Vec<Bytes> {
    let max_octets = max_octets.max(4);
    let kind = alphabet(data_coding);
    let mut pieces = Vec::new();
    let mut rest = text.clone();
    while rest.len() > max_octets {
        let mut end = max_octets;
        match kind {
            SmppAlphabet::Gsm => {
                let escapes = rest.iter().take(end).rev().take_while(|octet| **octet == 0x1B).count();
                end -= escapes % 2;
            }
            SmppAlphabet::Ucs2 => {
                end -= end % 2;
                let high = rest.get(end - 2).is_some_and(|octet| (0xD8..0xDC).contains(octet));
                end -= if high { 2 } else { 0 };
            }
            SmppAlphabet::Octets => {}
        }
        pieces.push(rest.split_to(end.max(1)));
    }
    pieces.push(rest);
    pieces
}

/// Octets of text in one segment with a UDH of six octets: 153 septets (one per octet here), 134 octets.
#[must_use]
pub fn octets_per_segment(data_coding: u8) -> usize {
    segment_text_octets(data_coding, 6)
}

/// Octets of text in a segment with a UDH of `header` octets. A short message has 140 octets, or 160 septets.
fn segment_text_octets(data_coding: u8, header: usize) -> usize {
    let octets = 140_usize.saturating_sub(header);
    match alphabet(data_coding) {
        SmppAlphabet::Gsm => octets * 8 / 7,
        SmppAlphabet::Octets => octets,
        SmppAlphabet::Ucs2 => octets / 2 * 2,
    }
}

/// Octets of text in one message without a UDH.
#[must_use]
pub fn octets_in_single(data_coding: u8) -> usize {
    segment_text_octets(data_coding, 0)
}

/// Splits a text into at most 255 numbered pieces; `None` if there would be more.
fn numbered_segments(data_coding: u8, text: &Bytes, max_octets: usize) -> Option<(u8, Vec<(u8, Bytes)>)> {
    let pieces = split_text(data_coding, text, max_octets);
    let total = u8::try_from(pieces.len()).ok()?;
    Some((total, (1..=total).zip(pieces).collect()))
}

fn with_header(header: &[u8], piece: &[u8]) -> Bytes {
    let mut part = BytesMut::with_capacity(header.len() + piece.len());
    part.put_slice(header);
    part.put_slice(piece);
    part.freeze()
}

/// Splits a text into segments with a UDH (8-bit reference); `None` if there would be more than 255.
#[must_use]
pub fn split_udh(data_coding: u8, text: &Bytes, reference: u8) -> Option<Vec<Bytes>> {
    let (total, pieces) = numbered_segments(data_coding, text, segment_text_octets(data_coding, 6))?;
    let part = |(number, piece): (u8, Bytes)| with_header(&[5, 0, 3, reference, total, number], &piece);
    Some(pieces.into_iter().map(part).collect())
}

/// Splits a text into segments with SAR TLVs: each text with its three TLVs; `None` if there would be more than 255.
#[must_use]
pub fn split_sar(data_coding: u8, text: &Bytes, reference: u16) -> Option<Vec<(Bytes, Tlvs)>> {
    let (total, pieces) = numbered_segments(data_coding, text, octets_per_segment(data_coding))?;
    let part = |(number, piece): (u8, Bytes)| {
        let tlvs = Tlvs::default()
            .with(tag::SAR_MSG_REF_NUM, &reference.to_be_bytes())
            .with(tag::SAR_TOTAL_SEGMENTS, &[total])
            .with(tag::SAR_SEGMENT_SEQNUM, &[number]);
        (piece, tlvs)
    };
    Some(pieces.into_iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_074_075_076_three_forms_of_segment_information() {
        let udh = segment_info(true, &[5, 0, 3, 0x2D, 2, 1, 0x4F], &Tlvs::default()).unwrap();
        assert_eq!((udh.reference, udh.total, udh.number), (0x2D, 2, 1));
        let wide = segment_info(true, &[6, 8, 4, 0, 0x2D, 2, 1], &Tlvs::default()).unwrap();
        assert!(wide.wide && wide.total == 2);
        let sar = Tlvs::default()
            .with(tag::SAR_MSG_REF_NUM, &[0, 0x2D])
            .with(tag::SAR_TOTAL_SEGMENTS, &[2])
            .with(tag::SAR_SEGMENT_SEQNUM, &[1]);
        assert_eq!(segment_info(false, b"x", &sar).unwrap().total, 2);
        assert_eq!(segment_info(true, &[5, 0, 3, 9, 3, 2], &sar).unwrap().reference, 9, "the header wins");
        assert_eq!(segment_info(true, &[0xFF, 0, 3], &sar), None);
        assert_eq!(segment_info(true, &[], &sar), None);
    }

    #[test]
    fn check_073_077_invalid_numbers_make_a_single_message() {
        let two = Tlvs::default().with(tag::SAR_MSG_REF_NUM, &[0, 1]).with(tag::SAR_TOTAL_SEGMENTS, &[2]);
        assert_eq!(segment_info(false, b"", &two), None);
        for bad in [[5, 0, 3, 1, 2, 3], [5, 0, 3, 1, 0, 0], [5, 0, 3, 1, 2, 0]] {
            assert_eq!(segment_info(true, &bad, &Tlvs::default()), None);
        }
    }

    #[test]
    fn segment_capacities() {
        let capacities = |coding| [0, 6, 7].map(|header| segment_text_octets(coding, header));
        assert_eq!(capacities(0), [160, 153, 152]);
        assert_eq!(capacities(4), [140, 134, 133]);
        assert_eq!(capacities(8).map(|octets| octets / 2), [70, 67, 66]);
    }

    #[test]
    fn segments_are_numbered_and_make_up_the_text() {
        for (coding, unit) in
            [(0_u8, &b"ab\x1B\x65c"[..]), (4, b"\x00\xFF\x1B"), (8, b"\xD8\x3D\xDE\x00\x00\x41")]
        {
            for count in [1, 60, 150] {
                let text = Bytes::from(unit.repeat(count));
                let narrow = split_udh(coding, &text, 9).unwrap();
                let sar = split_sar(coding, &text, 0x0102).unwrap();
                assert_eq!(narrow.iter().map(|part| part.slice(6..)).collect::<Vec<_>>().concat(), text);
                assert_eq!(sar.iter().map(|(part, _)| part.clone()).collect::<Vec<_>>().concat(), text);
                if narrow.len() < 2 {
                    continue;
                }
                for (index, part) in narrow.iter().enumerate() {
                    let found = segment_info(true, part, &Tlvs::default()).unwrap();
                    assert_eq!((found.reference, found.wide), (9, false));
                    assert_eq!(
                        (usize::from(found.total), usize::from(found.number)),
                        (narrow.len(), index + 1)
                    );
                }
                assert!(
                    sar.iter()
                        .all(|(part, tlvs)| segment_info(false, part, tlvs).unwrap().reference == 0x0102)
                );
            }
        }
        assert_eq!(split_udh(0, &Bytes::from(vec![b'a'; 153 * 255 + 1]), 1), None);
        assert_eq!(split_udh(0, &Bytes::from(vec![b'a'; 153 * 255]), 1).unwrap().len(), 255);
    }

    #[test]
    fn segments_never_split_a_pair() {
        let mut text = vec![b'a'; 152];
        text.extend([0x1B, 0x65, b'b']);
        let parts = split_text(0, &Bytes::from(text.clone()), 153);
        assert_eq!(parts[0].len(), 152);
        assert_eq!(parts.concat(), text);
        let emoji: Vec<u8> = std::iter::repeat_n([0xD8, 0x3D, 0xDE, 0x00], 40).flatten().collect();
        let parts = split_text(8, &Bytes::from(emoji.clone()), 134);
        assert!(parts.iter().all(|part| part.len() % 4 == 0));
        assert_eq!(parts.concat(), emoji);
    }
}
