//! API errors: problem documents (RFC 9457).

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::NumberState;
use serde::Serialize;
use utoipa::ToSchema;

/// The kind of a problem; determines the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request is invalid (400).
    BadRequest,
    /// Authentication is missing or wrong (401).
    Unauthorised,
    /// The caller does not have the permission (403).
    Forbidden,
    /// There is no such resource (404).
    NotFound,
    /// The path does not support this method (405).
    MethodNotAllowed,
    /// The state of the resource does not allow the operation (409).
    Conflict,
    /// `If-Match` does not name the current version (412).
    PreconditionFailed,
    /// The body is too large for the operation (413).
    TooLarge,
    /// `If-Match` is missing (428).
    PreconditionRequired,
    /// Too many requests (429).
    TooManyRequests,
    /// The request is well-formed, but its content is invalid: a policy document, a component (422).
    Unprocessable,
    /// A fault of the daemon (500).
    Internal,
    /// Not ready, or shutting down (503).
    Unavailable,
}

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// Short summary.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The cause, and what would be valid.
    pub detail: String,
    /// The reason for programs, where the status is not enough.
    #[serde(flatten)]
    pub reason: Option<Box<ProblemReason>>,
    /// All errors of a document, each with its pointer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FieldProblem>,
}

/// An error at one place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// JSON pointer (RFC 6901) of the place.
    pub pointer: String,
    /// The error.
    pub what: String,
    /// The allowed values, where they can be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
}

/// The reason of a refusal, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProblemReason {
    /// One of a fixed set of codes, such as `all-busy`.
    pub reason: &'static str,
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
        Self { reason, state: None, retry_after_ms: None }
    }
}

impl Problem {
    /// A problem of this kind.
    #[must_use]
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (status, title) = match kind {
            ProblemKind::BadRequest => (StatusCode::BAD_REQUEST, "bad request"),
            ProblemKind::Unauthorised => (StatusCode::UNAUTHORIZED, "not authenticated"),
            ProblemKind::Forbidden => (StatusCode::FORBIDDEN, "not allowed"),
            ProblemKind::NotFound => (StatusCode::NOT_FOUND, "not found"),
            ProblemKind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method not allowed"),
            ProblemKind::Conflict => (StatusCode::CONFLICT, "not possible now"),
            ProblemKind::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, "version conflict"),
            ProblemKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too large"),
            ProblemKind::PreconditionRequired => (StatusCode::PRECONDITION_REQUIRED, "If-Match is missing"),
            ProblemKind::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "too many requests"),
            ProblemKind::Unprocessable => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            ProblemKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
            ProblemKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "not available"),
        };
        Self { title, status: status.as_u16(), detail: detail.into(), reason: None, problems: Vec::new() }
    }

    /// Adds a reason for programs.
    #[must_use]
    pub fn with_reason(mut self, reason: ProblemReason) -> Self {
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
