use super::Policy;
use crate::json::{field, seconds, text};
use crate::{Answer, Resolution, is_imsi};
use policy_values::digits_of;
use serde_json::Value;
use std::time::Duration;

/// The maximum validity of an answer: a month.
const MAX_VALID_SECONDS: u64 = 31 * 86_400;

impl Policy {
    /// Converts a response to a resolution.
    #[must_use]
    pub fn reply(&self, status: u16, body: &[u8]) -> Resolution {
        if self.unknown_status.contains(&status) {
            let note = Some(format!("status {status}"));
            return Resolution { answer: Answer::Unknown(self.unknown_valid), note };
        }
        if !(200..300).contains(&status) {
            return self.try_later(format!("status {status}"));
        }
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            return self.try_later(format!("the reply of {} octets is not JSON", body.len()));
        };
        let fields = &self.fields;
        let Some(imsi) = field(&answer, &fields.imsi).and_then(text).filter(|imsi| is_imsi(imsi)) else {
            return self.try_later(format!("the reply has no IMSI of 6 to 15 digits in {:?}", fields.imsi));
        };
        let named = |path: &Option<String>| path.as_deref().and_then(|path| field(&answer, path));
        let serving = named(&fields.serving).and_then(text).filter(|peer| !peer.is_empty());
        let valid = named(&fields.valid_seconds)
            .and_then(seconds)
            .map(|seconds| Duration::from_secs(seconds.min(MAX_VALID_SECONDS)))
            .or(self.valid);
        Resolution { answer: Answer::Found { imsi, serving, valid }, note: Some(format!("status {status}")) }
    }

    /// The resolution if there is no response.
    #[must_use]
    pub fn try_later(&self, why: String) -> Resolution {
        Resolution { answer: Answer::TryLater(self.try_again), note: Some(why) }
    }

    /// The resolution for an invalid number.
    #[must_use]
    pub fn invalid_number(&self, msisdn: &str) -> Resolution {
        let digits = digits_of(msisdn).map_or(0, str::len);
        let note = Some(format!("not a number of 1 to 15 digits ({digits})"));
        Resolution { answer: Answer::Unknown(self.unknown_valid), note }
    }
}
