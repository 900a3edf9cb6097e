//! Erasures: of a message's content, and of all data of a number.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer to `DELETE /v1/messages/{id}/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ContentErasure)]
pub struct ContentErasureView {
    /// The message id.
    pub id: String,
    /// Time of the erasure, milliseconds since the epoch. A repeated request returns the time of the first erasure.
    pub content_erased_at: u64,
}

/// `POST /v1/erasures`: the number to be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberErasureRequest {
    /// The number, as messages have it: 5 to 20 digits, with or without a plus sign.
    #[schema(pattern = "^[+]?[0-9]{5,20}$", example = "4917012345678")]
    pub number: String,
}

/// The receipt of an erasure: its effect, and the remaining data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = NumberErasure)]
pub struct NumberErasureView {
    /// The id of the receipt, which is also in the audit log.
    pub id: String,
    /// The time, milliseconds since the epoch.
    pub at: u64,
    /// The number, masked.
    pub number: String,
    /// Messages of the archive in which the number was replaced.
    pub rows: u64,
    /// Messages whose content was erased, in archive and store.
    pub contents: u64,
    /// Unfinished messages with this number. They are not changed: repeat the request when they have ended.
    pub in_flight: u64,
    /// Finished messages that wait for the archive: their content is erased, but they still contain the number. Repeat the
    /// request when they are archived.
    pub awaiting_archive: u64,
    /// Opt-outs of the number. They are kept, so that the subscriber gets no messages from these senders.
    pub opt_outs_kept: u64,
    /// Whether archive and store no longer contain data of the number. If false, repeat the request.
    pub complete: bool,
    /// Places that may contain the number, and that an erasure does not reach.
    pub not_reached: Vec<String>,
}
