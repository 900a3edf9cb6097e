//! Reads a document key by key and collects all problems.

use crate::diagnostics::{ConfigProblem, Diagnostics};
use crate::path::push_token;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::time::Duration;

/// One table of the document. Keys that were not requested are reported as unknown.
pub struct Section<'a> {
    /// The path as users write it: `peer[0].tls`.
    key: String,
    /// The path without indices: `peer[].tls`.
    pattern: String,
    pointer: String,
    line: Option<usize>,
    table: Option<&'a Map<String, Value>>,
    diagnostics: &'a Diagnostics,
    known_keys: RefCell<Vec<&'static str>>,
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "table",
    }
}

fn dotted(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'a> Section<'a> {
    /// The root of the document.
    pub fn root(diagnostics: &'a Diagnostics, document: &'a Value) -> Self {
        let root = Self {
            key: String::new(),
            pattern: String::new(),
            pointer: String::new(),
            line: diagnostics.line_of_value(""),
            table: document.as_object(),
            diagnostics,
            known_keys: RefCell::default(),
        };
        if root.table.is_none() {
            let message = format!("is {}, not a configuration", type_name(document));
            let allowed = Some("an object of sections".to_owned());
            diagnostics.add(ConfigProblem {
                line: root.line,
                key: String::new(),
                pointer: String::new(),
                message,
                allowed,
            });
        }
        root
    }

    fn pointer_to(&self, key: &str) -> String {
        let mut pointer = self.pointer.clone();
        push_token(&mut pointer, key);
        pointer
    }

    /// The value of a key. `null` is allowed in a patch only; in a document it is an error.
    fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.known_keys.borrow_mut().push(key);
        self.table?.get(key)
    }

    fn report(&self, key: &str, message: String, allowed: Option<String>) {
        let pointer = self.pointer_to(key);
        let line = match self.table.is_some_and(|table| table.contains_key(key)) {
            true => self.diagnostics.line_of_key(&pointer),
            false => self.line,
        };
        self.diagnostics.add(ConfigProblem { line, key: dotted(&self.key, key), pointer, message, allowed });
    }

    /// Reports a problem with a key, present or missing.
    pub fn error(&self, key: &'static str, message: impl Into<String>) {
        self.report(key, message.into(), None);
    }

    /// Reports an invalid value with its description ("is 5") and the allowed values ("6 to 7").
    pub fn invalid(&self, key: &'static str, message: impl Into<String>, allowed: impl Into<String>) {
        self.report(key, message.into(), Some(allowed.into()));
    }

    fn wrong_type(&self, key: &'static str, value: &Value, expected: &str) {
        self.invalid(key, format!("is {}", type_name(value)), expected);
    }

    /// Reads a string.
    pub fn text(&self, key: &'static str) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.wrong_type(key, other, "a string in quotes");
                None
            }
        }
    }

    /// Reads a mandatory string. If it is missing, reports that and returns an empty string.
    pub fn required(&self, key: &'static str, example: &str) -> String {
        if self.table.is_some_and(|table| table.contains_key(key)) {
            let text = self.text(key);
            if text.as_ref().is_some_and(String::is_empty) {
                self.error(key, format!("is empty; write for example {key} = {example}"));
            }
            return text.unwrap_or_default();
        }
        self.known_keys.borrow_mut().push(key);
        self.error(key, format!("is missing; write for example {key} = {example}"));
        String::new()
    }

    /// Reads a list of strings.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.get(key)?;
        let Value::Array(items) = value else {
            self.wrong_type(key, value, "a list of strings");
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => self.wrong_type(key, other, "a list of strings"),
            }
        }
        Some(texts)
    }

    /// Reads a boolean.
    pub fn flag(&self, key: &'static str, default: bool) -> bool {
        match self.get(key) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.wrong_type(key, other, "true or false");
                default
            }
        }
    }

    /// Reads an integer within a range.
    pub fn number(&self, key: &'static str, default: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        match self.get(key) {
            None => default,
            Some(Value::Number(number)) if !number.is_f64() => match number.as_u64() {
                Some(number) if range.contains(&number) => number,
                _ => {
                    self.invalid(
                        key,
                        format!("is {number}"),
                        format!("{} to {}", range.start(), range.end()),
                    );
                    default
                }
            },
            Some(other) => {
                self.wrong_type(key, other, "an integer");
                default
            }
        }
    }

    /// Reads a rate in messages per second; `None` for no limit.
    pub fn rate(&self, key: &'static str) -> Option<f64> {
        let value = self.get(key)?;
        let Value::Number(number) = value else {
            self.wrong_type(key, value, "a number of messages per second");
            return None;
        };
        let rate = number.as_f64().filter(|rate| rate.is_finite() && *rate > 0.0);
        if rate.is_none() {
            self.error(key, "must be above 0 messages per second; omit it for no limit");
        }
        rate
    }

    /// Reads a duration such as `30s`.
    pub fn duration(&self, key: &'static str, default: Duration) -> Duration {
        let Some(text) = self.text(key) else { return default };
        model::parse_duration(&text).unwrap_or_else(|| {
            let allowed = "a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\"";
            self.invalid(key, format!("is {text:?}"), allowed);
            default
        })
    }

    /// Reads a non-empty list of durations.
    pub fn durations(&self, key: &'static str) -> Option<Vec<Duration>> {
        let texts = self.texts(key)?;
        let read: Vec<Duration> = texts.iter().filter_map(|text| model::parse_duration(text)).collect();
        if read.len() < texts.len() || read.is_empty() {
            self.error(key, "must be a list of times such as [\"10s\", \"5m\", \"1h\"]");
            return None;
        }
        Some(read)
    }

    /// Reads a size in octets, such as `64KiB`.
    pub fn size(&self, key: &'static str, default: u64) -> u64 {
        let Some(text) = self.text(key) else { return default };
        parse_size(&text).unwrap_or_else(|| {
            self.invalid(key, format!("is {text:?}"), "a size such as \"64KiB\", \"512MiB\" or \"2GiB\"");
            default
        })
    }

    /// Reads one of several keywords.
    pub fn choice<T: Copy>(&self, key: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.text(key) else { return default };
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => *choice,
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                self.invalid(key, format!("is {text:?}"), format!("one of: {}", names.join(", ")));
                default
            }
        }
    }

    /// Reads a table; a missing one is empty.
    pub fn section(&self, key: &'static str) -> Section<'a> {
        let found = self.get(key);
        let table = match found {
            None => None,
            Some(Value::Object(table)) => Some(table),
            Some(other) => {
                let as_file = format!("a table: [{}]", dotted(&self.key, key));
                let expected = if self.diagnostics.is_file() { as_file } else { "an object".to_owned() };
                self.wrong_type(key, other, &expected);
                None
            }
        };
        let pointer = self.pointer_to(key);
        Section {
            key: dotted(&self.key, key),
            pattern: dotted(&self.pattern, key),
            line: self.diagnostics.line_of_value(&pointer).or(self.line),
            pointer,
            table,
            diagnostics: self.diagnostics,
            known_keys: RefCell::default(),
        }
    }

    /// Whether the document came from a local file and not over the API.
    pub fn is_file(&self) -> bool {
        self.diagnostics.is_file()
    }

    /// Whether the value of a key is a string.
    pub fn is_text(&self, key: &'static str) -> bool {
        self.get(key).is_some_and(Value::is_string)
    }

    /// Whether the value of a key is a list.
    pub fn is_list(&self, key: &'static str) -> bool {
        self.get(key).is_some_and(Value::is_array)
    }

    /// Whether a key is present.
    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Reads a list of tables.
    pub fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let as_file = self.diagnostics.is_file();
        let path = dotted(&self.key, key);
        let Value::Array(items) = found else {
            let expected =
                if as_file { format!("written as [[{path}]], once for each") } else { "a list".into() };
            self.wrong_type(key, found, &expected);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{}/{index}", self.pointer_to(key));
            let line = self.diagnostics.line_of_value(&pointer);
            let key_of_item = format!("{path}[{index}]");
            match item {
                Value::Object(table) => sections.push(Section {
                    key: key_of_item,
                    pattern: format!("{}[]", dotted(&self.pattern, key)),
                    pointer,
                    line,
                    table: Some(table),
                    diagnostics: self.diagnostics,
                    known_keys: RefCell::default(),
                }),
                other => {
                    let allowed = if as_file { format!("written as [[{path}]]") } else { "an object".into() };
                    let (message, allowed) = (format!("is {}", type_name(other)), Some(allowed));
                    self.diagnostics.add(ConfigProblem { line, key: key_of_item, pointer, message, allowed });
                }
            }
        }
        sections
    }

    /// Reads a table with arbitrary keys and string values.
    pub fn pairs(&self) -> Vec<(&'a str, &'a str)> {
        let Some(table) = self.table else { return Vec::new() };
        self.diagnostics.add_known_key(format!("{}.*", self.pattern));
        table
            .iter()
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some((name.as_str(), text.as_str())),
                other => {
                    self.report(name, format!("is {}", type_name(other)), Some("a text".to_owned()));
                    None
                }
            })
            .collect()
    }

    /// Reports all keys that were not requested.
    pub fn finish(&self) {
        let known_keys = self.known_keys.borrow();
        for key in known_keys.iter() {
            self.diagnostics.add_known_key(dotted(&self.pattern, key));
        }
        for known in self.table.into_iter().flat_map(Map::keys) {
            if known_keys.iter().any(|key| key == known) {
                continue;
            }
            let near = known_keys
                .iter()
                .min_by_key(|key| distance(key, known))
                .filter(|key| distance(key, known) <= 3);
            let hint = match near {
                Some(near) => format!("is unknown; did you mean {near:?}?"),
                None => {
                    let mut known: Vec<&str> = known_keys.clone();
                    let mut unique = std::collections::HashSet::new();
                    known.retain(|key| unique.insert(*key));
                    format!("is unknown; known here: {}", known.join(", "))
                }
            };
            self.report(known, hint, None);
        }
    }
}

