//! Words that only their owner knows, and what is kept of them.

use crate::AccessError;
use sha2::{Digest, Sha256};

/// What is kept of a word: its SHA-256. The words are 256 random bits, so nothing slower is needed.
pub(crate) type Mark = [u8; 32];

/// 256 random bits as 64 hexadecimal digits.
pub(crate) fn make() -> Result<String, AccessError> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(AccessError::Random)?;
    Ok(hex(&octets))
}

pub(crate) fn mark(word: &str) -> Mark {
    Sha256::digest(word.as_bytes()).into()
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Mark> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut mark = [0; 32];
    for (octet, at) in mark.iter_mut().zip((0..64).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(mark)
}

/// Whether two texts are the same; takes the same time wherever the first difference is.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_from_their_text_and_nothing_else_does() {
        let word = make().unwrap();
        assert_eq!(word.len(), 64);
        assert_ne!(word, make().unwrap());
        let mark = mark(&word);
        assert_eq!(from_hex(&hex(&mark)), Some(mark));
        for wrong in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
        assert!(same("ab", "ab") && !same("ab", "ac") && !same("ab", "abc") && !same("", "a"));
    }
}
