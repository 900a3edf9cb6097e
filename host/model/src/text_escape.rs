use std::fmt::Write;

/// Escapes arbitrary octets as text that every database stores and compares identically, without collisions.
///
/// Printable characters are unchanged. Control characters, including NUL, and invalid UTF-8 become `\x1f`; a backslash
/// becomes `\\`.
#[must_use]
pub fn escape(octets: &[u8]) -> String {
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

/// Decodes the output of [`escape`]; `None` for other input.
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
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

/// Replaces NUL, which PostgreSQL cannot store, in names and notes.
#[must_use]
pub fn replace_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_control_and_invalid_octets() {
        assert_eq!(escape(b"8613800138000"), "8613800138000");
        assert_eq!(escape("Café".as_bytes()), "Café");
        assert_eq!(escape(b"a\0b\\\xff"), "a\\x00b\\\\\\xff");
        assert_eq!(unescape("\\x0"), None);
        assert_eq!(unescape("\\n"), None);
        assert_eq!(unescape("\\x1é"), None);
    }

    proptest! {
        #[test]
        fn escaping_is_reversible(octets: Vec<u8>) {
            let text = escape(&octets);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert_eq!(unescape(&text), Some(octets));
        }
    }
}
