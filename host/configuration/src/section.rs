//! Reads a document key by key and collects all problems.

use crate::diagnostics::{ConfigProblem, Diagnostics};
use crate::files;
use crate::format::{KeyFormat, KeyValue};
use crate::pointer::push_token;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// One table of the document. Keys that were not requested are reported as unknown.
pub struct Section<'a> {
    /// The path as users write it: `peer[0].tls`.
    key: String,
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

    /// Reads a value of one JSON type.
    fn typed<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let typed = read(value);
        if typed.is_none() {
            self.invalid(key, format!("is {}", type_name(value)), expected);
        }
        typed
    }

    /// Reads a string.
    pub fn text(&self, key: &'static str) -> Option<String> {
        self.typed(key, "a string in quotes", |value| value.as_str().map(str::to_owned))
    }

    /// Reads a key in a format; `None` if it is missing or invalid.
    pub fn key<T>(&self, format: &impl KeyFormat<T>, key: &'static str) -> Option<T> {
        format.read(self, key)
    }

    /// Reads a key in a format. If it is missing or invalid, the result is the default, which is JSON.
    ///
    /// # Panics
    /// If the declared default is not a valid value.
    #[allow(clippy::panic, reason = "no input causes it; a test reads all defaults")]
    pub fn key_or<T>(&self, format: &impl KeyFormat<T>, key: &'static str, default: &str) -> T {
        self.key(format, key).unwrap_or_else(|| {
            let diagnostics = Diagnostics::new(None, Path::new(""));
            let value = serde_json::from_str(default).unwrap_or_default();
            let document = Value::Object(Map::from_iter([(key.to_owned(), value)]));
            let value = Section::root(&diagnostics, &document).key(format, key);
            value.unwrap_or_else(|| panic!("the default {default} of {key} is invalid"))
        })
    }

    /// Reads a mandatory key in a format. If it is missing, reports that and returns an empty value.
    pub fn required_key<T: KeyValue>(
        &self,
        format: &impl KeyFormat<T>,
        key: &'static str,
        example: &str,
    ) -> T {
        let (missing, empty) = (!self.has(key), self.get(key).is_some_and(|value| value == ""));
        if missing || empty {
            let what = if missing { "missing" } else { "empty" };
            self.error(key, format!("is {what}; write for example {key} = {example}"));
            return T::empty();
        }
        self.key(format, key).unwrap_or_else(T::empty)
    }

    /// Checks a value, if its key is present.
    pub fn check<T>(
        &self,
        key: &'static str,
        value: Option<&T>,
        check: impl FnOnce(&T) -> Result<(), String>,
    ) {
        if let Some(value) = value.filter(|_| self.has(key))
            && let Err(problem) = check(value)
        {
            self.error(key, problem);
        }
    }

    /// Reads a text from the document, or from the file that another key names.
    pub fn text_or_file(&self, key: &'static str, file_key: &'static str) -> String {
        match (self.text(key), self.text(file_key)) {
            (Some(_), Some(_)) => {
                self.error(file_key, format!("is set together with {key}; keep one of them"));
                String::new()
            }
            (Some(text), None) => text,
            (None, Some(file)) => match files::read_text(&self.base().join(&file)) {
                Ok(text) => text.trim_end_matches(['\n', '\r']).to_owned(),
                Err(error) => {
                    self.error(file_key, format!("{file}: {error}"));
                    String::new()
                }
            },
            (None, None) => String::new(),
        }
    }

    /// Reads a string, and parses it.
    pub fn parsed<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
        allowed: &str,
    ) -> Option<T> {
        let text = self.text(key)?;
        let value = parse(&text);
        if value.is_none() {
            self.invalid(key, format!("is {text:?}"), allowed);
        }
        value
    }

    /// Reads a list of strings, and parses them. An error is a message that names the string.
    pub fn items<T>(&self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Option<Vec<T>> {
        let report = |problem: String| self.error(key, problem);
        Some(self.texts(key)?.iter().filter_map(|text| parse(text).map_err(report).ok()).collect())
    }

    /// Reads a list of strings.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        const EXPECTED: &str = "a list of strings";
        let items = self.typed(key, EXPECTED, Value::as_array)?;
        let text = |item: &Value| {
            if !item.is_string() {
                self.invalid(key, format!("is {}", type_name(item)), EXPECTED);
            }
            item.as_str().map(str::to_owned)
        };
        Some(items.iter().filter_map(text).collect())
    }

    /// Reads a list of integers within a range.
    pub fn numbers(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<Vec<u64>> {
        let items = self.typed(key, "a list of integers", Value::as_array)?;
        let number = |item: &Value| {
            let within = item.as_u64().filter(|number| range.contains(number));
            if within.is_none() {
                let allowed = format!("integers from {} to {}", range.start(), range.end());
                self.invalid(key, format!("has {item}"), allowed);
            }
            within
        };
        Some(items.iter().filter_map(number).collect())
    }

    /// Reads a boolean.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// Reads an integer within a range.
    pub fn number(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let number = |value: &'a Value| value.as_number().filter(|number| !number.is_f64());
        let number = self.typed(key, "an integer", number)?;
        let within = number.as_u64().filter(|number| range.contains(number));
        if within.is_none() {
            self.invalid(key, format!("is {number}"), format!("{} to {}", range.start(), range.end()));
        }
        within
    }

    /// Reads a rate in messages per second.
    pub fn rate(&self, key: &'static str) -> Option<f64> {
        let rate = self.typed(key, "a number of messages per second", Value::as_f64)?;
        let is_valid = rate.is_finite() && rate > 0.0;
        if !is_valid {
            self.error(key, "must be above 0 messages per second; omit it for no limit");
        }
        is_valid.then_some(rate)
    }

    /// Reads a duration such as `30s`.
    pub fn duration(&self, key: &'static str) -> Option<Duration> {
        let allowed = "a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\"";
        self.parsed(key, model::parse_duration, allowed)
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
    pub fn size(&self, key: &'static str) -> Option<u64> {
        self.parsed(key, parse_size, "a size such as \"64KiB\", \"512MiB\" or \"2GiB\"")
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
                self.invalid(key, format!("is {}", type_name(other)), expected);
                None
            }
        };
        let pointer = self.pointer_to(key);
        Section {
            key: dotted(&self.key, key),
            line: self.diagnostics.line_of_value(&pointer).or(self.line),
            pointer,
            table,
            diagnostics: self.diagnostics,
            known_keys: RefCell::default(),
        }
    }

    /// The folder to which relative paths refer.
    #[must_use]
    pub fn base(&self) -> &'a Path {
        self.diagnostics.base()
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
            self.invalid(key, format!("is {}", type_name(found)), expected);
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
const MAX_NAME: usize = 64;

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(MAX_NAME).collect();
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
    use crate::{Keys, Word};
    use serde_json::json;

    /// A link direction.
    #[derive(Clone, Copy, Word)]
    enum Direction {
        /// Up.
        Up,
        /// Down.
        Down,
    }

    #[derive(Clone, Keys)]
    struct Tls {}

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    struct Peer {
        /// The name.
        #[key(example = "x")]
        name: String,
        /// The links.
        #[key(range = 1..=5, default = 1)]
        links: usize,
        /// The direction.
        bind: Direction,
        /// TLS.
        tls: Option<Tls>,
    }

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    struct Document {
        /// Peers.
        peer: Vec<Peer>,
    }

    fn read(document: &Value) -> Vec<String> {
        let diagnostics = Diagnostics::new(None, Path::new(""));
        Document::read_table(&Section::root(&diagnostics, document));
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
    fn parses_sizes() {
        assert_eq!(parse_size("64KiB"), Some(65_536));
        assert_eq!(parse_size("7"), Some(7));
        assert_eq!(parse_size("7 parsecs"), None);
        assert_eq!(parse_size("99999999999999999999GiB"), None);
    }
}
