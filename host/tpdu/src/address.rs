//! TP addresses (3GPP TS 23.040 §9.1.2.5).

use crate::alphabet::{self, LanguageTables};
use crate::wire::Reader;
use crate::{Error, Result, septets};
use smallvec::SmallVec;

/// Type of number: international.
pub const TON_INTERNATIONAL: u8 = 1;
/// Type of number: alphanumeric, a name.
pub const TON_ALPHANUMERIC: u8 = 5;

/// Characters of semi-octets 0 to 14; 15 is the filler.
const DIGITS: &[u8; 15] = b"0123456789*#abc";
/// Maximum number of semi-octets in an address value.
const MAX_DIGITS: usize = 20;
/// Maximum number of septets in an address value; 20 semi-octets can hold them.
const MAX_SEPTETS: usize = 11;

/// A TP address, as used on the air interface.
///
/// ```
/// use tpdu::TpAddress;
///
/// let number = TpAddress::from_smpp(1, 1, b"15551234567")?;
/// assert_eq!(number.encode()?, [0x0B, 0x91, 0x51, 0x55, 0x21, 0x43, 0x65, 0xF7]);
/// let name = TpAddress::from_smpp(5, 0, b"Caf\xE9")?;
/// assert_eq!((name.text(), name.to_smpp()), ("Café".to_owned(), (5, 0, b"Caf\xE9".to_vec())));
/// # Ok::<(), tpdu::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct TpAddress {
    /// Type of number, 0 to 7.
    pub ton: u8,
    /// Numbering plan indicator, 0 to 15.
    pub npi: u8,
    /// Digits as ASCII (`0`-`9`, `*`, `#`, `a`-`c`), at most 20. For an alphanumeric address (type of number 5): the
    /// septets of the default alphabet, one per octet, at most 11. Note that `@` is septet 0.
    pub value: SmallVec<[u8; 24]>,
}

impl TpAddress {
    /// Creates an international E.164 number (TON 1, NPI 1) from its digits.
    #[must_use]
    pub fn international(digits: &str) -> Self {
        Self { ton: TON_INTERNATIONAL, npi: 1, value: digits.as_bytes().into() }
    }

    /// Creates an alphanumeric address (TON 5, NPI 0).
    ///
    /// # Errors
    /// [`Error::Digit`] if the default alphabet lacks a character, [`Error::LongName`] for more than 11 septets.
    pub fn name(text: &str) -> Result<Self> {
        let mut value = SmallVec::new();
        for character in text.chars() {
            value.extend(LanguageTables::DEFAULT.encode(character).ok_or(Error::Digit(character))?);
        }
        if value.len() > MAX_SEPTETS {
            return Err(Error::LongName(value.len()));
        }
        Ok(Self { ton: TON_ALPHANUMERIC, npi: 0, value })
    }

    /// Whether the address is alphanumeric.
    #[must_use]
    pub fn is_name(&self) -> bool {
        self.ton == TON_ALPHANUMERIC
    }

