//! What goes over the socket: a JSON object a line, each way.
//!
//! A request names itself by a number, and the answer has the same: `{"id": 1, "ask": {"hello": {"as": "+16195550123"}}}`
//! is answered by `{"id": 1, "ok": {...}}` or `{"id": 1, "error": {"kind": "...", "detail": "..."}}`. The first request is
//! `hello`; one is answered after the other. After `follow`, `{"id": ..., "event": {...}}` comes whenever something happens,
//! until the connection is closed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line that is taken, in octets.
pub const LONGEST_LINE: usize = 64 << 10;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Comes back in the answer.
    pub id: u64,
    /// What is asked for.
    pub ask: Ask,
}

/// What can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// As whom the connection acts.
    Hello(Hello),
    /// A submission.
    Send(Submission),
    /// What came for the number.
    Inbox(List),
    /// What came for it and from it.
    Log(List),
    /// What happens from now on.
    Follow(Follow),
}

impl Ask {
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

/// As whom a connection acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The number; may be left out by who has only one.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// As an operator, who sees all messages without their texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

/// A text for somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The number as it was typed.
    pub to: String,
    /// The text.
    pub text: String,
    /// The caller's own name for the submission: under it, it may be repeated and is accepted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Messages, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// How many, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only those older than this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Of an operator: only those of this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
}

/// What happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// Of an operator: only with this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
}

/// One answer, or one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Of the request; none where there was no telling which.
    pub id: Option<u64>,
    /// The answer.
    #[serde(flatten)]
    pub what: Reply,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Done.
    Ok(Value),
    /// Not done.
    Error(Fault),
    /// Something happened to a message.
    Event(Event),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{detail}")]
pub struct Fault {
    /// For programs.
    pub kind: Kind,
    /// For people.
    pub detail: String,
}

impl Fault {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// What kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The line was no request.
    Malformed,
    /// The caller may not do this, or nothing at all.
    NotAllowed,
    /// Something in the request cannot be.
    Invalid,
    /// The key was used for another submission.
    KeyReused,
    /// Routing says no.
    Rejected,
    /// Over the rate; later it may do.
    Throttled,
    /// Too many connections, a full queue, a shutdown; later it may do.
    Unavailable,
    /// A fault of the appliance's.
    Internal,
}

impl Kind {
    /// The word for it, as it is written.
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

/// A message as its sender, its addressee or an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its id; that of the oldest segment, where there are several.
    pub id: String,
    /// When it was accepted; RFC 3339, UTC.
    pub at: String,
    /// `in` or `out`, as the number sees it; not there for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The sender.
    pub from: String,
    /// The addressee.
    pub to: String,
    /// `queued`, `submitted`, `deferred` … or, at its end, `delivered`, `failed` …
    pub state: String,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The error code that mattered, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<u32>,
    /// What that code means, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The text; not there for an operator, nor where the octets are no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Octets of content.
    pub length: usize,
    /// For an operator: which segment of a longer text it is, such as `2/3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// For a subscriber, of a text that came or went in segments: those that are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
}

/// The segments of a concatenated message. Each is a message of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// How many there are in all, 2 to 255.
    pub total: u8,
    /// Those that are there, in their order.
    pub present: Vec<SegmentItem>,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentItem {
    /// Which one, from 1.
    pub number: u8,
    /// Its message's id.
    pub id: String,
    /// That message's state.
    pub state: String,
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the number.
    In,
    /// From it.
    Out,
}

/// The answer to `inbox` and `log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The messages, newest first.
    pub messages: Vec<Item>,
    /// Ask for what is before this message to go on; not there when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why older messages may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// What follows `follow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A message is new, or its state is another. What changes twice at once is told once.
    Message(Item),
    /// So many changes were not told, since the reader was too slow.
    Lost(u64),
}

/// The answer to `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The number that the connection acts as; none for an operator.
    #[serde(rename = "as")]
    pub number: Option<String>,
}

/// The answer to `send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The message's id. It is on disk.
    pub message: String,
    /// The addressee as it was understood.
    pub to: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_and_answers_have_the_shapes_that_are_documented() {
        let request: Request =
            serde_json::from_value(json!({ "id": 1, "ask": { "hello": { "as": "+16195550123" } } })).unwrap();
        assert_eq!(
            request.ask,
            Ask::Hello(Hello { number: Some("+16195550123".to_owned()), operator: false })
        );
        for bad in [
            json!({ "id": 1, "ask": { "hello": { "sa": 1 } } }),
            json!({ "id": 1, "ask": { "shell": {} } }),
            json!({ "id": 1, "ask": { "log": {} }, "as": "+1" }),
            json!({ "ask": { "log": {} } }),
        ] {
            assert!(serde_json::from_value::<Request>(bad.clone()).is_err(), "{bad}");
        }
        for kind in [Kind::Malformed, Kind::NotAllowed, Kind::KeyReused, Kind::Internal] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        let fault = Fault::new(Kind::NotAllowed, "no");
        for (what, shape) in [
            (Reply::Ok(json!({})), json!({ "id": 7, "ok": {} })),
            (Reply::Error(fault), json!({ "id": 7, "error": { "kind": "not-allowed", "detail": "no" } })),
            (Reply::Event(Event::Lost(3)), json!({ "id": 7, "event": { "lost": 3 } })),
        ] {
            let response = Response { id: Some(7), what };
            assert_eq!(serde_json::to_value(&response).unwrap(), shape);
            assert_eq!(serde_json::from_value::<Response>(shape).unwrap(), response);
        }
    }
}
