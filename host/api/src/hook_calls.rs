//! The calls of a hook's plugins over the last hour.

use crate::name_schemas::HookSchema;
use model::Hook;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/hooks/{hook}/calls`: calls, faults and durations over the last hour, on this node since its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HookCalls)]
pub struct HookCallsView {
    /// The hook.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// The length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// The maximum number of intervals.
    pub capacity: usize,
    /// The intervals, oldest first.
    pub intervals: Vec<HookCallsIntervalView>,
}

/// The calls of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HookCallsInterval)]
pub struct HookCallsIntervalView {
    /// End of the interval, milliseconds since the epoch.
    pub at: u64,
    /// The calls of the live chain.
    pub live: CallSumView,
    /// The calls of the candidate; all 0 without one.
    pub candidate: CallSumView,
}

/// Calls of plugins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CallSum)]
pub struct CallSumView {
    /// Calls of plugins.
    pub calls: u64,
    /// Calls that failed.
    pub faults: u64,
    /// Total duration of the calls, in nanoseconds.
    pub nanoseconds: u64,
}
