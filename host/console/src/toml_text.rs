//! TOML as highlighted text.

use maud::{Markup, html};

/// The kind of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Header,
    Key,
    Text,
    /// A number or a word.
    Literal,
    Comment,
    Other,
}

impl PartKind {
    fn class(self) -> Option<&'static str> {
        match self {
            Self::Header => Some("toml-header"),
            Self::Key => Some("toml-key"),
            Self::Text => Some("toml-text"),
            Self::Literal => Some("toml-literal"),
            Self::Comment => Some("toml-comment"),
            Self::Other => None,
        }
    }
}

/// The end of a quoted text that begins `rest`; the end of the line if it is not closed there.
fn quoted_end(rest: &str) -> usize {
    let mut letters = rest.char_indices();
    let Some((_, quote)) = letters.next() else { return 0 };
    let mut escaped = false;
    for (at, letter) in letters {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            letter if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The parts of a line. Multi-line texts are not recognised; the configuration's writer does not produce them.
fn parts(line: &str) -> Vec<(PartKind, &str)> {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    if trimmed.starts_with('#') {
        return vec![(PartKind::Comment, line)];
    }
    if trimmed.starts_with('[')
        && !trimmed.contains('=')
        && !trimmed.starts_with("[\"")
        && trimmed.ends_with(']')
    {
        return vec![(PartKind::Header, line)];
    }
    let mut parts = Vec::new();
    let mut at = 0;
    // The key is before the first equals sign outside quotes.
    let mut search = indent;
    while let Some(next) = line.get(search..).and_then(|rest| rest.find(['=', '"', '\'', '#'])) {
        let found = search + next;
        match line.as_bytes().get(found) {
            Some(b'=') => {
                parts.push((PartKind::Key, line.get(..found).unwrap_or_default()));
                at = found;
                break;
            }
            Some(b'#') | None => break,
            Some(_) => search = found + quoted_end(line.get(found..).unwrap_or_default()),
        }
    }
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let is_literal = |letter: char| letter.is_alphanumeric() || "+-._:".contains(letter);
        let (kind, length) = match rest.chars().next() {
            Some('"' | '\'') => (PartKind::Text, quoted_end(rest)),
            Some('#') => (PartKind::Comment, rest.len()),
            Some(letter) if is_literal(letter) => {
                (PartKind::Literal, rest.find(|letter| !is_literal(letter)).unwrap_or(rest.len()))
            }
            _ => {
                let ends = |letter: char| is_literal(letter) || "\"'#".contains(letter);
                (PartKind::Other, rest.find(ends).unwrap_or(rest.len()))
            }
        };
        let length = length.max(1);
        let Some(part) = line.get(at..at + length) else { break };
        parts.push((kind, part));
        at += length;
    }
    parts
}

/// A document with its lines numbered.
pub(crate) fn highlighted(text: &str, label: &str) -> Markup {
    html! {
        div.toml tabindex="0" role="group" aria-label=(label) {
            ol {
                @for line in text.lines() {
                    li {
                        @for (kind, part) in parts(line) {
                            @match kind.class() { Some(class) => { span.(class) { (part) } } None => { (part) } }
                        }
                        @if line.is_empty() { "\n" }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_texts_and_comments_are_found() {
        let kinds = |line: &'static str| {
            parts(line).into_iter().filter(|(kind, _)| *kind != PartKind::Other).collect::<Vec<_>>()
        };
        assert_eq!(kinds("[[peer]]"), [(PartKind::Header, "[[peer]]")]);
        assert_eq!(kinds("  # note"), [(PartKind::Comment, "  # note")]);
        assert_eq!(
            kinds("name = \"a = \\\" #b\" # why"),
            [(PartKind::Key, "name "), (PartKind::Text, "\"a = \\\" #b\""), (PartKind::Comment, "# why")]
        );
        assert_eq!(
            kinds("\"a=b\" = [1, true]"),
            [(PartKind::Key, "\"a=b\" "), (PartKind::Literal, "1"), (PartKind::Literal, "true")]
        );
        assert_eq!(kinds("    \"10s\","), [(PartKind::Text, "\"10s\"")]);
        assert_eq!(kinds("é = \"ü"), [(PartKind::Key, "é "), (PartKind::Text, "\"ü")]);
    }

    #[test]
    fn a_text_is_escaped_and_complete() {
        let text = "a = \"<b>\"\n\n[c]\n";
        let shown = highlighted(text, "x").into_string();
        assert!(shown.contains("&lt;b&gt;") && !shown.contains("<b>"), "{shown}");
        assert_eq!(shown.matches("<li>").count(), 3);
    }
}
