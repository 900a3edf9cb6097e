//! Reading a tree key by key, with every error remembered and none in the way of the next.

use crate::place::push;
use crate::problem::{Problem, Reading};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::time::Duration;

/// One table of the document. Keys that nobody has asked for are errors.
pub struct Section<'a> {
    /// As people write it: `peer[0].tls`.
    key: String,
    /// The same with every index left out: `peer[].tls`.
    pattern: String,
    pointer: String,
    line: Option<usize>,
    table: Option<&'a Map<String, Value>>,
    reading: &'a Reading,
    asked: RefCell<Vec<&'static str>>,
}

fn kind(value: &Value) -> &'static str {
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
    /// The whole document.
    pub fn root(reading: &'a Reading, document: &'a Value) -> Self {
        let root = Self {
            key: String::new(),
            pattern: String::new(),
            pointer: String::new(),
            line: reading.line_of_value(""),
            table: document.as_object(),
            reading,
            asked: RefCell::default(),
        };
        if root.table.is_none() {
            let what = format!("is {}, and no configuration", kind(document));
            let allowed = Some("an object of sections".to_owned());
            reading.add(Problem {
                line: root.line,
                key: String::new(),
                pointer: String::new(),
                what,
                allowed,
            });
        }
        root
    }

    fn pointer_of(&self, key: &str) -> String {
        let mut pointer = self.pointer.clone();
        push(&mut pointer, key);
        pointer
    }

    /// What stands at a key. `null` is nothing in a patch only; in a document it is an error.
    fn find(&self, key: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().push(key);
        self.table?.get(key)
    }

    fn tell(&self, key: &str, what: String, allowed: Option<String>) {
        let pointer = self.pointer_of(key);
        let line = match self.table.is_some_and(|table| table.contains_key(key)) {
            true => self.reading.line_of_key(&pointer),
            false => self.line,
        };
        self.reading.add(Problem { line, key: dotted(&self.key, key), pointer, what, allowed });
    }

    /// A problem with a key that stands here, or should.
    pub fn wrong(&self, key: &'static str, what: impl Into<String>) {
        self.tell(key, what.into(), None);
    }

    /// A value that stands here is another than it must be: "is 5", "6 to 7".
    pub fn unfit(&self, key: &'static str, what: impl Into<String>, allowed: impl Into<String>) {
        self.tell(key, what.into(), Some(allowed.into()));
    }

    fn other_kind(&self, key: &'static str, value: &Value, wanted: &str) {
        self.unfit(key, format!("is {}", kind(value)), wanted);
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        match self.find(key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.other_kind(key, other, "a text in quotes");
                None
            }
        }
    }

    /// A text that must be there; empty where it is not.
    pub fn required(&self, key: &'static str, example: &str) -> String {
        if self.table.is_some_and(|table| table.contains_key(key)) {
            let text = self.text(key);
            if text.as_ref().is_some_and(String::is_empty) {
                self.wrong(key, format!("is empty; write for example {key} = {example}"));
            }
            return text.unwrap_or_default();
        }
        self.asked.borrow_mut().push(key);
        self.wrong(key, format!("is missing; write for example {key} = {example}"));
        String::new()
    }

    /// A list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.find(key)?;
        let Value::Array(items) = value else {
            self.other_kind(key, value, "a list of texts");
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => self.other_kind(key, other, "a list of texts"),
            }
        }
        Some(texts)
    }

    /// Yes or no.
    pub fn flag(&self, key: &'static str, default: bool) -> bool {
        match self.find(key) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.other_kind(key, other, "true or false");
                default
            }
        }
    }

    /// A whole number.
    pub fn number(&self, key: &'static str, default: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        match self.find(key) {
            None => default,
            Some(Value::Number(number)) if !number.is_f64() => match number.as_u64() {
                Some(number) if range.contains(&number) => number,
                _ => {
                    self.unfit(key, format!("is {number}"), format!("{} to {}", range.start(), range.end()));
                    default
                }
            },
            Some(other) => {
                self.other_kind(key, other, "a whole number");
                default
            }
        }
    }

    /// Messages a second; none for no limit.
    pub fn rate(&self, key: &'static str) -> Option<f64> {
        let value = self.find(key)?;
        let Value::Number(number) = value else {
            self.other_kind(key, value, "a number of messages a second");
            return None;
        };
        let rate = number.as_f64().filter(|rate| rate.is_finite() && *rate > 0.0);
        if rate.is_none() {
            self.wrong(key, "must be above 0 messages a second; leave it out for no limit");
        }
        rate
    }

    /// A time such as `30s`.
    pub fn duration(&self, key: &'static str, default: Duration) -> Duration {
        let Some(text) = self.text(key) else { return default };
        model::parse_duration(&text).unwrap_or_else(|| {
            let allowed = "a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\"";
            self.unfit(key, format!("is {text:?}"), allowed);
            default
        })
    }

    /// A list of times, at least one.
    pub fn durations(&self, key: &'static str) -> Option<Vec<Duration>> {
        let texts = self.texts(key)?;
        let read: Vec<Duration> = texts.iter().filter_map(|text| model::parse_duration(text)).collect();
        if read.len() < texts.len() || read.is_empty() {
            self.wrong(key, "must be a list of times such as [\"10s\", \"5m\", \"1h\"]");
            return None;
        }
        Some(read)
    }

    /// Octets, such as `64KiB`.
    pub fn size(&self, key: &'static str, default: u64) -> u64 {
        let Some(text) = self.text(key) else { return default };
        parse_size(&text).unwrap_or_else(|| {
            self.unfit(key, format!("is {text:?}"), "a size such as \"64KiB\", \"512MiB\" or \"2GiB\"");
            default
        })
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, key: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.text(key) else { return default };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, choice)) => *choice,
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                self.unfit(key, format!("is {text:?}"), format!("one of: {}", words.join(", ")));
                default
            }
        }
    }

    /// A table; an empty one where it is not there.
    pub fn section(&self, key: &'static str) -> Section<'a> {
        let found = self.find(key);
        let table = match found {
            None => None,
            Some(Value::Object(table)) => Some(table),
            Some(other) => {
                let as_file = format!("a table: [{}]", dotted(&self.key, key));
                let wanted = if self.reading.is_file() { as_file } else { "an object".to_owned() };
                self.other_kind(key, other, &wanted);
                None
            }
        };
        let pointer = self.pointer_of(key);
        Section {
            key: dotted(&self.key, key),
            pattern: dotted(&self.pattern, key),
            line: self.reading.line_of_value(&pointer).or(self.line),
            pointer,
            table,
            reading: self.reading,
            asked: RefCell::default(),
        }
    }

    /// Whether the document is a file on this machine, and not one that came over the API.
    pub fn is_file(&self) -> bool {
        self.reading.is_file()
    }

    /// Whether a key has a text, where it might have something else.
    pub fn is_text(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(Value::is_string)
    }

    /// Whether a key has a list.
    pub fn is_list(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(Value::is_array)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    /// The tables of a list of tables.
    pub fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(found) = self.find(key) else { return Vec::new() };
        let as_file = self.reading.is_file();
        let path = dotted(&self.key, key);
        let Value::Array(items) = found else {
            let wanted =
                if as_file { format!("written as [[{path}]], once for each") } else { "a list".into() };
            self.other_kind(key, found, &wanted);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{}/{index}", self.pointer_of(key));
            let line = self.reading.line_of_value(&pointer);
            let key_of_item = format!("{path}[{index}]");
            match item {
                Value::Object(table) => sections.push(Section {
                    key: key_of_item,
                    pattern: format!("{}[]", dotted(&self.pattern, key)),
                    pointer,
                    line,
                    table: Some(table),
                    reading: self.reading,
                    asked: RefCell::default(),
                }),
                other => {
                    let allowed = if as_file { format!("written as [[{path}]]") } else { "an object".into() };
                    let (what, allowed) = (format!("is {}", kind(other)), Some(allowed));
                    self.reading.add(Problem { line, key: key_of_item, pointer, what, allowed });
                }
            }
        }
        sections
    }

    /// The keys and values of a table of texts.
    pub fn pairs(&self) -> Vec<(&'a str, &'a str)> {
        let Some(table) = self.table else { return Vec::new() };
        self.reading.asked(format!("{}.*", self.pattern));
        table
            .iter()
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some((name.as_str(), text.as_str())),
                other => {
                    self.tell(name, format!("is {}", kind(other)), Some("a text".to_owned()));
                    None
                }
            })
            .collect()
    }

    /// Reports keys that nobody has asked for.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        for key in asked.iter() {
            self.reading.asked(dotted(&self.pattern, key));
        }
        for known in self.table.into_iter().flat_map(Map::keys) {
            if asked.iter().any(|key| key == known) {
                continue;
            }
            let near =
                asked.iter().min_by_key(|key| distance(key, known)).filter(|key| distance(key, known) <= 3);
            let hint = match near {
                Some(near) => format!("is unknown; did you mean {near:?}?"),
                None => {
                    let mut known: Vec<&str> = asked.clone();
                    let mut seen = std::collections::HashSet::new();
                    known.retain(|key| seen.insert(*key));
                    format!("is unknown; known here: {}", known.join(", "))
                }
            };
            self.tell(known, hint, None);
        }
    }
}

