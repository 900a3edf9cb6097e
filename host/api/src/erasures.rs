//! Erasures: of contents of messages, and of all of one number.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer to `DELETE /v1/messages/{id}/content`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ContentErasure)]
pub struct ContentErasureView {
    /// The message id.
    pub id: String,
    /// When the content was erased, milliseconds since the epoch. A repetition gives the time of the first erasure.
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

/// The receipt of an erasure: what was done, and what remains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = NumberErasure)]
pub struct NumberErasureView {
    /// The id of the receipt. The audit log has it, too.
    pub id: String,
    /// The time, milliseconds since the epoch.
    pub at: u64,
    /// The number, masked.
    pub number: String,
    /// Messages of the archive in which the number was replaced.
    pub rows: u64,
    /// Messages whose content was erased, in archive and store.
    pub contents: u64,
    /// Messages with this number that have not ended. They are not changed: repeat the request when they have.
    pub in_flight: u64,
    /// Messages that have ended and wait for the archive: they have no content any more, but the number. Repeat the request
    /// when they are archived.
    pub awaiting_archive: u64,
    /// Opt-outs of the number, which are kept so that they are obeyed.
    pub opt_outs_kept: u64,
    /// Whether archive and store have nothing of the number any more; otherwise repeat the request.
    pub complete: bool,
    /// What has the number perhaps, and is not reached.
    pub not_reached: Vec<String>,
}
