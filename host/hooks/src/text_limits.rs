//! Limits of the texts that plugins return.

/// Maximum length of a plugin's error text, in octets.
pub(crate) const MAX_REASON_OCTETS: usize = 2_000;

/// Maximum length of a plugin's report of a fault, in octets.
pub(crate) const MAX_REPORT_OCTETS: usize = 4_096;

/// Maximum length of the part of a report that is shown in notes and log lines, in octets.
pub(crate) const MAX_SUMMARY_OCTETS: usize = 300;

/// Truncates a guest's text at a character boundary.
pub(crate) fn truncate(mut text: String, octets: usize) -> String {
    if text.len() > octets {
        let end = (0..=octets).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Truncates a note to the length of a trace line.
pub(crate) fn truncate_note(note: Option<String>) -> Option<Box<str>> {
    note.map(|note| truncate(note, 200).into_boxed_str())
}
