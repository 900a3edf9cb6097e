//! The data coding scheme, TP-DCS (3GPP TS 23.038 §4).

/// The units that user data is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alphabet {
    /// Septets of the default alphabet or a national table, packed; the length counts septets.
    Gsm7,
    /// Octets: data, or anything compressed.
    Octets,
    /// Two octets a unit, in truth UTF-16, high octet first; the length counts octets.
    Ucs2,
}

impl Alphabet {
    /// What a data coding scheme says. Reserved codings are the default alphabet, as the document wants it (§4);
    /// compressed text of any alphabet is octets.
    #[must_use]
    pub fn of(data_coding: u8) -> Self {
        if compressed(data_coding) {
            return Self::Octets;
        }
        match data_coding {
            0x00..=0x7F => match data_coding >> 2 & 3 {
                1 => Self::Octets,
                2 => Self::Ucs2,
                _ => Self::Gsm7,
            },
            0xE0..=0xEF => Self::Ucs2,
            0xF0..=0xFF if data_coding & 4 != 0 => Self::Octets,
            _ => Self::Gsm7,
        }
    }

    /// Units of the length octet (TP-UDL) that fit 140 octets.
    #[must_use]
    pub fn limit(self) -> usize {
        if self == Self::Gsm7 { 160 } else { 140 }
    }

    /// What the length octet counts, in words.
    pub(crate) fn unit(self) -> &'static str {
        if self == Self::Gsm7 { "septets" } else { "octets" }
    }

    /// Octets that take a length of so many units.
    pub(crate) fn octets(self, length: usize) -> usize {
        if self == Self::Gsm7 { crate::septets::octets_for(length) } else { length }
    }

    /// Units that a header of so many octets takes.
    pub(crate) fn header_units(self, octets: usize) -> usize {
        if self == Self::Gsm7 { crate::septets::septets_for(octets) } else { octets }
    }
}

/// Whether the text is compressed (3GPP TS 23.042).
#[must_use]
pub fn compressed(data_coding: u8) -> bool {
    data_coding < 0x80 && data_coding & 0x20 != 0
}

/// Where the telephone is to put the message: 0 shown at once and not kept (flash), 1 the telephone, 2 the card, 3 what
/// is connected to it. `None` where the scheme says nothing of it.
#[must_use]
pub fn class(data_coding: u8) -> Option<u8> {
    match data_coding {
        0x00..=0x7F if data_coding & 0x10 != 0 => Some(data_coding & 3),
        0xF0..=0xFF => Some(data_coding & 3),
        _ => None,
    }
}

/// Whether the telephone is asked to delete the message when it has been read.
#[must_use]
pub fn deleted_when_read(data_coding: u8) -> bool {
    (0x40..0x80).contains(&data_coding)
}

/// An indication that something waits, as a symbol on the telephone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    /// The text is to be kept.
    pub kept: bool,
    /// The symbol appears; else it goes.
    pub active: bool,
    /// Of what: 0 voice mail, 1 fax, 2 electronic mail, 3 other.
    pub kind: u8,
}

/// What the message waiting groups say.
#[must_use]
pub fn waiting(data_coding: u8) -> Option<Waiting> {
    let kept = data_coding >= 0xD0;
    (0xC0..0xF0).contains(&data_coding).then_some(Waiting {
        kept,
        active: data_coding & 8 != 0,
        kind: data_coding & 3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_the_document() {
        let rows = [
            (0x00..=0x03, Alphabet::Gsm7),
            (0x04..=0x07, Alphabet::Octets),
            (0x08..=0x0B, Alphabet::Ucs2),
            (0x0C..=0x0F, Alphabet::Gsm7),
            (0x10..=0x13, Alphabet::Gsm7),
            (0x14..=0x17, Alphabet::Octets),
            (0x18..=0x1B, Alphabet::Ucs2),
            (0x1C..=0x1F, Alphabet::Gsm7),
            (0x20..=0x3F, Alphabet::Octets),
            (0x40..=0x43, Alphabet::Gsm7),
            (0x44..=0x47, Alphabet::Octets),
            (0x48..=0x4B, Alphabet::Ucs2),
            (0x54..=0x57, Alphabet::Octets),
            (0x60..=0x7F, Alphabet::Octets),
            (0x80..=0xBF, Alphabet::Gsm7),
            (0xC0..=0xDF, Alphabet::Gsm7),
            (0xE0..=0xEF, Alphabet::Ucs2),
            (0xF0..=0xF3, Alphabet::Gsm7),
            (0xF4..=0xF7, Alphabet::Octets),
            (0xF8..=0xFB, Alphabet::Gsm7),
            (0xFC..=0xFF, Alphabet::Octets),
        ];
        for (range, alphabet) in rows {
            for data_coding in range {
                assert_eq!(Alphabet::of(data_coding), alphabet, "{data_coding:02x}");
            }
        }
    }

    #[test]
    fn what_else_a_scheme_says() {
        assert_eq!([0x10, 0xF1, 0x1A, 0x57].map(class), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!([0x00, 0x0B, 0x40, 0x81, 0xC1, 0xE2].map(class), [None; 6]);
        assert!(compressed(0x20) && compressed(0x7F) && !compressed(0x10) && !compressed(0xE0));
        assert!(deleted_when_read(0x40) && deleted_when_read(0x7B) && !deleted_when_read(0x80));
        assert_eq!(waiting(0xC8), Some(Waiting { kept: false, active: true, kind: 0 }));
        assert_eq!(waiting(0xD1), Some(Waiting { kept: true, active: false, kind: 1 }));
        assert_eq!(waiting(0xEB), Some(Waiting { kept: true, active: true, kind: 3 }));
        assert_eq!((waiting(0x08), waiting(0xF0)), (None, None));
    }
}
