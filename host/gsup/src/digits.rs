//! Swapped BCD: two digits an octet, the first in the low half, a half of `F` where the count is odd.

/// What the sixteen halves stand for in a telephone number (24.008, 10.5.4.7); the last is the filler.
const LETTERS: [u8; 15] = *b"0123456789*#abc";

/// Reads digits. `None` where a filler stands before the end.
pub(crate) fn decode(octets: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(octets.len() * 2);
    for (at, octet) in octets.iter().enumerate() {
        text.push(char::from(*LETTERS.get(usize::from(octet & 0xf))?));
        match LETTERS.get(usize::from(octet >> 4)) {
            Some(letter) => text.push(char::from(*letter)),
            None if at + 1 == octets.len() => {}
            None => return None,
        }
    }
    Some(text)
}

/// Writes digits. `None` where there is anything else.
pub(crate) fn encode(text: &[u8]) -> Option<Vec<u8>> {
    let half = |letter: u8| {
        let at = LETTERS.iter().position(|known| *known == letter.to_ascii_lowercase())?;
        u8::try_from(at).ok()
    };
    text.chunks(2)
        .map(|pair| match *pair {
            [first, second] => Some(half(first)? | half(second)? << 4),
            [first] => Some(half(first)? | 0xf0),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
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
