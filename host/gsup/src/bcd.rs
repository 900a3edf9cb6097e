//! Swapped BCD: two digits per octet, the first in the low nibble; an odd count is filled with `F`.

/// The digits of a telephone number by nibble value (24.008, 10.5.4.7); 15 is the filler.
const DIGITS: [u8; 15] = *b"0123456789*#abc";

/// Decodes digits; `None` if a filler is not at the end.
pub(crate) fn decode(octets: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(octets.len() * 2);
    for (index, octet) in octets.iter().enumerate() {
        text.push(char::from(*DIGITS.get(usize::from(octet & 0xf))?));
        match DIGITS.get(usize::from(octet >> 4)) {
            Some(letter) => text.push(char::from(*letter)),
            None if index + 1 == octets.len() => {}
            None => return None,
        }
    }
    Some(text)
}

/// Encodes digits; `None` for any other character.
pub(crate) fn encode(text: &[u8]) -> Option<Vec<u8>> {
    let nibble = |letter: u8| {
        let index = DIGITS.iter().position(|known| *known == letter.to_ascii_lowercase())?;
        u8::try_from(index).ok()
    };
    text.chunks(2)
        .map(|pair| match *pair {
            [first, second] => Some(nibble(first)? | nibble(second)? << 4),
            [first] => Some(nibble(first)? | 0xf0),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bcd_round_trips() {
        for (text, octets) in [
            ("19990014444", &[0x91, 0x99, 0x00, 0x41, 0x44, 0xf4][..]),
            ("0123456789*#abc", &[0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]),
            ("", &[]),
            ("42", &[0x24]),
        ] {
            assert_eq!(encode(text.as_bytes()).as_deref(), Some(octets), "{text}");
            assert_eq!(decode(octets).as_deref(), Some(text));
        }
        assert_eq!(decode(&[0xf1, 0x21]), None, "a filler in the middle");
        assert_eq!(decode(&[0x1f]), None, "a filler in the first half");
        assert_eq!(encode(b"12 4"), None);
    }
}
