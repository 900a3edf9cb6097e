//! Views of refused submissions.

use super::name_schemas::ProtocolSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/refusals`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Refusals)]
pub struct RefusalsView {
    /// Refused messages since the start of the daemon, by account, protocol and code.
    pub counts: Vec<RefusalCountView>,
    /// The most recent refusals, newest first. At most 50 per account, in memory only: a restart deletes them.
    pub refusals: Vec<RefusedSubmissionView>,
}

/// Count of refused messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusalCount)]
pub struct RefusalCountView {
    /// The account, or the peer or core network that sent the messages.
    pub account: String,
    /// `smpp`, `sgip`, `cmpp`, `smgp`, `http`, `gsup`, `shell`, or `internal` for test messages.
    #[schema(value_type = ProtocolSchema, inline)]
    pub protocol: String,
    /// The reason, for programs: `throttled`, `no-route`, `no-credit`, `opted-out`, `queue-full`, `invalid-source` and so on.
    #[schema(example = "no-route")]
    pub code: String,
    /// Number of messages.
    pub count: u64,
}

/// A refused submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusedSubmission)]
pub struct RefusedSubmissionView {
    /// Time of the refusal, milliseconds since the epoch.
    pub at: u64,
    /// The account, or the peer or core network that sent it.
    pub account: String,
    /// As in the counts.
    #[schema(value_type = ProtocolSchema, inline)]
    pub protocol: String,
    /// The sender, masked unless the caller may read message texts. Empty if unknown.
    pub source: String,
    /// The recipient, masked likewise; the first of several; empty if unknown.
    pub destination: String,
    /// As in the counts.
    pub code: String,
    /// The reason, for people.
    pub reason: String,
}
