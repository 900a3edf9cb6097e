//! Maps JSON pointers to lines of a JSON text, and shows problems at their lines.

use maud::{Markup, html};
use std::collections::HashMap;

/// The line of each value of a JSON text, from 1, by JSON pointer. Stops at the first syntax error.
pub(crate) fn line_numbers(text: &str) -> HashMap<String, usize> {
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

/// The maximum depth of a text. Configurations are less deep.
const MAX_DEPTH: usize = 64;

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

    fn consume(&mut self, octet: u8) -> bool {
        let is_next = self.peek() == Some(octet);
        self.at += usize::from(is_next);
        is_next
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

    /// Reads a value; returns whether it is complete.
    fn value(&mut self, pointer: &mut String, depth: usize) -> bool {
        let Some(first) = self.peek() else { return false };
        self.found.entry(pointer.clone()).or_insert(self.line);
        let pointer_length = pointer.len();
        match first {
            _ if depth > MAX_DEPTH => false,
            b'{' => {
                self.at += 1;
                while self.peek() == Some(b'"') {
                    let Some(key) = self.text() else { return false };
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    self.found.insert(pointer.clone(), self.line);
                    let read = self.consume(b':') && self.value(pointer, depth + 1);
                    pointer.truncate(pointer_length);
                    if !read {
                        return false;
                    }
                    self.consume(b',');
                }
                self.consume(b'}')
            }
            b'[' => {
                self.at += 1;
                let mut index = 0;
                while self.peek().is_some_and(|octet| octet != b']') {
                    pointer.push_str(&format!("/{index}"));
                    let read = self.value(pointer, depth + 1);
                    pointer.truncate(pointer_length);
                    if !read {
                        return false;
                    }
                    index += 1;
                    self.consume(b',');
                }
                self.consume(b']')
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

/// The line of a pointer, or of its nearest ancestor.
pub(crate) fn line_of(lines: &HashMap<String, usize>, pointer: &str) -> Option<usize> {
    let mut pointer = pointer;
    loop {
        if let Some(line) = lines.get(pointer) {
            return Some(*line);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

/// The line number in an error message: `line 3` or `line: 3`.
pub(crate) fn line_in_message(message: &str) -> Option<usize> {
    let lower = message.to_ascii_lowercase();
    lower.match_indices("line").find_map(|(at, _)| {
        let after = lower.get(at + 4..)?.trim_start_matches([' ', ':', '=']);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after.get(..end)?.parse().ok().filter(|line| *line > 0)
    })
}

/// The lines around the problems of a text, numbered, each with its problems below it.
pub(crate) fn excerpt(text: &str, problems_by_line: &[(usize, String)]) -> Markup {
    let lines: Vec<&str> = text.lines().collect();
    let is_near = |line: usize| problems_by_line.iter().any(|(at, _)| line.abs_diff(*at) <= 2);
    let shown: Vec<usize> =
        (1..=lines.len()).filter(|line| is_near(*line)).take(crate::table::MAX_ROWS).collect();
    html! {
        @if !shown.is_empty() {
            ol.excerpt tabindex="0" role="group" aria-label="Problems in the text" {
                @for (index, line) in shown.iter().enumerate() {
                    @if index > 0 && shown[index - 1] + 1 != *line { li.gap aria-hidden="true" { "⋯" } }
                    @let line_problems: Vec<_> = problems_by_line.iter().filter(|(at, _)| at == line).collect();
                    li.invalid[!line_problems.is_empty()] id=(format!("line-{line}")) {
                        span.number { (line) }
                        code { (lines[line - 1]) }
                        @for (_, what) in line_problems { strong.problem { (what) } }
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
    fn every_value_has_its_line() {
        let text = "{\n  \"peer\": [\n    {\n      \"name\": \"a\\\"}\",\n      \"links\": 2\n    },\n    {\n      \"name\": \"b\"\n    }\n  ],\n  \"a/b~\": null\n}";
        let lines = line_numbers(text);
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
    fn invalid_json_is_accepted() {
        for text in ["", "{", "[1,", "{\"a\"", "\"\\", "}", "[[[[", "{\"a\":}", "nul", "[\"é"] {
            line_numbers(text);
        }
        line_numbers(&"[".repeat(100_000));
    }

    #[test]
    fn the_line_is_found_in_parser_errors() {
        assert_eq!(line_in_message("TOML parse error at line 12, column 3"), Some(12));
        assert_eq!(line_in_message("the outline is wrong; Line: 4"), Some(4));
        assert_eq!(line_in_message("no place is known"), None);
    }

    #[test]
    fn an_excerpt_is_escaped_and_marks_its_line() {
        let html_text = excerpt("a\nb\n<b>\nd\ne\nf", &[(3, "no <b> here".to_owned())]).into_string();
        assert!(html_text.contains("&lt;b&gt;") && !html_text.contains("<b>"), "{html_text}");
        assert!(html_text.contains("id=\"line-1\"") && !html_text.contains("id=\"line-6\""), "{html_text}");
    }
}
