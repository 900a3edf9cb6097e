//! Reading a TOML table key by key, with every error remembered and none in the way of the next.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The key, with the tables that it stands in.
    pub(crate) key: String,
    /// What is wrong, and what would be right.
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.key, self.what)
    }
}

/// Everything that was found wrong.
#[derive(Debug, Default)]
pub(crate) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(crate) fn add(&self, line: usize, key: &str, what: impl Into<String>) {
        self.0.borrow_mut().push(Problem { line, key: key.to_owned(), what: what.into() });
    }

    pub(crate) fn take(self) -> Vec<Problem> {
        let mut problems = self.0.into_inner();
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
}

/// One table of the document. Keys that nobody has asked for are errors.
pub(crate) struct Section<'a> {
    text: &'a str,
    path: String,
    at: usize,
    table: Option<&'a DeTable<'a>>,
    problems: &'a Problems,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub(crate) fn root(text: &'a str, table: &'a DeTable<'a>, problems: &'a Problems) -> Self {
        Self { text, path: String::new(), at: 0, table: Some(table), problems, asked: RefCell::default() }
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn line(&self) -> usize {
        line_of(self.text, self.at)
    }

    fn find(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().push(key);
        self.table?.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// A problem with a key that stands here, or should.
    pub(crate) fn wrong(&self, key: &'static str, what: impl Into<String>) {
        let span = self.table.and_then(|table| {
            table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, _)| name.span())
        });
        let line = span.map_or_else(|| self.line(), |span: Range<usize>| line_of(self.text, span.start));
        self.problems.add(line, &self.key(key), what);
    }

    fn kind(&self, key: &'static str, value: &DeValue<'_>, wanted: &str) {
        self.wrong(key, format!("is {}, and must be {wanted}", value.type_str()));
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        match self.find(key)?.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            other => {
                self.kind(key, other, "a text in quotes");
                None
            }
        }
    }

    pub(crate) fn required(&self, key: &'static str, example: &str) -> String {
        if self.table.is_some_and(|table| table.iter().any(|(name, _)| name.get_ref() == key)) {
            return self.text(key).unwrap_or_default();
        }
        self.asked.borrow_mut().push(key);
        self.wrong(key, format!("is missing; write for example {key} = {example}"));
        String::new()
    }

    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.find(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.kind(key, value.get_ref(), "a list of texts");
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::String(text) => texts.push(text.to_string()),
                other => self.kind(key, other, "a list of texts"),
            }
        }
        Some(texts)
    }

    pub(crate) fn flag(&self, key: &'static str, default: bool) -> bool {
        match self.find(key).map(Spanned::get_ref) {
            None => default,
            Some(DeValue::Boolean(flag)) => *flag,
            Some(other) => {
                self.kind(key, other, "true or false");
                default
            }
        }
    }

    pub(crate) fn number(
        &self,
        key: &'static str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        match self.find(key).map(Spanned::get_ref) {
            None => default,
            Some(DeValue::Integer(number)) => {
                match u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                    Ok(number) if range.contains(&number) => number,
                    _ => {
                        let (least, most) = (range.start(), range.end());
                        self.wrong(key, format!("is {number}, and must be {least} to {most}"));
                        default
                    }
                }
            }
            Some(other) => {
                self.kind(key, other, "a whole number");
                default
            }
        }
    }

    pub(crate) fn rate(&self, key: &'static str) -> Option<f64> {
        let read = match self.find(key)?.get_ref() {
            DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            other => {
                self.kind(key, other, "a number of messages a second");
                return None;
            }
        };
        let rate: Option<f64> = read.filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
        if rate.is_none() {
            self.wrong(key, "must be above 0 messages a second; leave it out for no limit");
        }
        rate
    }

    pub(crate) fn duration(&self, key: &'static str, default: Duration) -> Duration {
        let Some(text) = self.text(key) else { return default };
        model::parse_duration(&text).unwrap_or_else(|| {
            self.wrong(
                key,
                format!(
                    "is {text:?}, and must be a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\""
                ),
            );
            default
        })
    }

    pub(crate) fn durations(&self, key: &'static str) -> Option<Vec<Duration>> {
        let texts = self.texts(key)?;
        let read: Vec<Duration> = texts.iter().filter_map(|text| model::parse_duration(text)).collect();
        if read.len() < texts.len() || read.is_empty() {
            self.wrong(key, "must be a list of times such as [\"10s\", \"5m\", \"1h\"]");
            return None;
        }
        Some(read)
    }

    pub(crate) fn size(&self, key: &'static str, default: u64) -> u64 {
        let Some(text) = self.text(key) else { return default };
        parse_size(&text).unwrap_or_else(|| {
            self.wrong(
                key,
                format!("is {text:?}, and must be a size such as \"64KiB\", \"512MiB\" or \"2GiB\""),
            );
            default
        })
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.text(key) else { return default };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, choice)) => *choice,
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                self.wrong(key, format!("is {text:?}, and must be one of: {}", words.join(", ")));
                default
            }
        }
    }

    /// A table; an empty one where it is not there.
    pub(crate) fn section(&self, key: &'static str) -> Section<'a> {
        let found = self.find(key);
        let table = match found.map(Spanned::get_ref) {
            None => None,
            Some(DeValue::Table(table)) => Some(table),
            Some(other) => {
                self.kind(key, other, &format!("a table: [{}]", self.key(key)));
                None
            }
        };
        Section {
            text: self.text,
            path: self.key(key),
            at: found.map_or(self.at, |value| value.span().start),
            table,
            problems: self.problems,
            asked: RefCell::default(),
        }
    }

    /// Whether a key has a text, where it might have something else.
    pub(crate) fn is_text(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    /// The tables of an array of tables.
    pub(crate) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(found) = self.find(key) else { return Vec::new() };
        let DeValue::Array(items) = found.get_ref() else {
            self.kind(key, found.get_ref(), &format!("written as [[{key}]], once for each"));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.key(key));
            match item.get_ref() {
                DeValue::Table(table) => sections.push(Section {
                    text: self.text,
                    path,
                    at: item.span().start,
                    table: Some(table),
                    problems: self.problems,
                    asked: RefCell::default(),
                }),
                other => self.kind(key, other, &format!("written as [[{key}]]")),
            }
        }
        sections
    }

    /// The keys and values of a table of texts.
    pub(crate) fn pairs(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let Some(table) = self.table else { return Vec::new() };
        table
            .iter()
            .filter_map(|(name, value)| match value.get_ref() {
                DeValue::String(text) => Some((name.get_ref().clone(), text.clone())),
                other => {
                    let what = format!("is {}, and must be a text", other.type_str());
                    self.problems.add(line_of(self.text, name.span().start), &self.key(name.get_ref()), what);
                    None
                }
            })
            .collect()
    }

    /// Reports keys that nobody has asked for.
    pub(crate) fn finish(&self) {
        let asked = self.asked.borrow();
        for (name, _) in self.table.into_iter().flat_map(DeTable::iter) {
            let known = name.get_ref();
            if asked.iter().any(|key| key == known) {
                continue;
            }
            let near =
                asked.iter().min_by_key(|key| distance(key, known)).filter(|key| distance(key, known) <= 3);
            let hint = match near {
                Some(near) => format!("is unknown; did you mean {near:?}?"),
                None => format!("is unknown; known here: {}", asked.join(", ")),
            };
            self.problems.add(line_of(self.text, name.span().start), &self.key(known), hint);
        }
    }
}

/// How many letters differ (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
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

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// `512`, `64KiB`, `512MiB`, `2GiB`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text.trim())?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}
