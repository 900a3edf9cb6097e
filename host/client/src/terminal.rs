//! Output that cannot control the terminal: texts for people, documents for programs.

use serde::Serialize;
use std::fmt::Write;

/// Makes control characters visible: as control pictures (␛ for escape, ␊ for a new line), or in the form ‹U+202E›.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => output.push(char::from_u32(0x2400 + c as u32).unwrap_or('?')),
            '\x7f' => output.push('␡'),
            // C1 controls, line separators, direction marks and overrides, tags.
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => {
                // Writing to a string cannot fail.
                let _ = write!(output, "‹U+{:04X}›", c as u32);
            }
            plain => output.push(plain),
        }
    }
    output
}

/// A JSON document on one line, with all control characters escaped.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    let plain = serde_json::to_string(value).unwrap_or_default();
    let mut output = String::with_capacity(plain.len());
    for c in plain.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') {
            let _ = write!(output, "\\u{:04x}", c as u32);
        } else {
            output.push(c);
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let text = "a\x1b[31mred\x07\r\nb\x7f\u{9b}2J\u{202e}evil 你好 😀";
        let output = visible(text);
        assert_eq!(output, "a␛[31mred␇␍␊b␡‹U+009B›2J‹U+202E›evil 你好 😀");
        assert!(!output.chars().any(char::is_control));
        let document = json(&text);
        assert!(!document.chars().any(char::is_control), "{document}");
        assert_eq!(serde_json::from_str::<String>(&document).unwrap(), text);
    }
}
