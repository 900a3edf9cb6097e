//! The data coding scheme, TP-DCS (3GPP TS 23.038 §4).

/// The alphabet of user data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alphabet {
    /// GSM 7-bit default alphabet or a national table, packed; the length counts septets.
    Gsm7,
    /// 8-bit data or compressed text; the length counts octets.
    Octets,
    /// UCS-2, in practice UTF-16, big-endian; the length counts octets.
    Ucs2,
}

impl Alphabet {
    /// The alphabet of a data coding scheme. Reserved codings map to the default alphabet (§4); compressed text of any
    /// alphabet maps to octets.
    #[must_use]
    pub fn of(data_coding: u8) -> Self {
        if is_compressed(data_coding) {
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

    /// The maximum TP-UDL that fits into 140 octets.
    #[must_use]
    pub fn limit(self) -> usize {
        if self == Self::Gsm7 { 160 } else { 140 }
    }

    /// The name of the unit that TP-UDL counts.
    pub(crate) fn unit(self) -> &'static str {
        if self == Self::Gsm7 { "septets" } else { "octets" }
    }

    /// Octets needed for a length in units.
    pub(crate) fn octets(self, length: usize) -> usize {
        if self == Self::Gsm7 { crate::septets::octets_for(length) } else { length }
    }

    /// Units that a header of this many octets occupies.
    pub(crate) fn header_units(self, octets: usize) -> usize {
        if self == Self::Gsm7 { crate::septets::septets_for(octets) } else { octets }
    }
}

/// Whether the text is compressed (3GPP TS 23.042).
#[must_use]
pub fn is_compressed(data_coding: u8) -> bool {
    data_coding < 0x80 && data_coding & 0x20 != 0
}

/// The message class: 0 display at once and do not store (flash), 1 handset memory, 2 SIM, 3 terminal equipment. `None`
/// if the scheme has no class.
#[must_use]
pub fn message_class(data_coding: u8) -> Option<u8> {
    match data_coding {
        0x00..=0x7F if data_coding & 0x10 != 0 => Some(data_coding & 3),
        0xF0..=0xFF => Some(data_coding & 3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coding_groups_of_the_specification() {
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
    fn message_class_and_compression() {
        assert_eq!([0x10, 0xF1, 0x1A, 0x57].map(message_class), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!([0x00, 0x0B, 0x40, 0x81, 0xC1, 0xE2].map(message_class), [None; 6]);
        assert!(is_compressed(0x20) && is_compressed(0x7F) && !is_compressed(0x10) && !is_compressed(0xE0));
    }
}
