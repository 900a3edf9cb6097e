use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::NumberState;
use serde::Serialize;

/// What kind of trouble; decides the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request itself is wrong (400).
    BadRequest,
    /// No token, or not the right one (401).
    Unauthorised,
    /// No such thing (404).
    NotFound,
    /// The thing's state does not allow it (409).
    Conflict,
    /// Understood, and refused for what it says: a policy document, a component (422).
    Refused,
    /// A fault of ours (500).
    Internal,
    /// Not ready, or shutting down (503).
    Unavailable,
}

/// An error in the shape of RFC 9457: what is wrong, and what to do.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// In a word or two.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What exactly, and what would be right.
    pub detail: String,
    /// The same for programs, where there is more to tell them than the status.
    #[serde(flatten)]
    pub reason: Option<Box<Reason>>,
}

/// Why something was refused, in words that programs go by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reason {
    /// One of a fixed set of words, such as `all-busy`.
    pub reason: &'static str,
    /// The state that stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<NumberState>,
    /// Milliseconds after which it may be otherwise, where time helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Reason {
    /// Only a word.
    #[must_use]
    pub fn of(reason: &'static str) -> Self {
        Self { reason, state: None, retry_after_ms: None }
    }
}

impl Problem {
    /// A problem of this kind.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let (status, title) = match kind {
            Kind::BadRequest => (StatusCode::BAD_REQUEST, "bad request"),
            Kind::Unauthorised => (StatusCode::UNAUTHORIZED, "not authorised"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not found"),
            Kind::Conflict => (StatusCode::CONFLICT, "not possible now"),
            Kind::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal fault"),
            Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "not available"),
        };
        Self { title, status: status.as_u16(), detail: detail.into(), reason: None }
    }

    /// The same, with a reason that programs understand.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(Box::new(reason));
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(axum::http::header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, Json(self)).into_response()
    }
}
