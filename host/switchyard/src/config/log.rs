//! `[log]`: what is logged, and in which form.

use crate::logging;
use configuration::Section;

/// What is logged from the start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    /// As `PUT /v1/log` takes it.
    pub(crate) level: String,
    /// One JSON object a line, for programs; otherwise lines for people.
    pub(crate) json: bool,
}

pub(crate) fn log(section: &Section<'_>) -> Log {
    let level = section.text("level").unwrap_or_else(|| "info".to_owned());
    if let Err(what) = logging::check(&level) {
        section.wrong("level", what);
    }
    let json = section.choice("format", false, &[("text", false), ("json", true)]);
    section.finish();
    Log { level, json }
}
