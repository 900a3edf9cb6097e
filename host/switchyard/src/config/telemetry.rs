//! `[telemetry]`: traces of a share of the messages.

use crate::telemetry::Settings;
use configuration::Section;

pub(crate) fn telemetry(section: &Section<'_>) -> Settings {
    let otlp = section.required("otlp", "\"http://127.0.0.1:4318\"");
    let host = otlp.strip_prefix("http://").or_else(|| otlp.strip_prefix("https://")).unwrap_or_default();
    if !otlp.is_empty() && (host.is_empty() || host.contains(char::is_whitespace)) {
        section.wrong("otlp", "must be the address of a collector, such as \"http://127.0.0.1:4318\"");
    }
    let one_in = section.number("one-in", 100, 1..=1_000_000_000);
    section.finish();
    Settings { otlp, one_in }
}
