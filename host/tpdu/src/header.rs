//! User data headers (3GPP TS 23.040 §9.2.3.24).

use crate::alphabet::{Language, Tables};

/// Part of a long message, 8-bit reference.
pub const CONCATENATION: u8 = 0x00;
/// Part of a long message, 16-bit reference.
pub const CONCATENATION_WIDE: u8 = 0x08;
/// Ports of applications, of 16 bits.
pub const PORTS_WIDE: u8 = 0x05;
/// National language single shift.
pub const SINGLE_SHIFT: u8 = 0x24;
/// National language locking shift.
pub const LOCKING_SHIFT: u8 = 0x25;

/// Which part of which message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartOf {
    /// The message's reference; references of 8 and of 16 bits are different ones.
    pub reference: u16,
    /// Whether the reference has 16 bits.
    pub wide: bool,
    /// Parts in all, at least 2.
    pub total: u8,
    /// This part, from 1.
    pub number: u8,
}

/// The reference of the parts of a long message, as it is to stand in their headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reference {
    /// 8 bits, five octets of elements: the usual one.
    Short(u8),
    /// 16 bits, six octets.
    Wide(u16),
}

impl Reference {
    /// The element that says which part a message is.
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

/// One element of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a> {
    /// What it is.
    pub id: u8,
    /// What it says.
    pub data: &'a [u8],
}

/// A header without the octet of its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a>(pub &'a [u8]);

impl<'a> Header<'a> {
    /// Parts octets into the header at their front and what follows; `None` where its length says more than is there.
    #[must_use]
    pub fn split(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (length, rest) = octets.split_first()?;
        let (header, text) = rest.split_at_checked(usize::from(*length))?;
        Some((Self(header), text))
    }

    /// Octets that it takes, the one of its length counted.
    #[must_use]
    pub fn length(self) -> usize {
        self.0.len() + 1
    }

    /// Its elements in order. A header whose last element has too few or too many octets is to be ignored as a whole
    /// (§9.2.3.24): it has none.
    pub fn elements(self) -> impl Iterator<Item = Element<'a>> {
        let mut rest = if well_formed(self.0) { self.0 } else { &[] };
        std::iter::from_fn(move || {
            let (element, after) = first(rest)?;
            rest = after;
            Some(element)
        })
    }

    /// The data of the last element with an id: where one is repeated, the last counts.
    fn last(self, id: u8, length: usize) -> Option<&'a [u8]> {
        self.elements()
            .filter(|element| element.id == id && element.data.len() == length)
            .last()
            .map(|last| last.data)
    }

    /// Which part of a long message it stands before. Numbers that make no sense count as none, and so does the only
    /// part of a message.
    #[must_use]
    pub fn part_of(self) -> Option<PartOf> {
        let parts = self.elements().filter_map(|element| match (element.id, element.data) {
            (CONCATENATION, &[reference, total, number]) => {
                Some(PartOf { reference: u16::from(reference), wide: false, total, number })
            }
            (CONCATENATION_WIDE, &[high, low, total, number]) => {
                Some(PartOf { reference: u16::from_be_bytes([high, low]), wide: true, total, number })
            }
            _ => None,
        });
        parts.filter(|part| part.number >= 1 && part.number <= part.total && part.total > 1).last()
    }

    /// The national tables that its text is written with.
    #[must_use]
    pub fn tables(self) -> Tables {
        let language = |id| self.last(id, 1).and_then(|data| Language::from_number(*data.first()?));
        Tables { locking: language(LOCKING_SHIFT), single: language(SINGLE_SHIFT) }
    }

    /// Destination and origin of an application's data, where the ports have 16 bits.
    #[must_use]
    pub fn ports(self) -> Option<(u16, u16)> {
        match self.last(PORTS_WIDE, 4)? {
            &[a, b, c, d] => Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
            _ => None,
        }
    }

    /// The elements that are not of concatenation, as octets: what belongs to the text as a whole.
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

fn first(octets: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let [id, length, rest @ ..] = octets else { return None };
    let (data, after) = rest.split_at_checked(usize::from(*length))?;
    Some((Element { id: *id, data }, after))
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
    fn parts_with_references_of_either_width() {
        let part = header(&[5, 0, 3, 0x2D, 2, 1]).part_of().unwrap();
        assert_eq!(part, PartOf { reference: 0x2D, wide: false, total: 2, number: 1 });
        let part = header(&[6, 8, 4, 1, 0x2D, 3, 3]).part_of().unwrap();
        assert_eq!(part, PartOf { reference: 0x012D, wide: true, total: 3, number: 3 });
        assert_eq!(Reference::Short(0x2D).element(2, 1), [0, 3, 0x2D, 2, 1]);
        assert_eq!(Reference::Wide(0x012D).element(3, 3), [8, 4, 1, 0x2D, 3, 3]);
    }

    #[test]
    fn numbers_without_sense_make_no_part() {
        for bad in [[2, 3], [0, 0], [2, 0], [1, 1]] {
            assert_eq!(header(&[5, 0, 3, 9, bad[0], bad[1]]).part_of(), None);
        }
        assert_eq!(header(&[4, 0, 2, 9, 2]).part_of(), None);
        let both = header(&[10, 0, 3, 9, 2, 1, 0, 3, 9, 2, 2]);
        assert_eq!(both.part_of().map(|part| part.number), Some(2), "the last counts");
    }

    #[test]
    fn a_header_that_does_not_add_up_is_ignored_as_a_whole() {
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
    fn tables_ports_and_the_rest() {
        let octets = [17, 0x24, 1, 1, 0, 3, 9, 2, 1, 0x25, 1, 13, 5, 4, 0x0B, 0x84, 0x23, 0xF0];
        let header = header(&octets);
        assert_eq!(
            header.tables(),
            Tables { locking: Some(Language::Urdu), single: Some(Language::Turkish) }
        );
        assert_eq!(header.ports(), Some((2948, 9200)));
        assert_eq!(header.without_concatenation(), [0x24, 1, 1, 0x25, 1, 13, 5, 4, 0x0B, 0x84, 0x23, 0xF0]);
        assert_eq!(Header(&[0x24, 1, 14]).tables(), Tables::DEFAULT);
    }
}
