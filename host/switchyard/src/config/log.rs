//! `[log]`: level and format of the log.

use crate::logging;
use configuration::Section;

/// The initial log settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// The filter, in the form of `PUT /v1/log`.
    pub(crate) level: String,
    /// Whether the log is JSON, one object per line.
    pub(crate) json: bool,
}

pub(crate) fn log(section: &Section<'_>) -> LogSettings {
    let level = section.text("level").unwrap_or_else(|| "info".to_owned());
    if let Err(what) = logging::check_level(&level) {
        section.error("level", what);
    }
    let json = section.choice("format", false, &[("text", false), ("json", true)]);
    section.finish();
    LogSettings { level, json }
}
