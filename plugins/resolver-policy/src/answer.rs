use std::time::Duration;
use switchyard_sdk::{Resolved, found, try_later, unknown};

/// A resolver's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The subscriber.
    Found {
        /// 6 to 15 decimal digits.
        imsi: String,
        /// The peer that serves the subscriber; `None`: the configured one.
        serving: Option<String>,
        /// Validity of the answer; `None`: the configured time.
        valid: Option<Duration>,
    },
    /// There is no such subscriber. Valid for this time, or the configured time.
    Unknown(Option<Duration>),
    /// The number cannot be resolved now; ask again after this time or the configured time.
    TryLater(Option<Duration>),
}

/// An answer with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The answer.
    pub answer: Answer,
    /// For the traces of the messages that wait for the answer.
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

/// Whether the text has the form of an IMSI: 6 to 15 decimal digits (3GPP TS 23.003 §2.2).
#[must_use]
pub fn is_imsi(text: &str) -> bool {
    (6..=15).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit())
}
