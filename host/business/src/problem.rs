use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dxr::Fault;
use model::{Refusal, RejectReason};
use serde::Serialize;
use utoipa::ToSchema;

/// An invalid field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// The path of the field, for example `messages[3].to[1]`.
    pub(crate) field: String,
    /// The reason, and what is allowed.
    pub(crate) reason: String,
}

/// The reason why a call was rejected, for JSON and XML-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) detail: String,
    pub(crate) errors: Vec<FieldError>,
    /// Seconds after which the call can be repeated, if known.
    pub(crate) retry_after: Option<u32>,
}

/// The kind of a problem. The values are XML-RPC fault codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// The body is not XML, not JSON, or not a method call.
    Malformed = -32_700,
    /// Unknown method.
    NoMethod = -32_601,
    /// Wrong parameters.
    Parameters = -32_602,
    /// Wrong account or password, or a network that is not allowed.
    Unauthorised = 1,
    /// Invalid fields; `errors` lists them.
    Invalid = 3,
    /// The account has no such message.
    NotFound = 4,
    /// The idempotency key was used for another submission.
    KeyReused = 5,
    /// The account exceeds its rate limit.
    Throttled = 6,
    /// Queue full or shutting down; the call can be repeated later.
    Unavailable = 7,
    /// Rejected by routing.
    Rejected = 8,
    /// The message's state does not allow it.
    WrongState = 9,
    /// An internal error.
    Internal = 10,
    /// The request is too large.
    TooLarge = 11,
    /// The body is compressed.
    Encoded = 12,
    /// The path does not support this method.
    Method = 13,
}

impl ProblemKind {
    fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::Parameters => StatusCode::BAD_REQUEST,
            Self::NoMethod | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthorised => StatusCode::UNAUTHORIZED,
            Self::Invalid | Self::Rejected => StatusCode::UNPROCESSABLE_ENTITY,
            Self::KeyReused | Self::WrongState => StatusCode::CONFLICT,
            Self::Throttled => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// The name used in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NoMethod => "no-such-method",
            Self::Parameters => "wrong-parameters",
            Self::Unauthorised => "unauthorised",
            Self::Invalid => "invalid",
            Self::NotFound => "not-found",
            Self::KeyReused => "key-reused",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Rejected => "rejected",
            Self::WrongState => "wrong-state",
            Self::Internal => "internal",
            Self::TooLarge => "too-large",
            Self::Encoded => "encoding-not-taken",
            Self::Method => "method-not-allowed",
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new(), retry_after: None }
    }

    pub(crate) fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.field, one.reason),
            many => format!("{} errors; nothing was accepted", many.len()),
        };
        Self { kind: ProblemKind::Invalid, detail, errors, retry_after: None }
    }

    pub(crate) fn of(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::QueueFull | Refusal::ShuttingDown => ProblemKind::Unavailable,
            Refusal::Throttled
            | Refusal::QuotaExceeded
            | Refusal::KeysFull { .. }
            | Refusal::Rejected(RejectReason::TryLater) => ProblemKind::Throttled,
            Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => ProblemKind::Internal,
            Refusal::Rejected(_) => ProblemKind::Rejected,
            Refusal::BadSchedule | Refusal::Expired => ProblemKind::Invalid,
            Refusal::UnknownMessage => ProblemKind::NotFound,
            Refusal::WrongState => ProblemKind::WrongState,
            Refusal::KeyReused => ProblemKind::KeyReused,
        };
        let retry_after = match refusal {
            Refusal::KeysFull { retry_after } => Some(retry_after),
            _ => None,
        };
        Self { retry_after, ..Self::new(kind, refusal.to_string()) }
    }

    /// The XML-RPC fault.
    pub(crate) fn fault(&self) -> Fault {
        let mut text = format!("{}: {}", self.kind.name(), self.detail);
        if self.errors.len() > 1 {
            for error in &self.errors {
                text.push_str(&format!("; {}: {}", error.field, error.reason));
            }
        }
        Fault::new(self.kind as i32, text)
    }
}

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemDocument {
    /// A URN of the kind.
    #[serde(rename = "type")]
    urn: String,
    /// The kind, for programs.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The cause, and what would be valid.
    detail: String,
    /// All invalid fields of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, required = false)]
    errors: Vec<FieldError>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        let document = ProblemDocument {
            urn: format!("urn:switchyard:problem:{}", self.kind.name()),
            title: self.kind.name(),
            status: status.as_u16(),
            detail: self.detail,
            errors: self.errors,
        };
        let mut response = (status, Json(document)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.kind {
            ProblemKind::Unauthorised => {
                let challenge = HeaderValue::from_static("Basic realm=\"switchyard\", charset=\"UTF-8\"");
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            ProblemKind::Throttled => {
                headers.insert(header::RETRY_AFTER, self.retry_after.unwrap_or(1).into());
            }
            ProblemKind::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_key_memory_is_answered_with_retry_after() {
        let response = Problem::of(Refusal::KeysFull { retry_after: 77 }).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "77");
    }
}
