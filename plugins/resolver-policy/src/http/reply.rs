use super::Policy;
use crate::json::{field, seconds, text};
use crate::{Answer, Resolution, is_imsi};
use policy_words::digits_of;
use serde_json::Value;
use std::time::Duration;

/// The longest time for which an answer is believed: a month.
const LONGEST: u64 = 31 * 86_400;

impl Policy {
    /// What a reply comes to.
    #[must_use]
    pub fn reply(&self, status: u16, body: &[u8]) -> Resolution {
        if self.unknown_status.contains(&status) {
            let note = Some(format!("status {status}"));
            return Resolution { answer: Answer::Unknown(self.unknown_valid), note };
        }
        if !(200..300).contains(&status) {
            return self.later(format!("status {status}"));
        }
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            return self.later(format!("the reply of {} octets is no JSON", body.len()));
        };
        let fields = &self.fields;
        let Some(imsi) = field(&answer, &fields.imsi).and_then(text).filter(|imsi| is_imsi(imsi)) else {
            return self.later(format!("the reply has no IMSI of 6 to 15 digits in {:?}", fields.imsi));
        };
        let named = |path: &Option<String>| path.as_deref().and_then(|path| field(&answer, path));
        let serving = named(&fields.serving).and_then(text).filter(|peer| !peer.is_empty());
        let valid = named(&fields.valid_seconds)
            .and_then(seconds)
            .map(|seconds| Duration::from_secs(seconds.min(LONGEST)))
            .or(self.valid);
        Resolution { answer: Answer::Found { imsi, serving, valid }, note: Some(format!("status {status}")) }
    }

    /// What becomes of a question that got no reply.
    #[must_use]
    pub fn later(&self, why: String) -> Resolution {
        Resolution { answer: Answer::TryLater(self.try_again), note: Some(why) }
    }

    /// What becomes of something that is no number.
    #[must_use]
    pub fn no_number(&self, msisdn: &str) -> Resolution {
        let digits = digits_of(msisdn).map_or(0, str::len);
        let note = Some(format!("not a number of 1 to 15 digits ({digits})"));
        Resolution { answer: Answer::Unknown(self.unknown_valid), note }
    }
}
