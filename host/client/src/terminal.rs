//! Texts for people, and documents for programs, so that nothing in them speaks to the terminal.

use serde::Serialize;
use std::fmt::Write;

/// A text in which everything is visible that would move a cursor, change a colour or turn the order of letters round:
/// control characters as their pictures (␛ for escape, ␊ for a new line), others as ‹U+202E›.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + c as u32).unwrap_or('?')),
            '\x7f' => shown.push('␡'),
            // C1 controls, line separators, marks and overrides of the writing direction, tags.
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => {
                // Writing into a string cannot fail.
                let _ = write!(shown, "‹U+{:04X}›", c as u32);
            }
            plain => shown.push(plain),
        }
    }
    shown
}

/// A document on one line. JSON escapes most control characters by itself; the others stand inside of strings only.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    let plain = serde_json::to_string(value).unwrap_or_default();
    let mut shown = String::with_capacity(plain.len());
    for c in plain.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') {
            let _ = write!(shown, "\\u{:04x}", c as u32);
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_speaks_to_the_terminal() {
        let text = "a\x1b[31mred\x07\r\nb\x7f\u{9b}2J\u{202e}evil 你好 😀";
        let shown = visible(text);
        assert_eq!(shown, "a␛[31mred␇␍␊b␡‹U+009B›2J‹U+202E›evil 你好 😀");
        assert!(!shown.chars().any(char::is_control));
        let document = json(&text);
        assert!(!document.chars().any(char::is_control), "{document}");
        assert_eq!(serde_json::from_str::<String>(&document).unwrap(), text);
    }
}
