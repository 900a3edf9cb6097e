use crate::tlv::tlvs;
use crate::{Message, Text};

/// The position of a message in a concatenated message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The reference of the concatenated message, and whether it has 16 bits; references of 8 and 16 bits differ.
    pub reference: (u16, bool),
    /// The number of segments, at least 2.
    pub total: u8,
    /// The number of this segment, from 1 to `total`.
    pub number: u8,
}

/// Information elements of a user data header (3GPP TS 23.040 §9.2.3.24.1 and .8).
const CONCATENATED_8_BIT: u8 = 0x00;
const CONCATENATED_16_BIT: u8 = 0x08;

/// TLVs of SMPP 3.4 §5.3.2.22 to .24.
const SAR_MSG_REF_NUM: u16 = 0x020c;
const SAR_TOTAL_SEGMENTS: u16 = 0x020e;
const SAR_SEGMENT_SEQNUM: u16 = 0x020f;

impl Segment {
    /// The segment of a text, by its user data header, otherwise by its SAR TLVs; `None` if it is not concatenated.
    #[must_use]
    pub fn of(text: &Text, tlvs: &[u8]) -> Option<Self> {
        if text.udhi { by_header(&text.octets) } else { by_tlvs(tlvs) }
    }

    fn validated(self) -> Option<Self> {
        (self.total > 1 && (1..=self.total).contains(&self.number)).then_some(self)
    }

    /// Whether both belong to one concatenated message, by their references.
    #[must_use]
    pub fn is_of_same_text(&self, other: &Self) -> bool {
        (self.reference, self.total) == (other.reference, other.total)
    }
}

impl Message {
    /// The segment of the message: see [`Segment::of`].
    #[must_use]
    pub fn segment(&self) -> Option<Segment> {
        Segment::of(&self.text, &self.tlvs)
    }
}

fn by_header(text: &[u8]) -> Option<Segment> {
    let (length, rest) = text.split_first()?;
    let mut header = rest.get(..usize::from(*length))?;
    while let [id, length, rest @ ..] = header {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        match (*id, value) {
            (CONCATENATED_8_BIT, &[reference, total, number]) => {
                return Segment { reference: (reference.into(), false), total, number }.validated();
            }
            (CONCATENATED_16_BIT, &[high, low, total, number]) => {
                let reference = (u16::from_be_bytes([high, low]), true);
                return Segment { reference, total, number }.validated();
            }
            _ => header = rest,
        }
    }
    None
}

fn by_tlvs(octets: &[u8]) -> Option<Segment> {
    let (mut reference, mut total, mut number) = (None, None, None);
    for (tag, value) in tlvs(octets) {
        match (tag, value) {
            (SAR_MSG_REF_NUM, &[high, low]) => reference = Some((u16::from_be_bytes([high, low]), true)),
            (SAR_TOTAL_SEGMENTS, &[value]) => total = Some(value),
            (SAR_SEGMENT_SEQNUM, &[value]) => number = Some(value),
            _ => {}
        }
    }
    Segment { reference: reference?, total: total?, number: number? }.validated()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_known_by_its_header_or_its_tlvs() {
        let narrow = Segment { reference: (7, false), total: 3, number: 2 };
        let wide = Segment { reference: (0x0107, true), total: 3, number: 2 };
        assert_eq!(by_header(&[5, 0, 3, 7, 3, 2, b'x']), Some(narrow));
        assert_eq!(by_header(&[8, 0x24, 1, 1, 0, 3, 7, 3, 2, b'x']), Some(narrow), "behind another element");
        assert_eq!(by_header(&[6, 8, 4, 1, 7, 3, 2, b'x']), Some(wide));
        let tlvs = [2, 0x0c, 0, 2, 1, 7, 2, 0x0e, 0, 1, 3, 2, 0x0f, 0, 1, 2];
        assert_eq!(by_tlvs(&tlvs), Some(wide));
        for cut in 0..tlvs.len() {
            assert_eq!(by_tlvs(&tlvs[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_header_without_sense_makes_no_segment() {
        let wrong: [&[u8]; 7] = [
            &[],
            &[5],
            &[5, 0, 3, 7, 3],
            &[5, 0, 3, 7, 3, 4],
            &[5, 0, 3, 7, 1, 1],
            &[5, 0, 9, 7, 3, 2],
            &[3, 0x24, 1, 1],
        ];
        for header in wrong {
            assert_eq!(by_header(header), None, "{header:?}");
        }
    }
}
