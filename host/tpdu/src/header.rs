//! User data headers (3GPP TS 23.040 §9.2.3.24).

use crate::alphabet::{Language, LanguageTables};

/// Concatenated short message, 8-bit reference.
pub const CONCATENATION: u8 = 0x00;
/// Concatenated short message, 16-bit reference.
pub const CONCATENATION_WIDE: u8 = 0x08;
/// Application port addressing, 16-bit.
pub const PORTS_WIDE: u8 = 0x05;
/// National language single shift.
pub const SINGLE_SHIFT: u8 = 0x24;
/// National language locking shift.
pub const LOCKING_SHIFT: u8 = 0x25;

/// The concatenation element: which segment of which message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Concatenation {
    /// The reference of the message. 8-bit and 16-bit references are distinct.
    pub reference: u16,
    /// Whether the reference has 16 bits.
    pub wide: bool,
    /// Number of segments, at least 2.
    pub total: u8,
    /// Number of this segment, from 1.
    pub number: u8,
}

/// A concatenation reference to write into segment headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConcatReference {
    /// 8 bits, five octets of elements: the usual form.
    Short(u8),
    /// 16 bits, six octets of elements.
    Wide(u16),
}

impl ConcatReference {
    /// The concatenation element for one segment.
    #[must_use]
    pub fn element(self, total: u8, number: u8) -> Vec<u8> {
        match self {
            Self::Short(reference) => vec![CONCATENATION, 3, reference, total, number],
            Self::Wide(reference) => {
                let [high, low] = reference.to_be_bytes();
                vec![CONCATENATION_WIDE, 4, high, low, total, number]
            }
        }
    }
}

/// One information element of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderElement<'a> {
    /// Information element identifier.
    pub id: u8,
    /// Information element data.
    pub data: &'a [u8],
}

/// A user data header without its length octet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a>(pub &'a [u8]);

impl<'a> Header<'a> {
    /// Splits octets into the leading header and the remainder; `None` if the header length exceeds the octets.
    #[must_use]
    pub fn split(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (length, rest) = octets.split_first()?;
        let (header, text) = rest.split_at_checked(usize::from(*length))?;
        Some((Self(header), text))
    }

    /// Octets of the header, including the length octet.
    #[must_use]
    pub fn length(self) -> usize {
        self.0.len() + 1
    }

    /// The elements in order. A malformed header is ignored as a whole (§9.2.3.24) and yields no elements.
    pub fn elements(self) -> impl Iterator<Item = HeaderElement<'a>> {
        let mut rest = if well_formed(self.0) { self.0 } else { &[] };
        std::iter::from_fn(move || {
            let (element, after) = first(rest)?;
            rest = after;
            Some(element)
        })
    }

    /// The data of the last element with this id and length: if an element is repeated, the last one counts.
    fn last(self, id: u8, length: usize) -> Option<&'a [u8]> {
        self.elements()
            .filter(|element| element.id == id && element.data.len() == length)
            .last()
            .map(|last| last.data)
    }

    /// The concatenation element. Invalid numbers, and a message with a single segment, yield `None`.
    #[must_use]
    pub fn concatenation(self) -> Option<Concatenation> {
        let segments = self.elements().filter_map(|element| match (element.id, element.data) {
            (CONCATENATION, &[reference, total, number]) => {
                Some(Concatenation { reference: u16::from(reference), wide: false, total, number })
            }
            (CONCATENATION_WIDE, &[high, low, total, number]) => {
                Some(Concatenation { reference: u16::from_be_bytes([high, low]), wide: true, total, number })
            }
            _ => None,
        });
        segments.filter(|part| part.number >= 1 && part.number <= part.total && part.total > 1).last()
    }

    /// The national language tables of the text.
    #[must_use]
    pub fn tables(self) -> LanguageTables {
        let language = |id| self.last(id, 1).and_then(|data| Language::from_number(*data.first()?));
        LanguageTables { locking: language(LOCKING_SHIFT), single: language(SINGLE_SHIFT) }
    }

    /// Destination and origin port, from the 16-bit port element.
    #[must_use]
    pub fn ports(self) -> Option<(u16, u16)> {
        match self.last(PORTS_WIDE, 4)? {
            &[a, b, c, d] => Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
            _ => None,
        }
    }

    /// The encoded elements without concatenation: those that apply to the whole text.
    #[must_use]
    pub fn without_concatenation(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len());
        for element in self.elements() {
            if !matches!(element.id, CONCATENATION | CONCATENATION_WIDE) {
                out.extend([element.id, element.data.len() as u8]);
                out.extend(element.data);
            }
        }
        out
    }
}

