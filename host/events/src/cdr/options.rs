use super::fields::{HEADER_FIELDS, RECORD_FIELDS, TRAILER_FIELDS};
use super::template::Template;
use crate::options::EventNumbers;
use configuration::{Keys, Section, Word};
use redaction::NumberRedaction;
use std::time::Duration;

/// The format of CDR files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum CdrFormat {
    /// Comma-separated values (RFC 4180); the first column is the type of the line.
    #[default]
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// Columns of fixed width, by the templates `header`, `record` and `trailer`.
    Fixed,
}

/// `[[cdr]]`: files with one record for each message that has reached a final state.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct CdrOptions {
    /// The name; the names of the files begin with it.
    #[key(example = "billing", length = 1..=64)]
    pub name: String,
    /// The folder of the files, inside `cdr` of the data directory or inside `cdr-root` of `[configuration]`. A
    /// relative path is relative to `cdr-root`.
    #[key(default_as = "`cdr/NAME` in the data directory")]
    pub folder: Option<String>,
    /// The format of the files.
    #[key(default = "csv")]
    pub format: CdrFormat,
    /// The fields of a record, in order, for `csv` and `json-lines`.
    #[key(default_as = "all")]
    pub columns: Vec<String>,
    /// The first line of a file, for `fixed`. `{FIELD:>8}` is a field of 8 characters, aligned right; `{FIELD:0>8}`
    /// pads with zeros; `{FIELD:<8}` is aligned left.
    pub header: String,
    /// The line of a message, for `fixed`.
    pub record: String,
    /// The last line of a file, for `fixed`.
    pub trailer: String,
    /// Size in octets from which a file is closed.
    #[key(size, default = "64MiB")]
    pub max_size: u64,
    /// Age from which a file is closed, counted from its first record.
    #[key(default = "1h")]
    pub max_age: Duration,
    /// Accounts whose messages get records.
    #[key(default_as = "all", reference = "account")]
    pub accounts: Vec<String>,
    /// How subscribers' numbers are shown.
    #[key(default = "whole")]
    pub numbers: EventNumbers,
    /// Redaction rules for numbers; they replace `numbers`.
    pub redact: NumberRedaction,
}

impl CdrOptions {
    fn check(&mut self, section: &Section<'_>) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !self.name.chars().all(is_name) {
            section.error("name", "must be letters, digits, '-' and '_'");
        }
        for column in self.columns.iter().filter(|column| !RECORD_FIELDS.contains(&column.as_str())) {
            let what = format!("{column:?} is not a field; known are: {}", RECORD_FIELDS.join(", "));
            section.error("columns", what);
        }
        let templates = [
            ("header", &self.header, HEADER_FIELDS),
            ("record", &self.record, RECORD_FIELDS),
            ("trailer", &self.trailer, TRAILER_FIELDS),
        ];
        for (key, text, fields) in templates {
            if self.format != CdrFormat::Fixed {
                if section.has(key) {
                    section.error(key, "is for files with format = \"fixed\"");
                }
            } else if text.is_empty() {
                section.error(key, "is missing; files with format = \"fixed\" need it");
            } else if let Err(problem) = Template::parse(text, fields) {
                section.error(key, problem);
            }
        }
        if self.format == CdrFormat::Fixed && section.has("columns") {
            section.error("columns", "is for other formats; write the columns into `record`");
        }
        if self.max_size == 0 {
            section.error("max-size", "must be above 0");
        }
        if self.max_age.is_zero() {
            section.error("max-age", "must be above 0");
        }
    }

    /// Extension of the names of the files.
    pub(crate) const fn extension(&self) -> &'static str {
        match self.format {
            CdrFormat::Csv => "csv",
            CdrFormat::JsonLines => "jsonl",
            CdrFormat::Fixed => "txt",
        }
    }

    /// Whether messages of this account get records.
    pub(crate) fn has_account(&self, account: &str) -> bool {
        self.accounts.is_empty() || self.accounts.iter().any(|name| name == account)
    }
}
