//! `[telemetry]`: OpenTelemetry traces of messages.

use crate::telemetry::TelemetrySettings;
use configuration::Section;

pub(crate) fn telemetry(section: &Section<'_>) -> TelemetrySettings {
    let otlp = section.required("otlp", "\"http://127.0.0.1:4318\"");
    let host = otlp.strip_prefix("http://").or_else(|| otlp.strip_prefix("https://")).unwrap_or_default();
    if !otlp.is_empty() && (host.is_empty() || host.contains(char::is_whitespace)) {
        section.error("otlp", "must be the address of a collector, such as \"http://127.0.0.1:4318\"");
    }
    let one_in = section.number("one-in", 100, 1..=1_000_000_000);
    section.finish();
    TelemetrySettings { otlp, one_in }
}
