//! Refused requests: problem documents (RFC 9457).

use model::NumberState;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;

/// A problem document (RFC 9457): the reason why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Short summary.
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// The cause, and the remedy or the valid values.
    pub detail: String,
    /// The reason, for programs, if the status is not specific enough.
    #[serde(flatten)]
    pub reason: Option<Box<ProblemReason>>,
    /// All errors of a document, each with its pointer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FieldProblem>,
}

/// An error at one place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// JSON pointer (RFC 6901) of the place.
    pub pointer: String,
    /// The error.
    pub what: String,
    /// The allowed values, if they can be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
}

/// The reason of a refusal, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProblemReason {
    /// One of a fixed set of codes, such as `all-busy`.
    pub reason: Cow<'static, str>,
    /// The number's state that prevents the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<NumberState>,
    /// Milliseconds after which a retry may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ProblemReason {
    /// A reason with a code only.
    #[must_use]
    pub fn of(reason: &'static str) -> Self {
        Self { reason: reason.into(), state: None, retry_after_ms: None }
    }
}

impl Problem {
    /// The code of the reason, if there is one.
    #[must_use]
    pub fn reason_code(&self) -> Option<&str> {
        self.reason.as_ref().map(|reason| &*reason.reason)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}
