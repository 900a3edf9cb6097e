//! Text for people: to read any message, and to write one in the cheapest alphabet.

use crate::alphabet::{self, Language, Tables};
use crate::coding::{self, Alphabet};
use crate::header::{LOCKING_SHIFT, SINGLE_SHIFT};
use crate::smpp::{Carried, utf16};
use crate::{Header, UserData};
use std::fmt::Write as _;

/// The text of a message, for display only: what cannot be read appears as replacement characters. Data that are all
/// printable appear as Latin-1, other data and compressed text as hexadecimal digits; a header is left out.
#[must_use]
pub fn decode(data_coding: u8, user_data: &UserData) -> String {
    let alphabet = Alphabet::of(data_coding);
    let text = user_data.text(alphabet);
    match alphabet {
        Alphabet::Gsm7 => {
            let tables = user_data.header(alphabet).map_or(Tables::DEFAULT, Header::tables);
            alphabet::decode(&text, tables)
        }
        Alphabet::Ucs2 => decode_utf16(&text),
        Alphabet::Octets => {
            let shown: String = text.iter().copied().map(char::from).collect();
            let plain = |each: char| !each.is_control() || matches!(each, '\n' | '\r');
            if !coding::compressed(data_coding) && shown.chars().all(plain) { shown } else { hex(&text) }
        }
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(octets.len() * 2), |mut all, octet| {
        // Writing to a string cannot fail.
        let _ = write!(all, "{octet:02x}");
        all
    })
}

