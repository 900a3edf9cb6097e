use super::{MessageStateView, MissingPartitionView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The filter of `GET /v1/messages`. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Source or destination, with or without a leading plus.
    pub number: Option<String>,
    /// The id of the whole submission, if it has several destinations (SMPP submit_multi).
    pub submission: Option<String>,
    /// The IMSI of the sender or recipient.
    pub imsi: Option<String>,
    /// The account that submitted the message.
    pub account: Option<String>,
    /// The peer whose queue, link or DLR the message waits for, or that accepted it.
    pub peer: Option<String>,
    /// The current or final state.
    pub state: Option<String>,
    /// Accepted at or after this time: milliseconds since the epoch, or RFC 3339.
    pub from: Option<String>,
    /// Accepted before this time.
    pub until: Option<String>,
    /// Maximum number of messages, 1 to 1000.
    pub limit: usize,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
    /// Time limit of the archive search, in milliseconds, 10 to 5000. When it expires, the page ends with the messages found so
    /// far.
    pub timeout_ms: u64,
}

/// `GET /v1/messages`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessagePage)]
pub struct MessagePageView {
    /// Messages, newest first. A page may have fewer messages than requested, or none, and not be the last: each page scans a
    /// limited number of rows and ends at the time limit.
    pub messages: Vec<MessageRowView>,
    /// The `cursor` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
    /// The reason why messages may be missing; null if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// With `Partition: all`: the partitions whose leader did not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPartitionView>,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageRow)]
pub struct MessageRowView {
    /// The message id.
    pub id: String,
    /// Time of acceptance, in milliseconds since the epoch.
    pub at: u64,
    /// The current or final state.
    #[schema(inline)]
    pub state: MessageStateView,
    /// Whether the message is finished.
    pub finished: bool,
    /// The account that submitted the message.
    pub account: String,
    /// The peer whose queue, link or DLR the message waits for, or that accepted it; empty if there is none.
    pub peer: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// Length of the text, in octets.
    pub length: usize,
    /// With `Partition: all`: the partition of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub partition: Option<u8>,
}

/// A test message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestMessageRequest {
    /// The submitting account. Its routes, prices and limits apply.
    pub account: String,
    /// The sender: up to 20 digits, with or without a leading +, or up to 11 characters. Default: the account's default sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// The recipient: 3 to 20 digits, with or without a leading +.
    #[schema(example = "+4915112345678")]
    pub to: String,
    /// The message text.
    #[schema(example = "Hello from Switchyard")]
    pub text: String,
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedMessage {
    /// The message id. `GET /v1/messages/{id}` shows its trace.
    pub id: String,
}
