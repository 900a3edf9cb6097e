//! Long messages: parts by user data header or by SAR TLVs (sheet §2.12).

use crate::text::{Alphabet, alphabet};
use crate::{Tlvs, tag};
use bytes::{BufMut, Bytes, BytesMut};

/// esm_class: the text begins with a user data header.
pub const ESM_UDHI: u8 = 0x40;

/// Which part of which message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartOf {
    /// The message's reference; references of 8 and 16 bits are different ones.
    pub reference: u16,
    /// Whether the reference has 16 bits.
    pub wide: bool,
    /// Parts in all.
    pub total: u8,
    /// This part, from 1.
    pub number: u8,
}

impl PartOf {
    fn sane(self) -> Option<Self> {
        (self.number >= 1 && self.number <= self.total && self.total > 1).then_some(self)
    }
}

/// The length of the user data header at the front, its own length octet included; `None` when it claims more than is
/// there.
#[must_use]
pub fn header_length(text: &[u8]) -> Option<usize> {
    let length = usize::from(*text.first()?) + 1;
    (length <= text.len()).then_some(length)
}

/// Which part of a long message a PDU carries; `None` for a message of its own. A header wins over TLVs; one whose
/// numbers make no sense counts as none.
#[must_use]
pub fn part_of(udhi: bool, text: &[u8], tlvs: &Tlvs) -> Option<PartOf> {
    if udhi {
        let header = text.get(1..header_length(text)?)?;
        let mut at = 0;
        while let Some([id, length]) = header.get(at..at + 2) {
            let value = header.get(at + 2..at + 2 + usize::from(*length))?;
            match (id, value) {
                (0x00, [reference, total, number]) => {
                    let part = PartOf {
                        reference: u16::from(*reference),
                        wide: false,
                        total: *total,
                        number: *number,
                    };
                    return part.sane();
                }
                (0x08, [high, low, total, number]) => {
                    let reference = u16::from_be_bytes([*high, *low]);
                    return PartOf { reference, wide: true, total: *total, number: *number }.sane();
                }
                _ => at += 2 + usize::from(*length),
            }
        }
        return None;
    }
    let reference = tlvs.u16(tag::SAR_MSG_REF_NUM)?;
    let (total, number) = (tlvs.u8(tag::SAR_TOTAL_SEGMENTS)?, tlvs.u8(tag::SAR_SEGMENT_SEQNUM)?);
    PartOf { reference, wide: true, total, number }.sane()
}

/// Cuts a text into pieces of at most `room` octets without parting an escape pair or a surrogate pair.
#[must_use]
pub fn cut(data_coding: u8, text: &Bytes, room: usize) -> Vec<Bytes> {
    let room = room.max(4);
    let kind = alphabet(data_coding);
    let mut pieces = Vec::new();
    let mut rest = text.clone();
    while rest.len() > room {
        let mut end = room;
        match kind {
            Alphabet::Gsm => {
                let escapes = rest.iter().take(end).rev().take_while(|octet| **octet == 0x1B).count();
                end -= escapes % 2;
            }
            Alphabet::Ucs2 => {
                end -= end % 2;
                let high = rest.get(end - 2).is_some_and(|octet| (0xD8..0xDC).contains(octet));
                end -= if high { 2 } else { 0 };
            }
            Alphabet::Octets => {}
        }
        pieces.push(rest.split_to(end.max(1)));
    }
    pieces.push(rest);
    pieces
}

/// Octets of text in one part with a header of six octets: 153 septets (one an octet here), 134 octets.
#[must_use]
pub fn room_in_part(data_coding: u8) -> usize {
    match alphabet(data_coding) {
        Alphabet::Gsm => 153,
        Alphabet::Octets | Alphabet::Ucs2 => 134,
    }
}

/// Octets of text that fit one message without a header.
#[must_use]
pub fn room_in_single(data_coding: u8) -> usize {
    match alphabet(data_coding) {
        Alphabet::Gsm => 160,
        Alphabet::Octets | Alphabet::Ucs2 => 140,
    }
}

/// Parts with a user data header (8-bit reference); at most 255 of them.
#[must_use]
pub fn split_udh(data_coding: u8, text: &Bytes, reference: u8) -> Option<Vec<Bytes>> {
    let pieces = cut(data_coding, text, room_in_part(data_coding));
    let total = u8::try_from(pieces.len()).ok()?;
    Some(
        pieces
            .into_iter()
            .zip(1_u8..)
            .map(|(piece, number)| {
                let mut part = BytesMut::with_capacity(6 + piece.len());
                part.put_slice(&[5, 0, 3, reference, total, number]);
                part.put_slice(&piece);
                part.freeze()
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_074_075_076_three_ways_to_say_part_one_of_two() {
        let udh = part_of(true, &[5, 0, 3, 0x2D, 2, 1, 0x4F], &Tlvs::default()).unwrap();
        assert_eq!((udh.reference, udh.total, udh.number), (0x2D, 2, 1));
        let wide = part_of(true, &[6, 8, 4, 0, 0x2D, 2, 1], &Tlvs::default()).unwrap();
        assert!(wide.wide && wide.total == 2);
        let sar = Tlvs::default()
            .with(tag::SAR_MSG_REF_NUM, &[0, 0x2D])
            .with(tag::SAR_TOTAL_SEGMENTS, &[2])
            .with(tag::SAR_SEGMENT_SEQNUM, &[1]);
        assert_eq!(part_of(false, b"x", &sar).unwrap().total, 2);
        assert_eq!(part_of(true, &[5, 0, 3, 9, 3, 2], &sar).unwrap().reference, 9, "the header wins");
        assert_eq!(part_of(true, &[0xFF, 0, 3], &sar), None);
        assert_eq!(part_of(true, &[], &sar), None);
    }

    #[test]
    fn check_073_077_senseless_numbers_make_a_single_message() {
        let two = Tlvs::default().with(tag::SAR_MSG_REF_NUM, &[0, 1]).with(tag::SAR_TOTAL_SEGMENTS, &[2]);
        assert_eq!(part_of(false, b"", &two), None);
        for bad in [[5, 0, 3, 1, 2, 3], [5, 0, 3, 1, 0, 0], [5, 0, 3, 1, 2, 0]] {
            assert_eq!(part_of(true, &bad, &Tlvs::default()), None);
        }
    }

    #[test]
    fn parts_never_cut_a_pair() {
        let mut text = vec![b'a'; 152];
        text.extend([0x1B, 0x65, b'b']);
        let parts = cut(0, &Bytes::from(text.clone()), 153);
        assert_eq!(parts[0].len(), 152);
        assert_eq!(parts.concat(), text);
        let emoji: Vec<u8> = std::iter::repeat_n([0xD8, 0x3D, 0xDE, 0x00], 40).flatten().collect();
        let parts = cut(8, &Bytes::from(emoji.clone()), 134);
        assert!(parts.iter().all(|part| part.len() % 4 == 0));
        assert_eq!(parts.concat(), emoji);
    }
}