/// Longer names are truncated before they are compared; no known key is as long.
const LONGEST_NAME: usize = 64;

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(LONGEST_NAME).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (corner + usize::from(x != *y)).min(above + 1).min(row[j] + 1);
            corner = above;
        }
    }
    row[b.len()]
}

/// Parses `512`, `64KiB`, `512MiB` or `2GiB` into octets.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: &Value) -> Vec<String> {
        let diagnostics = Diagnostics::new(None);
        let root = Section::root(&diagnostics, document);
        for peer in root.sections("peer") {
            peer.required("name", "\"x\"");
            peer.number("links", 1, 1..=5);
            peer.choice("bind", 1, &[("up", 1), ("down", 2)]);
            peer.section("tls").finish();
            peer.finish();
        }
        root.finish();
        diagnostics
            .problems()
            .into_iter()
            .map(|problem| format!("{} {} | {:?}", problem.pointer, problem.message, problem.allowed))
            .collect()
    }

    #[test]
    fn every_problem_has_a_pointer_and_allowed_values() {
        let document = json!({
            "peer": [{"links": 9, "bind": "left", "tls": 1, "nme": "x"}, 7],
            "a/b": null,
        });
        assert_eq!(
            read(&document),
            [
                "/peer/1 is integer | Some(\"an object\")",
                "/peer/0/name is missing; write for example name = \"x\" | None",
                "/peer/0/links is 9 | Some(\"1 to 5\")",
                "/peer/0/bind is \"left\" | Some(\"one of: up, down\")",
                "/peer/0/tls is integer | Some(\"an object\")",
                "/peer/0/nme is unknown; did you mean \"name\"? | None",
                "/a~1b is unknown; known here: peer | None",
            ]
        );
        assert_eq!(read(&json!([])), [" is array, not a configuration | Some(\"an object of sections\")"]);
    }

    #[test]
    fn requested_keys_are_recorded_as_known() {
        let diagnostics = Diagnostics::new(None);
        let document = json!({"peer": [{"name": "x"}]});
        let root = Section::root(&diagnostics, &document);
        for peer in root.sections("peer") {
            peer.text("name");
            peer.finish();
        }
        root.finish();
        assert_eq!(diagnostics.known_keys().into_iter().collect::<Vec<_>>(), ["peer", "peer[].name"]);
    }

    #[test]
    fn parses_sizes() {
        assert_eq!(parse_size("64KiB"), Some(65_536));
        assert_eq!(parse_size("7"), Some(7));
        assert_eq!(parse_size("7 parsecs"), None);
        assert_eq!(parse_size("99999999999999999999GiB"), None);
    }
}
