//! Conversion between texts and short messages, for display and for composing.

use crate::alphabet::{self, Language, LanguageTables};
use crate::coding::{self, Alphabet};
use crate::header::{LOCKING_SHIFT, SINGLE_SHIFT};
use crate::smpp::{SmppText, utf16};
use crate::{Header, UserData};
use std::fmt::Write as _;

/// Decodes the text of a message for display. Undecodable characters become replacement characters. Printable 8-bit
/// data is shown as Latin-1; other data and compressed text are shown as hexadecimal digits. The header is omitted.
#[must_use]
pub fn decode(data_coding: u8, user_data: &UserData) -> String {
    let alphabet = Alphabet::of(data_coding);
    let text = user_data.text(alphabet);
    match alphabet {
        Alphabet::Gsm7 => {
            let tables = user_data.header(alphabet).map_or(LanguageTables::DEFAULT, Header::tables);
            alphabet::decode(&text, tables)
        }
        Alphabet::Ucs2 => decode_utf16(&text),
        Alphabet::Octets => {
            let shown: String = text.iter().copied().map(char::from).collect();
            let plain = |each: char| !each.is_control() || matches!(each, '\n' | '\r');
            if !coding::is_compressed(data_coding) && shown.chars().all(plain) { shown } else { hex(&text) }
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

/// Decodes UTF-16, big-endian unless a byte order mark specifies the order. Unpaired surrogates and an odd last octet
/// become replacement characters.
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

/// Encodes a text in the alphabet that takes the fewest segments: the default alphabet if it has every character, else
/// the national tables of `languages`, else UTF-16. Pass the result to [`to_air`](crate::smpp::to_air), which splits
/// long texts. National tables are declared in its header.
///
/// ```
/// use tpdu::{Language, ConcatReference, smpp, text};
///
/// let sign = text::encode("Çıkış", &[Language::Turkish]);
/// assert_eq!((sign.data_coding, sign.udhi), (0, true));
/// let air = smpp::to_air(sign.data_coding, sign.udhi, &sign.octets, ConcatReference::Short(1))?;
/// assert_eq!(text::decode(air.data_coding, &air.segments[0]), "Çıkış");
/// # Ok::<(), tpdu::Error>(())
/// ```
#[must_use]
pub fn encode(text: &str, languages: &[Language]) -> SmppText {
    if let Some(septets) = alphabet::encode(text, LanguageTables::DEFAULT) {
        return SmppText { data_coding: 0, udhi: false, octets: septets.into() };
    }
    let units = utf16(text);
    let plain = messages(Alphabet::Ucs2, 0, units.len());
    let some = || std::iter::once(None).chain(languages.iter().copied().map(Some));
    let tables = some().flat_map(|locking| some().map(move |single| LanguageTables { locking, single }));
    let national = tables.skip(1).filter_map(|tables| {
        let septets = alphabet::encode(text, tables)?;
        let elements = elements(tables);
        let cost = messages(Alphabet::Gsm7, elements.len(), septets.len());
        Some((cost, septets.len() + elements.len(), elements, septets))
    });
    match national.min_by_key(|(cost, length, ..)| (*cost, *length)) {
        Some((cost, _, elements, septets)) if cost <= plain => {
            let length = [elements.len() as u8];
            SmppText {
                data_coding: 0,
                udhi: true,
                octets: [&length, &elements[..], &septets].concat().into(),
            }
        }
        _ => SmppText { data_coding: 8, udhi: false, octets: units.into() },
    }
}

fn elements(tables: LanguageTables) -> Vec<u8> {
    let single = tables.single.map(|language| [SINGLE_SHIFT, 1, language.number()]);
    let locking = tables.locking.map(|language| [LOCKING_SHIFT, 1, language.number()]);
    single.into_iter().chain(locking).flatten().collect()
}

/// The number of short messages for a text; it can be one too low if a segment border would split a character.
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
    use crate::{ConcatReference, smpp};

    fn read(data_coding: u8, octets: &[u8]) -> String {
        decode(data_coding, &UserData::pack(Alphabet::of(data_coding), false, octets).unwrap())
    }

    fn there_and_back(text: &str, languages: &[Language]) -> (SmppText, usize) {
        let carried = encode(text, languages);
        let air = smpp::to_air(carried.data_coding, carried.udhi, &carried.octets, ConcatReference::Short(3))
            .unwrap();
        let read: String = air.segments.iter().map(|part| decode(air.data_coding, part)).collect();
        assert_eq!(read, text);
        (carried, air.segments.len())
    }

    #[test]
    fn every_alphabet_is_decoded() {
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
    fn shortest_alphabet_is_chosen() {
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
    fn long_texts_take_the_fewest_segments() {
        let hindi = "नमस्ते ".repeat(30);
        let (carried, segments) = there_and_back(&hindi, &[Language::Hindi]);
        assert_eq!((carried.data_coding, carried.udhi, segments), (0, true, 2));
        assert_eq!(there_and_back(&hindi, &[]).1, 4);
        // Both tables of Urdu, and the digits of its single shift table.
        let urdu = format!("{} ۱۲۳", "سلام ".repeat(40));
        let (carried, _) = there_and_back(&urdu, &[Language::Urdu]);
        assert_eq!(carried.octets[..7], [6, 0x24, 1, 13, 0x25, 1, 13]);
    }

    #[test]
    fn every_character_of_every_language_round_trips() {
        for language in Language::ALL {
            for code in 1..=0xFFFF_u32 {
                let Some(character) = char::from_u32(code) else { continue };
                let text = character.to_string();
                let tables = LanguageTables { locking: Some(language), single: Some(language) };
                if tables.encode(character).is_some() {
                    there_and_back(&text, &[language]);
                }
            }
        }
    }
}
