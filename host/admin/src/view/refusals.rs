//! Refused submissions.

use serde::Serialize;
use utoipa::ToSchema;

/// `GET /v1/refusals`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Refusals {
    /// Refused messages since the start of the daemon, by account, protocol and code.
    pub counts: Vec<RefusalCount>,
    /// The last refusals, newest first. At most 50 are kept of each account, in memory only: a restart forgets them.
    pub refusals: Vec<RefusedSubmission>,
}

/// Refused messages of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RefusalCount {
    /// The account, or the peer or core network that the messages came from.
    pub account: String,
    /// `smpp`, `sgip`, `http`, `gsup`, `shell`, or `internal` for test messages.
    pub protocol: String,
    /// Why, for programs: `throttled`, `no-route`, `no-credit`, `opted-out`, `queue-full`, `invalid-source` and so on.
    #[schema(example = "no-route")]
    pub code: String,
    /// Messages.
    pub count: u64,
}

/// One refused submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RefusedSubmission {
    /// When it was refused, milliseconds since the epoch.
    pub at: u64,
    /// The account, or the peer or core network that it came from.
    pub account: String,
    /// As in the counts.
    pub protocol: String,
    /// The sender; empty where it is not known.
    pub source: String,
    /// The addressee, masked; of several addressees the first; empty where it is not known.
    pub destination: String,
    /// As in the counts.
    pub code: String,
    /// Why, for people.
    pub reason: String,
}