fn first(octets: &[u8]) -> Option<(HeaderElement<'_>, &[u8])> {
    let [id, length, rest @ ..] = octets else { return None };
    let (data, after) = rest.split_at_checked(usize::from(*length))?;
    Some((HeaderElement { id: *id, data }, after))
}

fn well_formed(mut octets: &[u8]) -> bool {
    while let Some((_, rest)) = first(octets) {
        octets = rest;
    }
    octets.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(octets: &[u8]) -> Header<'_> {
        Header::split(octets).unwrap().0
    }

    #[test]
    fn concatenation_references_of_8_and_16_bits() {
        let part = header(&[5, 0, 3, 0x2D, 2, 1]).concatenation().unwrap();
        assert_eq!(part, Concatenation { reference: 0x2D, wide: false, total: 2, number: 1 });
        let part = header(&[6, 8, 4, 1, 0x2D, 3, 3]).concatenation().unwrap();
        assert_eq!(part, Concatenation { reference: 0x012D, wide: true, total: 3, number: 3 });
        assert_eq!(ConcatReference::Short(0x2D).element(2, 1), [0, 3, 0x2D, 2, 1]);
        assert_eq!(ConcatReference::Wide(0x012D).element(3, 3), [8, 4, 1, 0x2D, 3, 3]);
    }

    #[test]
    fn invalid_segment_numbers_are_ignored() {
        for bad in [[2, 3], [0, 0], [2, 0], [1, 1]] {
            assert_eq!(header(&[5, 0, 3, 9, bad[0], bad[1]]).concatenation(), None);
        }
        assert_eq!(header(&[4, 0, 2, 9, 2]).concatenation(), None);
        let both = header(&[10, 0, 3, 9, 2, 1, 0, 3, 9, 2, 2]);
        assert_eq!(both.concatenation().map(|part| part.number), Some(2), "the last counts");
    }

    #[test]
    fn malformed_header_is_ignored() {
        for bad in [&[6, 0, 3, 9, 2, 1, 7][..], &[5, 0, 4, 9, 2, 1], &[3, 0x24, 1, 1][..]] {
            let header = header(bad);
            assert_eq!(header.elements().count(), usize::from(bad[0] == 3), "{bad:?}");
            assert_eq!(header.length(), bad.len());
        }
        assert_eq!(Header::split(&[5, 0, 3]), None);
        assert_eq!(Header::split(&[]), None);
        assert_eq!(Header::split(&[0, 1]), Some((Header(&[]), &[1][..])));
    }

    #[test]
    fn tables_ports_and_other_elements() {
        let octets = [17, 0x24, 1, 1, 0, 3, 9, 2, 1, 0x25, 1, 13, 5, 4, 0x0B, 0x84, 0x23, 0xF0];
        let header = header(&octets);
        assert_eq!(
            header.tables(),
            LanguageTables { locking: Some(Language::Urdu), single: Some(Language::Turkish) }
        );
        assert_eq!(header.ports(), Some((2948, 9200)));
        assert_eq!(header.without_concatenation(), [0x24, 1, 1, 0x25, 1, 13, 5, 4, 0x0B, 0x84, 0x23, 0xF0]);
        assert_eq!(Header(&[0x24, 1, 14]).tables(), LanguageTables::DEFAULT);
    }
}
