//! Errors as the API tells them.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::NumberState;
use serde::Serialize;
use utoipa::ToSchema;

/// What kind of trouble; decides the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request itself is wrong (400).
    BadRequest,
    /// No token, or not the right one (401).
    Unauthorised,
    /// The caller has not the right (403).
    Forbidden,
    /// No such thing (404).
    NotFound,
    /// The path is there, and does not take this method (405).
    NoSuchMethod,
    /// The thing's state does not allow it (409).
    Conflict,
    /// Somebody was faster: what `If-Match` names is no longer what there is (412).
    Outdated,
    /// The body is larger than the operation takes (413).
    TooLarge,
    /// A change without `If-Match` (428).
    Unconditional,
    /// Too often (429).
    TooOften,
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
    /// Everything that is wrong with a document, each at its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Misplaced>,
}

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Misplaced {
    /// Where: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong there.
    pub what: String,
    /// What would be right, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
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
            Kind::Forbidden => (StatusCode::FORBIDDEN, "not allowed"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not found"),
            Kind::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "no such method"),
            Kind::Conflict => (StatusCode::CONFLICT, "not possible now"),
            Kind::Outdated => (StatusCode::PRECONDITION_FAILED, "somebody was faster"),
            Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too large"),
            Kind::Unconditional => (StatusCode::PRECONDITION_REQUIRED, "If-Match is missing"),
            Kind::TooOften => (StatusCode::TOO_MANY_REQUESTS, "too often"),
            Kind::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal fault"),
            Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "not available"),
        };
        Self { title, status: status.as_u16(), detail: detail.into(), reason: None, problems: Vec::new() }
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
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let waits = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let wait = self.reason.as_ref().and_then(|reason| reason.retry_after_ms).filter(|_| waits);
        let mut response = (status, kind, Json(self)).into_response();
        if let Some(wait) = wait {
            response.headers_mut().insert(header::RETRY_AFTER, wait.div_ceil(1000).into());
        }
        response
    }
}
