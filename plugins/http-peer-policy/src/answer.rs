//! Conversion of a peer's response to an outcome.

use crate::condition::{self, Conditions};
use crate::document::{MAX_PAUSE, Policy, RefusedRule};
use serde_json::Value;
use std::time::Duration;
use switchyard_sdk::peer::{Outcome, Refusal, RefusalClass, Submitted, accepted, refused, unsure};

/// The longest id that the host accepts, in octets.
const MAX_ID: usize = 255;
/// Maximum length of the part of a body in a note, in characters.
const NOTE_CHARACTERS: usize = 120;

/// The outcome without a response: a temporary refusal, which the host makes uncertain if the request may have arrived.
#[must_use]
pub fn no_answer(why: String) -> Submitted {
    refused(RefusalClass::Temporary, 0).because(why)
}

impl Policy {
    /// The outcome for a response. `headers`: names in lower case.
    #[must_use]
    pub fn answer(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> Submitted {
        let text = String::from_utf8_lossy(body);
        let document: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let note = || format!("status {status}: {}", beginning(&text));
        let rule = self
            .document
            .refused
            .iter()
            .find(|rule| applies(&rule.status, &rule.conditions, status, &document));
        if let Some(rule) = rule {
            return refuse(rule, status, headers, &document).because(note());
        }
        let rules = &self.document.accepted;
        let is_status = if rules.status.is_empty() {
            (200..300).contains(&status)
        } else {
            rules.status.contains(&status)
        };
        if is_status && condition::hold(&rules.conditions, &document) {
            let id = match (&rules.id, &rules.id_pattern) {
                (Some(pointer), _) => condition::text(&document, pointer),
                (None, Some(pattern)) => pattern.find(&text).map(str::to_owned),
                (None, None) => return accepted(None),
            };
            return match id.filter(|id| !id.is_empty() && id.len() <= MAX_ID) {
                Some(id) => accepted(Some(id)),
                // The peer has accepted it, but its receipts cannot be matched.
                None => accepted(None).because(format!("no id in the answer; {}", note())),
            };
        }
        let code = u32::from(status);
        match status {
            429 | 503 => pause(RefusalClass::Throttled, code, retry_after(headers)).because(note()),
            300..=399 => refused(RefusalClass::Temporary, code).because(note()),
            400..=499 => refused(RefusalClass::Permanent, code).because(note()),
            // The server failed, or no rule matches: the peer may have accepted the message.
            _ => unsure().because(note()),
        }
    }
}

/// The beginning of a body in one line.
fn beginning(text: &str) -> String {
    text.chars().take(NOTE_CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn applies(statuses: &[u16], conditions: &Conditions, status: u16, document: &Value) -> bool {
    (statuses.is_empty() || statuses.contains(&status)) && condition::hold(conditions, document)
}

fn refuse(rule: &RefusedRule, status: u16, headers: &[(String, String)], document: &Value) -> Submitted {
    let code = rule.code.as_ref().and_then(|pointer| condition::text(document, pointer)?.parse().ok());
    let code = code.unwrap_or(u32::from(status));
    match rule.class.class() {
        None => unsure(),
        Some(class @ (RefusalClass::Throttled | RefusalClass::QueueFull)) => {
            pause(class, code, retry_after(headers).or(rule.retry_after.map(|time| time.0)))
        }
        Some(class) => refused(class, code),
    }
}

fn pause(class: RefusalClass, code: u32, time: Option<Duration>) -> Submitted {
    let retry_after = time.map(|time| u64::try_from(time.min(MAX_PAUSE).as_millis()).unwrap_or(u64::MAX));
    Submitted { outcome: Outcome::Refused(Refusal { class, code, retry_after }), note: None }
}

/// The seconds of Retry-After; a date is ignored.
fn retry_after(headers: &[(String, String)]) -> Option<Duration> {
    let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    value.trim().parse().ok().map(Duration::from_secs)
}
