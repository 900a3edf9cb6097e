//! The responses of the interface, common to JSON and XML-RPC.

use crate::item::{InboxItem, StateName};
use crate::problem::Problem;
use serde::Serialize;
use utoipa::ToSchema;

/// The answer to a submission.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubmissionResults {
    /// One result per number, in the order of the numbers.
    pub(crate) messages: Vec<SubmissionResult>,
}

/// The result for one number.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SubmissionResult {
    /// The message is accepted and durable.
    Accepted {
        /// The number.
        to: String,
        /// The message id.
        id: String,
    },
    /// The message is refused.
    Refused {
        /// The number.
        to: String,
        /// The reason for programs.
        error: &'static str,
        /// The reason for people.
        detail: String,
    },
}

impl SubmissionResult {
    pub(crate) fn refused(to: String, problem: Problem) -> Self {
        Self::Refused { to, error: problem.kind.name(), detail: problem.detail }
    }
}

/// The answer to a request for several states.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct States {
    /// The states, in the order of the ids.
    pub(crate) messages: Vec<StateResult>,
}

/// The state of one of several messages.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StateResult {
    /// The state.
    Known(MessageState),
    /// There is no state.
    Unknown {
        /// The id, as in the request.
        id: String,
        /// The reason for programs, for example `not-found`.
        error: &'static str,
        /// The reason for people.
        detail: String,
    },
}

impl StateResult {
    pub(crate) fn unknown(id: String, problem: Problem) -> Self {
        Self::Unknown { id, error: problem.kind.name(), detail: problem.detail }
    }
}

/// The state of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageState {
    /// The message id.
    pub(crate) id: String,
    /// The state.
    #[schema(inline)]
    pub(crate) state: StateName,
    /// Whether the state is final.
    #[serde(rename = "final")]
    pub(crate) is_final: bool,
    /// Time of the final state (RFC 3339); null before.
    #[schema(required)]
    pub(crate) final_at: Option<String>,
    /// The network's error code; 0 if there is none.
    pub(crate) error: u8,
}

/// A batch of fetched items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FetchedBatch {
    /// The name of the batch, for the acknowledgement; empty if there are no items.
    pub(crate) batch: String,
    /// The items: replies and DLRs.
    pub(crate) items: Vec<InboxItem>,
    /// Seconds within which the batch must be acknowledged. After that, its items are offered again.
    pub(crate) lease: u64,
}

/// The answer to an acknowledgement.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcknowledgedItems {
    /// Number of acknowledged items.
    pub(crate) acknowledged: usize,
}
