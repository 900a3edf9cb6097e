//! Erasure of contents of messages.

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
