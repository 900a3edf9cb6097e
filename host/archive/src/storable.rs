use std::fmt::Write;

/// Octets from outside as text that every data base stores and compares in the same way, and that tells them all apart.
///
/// Printable characters stand for themselves. Control characters, NUL among them, and octets that are no UTF-8 appear
/// as `\x1f`; a backslash as `\\`.
pub(crate) fn storable(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len());
    for chunk in octets.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                // Writing into a string cannot fail.
                control if control.is_control() => {
                    let mut buffer = [0; 4];
                    for octet in control.encode_utf8(&mut buffer).bytes() {
                        let _ = write!(text, "\\x{octet:02x}");
                    }
                }
                plain => text.push(plain),
            }
        }
        for octet in chunk.invalid() {
            let _ = write!(text, "\\x{octet:02x}");
        }
    }
    text
}

/// Reads what [`storable`] wrote; `None` for what it never writes.
pub(crate) fn stored(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        octets.extend_from_slice(plain.as_bytes());
        rest = if let Some(after) = escape.strip_prefix("\\\\") {
            octets.push(b'\\');
            after
        } else {
            let digits = escape.strip_prefix("\\x")?.get(..2)?;
            octets.push(u8::from_str_radix(digits, 16).ok()?);
            escape.get(4..)?
        };
    }
    octets.extend_from_slice(rest.as_bytes());
    Some(octets)
}

/// Text of our own (names, notes) without the one character that PostgreSQL does not store.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_read() {
        assert_eq!(storable(b"8613800138000"), "8613800138000");
        assert_eq!(storable("Café".as_bytes()), "Café");
        assert_eq!(storable(b"a\0b\\\xff"), "a\\x00b\\\\\\xff");
        assert_eq!(stored("\\x0"), None);
        assert_eq!(stored("\\n"), None);
        assert_eq!(stored("\\x1é"), None);
    }

    proptest! {
        #[test]
        fn octets_come_back(octets: Vec<u8>) {
            let text = storable(&octets);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert_eq!(stored(&text), Some(octets));
        }
    }
}
