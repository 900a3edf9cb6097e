//! Plugin calls after a message's acceptance, recorded for replays.

use crate::{
    ErrorClass, Hook, Outcome, PluginVersion, ReceiptEvent, ReceiptVerdict, SealedContent, StepKind,
    Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

/// A plugin call as stored in the trace of its message: a [`RecordedReceiptCall`] or a [`RecordedSubmitCall`], encoded by
/// `codec`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallRecord {
    /// The octets of the record.
    Plain(Box<[u8]>),
    /// The octets, encrypted with the key of the message's content.
    Sealed(SealedContent),
}

impl CallRecord {
    /// The step that stores it.
    #[must_use]
    pub fn into_step(self, hook: Hook) -> StepKind {
        match self {
            Self::Plain(record) => StepKind::CallRecorded { hook, record },
            Self::Sealed(SealedContent { key, octets }) => {
                StepKind::SealedCallRecorded { hook, key, record: octets.as_ref().into() }
            }
        }
    }
}

/// A call of the receipt policies, and their decision. Times have the precision that plugins see: milliseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedReceiptCall {
    /// The time of the call.
    pub at: Timestamp,
    /// Attempts so far, over all legs.
    pub attempts: u16,
    /// The index of the leg, and the number of legs.
    pub leg: (u8, u8),
    /// The name of the peer.
    pub peer: Arc<str>,
    /// The time since the message was accepted.
    pub age: Duration,
    /// The remaining validity.
    pub left: Duration,
    /// The event.
    pub event: ReceiptEvent,
    /// The verdict.
    pub verdict: ReceiptVerdict,
    /// The wait in the decision.
    pub wait: Option<Duration>,
    /// The results of the plugins' host calls, encoded by `hooks`.
    pub host_calls: Option<Box<[u8]>>,
}

/// A submit attempt at a peer that a plugin serves, and its result. It contains neither the request nor a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedSubmitCall {
    /// The time of the call.
    pub at: Timestamp,
    /// The name of the peer.
    pub peer: Arc<str>,
    /// The index of the leg.
    pub leg: u8,
    /// The number of the attempt in the submit ticket.
    pub attempt: u16,
    /// Whether a DLR was requested.
    pub want_dlr: bool,
    /// The plugin version that submitted it.
    pub by: Arc<PluginVersion>,
    /// The first octets of the SHA-256 of its policy document.
    pub policy: [u8; 8],
    /// The result.
    pub result: SubmitResult,
    /// The results of the plugin's host calls, encoded by `hooks`, including the HTTP response.
    pub host_calls: Box<[u8]>,
}

/// The result of a submission, as the plugin reads it from the peer's response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmitResult {
    /// The peer has accepted the message.
    Accepted,
    /// The peer has refused it.
    Refused {
        /// The class of the error.
        class: ErrorClass,
        /// The code.
        code: u32,
    },
    /// It is unknown whether the peer has it.
    Unsure,
}

impl SubmitResult {
    /// The result of a submission with this outcome; `None` if it was not submitted.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Accepted { .. } => Some(Self::Accepted),
            Outcome::Refused { class, code, .. } => Some(Self::Refused { class: *class, code: *code }),
            Outcome::Unanswered { .. } => Some(Self::Unsure),
            Outcome::NotSent => None,
        }
    }
}

impl std::fmt::Display for SubmitResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Refused { class, code } => write!(f, "refused ({}, code {code})", class.name()),
            Self::Unsure => f.write_str("unsure"),
        }
    }
}
