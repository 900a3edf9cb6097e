use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dxr::Fault;
use model::{Refusal, RejectReason};
use serde::Serialize;

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Wrong {
    /// Where: `messages[3].to[1]`, for instance.
    pub(crate) field: String,
    /// What, and what would be right.
    pub(crate) reason: String,
}

/// Why a call was refused, in terms that both faces can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
    pub(crate) errors: Vec<Wrong>,
    /// Seconds after which the same call may do, where that is known.
    pub(crate) retry_after: Option<u32>,
}

/// What kind of refusal. The numbers are the fault codes of XML-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No XML, no JSON, no method call.
    Malformed = -32_700,
    /// There is no such method.
    NoMethod = -32_601,
    /// The parameters are not those of the method.
    Parameters = -32_602,
    /// Account and password do not go together, or not from this address.
    Unauthorised = 1,
    /// Something in the request cannot be; `errors` says what.
    Invalid = 3,
    /// No such message of this account's.
    NotFound = 4,
    /// The key was used for another submission.
    KeyReused = 5,
    /// Over the account's rate.
    Throttled = 6,
    /// Queue full, shutting down: the same call may do later.
    Unavailable = 7,
    /// Routing says no.
    Rejected = 8,
    /// The message's state does not allow it.
    WrongState = 9,
    /// A fault of ours.
    Internal = 10,
    /// The request is larger than is taken.
    TooLarge = 11,
    /// The body comes compressed.
    Encoded = 12,
    /// There is such a path, but not for this method.
    Method = 13,
}

impl Kind {
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

    /// The word by which programs know it.
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
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new(), retry_after: None }
    }

    pub(crate) fn invalid(errors: Vec<Wrong>) -> Self {
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.field, one.reason),
            many => format!("{} things are wrong; nothing was accepted", many.len()),
        };
        Self { kind: Kind::Invalid, detail, errors, retry_after: None }
    }

    pub(crate) fn of(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::QueueFull | Refusal::ShuttingDown => Kind::Unavailable,
            Refusal::Throttled | Refusal::KeysFull { .. } | Refusal::Rejected(RejectReason::TryLater) => {
                Kind::Throttled
            }
            Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => Kind::Internal,
            Refusal::Rejected(_) => Kind::Rejected,
            Refusal::BadSchedule | Refusal::Expired => Kind::Invalid,
            Refusal::UnknownMessage => Kind::NotFound,
            Refusal::WrongState => Kind::WrongState,
            Refusal::KeyReused => Kind::KeyReused,
        };
        let retry_after = match refusal {
            Refusal::KeysFull { retry_after } => Some(retry_after),
            _ => None,
        };
        Self { retry_after, ..Self::new(kind, refusal.to_string()) }
    }

    /// As XML-RPC says it.
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

/// As HTTP says it: a problem document (RFC 9457).
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        let mut document = serde_json::json!({
            "type": format!("urn:switchyard:problem:{}", self.kind.name()),
            "title": self.kind.name(),
            "status": status.as_u16(),
            "detail": self.detail,
        });
        if let (false, Some(map)) = (self.errors.is_empty(), document.as_object_mut()) {
            map.insert("errors".to_owned(), serde_json::json!(self.errors));
        }
        let mut response = (status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.kind {
            Kind::Unauthorised => {
                let challenge = HeaderValue::from_static("Basic realm=\"switchyard\", charset=\"UTF-8\"");
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            Kind::Throttled => {
                headers.insert(header::RETRY_AFTER, self.retry_after.unwrap_or(1).into());
            }
            Kind::Unavailable => {
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
    fn who_has_too_many_keys_is_told_when_to_come_back() {
        let response = Problem::of(Refusal::KeysFull { retry_after: 77 }).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "77");
    }
}
