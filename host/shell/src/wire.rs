//! The wire protocol: one JSON object per line in each direction.
//!
//! A request has an id, which its answer repeats: `{"id": 1, "ask": {"hello": {"as": "+16195550123"}}}` is answered by
//! `{"id": 1, "ok": {...}}` or `{"id": 1, "error": {"kind": "...", "detail": "..."}}`. The first request is `hello`.
//! Requests are answered one after the other. After `follow`, each change is sent as `{"id": ..., "event": {...}}`
//! until the connection is closed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a line in octets.
pub const MAX_LINE_OCTETS: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellRequest {
    /// Repeated in the answer.
    pub id: u64,
    /// The requested operation.
    #[serde(rename = "ask")]
    pub operation: ShellOperation,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShellOperation {
    /// Sets the identity of the connection.
    Hello(ShellHello),
    /// Submits a text.
    Send(ShellSubmission),
    /// Lists messages to the number.
    Inbox(ShellListQuery),
    /// Lists messages to and from the number.
    Log(ShellListQuery),
    /// Streams changes from now on.
    Follow(ShellFollowQuery),
}

impl ShellOperation {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Send(_) => "send",
            Self::Inbox(_) => "inbox",
            Self::Log(_) => "log",
            Self::Follow(_) => "follow",
        }
    }
}

/// The identity of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellHello {
    /// The number; optional if the caller has only one.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Acts as an operator, who sees all messages without text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

/// A submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellSubmission {
    /// The recipient as dialled.
    pub to: String,
    /// The text.
    pub text: String,
    /// The idempotency key: a submission that is repeated under its key is accepted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A list query; the result is newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellListQuery {
    /// Maximum number of messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only messages older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// For operators: only messages of this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
}

/// A query for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellFollowQuery {
    /// For operators: only changes of this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
}

/// An answer or an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShellResponse {
    /// The id of the request; `None` if it is unknown.
    pub id: Option<u64>,
    /// The answer.
    #[serde(flatten)]
    pub reply: ShellReply,
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellReply {
    /// Success, with the result.
    Ok(Value),
    /// Failure.
    Error(ShellFault),
    /// A change of a message.
    Event(ShellEvent),
}

/// Reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct ShellFault {
    /// The kind, for programs.
    pub kind: ShellFaultKind,
    /// The description, for people.
    pub detail: String,
}

impl ShellFault {
    pub(crate) fn new(kind: ShellFaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellFaultKind {
    /// The line is not a valid request.
    Malformed,
    /// The caller lacks the permission.
    NotAllowed,
    /// A value in the request is invalid.
    Invalid,
    /// The idempotency key was used for another submission.
    KeyReused,
    /// Routing rejected the message.
    Rejected,
    /// The rate limit is exceeded; retry later.
    Throttled,
    /// Too many connections, queue full or shutting down; retry later.
    Unavailable,
    /// Internal error of the appliance.
    Internal,
}

impl ShellFaultKind {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotAllowed => "not-allowed",
            Self::Invalid => "invalid",
            Self::KeyReused => "key-reused",
            Self::Rejected => "rejected",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }
}

/// A message as its sender, its recipient or an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellMessage {
    /// The message id; the id of the oldest segment for a text in several segments.
    pub id: String,
    /// Time of acceptance; RFC 3339, UTC.
    pub at: String,
    /// `in` or `out` from the number's point of view; absent for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<ShellDirection>,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The state: `queued`, `submitted`, `deferred` …, or a final state: `delivered`, `failed` …
    pub state: String,
    /// Time of the final state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The error code, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<u32>,
    /// The meaning of the error code, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The text; absent for an operator, and if the content is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Octets of content.
    pub length: usize,
    /// For an operator: the segment of a longer text, for example `2/3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// For a subscriber: the known segments of a text in several segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<ShellSegments>,
}

/// The segments of a concatenated message. Each segment is a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSegments {
    /// Total number of segments, 2 to 255.
    pub total: u8,
    /// The known segments, by number.
    pub present: Vec<ShellSegment>,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSegment {
    /// Number of the segment, from 1.
    pub number: u8,
    /// Message id of the segment.
    pub id: String,
    /// State of the segment.
    pub state: String,
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellDirection {
    /// To the number.
    In,
    /// From the number.
    Out,
}

/// The answer to `inbox` and `log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellPage {
    /// The messages, newest first.
    pub messages: Vec<ShellMessage>,
    /// Pass this id as `before` to continue; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Reason why older messages may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// An event after `follow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellEvent {
    /// A new message or a new state. Changes in quick succession are sent once.
    Message(ShellMessage),
    /// Number of changes that were dropped because the reader was too slow.
    Lost(u64),
}

/// The answer to `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellWelcome {
    /// The number of the connection; absent for an operator.
    #[serde(rename = "as")]
    pub number: Option<String>,
}

/// The answer to `send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellAccepted {
    /// The message id. The message is on disk.
    pub message: String,
    /// The recipient as normalised.
    pub to: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_and_responses_have_the_documented_json() {
        let request: ShellRequest =
            serde_json::from_value(json!({ "id": 1, "ask": { "hello": { "as": "+16195550123" } } })).unwrap();
        assert_eq!(
            request.operation,
            ShellOperation::Hello(ShellHello { number: Some("+16195550123".to_owned()), operator: false })
        );
        for bad in [
            json!({ "id": 1, "ask": { "hello": { "sa": 1 } } }),
            json!({ "id": 1, "ask": { "shell": {} } }),
            json!({ "id": 1, "ask": { "log": {} }, "as": "+1" }),
            json!({ "ask": { "log": {} } }),
        ] {
            assert!(serde_json::from_value::<ShellRequest>(bad.clone()).is_err(), "{bad}");
        }
        for kind in [
            ShellFaultKind::Malformed,
            ShellFaultKind::NotAllowed,
            ShellFaultKind::KeyReused,
            ShellFaultKind::Internal,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        let fault = ShellFault::new(ShellFaultKind::NotAllowed, "no");
        for (reply, shape) in [
            (ShellReply::Ok(json!({})), json!({ "id": 7, "ok": {} })),
            (
                ShellReply::Error(fault),
                json!({ "id": 7, "error": { "kind": "not-allowed", "detail": "no" } }),
            ),
            (ShellReply::Event(ShellEvent::Lost(3)), json!({ "id": 7, "event": { "lost": 3 } })),
        ] {
            let response = ShellResponse { id: Some(7), reply };
            assert_eq!(serde_json::to_value(&response).unwrap(), shape);
            assert_eq!(serde_json::from_value::<ShellResponse>(shape).unwrap(), response);
        }
    }
}
