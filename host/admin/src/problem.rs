use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
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
        Self { title, status: status.as_u16(), detail: detail.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(axum::http::header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, Json(self)).into_response()
    }
}
