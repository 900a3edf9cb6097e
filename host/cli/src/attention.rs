//! What needs attention, as the appliance says it: its rules are behind `GET /v1/attention`, and there are none here.

use crate::output::Tone;
use crate::picture::Picture;
use crate::table::{sentence, span};
use serde_json::{Value, json};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warning,
    /// Messages are held up or refused, or soon will be.
    Error,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Warning => Tone::Doubtful,
            Self::Error => Tone::Bad,
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What it is about, in a word or two: `links`, `disk` …
    pub(crate) about: &'static str,
    pub(crate) what: String,
    /// What to do; nothing where nothing is to be done.
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(
        level: Level,
        about: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level, about, what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn json(&self) -> Value {
        let remedy = (!self.remedy.is_empty()).then_some(&self.remedy);
        json!({ "level": self.level.word(), "about": self.about, "what": self.what, "remedy": remedy })
    }
}

/// What the appliance says needs attention, in its order. `now` is milliseconds since the epoch.
pub(crate) fn attention(picture: &Picture, now: u64) -> Vec<Finding> {
    let found = picture.attention.as_array().into_iter().flatten();
    found.map(|one| finding(one, now)).collect()
}

fn finding(one: &Value, now: u64) -> Finding {
    let level = if one["severity"] == "error" { Level::Error } else { Level::Warning };
    let mut what = sentence(&one["text"]);
    if let Some(since) = one["since"].as_u64() {
        what.push_str(&format!(" (for {})", span(&now.saturating_sub(since).into())));
    }
    let remedy = one["remedy"].as_str().map(|_| sentence(&one["remedy"])).unwrap_or_default();
    Finding::new(level, about(one), what, remedy)
}

/// The word for the first column of `switchyard doctor`.
fn about(one: &Value) -> &'static str {
    match (one["code"].as_str().unwrap_or_default(), one["subject"]["kind"].as_str().unwrap_or_default()) {
        ("disk-low", _) => "disk",
        ("draining", _) => "drain",
        ("messages-uncertain", _) => "uncertain",
        (_, "peer") => "links",
        (_, "account" | "queue") => "queues",
        (_, "hook") => "plugins",
        (_, "core-network") => "gsm",
        (_, "archive") => "archive",
        (_, "configuration") => "configuration",
        _ => "ready",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_appliance_says_is_shown_with_its_age_and_without_control_characters() {
        let one = |code: &str, kind: &str| {
            json!({
                "severity": "error", "code": code, "subject": { "kind": kind, "name": "a" }, "since": 1_000,
                "text": "no link is up\u{1b}, next at 1795276982000", "remedy": null,
            })
        };
        let list = json!([one("peer-down", "peer"), one("messages-uncertain", "queue")]);
        let picture = Picture { attention: list, ..Picture::default() };
        let found = attention(&picture, 62_000);
        let what = "no link is up␛, next at 2026-11-21 16:03:02Z (for 1m 1s)";
        assert_eq!(found[0], Finding::new(Level::Error, "links", what, ""));
        assert_eq!(found[1].about, "uncertain");
    }
}