    /// The name or the digits as text, for display.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_name() {
            return alphabet::decode(&self.value, LanguageTables::DEFAULT);
        }
        self.value.iter().copied().map(char::from).collect()
    }

    /// Converts an SMPP address. A number is ASCII; a leading `+` is removed, and upper-case letters are converted to
    /// lower case.
    ///
    /// Nearly all names are ASCII. Other names are encoded as Latin-1 or UTF-8 by different ESMEs; both are accepted.
    /// Octets that are valid UTF-8 with characters of the default alphabet are read as UTF-8, all others as Latin-1. No
    /// sequence of octets is a valid name in both encodings, so the choice is unambiguous.
    ///
    /// # Errors
    /// [`Error::Digit`] for a character that a TP address cannot carry, [`Error::LongAddress`] and [`Error::LongName`]
    /// if the value is too long, [`Error::NumberType`] if TON or NPI is out of range.
    pub fn from_smpp(ton: u8, npi: u8, value: &[u8]) -> Result<Self> {
        let address = if ton == TON_ALPHANUMERIC {
            let utf8 = std::str::from_utf8(value).ok().map(Self::name);
            let latin1 = || Self::name(&value.iter().copied().map(char::from).collect::<String>());
            let name = match utf8 {
                Some(name @ (Ok(_) | Err(Error::LongName(_)))) => name,
                _ => latin1(),
            };
            Self { npi, ..name? }
        } else {
            let digits = value.strip_prefix(b"+").unwrap_or(value);
            Self { ton, npi, value: digits.iter().map(u8::to_ascii_lowercase).collect() }
        };
        address.check()?;
        Ok(address)
    }

    /// Converts to TON, NPI and value for SMPP. A name is encoded as Latin-1 if possible, and as UTF-8 if it contains a
    /// Greek capital or a euro sign. [`from_smpp`](Self::from_smpp) restores the same address, unless a name contains
    /// undefined escape sequences.
    #[must_use]
    pub fn to_smpp(&self) -> (u8, u8, Vec<u8>) {
        let value = if self.is_name() {
            let text = self.text();
            let latin1: std::result::Result<Vec<u8>, _> =
                text.chars().map(|each| u8::try_from(u32::from(each))).collect();
            latin1.unwrap_or_else(|_| text.into_bytes())
        } else {
            self.value.to_vec()
        };
        (self.ton, self.npi, value)
    }

    fn check(&self) -> Result<()> {
        if self.ton > 7 || self.npi > 15 {
            return Err(Error::NumberType { ton: self.ton, npi: self.npi });
        }
        if self.is_name() {
            if self.value.len() > MAX_SEPTETS {
                return Err(Error::LongName(self.value.len()));
            }
            return match self.value.iter().position(|septet| *septet > 0x7F) {
                Some(at) => Err(Error::NotASeptet { at, octet: self.value[at] }),
                None => Ok(()),
            };
        }
        if let Some(other) = self.value.iter().find(|digit| !DIGITS.contains(digit)) {
            return Err(Error::Digit(char::from(*other)));
        }
        if self.value.len() > MAX_DIGITS {
            return Err(Error::LongAddress(self.value.len()));
        }
        Ok(())
    }

    /// Encodes the address field: length in semi-octets, type, value.
    ///
    /// # Errors
    /// If the address does not fit into its field.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(12);
        self.write(&mut out)?;
        Ok(out)
    }

    /// Decodes a single address field.
    ///
    /// # Errors
    /// If the field is truncated or its length is out of range.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        Self::read(&mut Reader::new(octets), "address")
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        self.check()?;
        let kind = 0x80 | self.ton << 4 | self.npi;
        if self.is_name() {
            let semi_octets = (self.value.len() * 7).div_ceil(4);
            out.extend([semi_octets as u8, kind]);
            out.extend(septets::pack(&self.value));
            return Ok(());
        }
        out.extend([self.value.len() as u8, kind]);
        let nibble = |digit: &u8| DIGITS.iter().position(|each| each == digit).unwrap_or(0x0F) as u8;
        let octet = |pair: &[u8]| nibble(&pair[0]) | pair.get(1).map_or(0x0F, nibble) << 4;
        out.extend(self.value.chunks(2).map(octet));
        Ok(())
    }

    /// A filler before the end terminates the number. A cleared extension bit in the type octet is ignored.
    pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self> {
        let semi_octets = usize::from(reader.u8(field)?);
        if semi_octets > MAX_DIGITS {
            return Err(Error::LongAddress(semi_octets));
        }
        let kind = reader.u8(field)?;
        let octets = reader.take(semi_octets.div_ceil(2), field)?;
        let (ton, npi) = (kind >> 4 & 7, kind & 0x0F);
        let value = if ton == TON_ALPHANUMERIC {
            septets::unpack(octets, 0, semi_octets * 4 / 7).into()
        } else {
            let nibbles = octets.iter().flat_map(|octet| [octet & 0x0F, octet >> 4]);
            nibbles.take(semi_octets).map_while(|each| DIGITS.get(usize::from(each)).copied()).collect()
        };
        Ok(Self { ton, npi, value })
    }
}

