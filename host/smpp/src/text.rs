//! Text in its data_coding (34 §5.2.19), decoded for display. Text that is passed on is never changed.

const BASIC: [char; 128] = [
    '@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å', 'Δ', '_', 'Φ', 'Γ',
    'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ', '\u{1B}', 'Æ', 'æ', 'ß', 'É', ' ', '!', '"', '#', '¤', '%', '&', '\'',
    '(', ')', '*', '+', ',', '-', '.', '/', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':', ';', '<',
    '=', '>', '?', '¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q',
    'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ', 'Ü', '§', '¿', 'a', 'b', 'c', 'd', 'e', 'f',
    'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä',
    'ö', 'ñ', 'ü', 'à',
];

fn extension(septet: u8) -> Option<char> {
    Some(match septet {
        0x0A => '\u{0C}',
        0x14 => '^',
        0x28 => '{',
        0x29 => '}',
        0x2F => '\\',
        0x3C => '[',
        0x3D => '~',
        0x3E => ']',
        0x40 => '|',
        0x65 => '€',
        _ => return None,
    })
}

/// Decodes the GSM 03.38 default alphabet, one septet per octet, with the extension table.
#[must_use]
pub fn decode_gsm(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    let mut rest = octets;
    loop {
        // Most texts are a single run of such octets. Copying a run is much faster than converting each character.
        let (same, others) = rest.split_at(same_as_ascii(rest));
        text.push_str(std::str::from_utf8(same).unwrap_or_default());
        rest = match others {
            [] => return text,
            [0x1B, next, rest @ ..] => {
                text.push(extension(*next).unwrap_or(' '));
                rest
            }
            [0x1B] => {
                text.push(' ');
                &[]
            }
            [octet, rest @ ..] => {
                text.push(BASIC.get(usize::from(*octet)).copied().unwrap_or('\u{FFFD}'));
                rest
            }
        };
    }
}

/// The number of leading octets with the same meaning in ASCII.
fn same_as_ascii(octets: &[u8]) -> usize {
    // Without branches, so that the compiler uses vector instructions.
    let is_same = |octet: &u8| {
        matches!(octet, b' '..=b'#' | b'%'..=b'?' | b'A'..=b'Z' | b'a'..=b'z')
            | matches!(octet, b'\n' | b'\r')
    };
    let all_same = |chunk: &&[u8; 16]| chunk.iter().fold(true, |same, octet| same & is_same(octet));
    let (chunks, _) = octets.as_chunks::<16>();
    let chunked = chunks.iter().take_while(all_same).count() * 16;
    chunked + octets.iter().skip(chunked).take_while(|octet| is_same(octet)).count()
}

/// Decodes UCS2 (in practice UTF-16), big-endian unless a byte order mark specifies the order. Lone surrogates and an
/// odd last octet become replacement characters.
#[must_use]
pub fn decode_ucs2(octets: &[u8]) -> String {
    let (octets, little) = match octets {
        [0xFE, 0xFF, rest @ ..] => (rest, false),
        [0xFF, 0xFE, rest @ ..] => (rest, true),
        _ => (octets, false),
    };
    let units = octets.chunks(2).map(|pair| match pair {
        [first, second] if little => u16::from_le_bytes([*first, *second]),
        [first, second] => u16::from_be_bytes([*first, *second]),
        _ => 0xFFFD,
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{FFFD}')).collect()
}

/// Encodes a text in the GSM default alphabet, one septet per octet; `None` if it has other characters.
#[must_use]
pub fn encode_gsm(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len());
    for character in text.chars() {
        if let Some(at) = BASIC.iter().position(|basic| *basic == character && character != '\u{1B}') {
            octets.push(at as u8);
        } else {
            let septet = (0_u8..0x80).find(|septet| extension(*septet) == Some(character))?;
            octets.extend([0x1B, septet]);
        }
    }
    Some(octets)
}

/// The alphabet of a text, which determines where it may be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmppAlphabet {
    /// GSM septets, one per octet.
    Gsm,
    /// Octets.
    Octets,
    /// Units of two octets, big-endian.
    Ucs2,
}

