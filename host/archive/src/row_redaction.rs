//! Rules for numbers and texts, applied to rows before they are written.

use crate::row::Row;
use configuration::{Keys, Word};
use model::{ContentErasure, NumberDisplay, Timestamp};
use redaction::NumberRedaction;
use serde_json::Value;

/// The author of the erasure, in the trace of a message.
const BY: &str = "redact";

/// The treatment of message texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum TextRule {
    /// They are archived.
    #[default]
    Keep,
    /// They are not archived.
    Drop,
}

/// The redaction rules: `redact` of `[archive]`.
#[derive(Clone, Debug, Default, PartialEq, Keys)]
pub struct ArchiveRedaction {
    /// The rules for numbers.
    #[key(flatten)]
    pub numbers: NumberRedaction,
    /// The rule for texts.
    #[key(default = "keep")]
    pub text: TextRule,
}

impl ArchiveRedaction {
    /// The forms in which rows may contain a number in the column `source` or `destination`: unchanged, and redacted by the
    /// rules.
    pub(crate) fn forms(&self, column: &str, number: &str) -> Vec<String> {
        let bare = number.strip_prefix('+').unwrap_or(number);
        let redacted = match column {
            "source" => self.numbers.source_text(bare, NumberDisplay::Whole),
            _ => self.numbers.destination_text(bare, NumberDisplay::Whole),
        };
        let mut forms = vec![format!("+{bare}"), bare.to_owned()];
        // A truncated number matches many numbers, and an empty one matches all.
        if redacted.starts_with("hash:") {
            forms.push(redacted);
        }
        forms
    }

    /// Applies the rules to a row.
    pub(crate) fn apply(&self, row: &mut Row, now: Timestamp) {
        if self.numbers.is_active() {
            self.redact_numbers(row);
        }
        if self.text == TextRule::Drop {
            row.erase_content(&ContentErasure { id: row.id(), at: now, by: BY.into() });
        }
    }

    fn redact_numbers(&self, row: &mut Row) {
        let whole = NumberDisplay::Whole;
        let source = self.numbers.source_text(&row.source, whole);
        let destination = self.numbers.destination_text(&row.destination, whole);
        let numbers = [(&row.source, &source), (&row.destination, &destination)];
        let replacements: Vec<(String, &str)> = numbers
            .into_iter()
            .filter(|(before, after)| before != after)
            .map(|(before, after)| (before.trim_start_matches('+').to_owned(), after.as_str()))
            .collect();
        let replace = |text: &str| {
            let mut text = text.to_owned();
            for (before, after) in &replacements {
                // A short sender, such as a short code, may occur within other values.
                if before.len() >= 5 {
                    text = text.replace(before.as_str(), after);
                } else if text.trim_start_matches('+') == before {
                    (*after).clone_into(&mut text);
                }
            }
            text
        };
        row.note = row.note.as_deref().map(replace);
        row.trace = match serde_json::from_str(&row.trace) {
            Ok(mut trace) => {
                self.redact_trace("", &mut trace, &replace);
                serde_json::to_string(&trace).unwrap_or_default()
            }
            // Rows are written by this version.
            Err(_) => String::new(),
        };
        // The decision contains the addresses in binary form, and a replay needs them unredacted.
        row.decision = Vec::new();
        (row.source, row.destination) = (source, destination);
    }

    /// Redacts a part of a trace, which has this key.
    fn redact_trace(&self, key: &str, value: &mut Value, replace: &dyn Fn(&str) -> String) {
        match value {
            Value::Object(fields) => {
                // The subscriber's identity, and octets that may have numbers.
                fields.retain(|key, _| !matches!(key.as_str(), "imsi" | "tlvs" | "protocol_fields"));
                fields.iter_mut().for_each(|(key, value)| self.redact_trace(key, value, replace));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_trace(key, item, replace)),
            Value::String(text) => {
                let whole = NumberDisplay::Whole;
                *text = match key {
                    "source" | "given" => self.numbers.source_text(text, whole),
                    "destination" => self.numbers.destination_text(text, whole),
                    _ => replace(text),
                };
            }
            _ => {}
        }
    }
}