/// The longest names that are compared letter by letter; no key is as long.
const LONGEST_NAME: usize = 64;

/// How many letters differ (Levenshtein).
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

/// `512`, `64KiB`, `512MiB`, `2GiB` in octets.
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
        let reading = Reading::new(None);
        let root = Section::root(&reading, document);
        for peer in root.sections("peer") {
            peer.required("name", "\"x\"");
            peer.number("links", 1, 1..=5);
            peer.choice("bind", 1, &[("up", 1), ("down", 2)]);
            peer.section("tls").finish();
            peer.finish();
        }
        root.finish();
        reading
            .problems()
            .into_iter()
            .map(|problem| format!("{} {} | {:?}", problem.pointer, problem.what, problem.allowed))
            .collect()
    }

    #[test]
    fn every_problem_has_its_pointer_and_what_is_allowed() {
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
        assert_eq!(read(&json!([])), [" is array, and no configuration | Some(\"an object of sections\")"]);
    }

    #[test]
    fn what_was_asked_for_is_known_afterwards() {
        let reading = Reading::new(None);
        let document = json!({"peer": [{"name": "x"}]});
        let root = Section::root(&reading, &document);
        for peer in root.sections("peer") {
            peer.text("name");
            peer.finish();
        }
        root.finish();
        assert_eq!(reading.keys().into_iter().collect::<Vec<_>>(), ["peer", "peer[].name"]);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64KiB"), Some(65_536));
        assert_eq!(parse_size("7"), Some(7));
        assert_eq!(parse_size("7 parsecs"), None);
        assert_eq!(parse_size("99999999999999999999GiB"), None);
    }
}
