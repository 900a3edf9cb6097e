//! Where in a text a JSON pointer points, so that what is wrong can be shown there.

use maud::{Markup, html};
use std::collections::HashMap;

/// The line, from 1, of everything in a JSON text, by JSON pointer. As far as the text goes where it is no JSON.
pub(crate) fn lines(text: &str) -> HashMap<String, usize> {
    let mut reader = Reader { octets: text.as_bytes(), at: 0, line: 1, found: HashMap::new() };
    reader.value(&mut String::new(), 0);
    reader.found
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
    line: usize,
    found: HashMap<String, usize>,
}

/// Deeper than any configuration; a text that is deeper is not followed further.
const DEEPEST: usize = 64;

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(octet) = self.octets.get(self.at) {
            match octet {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                octet => return Some(*octet),
            }
            self.at += 1;
        }
        None
    }

    fn takes(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn text(&mut self) -> Option<String> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let start = self.at;
        self.at += 1;
        loop {
            match self.octets.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(self.octets.get(start..self.at)?).ok()
    }

    /// Whether it could be read to its end.
    fn value(&mut self, pointer: &mut String, depth: usize) -> bool {
        let Some(first) = self.peek() else { return false };
        self.found.entry(pointer.clone()).or_insert(self.line);
        let whole = pointer.len();
        match first {
            _ if depth > DEEPEST => false,
            b'{' => {
                self.at += 1;
                while self.peek() == Some(b'"') {
                    let Some(key) = self.text() else { return false };
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    self.found.insert(pointer.clone(), self.line);
                    let read = self.takes(b':') && self.value(pointer, depth + 1);
                    pointer.truncate(whole);
                    if !read {
                        return false;
                    }
                    self.takes(b',');
                }
                self.takes(b'}')
            }
            b'[' => {
                self.at += 1;
                let mut index = 0;
                while self.peek().is_some_and(|octet| octet != b']') {
                    pointer.push_str(&format!("/{index}"));
                    let read = self.value(pointer, depth + 1);
                    pointer.truncate(whole);
                    if !read {
                        return false;
                    }
                    index += 1;
                    self.takes(b',');
                }
                self.takes(b']')
            }
            b'"' => self.text().is_some(),
            _ => {
                let start = self.at;
                while self.octets.get(self.at).is_some_and(|octet| !b",]} \t\r\n".contains(octet)) {
                    self.at += 1;
                }
                self.at > start
            }
        }
    }
}

/// The line of what a pointer points at, or of the nearest thing around it.
pub(crate) fn line_of(lines: &HashMap<String, usize>, pointer: &str) -> Option<usize> {
    let mut pointer = pointer;
    loop {
        if let Some(line) = lines.get(pointer) {
            return Some(*line);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

/// The line that a message speaks of: `line 3`, or `line: 3`.
pub(crate) fn line_in(message: &str) -> Option<usize> {
    let lower = message.to_ascii_lowercase();
    lower.match_indices("line").find_map(|(at, _)| {
        let after = lower.get(at + 4..)?.trim_start_matches([' ', ':', '=']);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after.get(..end)?.parse().ok().filter(|line| *line > 0)
    })
}

/// The lines of a text around those where something is wrong, numbered, each with what is wrong below it.
pub(crate) fn excerpt(text: &str, wrong: &[(usize, String)]) -> Markup {
    let lines: Vec<&str> = text.lines().collect();
    let near = |line: usize| wrong.iter().any(|(at, _)| line.abs_diff(*at) <= 2);
    let shown: Vec<usize> = (1..=lines.len()).filter(|line| near(*line)).take(crate::table::MOST).collect();
    html! {
        @if !shown.is_empty() {
            ol.source tabindex="0" role="group" aria-label="The places in the text" {
                @for (place, line) in shown.iter().enumerate() {
                    @if place > 0 && shown[place - 1] + 1 != *line { li.gap aria-hidden="true" { "⋯" } }
                    @let here: Vec<_> = wrong.iter().filter(|(at, _)| at == line).collect();
                    li.wrong[!here.is_empty()] id=(format!("line-{line}")) {
                        span.number { (line) }
                        code { (lines[line - 1]) }
                        @for (_, what) in here { strong.what { (what) } }
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
    fn every_value_has_its_line_as_far_as_the_text_can_be_read() {
        let text = "{\n  \"peer\": [\n    {\n      \"name\": \"a\\\"}\",\n      \"links\": 2\n    },\n    {\n      \"name\": \"b\"\n    }\n  ],\n  \"a/b~\": null\n}";
        let lines = lines(text);
        for (pointer, line) in [
            ("", 1),
            ("/peer", 2),
            ("/peer/0", 3),
            ("/peer/0/name", 4),
            ("/peer/0/links", 5),
            ("/peer/1/name", 8),
            ("/a~1b~0", 11),
        ] {
            assert_eq!(lines.get(pointer), Some(&line), "{pointer}");
        }
        assert_eq!(line_of(&lines, "/peer/1/address/host"), Some(7));
        assert_eq!(line_of(&lines, "nonsense"), None);
    }

    #[test]
    fn a_text_that_is_no_json_does_no_harm() {
        for text in ["", "{", "[1,", "{\"a\"", "\"\\", "}", "[[[[", "{\"a\":}", "nul", "[\"é"] {
            lines(text);
        }
        lines(&"[".repeat(100_000));
    }

    #[test]
    fn the_line_is_found_in_what_a_parser_says() {
        assert_eq!(line_in("TOML parse error at line 12, column 3"), Some(12));
        assert_eq!(line_in("the outline is wrong; Line: 4"), Some(4));
        assert_eq!(line_in("no place is known"), None);
    }

    #[test]
    fn an_excerpt_is_escaped_and_marks_its_line() {
        let drawn = excerpt("a\nb\n<b>\nd\ne\nf", &[(3, "no <b> here".to_owned())]).into_string();
        assert!(drawn.contains("&lt;b&gt;") && !drawn.contains("<b>"), "{drawn}");
        assert!(drawn.contains("id=\"line-1\"") && !drawn.contains("id=\"line-6\""), "{drawn}");
    }
}