/// UTF-16, high octet first unless a byte order mark says otherwise. Half pairs and an odd last octet become replacement
/// characters.
fn decode_utf16(octets: &[u8]) -> String {
    let (octets, little) = match octets {
        [0xFE, 0xFF, rest @ ..] => (rest, false),
        [0xFF, 0xFE, rest @ ..] => (rest, true),
        _ => (octets, false),
    };
    let units = octets.chunks(2).map(|pair| match *pair {
        [first, second] if little => u16::from_le_bytes([first, second]),
        [first, second] => u16::from_be_bytes([first, second]),
        _ => 0xFFFD,
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Writes a text in the alphabet that takes the fewest short messages: the default one where it has every character, then
/// the tables of the `languages` given, then UTF-16. What comes out is for [`to_air`](crate::smpp::to_air), which splits
/// it where it is long; national tables stand in its header.
///
/// ```
/// use tpdu::{Language, Reference, smpp, text};
///
/// let sign = text::encode("Çıkış", &[Language::Turkish]);
/// assert_eq!((sign.data_coding, sign.udhi), (0, true));
/// let air = smpp::to_air(sign.data_coding, sign.udhi, &sign.octets, Reference::Short(1))?;
/// assert_eq!(text::decode(air.data_coding, &air.parts[0]), "Çıkış");
/// # Ok::<(), tpdu::Error>(())
/// ```
#[must_use]
pub fn encode(text: &str, languages: &[Language]) -> Carried {
    if let Some(septets) = alphabet::encode(text, Tables::DEFAULT) {
        return Carried { data_coding: 0, udhi: false, octets: septets.into() };
    }
    let units = utf16(text);
    let plain = messages(Alphabet::Ucs2, 0, units.len());
    let some = || std::iter::once(None).chain(languages.iter().copied().map(Some));
    let tables = some().flat_map(|locking| some().map(move |single| Tables { locking, single }));
    let national = tables.skip(1).filter_map(|tables| {
        let septets = alphabet::encode(text, tables)?;
        let elements = elements(tables);
        let cost = messages(Alphabet::Gsm7, elements.len(), septets.len());
        Some((cost, septets.len() + elements.len(), elements, septets))
    });
    match national.min_by_key(|(cost, length, ..)| (*cost, *length)) {
        Some((cost, _, elements, septets)) if cost <= plain => {
            let length = [elements.len() as u8];
            Carried { data_coding: 0, udhi: true, octets: [&length, &elements[..], &septets].concat().into() }
        }
        _ => Carried { data_coding: 8, udhi: false, octets: units.into() },
    }
}

fn elements(tables: Tables) -> Vec<u8> {
    let single = tables.single.map(|language| [SINGLE_SHIFT, 1, language.number()]);
    let locking = tables.locking.map(|language| [LOCKING_SHIFT, 1, language.number()]);
    single.into_iter().chain(locking).flatten().collect()
}

/// Short messages that a text takes; a part more where what may not be parted stands at a border.
fn messages(alphabet: Alphabet, elements: usize, length: usize) -> usize {
    let header = |elements: usize| if elements == 0 { 0 } else { alphabet.header_units(elements + 1) };
    if length + header(elements) <= alphabet.limit() {
        return 1;
    }
    length.div_ceil(alphabet.limit() - header(elements + 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, smpp};

    fn read(data_coding: u8, octets: &[u8]) -> String {
        decode(data_coding, &UserData::pack(Alphabet::of(data_coding), false, octets).unwrap())
    }

    fn there_and_back(text: &str, languages: &[Language]) -> (Carried, usize) {
        let carried = encode(text, languages);
        let air =
            smpp::to_air(carried.data_coding, carried.udhi, &carried.octets, Reference::Short(3)).unwrap();
        let read: String = air.parts.iter().map(|part| decode(air.data_coding, part)).collect();
        assert_eq!(read, text);
        (carried, air.parts.len())
    }

    #[test]
    fn every_alphabet_is_read() {
        assert_eq!(read(0x00, b"\x00\x1B\x65"), "@€");
        assert_eq!(read(0xF0, b"\x00\x1B\x65"), "@€");
        assert_eq!(read(0x08, &[0xD8, 0x3D, 0xDE, 0x00]), "😀");
        assert_eq!(read(0xE0, &[0xFF, 0xFE, 0x60, 0x4F]), "你");
        assert_eq!(read(0x08, &[0xD8, 0x3D, 0x00]), "\u{FFFD}\u{FFFD}");
        assert_eq!(read(0x04, b"plain \xE9\n"), "plain é\n");
        assert_eq!(read(0x04, b"\x00\xFF"), "00ff");
        assert_eq!(read(0x24, b"ab"), "6162");
        let part = UserData::pack(Alphabet::Gsm7, true, b"\x08\x00\x03\x01\x02\x01\x25\x01\x01\x04").unwrap();
        assert_eq!(decode(0, &part), "€");
    }

    #[test]
    fn the_cheapest_alphabet_is_taken() {
        assert_eq!(there_and_back("hello [world]", &Language::ALL).0.data_coding, 0);
        assert!(!there_and_back("", &Language::ALL).0.udhi);
        assert_eq!(there_and_back("ışık", &[]).0.data_coding, 8);
        let (turkish, _) = there_and_back("ışık", &[Language::Turkish]);
        assert_eq!((turkish.data_coding, &turkish.octets[..4]), (0, &[3, 0x25, 1, 1][..]));
        let (spanish, _) = there_and_back("¿Qué ocurrió en Cádiz?", &[Language::Spanish]);
        assert_eq!((spanish.udhi, &spanish.octets[..4]), (true, &[3, 0x24, 1, 2][..]));
        assert_eq!(there_and_back("测试", &Language::ALL).0.data_coding, 8);
        assert_eq!(there_and_back("😀", &Language::ALL).0.data_coding, 8);
    }

    #[test]
    fn long_texts_take_as_few_messages_as_they_can() {
        let hindi = "नमस्ते ".repeat(30);
        let (carried, parts) = there_and_back(&hindi, &[Language::Hindi]);
        assert_eq!((carried.data_coding, carried.udhi, parts), (0, true, 2));
        assert_eq!(there_and_back(&hindi, &[]).1, 4);
        // Both tables of Urdu and the digits of its single shift table.
        let urdu = format!("{} ۱۲۳", "سلام ".repeat(40));
        let (carried, _) = there_and_back(&urdu, &[Language::Urdu]);
        assert_eq!(carried.octets[..7], [6, 0x24, 1, 13, 0x25, 1, 13]);
    }

    #[test]
    fn every_character_of_every_language_goes_there_and_back() {
        for language in Language::ALL {
            for code in 1..=0xFFFF_u32 {
                let Some(character) = char::from_u32(code) else { continue };
                let text = character.to_string();
                let tables = Tables { locking: Some(language), single: Some(language) };
                if tables.encode(character).is_some() {
                    there_and_back(&text, &[language]);
                }
            }
        }
    }
}
