//! The findings of `GET /v1/attention` as text. The daemon has the rules.

use crate::format::{duration_text, with_readable_times};
use crate::output::Tone;
use crate::snapshot::Snapshot;
use api::{AttentionSeverity, AttentionSubjectKind, AttentionView};
use serde_json::{Value, json};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ok,
    /// An admin should investigate.
    Warning,
    /// Messages are blocked or refused, or will be soon.
    Error,
}

impl Level {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Ok,
            Self::Warning => Tone::Warning,
            Self::Error => Tone::Error,
        }
    }
}

/// A finding of `status`, `top` or `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The area of the finding: `links`, `disk` …
    pub(crate) about: &'static str,
    pub(crate) text: String,
    /// The remedy; empty if none is needed.
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(
        level: Level,
        about: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level, about, text: text.into(), remedy: remedy.into() }
    }

    pub(crate) fn json(&self) -> Value {
        let remedy = (!self.remedy.is_empty()).then_some(&self.remedy);
        json!({ "level": self.level.name(), "about": self.about, "what": self.text, "remedy": remedy })
    }
}

/// The findings of the appliance, in the API's order. `now` is in milliseconds since the epoch.
pub(crate) fn attention(snapshot: &Snapshot, now: u64) -> Vec<Finding> {
    snapshot.attention.iter().map(|one| finding(one, now)).collect()
}

fn finding(one: &AttentionView, now: u64) -> Finding {
    let level = match one.severity {
        AttentionSeverity::Error => Level::Error,
        AttentionSeverity::Warning => Level::Warning,
    };
    let mut what = with_readable_times(&one.text);
    if let Some(since) = one.since {
        what.push_str(&format!(" (for {})", duration_text(&now.saturating_sub(since))));
    }
    let remedy = one.remedy.as_ref().map(with_readable_times).unwrap_or_default();
    Finding::new(level, area(one), what, remedy)
}

/// The area of a finding, for the first column of `switchyard doctor`.
fn area(one: &AttentionView) -> &'static str {
    match (one.code.as_str(), one.subject.kind) {
        ("disk-low", _) => "disk",
        ("draining", _) => "drain",
        ("messages-uncertain", _) => "uncertain",
        (_, AttentionSubjectKind::Peer) => "links",
        (_, AttentionSubjectKind::Account | AttentionSubjectKind::Queue) => "queues",
        (_, AttentionSubjectKind::Hook) => "plugins",
        (_, AttentionSubjectKind::CoreNetwork) => "gsm",
        (_, AttentionSubjectKind::Archive) => "archive",
        (_, AttentionSubjectKind::EventSink) => "events",
        (_, AttentionSubjectKind::Cluster) => "cluster",
        (_, AttentionSubjectKind::Configuration) => "configuration",
        (_, AttentionSubjectKind::Appliance) => "ready",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn findings_show_their_age_and_no_control_characters() {
        let one = |code: &str, kind| AttentionView {
            since: Some(1_000),
            ..fixtures::finding(
                AttentionSeverity::Error,
                code,
                kind,
                "no link is up\u{1b}, next at 1795276982000",
            )
        };
        let snapshot = Snapshot {
            attention: vec![
                one("peer-down", AttentionSubjectKind::Peer),
                one("messages-uncertain", AttentionSubjectKind::Queue),
            ],
            ..Snapshot::default()
        };
        let found = attention(&snapshot, 62_000);
        let what = "no link is up␛, next at 2026-11-21 16:03:02Z (for 1m 1s)";
        assert_eq!(found[0], Finding::new(Level::Error, "links", what, ""));
        assert_eq!(found[1].about, "uncertain");
    }
}