impl std::fmt::Debug for TpAddress {
    /// Masked as in logs: shows the first four and the last two characters.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.text();
        let count = text.chars().count();
        let hidden = |(at, each)| if at < 4 || at + 2 >= count { each } else { '*' };
        write!(f, "{}/{}:{}", self.ton, self.npi, text.chars().enumerate().map(hidden).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_swapped_and_filled() {
        let rows: [(u8, &[u8], &[u8]); 5] = [
            (1, b"19990014444", &[0x0B, 0x91, 0x91, 0x99, 0x00, 0x41, 0x44, 0xF4]),
            (1, b"1234", &[0x04, 0x91, 0x21, 0x43]),
            (0, b"*100#", &[0x05, 0x81, 0x1A, 0x00, 0xFB]),
            (0, b"abc", &[0x03, 0x81, 0xDC, 0xFE]),
            (0, b"", &[0x00, 0x81]),
        ];
        for (ton, digits, octets) in rows {
            let address = TpAddress::from_smpp(ton, 1, digits).unwrap();
            assert_eq!(address.encode().unwrap(), octets);
            assert_eq!(TpAddress::decode(octets).unwrap(), address);
            assert_eq!(address.to_smpp(), (ton, 1, digits.to_vec()));
        }
    }

    #[test]
    fn name_length_counts_used_semi_octets() {
        let lengths = (0..=11).map(|count| TpAddress::name(&"x".repeat(count)).unwrap().encode().unwrap()[0]);
        assert_eq!(lengths.collect::<Vec<_>>(), [0, 2, 4, 6, 7, 9, 11, 13, 14, 16, 18, 20]);
        assert_eq!(TpAddress::name("Design@Home").unwrap().encode().unwrap()[..4], [20, 0xD0, 0xC4, 0xF2]);
        assert_eq!(TpAddress::name("twelve chars"), Err(Error::LongName(12)));
        assert_eq!(TpAddress::name("[brackets]"), Err(Error::LongName(12)));
        assert_eq!(TpAddress::name("жук"), Err(Error::Digit('ж')));
    }

    #[test]
    fn seven_characters_differ_from_eight_with_a_final_at_sign() {
        for text in ["1234567", "1234567@", "@", "@@@@@@@", "@@@@@@@@"] {
            let name = TpAddress::name(text).unwrap();
            let again = TpAddress::decode(&name.encode().unwrap()).unwrap();
            assert_eq!((again.text(), &again), (text.to_owned(), &name));
        }
    }

    #[test]
    fn smpp_names_in_latin_1_and_utf_8_are_equal() {
        for (latin1, text) in
            [(&b"Caf\xE9"[..], "Café"), (b"\xC4\xA3", "Ä£"), (b"\xA7 5", "§ 5"), (b"a@b", "a@b")]
        {
            let name = TpAddress::from_smpp(5, 0, latin1).unwrap();
            assert_eq!((name.text(), name.to_smpp().2), (text.to_owned(), latin1.to_vec()));
            assert_eq!(TpAddress::from_smpp(5, 0, text.as_bytes()).unwrap(), name);
        }
        let greek = TpAddress::from_smpp(5, 0, "ΔΩ 5€".as_bytes()).unwrap();
        assert_eq!(greek.to_smpp(), (5, 0, "ΔΩ 5€".as_bytes().to_vec()));
        assert!(TpAddress::from_smpp(5, 0, b"\x81").is_err());
    }

    /// `from_smpp` relies on this: no octets are a valid name in both encodings.
    #[test]
    fn no_octets_are_a_name_in_both_encodings() {
        let all: Vec<char> = (1..0x3000)
            .filter_map(char::from_u32)
            .filter(|each| LanguageTables::DEFAULT.encode(*each).is_some())
            .collect();
        assert!(all.len() >= 137, "{}", all.len());
        for character in all.into_iter().filter(|each| !each.is_ascii()) {
            let as_latin1 = character.to_string().bytes().map(char::from).collect::<String>();
            assert!(TpAddress::name(&as_latin1).is_err(), "{character}");
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        assert_eq!(TpAddress::from_smpp(1, 1, b"+4915112").unwrap().text(), "4915112");
        assert_eq!(TpAddress::from_smpp(1, 1, b"12x"), Err(Error::Digit('x')));
        assert_eq!(TpAddress::from_smpp(1, 1, &[b'1'; 21]), Err(Error::LongAddress(21)));
        assert_eq!(TpAddress::from_smpp(8, 1, b"1"), Err(Error::NumberType { ton: 8, npi: 1 }));
        assert_eq!(TpAddress::decode(&[21, 0x91]), Err(Error::LongAddress(21)));
        assert_eq!(TpAddress::decode(&[4, 0x91, 0x21]), Err(Error::Short("address")));
        assert_eq!(TpAddress::decode(&[6, 0x91, 0x21, 0xF3, 0x54]).unwrap().text(), "123");
        assert_eq!(TpAddress::decode(&[2, 0x11, 0x21]).unwrap(), TpAddress::international("12"));
    }
}
