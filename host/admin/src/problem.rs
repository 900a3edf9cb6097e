//! API errors: problem documents (RFC 9457).

use api::{FieldProblem, ProblemReason};
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::ops::{Deref, DerefMut};

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

/// A refusal: a problem document as the response to a request.
#[derive(Debug, Clone, Serialize)]
pub struct Problem(pub Box<api::Problem>);

impl Deref for Problem {
    type Target = api::Problem;

    fn deref(&self) -> &api::Problem {
        &self.0
    }
}

impl DerefMut for Problem {
    fn deref_mut(&mut self) -> &mut api::Problem {
        &mut self.0
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
        Self(Box::new(api::Problem {
            title: title.into(),
            status: status.as_u16(),
            detail: detail.into(),
            reason: None,
            problems: Vec::new(),
        }))
    }

    /// Adds the errors of a document.
    #[must_use]
    pub fn with_problems(mut self, problems: Vec<FieldProblem>) -> Self {
        self.0.problems = problems;
        self
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
