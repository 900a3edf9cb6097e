//! Conversion between the document and TOML.

use crate::diagnostics::ConfigProblem;
use crate::pointer::push_token;
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line numbers of keys and values in a file.
#[derive(Debug, Clone, Default)]
pub struct SourceLines(HashMap<String, (usize, usize)>);

impl SourceLines {
    /// The line of the key at a JSON pointer, counted from 1.
    #[must_use]
    pub fn key(&self, pointer: &str) -> Option<usize> {
        self.0.get(pointer).map(|(key, _)| *key)
    }

    /// The line where the value at a JSON pointer begins, counted from 1; for a table, the line of its header.
    #[must_use]
    pub fn value(&self, pointer: &str) -> Option<usize> {
        self.0.get(pointer).map(|(_, value)| *value)
    }
}

/// The document cannot be written as TOML.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The document contains a value that TOML cannot express.
    #[error("the document cannot be written as TOML: {0}")]
    Unwritable(String),
}

struct TomlReader<'a> {
    /// Offsets of line starts, in octets.
    starts: Vec<usize>,
    lines: SourceLines,
    problems: Vec<ConfigProblem>,
    text: &'a str,
}

impl TomlReader<'_> {
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    fn add_error(&mut self, at: usize, pointer: &str, message: String) {
        let key = pointer.trim_start_matches('/').replace('/', ".");
        self.problems.push(ConfigProblem {
            line: Some(self.line(at)),
            key,
            pointer: pointer.to_owned(),
            message,
            allowed: None,
        });
    }

    fn table(&mut self, table: &DeTable<'_>, pointer: &str) -> Value {
        let mut map = Map::new();
        for (name, value) in table {
            let mut below = pointer.to_owned();
            push_token(&mut below, name.get_ref());
            let lines = (self.line(name.span().start), self.line(value.span().start));
            self.lines.0.insert(below.clone(), lines);
            let value = self.value(value, &below);
            map.insert(name.get_ref().to_string(), value);
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, pointer: &str) -> Value {
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                let read = i64::from_str_radix(&digits, number.radix()).ok();
                read.map_or_else(
                    || {
                        self.add_error(at, pointer, format!("is {number}, which is too large"));
                        Value::from(i64::MAX)
                    },
                    Value::from,
                )
            }
            DeValue::Float(number) => {
                let read = number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
                read.map_or_else(
                    || {
                        self.add_error(at, pointer, format!("is {number}, which is not supported"));
                        Value::from(0)
                    },
                    Value::Number,
                )
            }
            DeValue::Datetime(_) => {
                let text = value.span();
                let text = self.text.get(text).unwrap_or_default().to_owned();
                self.add_error(
                    at,
                    pointer,
                    "is a date, which no key accepts; write strings in quotes".into(),
                );
                Value::String(text)
            }
            DeValue::Array(items) => {
                let mut list = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let below = format!("{pointer}/{index}");
                    let line = self.line(item.span().start);
                    self.lines.0.insert(below.clone(), (line, line));
                    list.push(self.value(item, &below));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => self.table(table, pointer),
        }
    }
}

/// Parses TOML into a tree and records the line of every key and value.
///
/// # Errors
/// Returns syntax errors, and values that the tree cannot hold: dates and numbers beyond 64 bits.
pub fn from_toml(text: &str) -> Result<(Value, SourceLines), Vec<ConfigProblem>> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut source = TomlReader { starts, lines: SourceLines::default(), problems: Vec::new(), text };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| source.line(span.start));
            let message = error.message().to_owned();
            let (key, pointer) = ("TOML".to_owned(), String::new());
            return Err(vec![ConfigProblem { line: Some(line), key, pointer, message, allowed: None }]);
        }
    };
    source.lines.0.insert(String::new(), (1, 1));
    let tree = source.table(table.get_ref(), "");
    if source.problems.is_empty() { Ok((tree, source.lines)) } else { Err(source.problems) }
}

/// Writes a tree as TOML.
///
/// # Errors
/// Fails on values that TOML cannot express: `null` and numbers beyond 63 bits.
pub fn to_toml(document: &Value) -> Result<String, FileError> {
    let table = toml::Table::try_from(document).map_err(|error| FileError::Unwritable(error.to_string()))?;
    toml::to_string(&table).map_err(|error| FileError::Unwritable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_survives_a_round_trip() {
        let text = "a = 1\n[b]\nc = [1, 2.5]\n\n[[d]]\nname = \"x\"\n[d.e]\nf = true\n";
        let (tree, lines) = from_toml(text).unwrap();
        let expected = json!({"a": 1, "b": {"c": [1, 2.5]}, "d": [{"name": "x", "e": {"f": true}}]});
        assert_eq!(tree, expected);
        assert_eq!(lines.key("/b/c"), Some(3));
        assert_eq!(lines.value("/d/0"), Some(5));
        assert_eq!(lines.key("/d/0/e/f"), Some(8));
        assert_eq!(from_toml(&to_toml(&tree).unwrap()).unwrap().0, tree);
    }

    #[test]
    fn unsupported_values_are_reported_with_their_line() {
        let found = from_toml("a = 1\nb = 2020-01-01\nc = 99999999999999999999\nd = inf\n").unwrap_err();
        let lines: Vec<_> = found.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn null_cannot_be_written() {
        assert!(to_toml(&json!({"a": null})).is_err());
        assert!(to_toml(&json!([1])).is_err());
    }
}
