//! Pace buckets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pace bucket in `GET /v1/pace-buckets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PaceBucket)]
pub struct PaceBucketView {
    /// The name.
    pub name: String,
    /// Whether a plugin defines it. False: the configuration does.
    pub by_plugin: bool,
    /// Messages or segments in its period.
    pub amount: u64,
    /// What it counts: `messages` or `segments`.
    pub counts: String,
    /// The tokens that it has: messages or segments that may be sent at once.
    pub tokens: u64,
    /// When it is full again, milliseconds since the epoch; null if it fills over time.
    #[schema(required)]
    pub day_ends: Option<u64>,
    /// Messages that wait for it.
    pub waiting: u64,
    /// When it has the next token, milliseconds since the epoch; null if no message waits for it.
    #[schema(required)]
    pub next_token: Option<u64>,
}
