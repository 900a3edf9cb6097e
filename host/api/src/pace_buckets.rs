//! Pace buckets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pace bucket in `GET /v1/pace-buckets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PaceBucket)]
pub struct PaceBucketView {
    /// The name.
    pub name: String,
    /// Whether a plugin defines it; otherwise the configuration defines it.
    pub by_plugin: bool,
    /// Messages or segments in its period.
    pub amount: u64,
    /// The unit: `messages` or `segments`.
    pub counts: String,
    /// Current tokens: messages or segments that may be sent at once.
    pub tokens: u64,
    /// Time at which it is full again, milliseconds since the epoch; null if it fills evenly.
    #[schema(required)]
    pub day_ends: Option<u64>,
    /// Messages that wait for it.
    pub waiting: u64,
    /// Time of its next token, milliseconds since the epoch; null if no message waits for it.
    #[schema(required)]
    pub next_token: Option<u64>,
}
