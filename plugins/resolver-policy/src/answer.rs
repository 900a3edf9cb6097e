use std::time::Duration;
use switchyard_sdk::{Resolved, found, try_later, unknown};

/// Who stands behind a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This subscriber.
    Found {
        /// 6 to 15 decimal digits.
        imsi: String,
        /// The peer that serves the subscriber; `None`: the configuration's.
        serving: Option<String>,
        /// For how long the answer holds; `None`: the configuration's time.
        valid: Option<Duration>,
    },
    /// Nobody, for so long or for the configuration's time.
    Unknown(Option<Duration>),
    /// It cannot be found out now; to be asked again after so long, or after the configuration's time.
    TryLater(Option<Duration>),
}

/// An answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The answer.
    pub answer: Answer,
    /// For the traces of the messages that wait for it.
    pub note: Option<String>,
}

impl From<Resolution> for Resolved {
    fn from(resolution: Resolution) -> Self {
        let mut resolved = match resolution.answer {
            Answer::Found { imsi, serving, valid } => {
                let mut resolved = found(imsi);
                if let Some(peer) = serving {
                    resolved = resolved.served_by(peer);
                }
                if let Some(valid) = valid {
                    resolved = resolved.valid_for(valid);
                }
                resolved
            }
            Answer::Unknown(valid) => unknown(valid),
            Answer::TryLater(after) => try_later(after),
        };
        resolved.note = resolution.note;
        resolved
    }
}

/// Whether this may be an IMSI: 6 to 15 decimal digits (3GPP TS 23.003 §2.2).
#[must_use]
pub fn is_imsi(text: &str) -> bool {
    (6..=15).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit())
}