/// The alphabet of a data coding.
#[must_use]
pub fn alphabet(data_coding: u8) -> SmppAlphabet {
    match data_coding {
        0x00 | 0x01 | 0x10..=0x13 | 0xC0..=0xDF | 0xF0..=0xF3 => SmppAlphabet::Gsm,
        0x08 | 0x18..=0x1B | 0xE0..=0xEF => SmppAlphabet::Ucs2,
        _ => SmppAlphabet::Octets,
    }
}

/// Decodes a text for display. Unreadable octets become replacement characters; decoding never fails.
#[must_use]
pub fn decode(data_coding: u8, octets: &[u8]) -> String {
    match data_coding {
        0x01 => octets
            .iter()
            .map(|octet| if octet.is_ascii() { char::from(*octet) } else { '\u{FFFD}' })
            .collect(),
        0x03 => octets.iter().map(|octet| char::from(*octet)).collect(),
        _ => match alphabet(data_coding) {
            SmppAlphabet::Gsm => decode_gsm(octets),
            SmppAlphabet::Ucs2 => decode_ucs2(octets),
            SmppAlphabet::Octets => model::hex(octets),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_080_five_characters_of_the_gsm_alphabet() {
        assert_eq!(decode(0, &[0x00, 0x01, 0x02, 0x1B, 0x65, 0x1B, 0x3C]), "@£$€[");
    }

    #[test]
    fn the_gsm_alphabet_round_trips() {
        let all: String = (0_u8..0x80)
            .filter(|septet| *septet != 0x1B)
            .filter_map(|septet| BASIC.get(usize::from(septet)))
            .chain("\u{0C}^{}\\[~]|€".chars().collect::<Vec<_>>().iter())
            .collect();
        assert_eq!(decode_gsm(&encode_gsm(&all).unwrap()), all);
        assert_eq!(encode_gsm("@£$€["), Some(vec![0x00, 0x01, 0x02, 0x1B, 0x65, 0x1B, 0x3C]));
        assert_eq!(encode_gsm("ж"), None);
        assert_eq!(decode_gsm(&[0x41, 0x1B]), "A ");
        assert_eq!(decode_gsm(&[0x1B, 0x41, 0x80]), " \u{FFFD}");
    }

    #[test]
    fn runs_and_single_characters_decode_alike() {
        let single = |octet: u8| BASIC.get(usize::from(octet)).copied().unwrap_or('\u{FFFD}');
        for octet in (0..=0x85).filter(|octet| *octet != 0x1B) {
            for before in [0, 15, 16, 40] {
                let octets = [&vec![b'x'; before][..], &[octet], &[b'y'; 20]].concat();
                let expected = format!("{}{}{}", "x".repeat(before), single(octet), "y".repeat(20));
                assert_eq!(decode_gsm(&octets), expected, "{octet:#x}");
            }
        }
    }

    #[test]
    fn ucs2_variants_are_decoded() {
        assert_eq!(decode(8, &[0xFE, 0xFF, 0x4F, 0x60]), "你");
        assert_eq!(decode(8, &[0xFF, 0xFE, 0x60, 0x4F]), "你");
        assert_eq!(decode(8, &[0xD8, 0x3D, 0xDE, 0x00]), "😀");
        assert_eq!(decode(8, &[0xD8, 0x3D, 0x00, 0x41]), "\u{FFFD}A");
        assert_eq!(decode(8, &[0xDE, 0x00]), "\u{FFFD}");
    }

    #[test]
    fn check_078_079_every_coding_decodes_without_panic() {
        for coding in 0..=255 {
            for length in 0..5 {
                let _ = decode(coding, &[0xD8, 0x1B, 0x00, 0xFF, 0x1B][..length]);
            }
        }
        assert_eq!(decode(8, &[0x4F, 0x60, 0x59]), "\u{4F60}\u{FFFD}");
        assert_eq!(decode(3, &[0xE9]), "é");
    }
}
