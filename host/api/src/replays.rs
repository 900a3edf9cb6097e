//! Replays of archived messages.

use crate::bindings::ActivationRequest;
use crate::name_schemas::{HookSchema, ReplayStateSchema};
use crate::replay_report::ReplayReport;
use model::Hook;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A replay: an [`ActivationRequest`] with the messages to replay.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The hook to replay; default: router.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<ReplayHook>,
    /// Messages accepted at or after this time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<TimeValue>,
    /// Messages accepted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<TimeValue>,
    /// Maximum number of messages, from the oldest on.
    #[schema(minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Only this number of newest messages, without DLRs of the appliance.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Number of threads; default: the number of CPUs.
    #[schema(minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The candidate.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: ActivationRequest,
}

/// Hooks that a replay supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayHook {
    /// The screens.
    Screen,
    /// The lookups, for the messages that waited for one.
    Lookup,
    /// The router.
    Router,
    /// The biller.
    Biller,
    /// The receipt policies, for the DLRs and timeouts for which they were called.
    Receipt,
    /// The plugins of peers, for the submissions that were recorded.
    Peer,
}

impl ReplayHook {
    /// The replayable hook of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "screen" => Some(Self::Screen),
            "lookup" => Some(Self::Lookup),
            "router" => Some(Self::Router),
            "biller" => Some(Self::Biller),
            "receipt" => Some(Self::Receipt),
            "peer" => Some(Self::Peer),
            _ => None,
        }
    }
}

/// A time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a time: milliseconds since the epoch, or RFC 3339")]
pub enum TimeValue {
    /// Milliseconds since the epoch.
    Milliseconds(u64),
    /// RFC 3339.
    #[schema(format = DateTime)]
    Text(String),
}

/// A started replay.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ReplayStart {
    /// The replay's id.
    pub id: String,
}

/// A plugin version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PluginVersionName {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
}

/// The progress of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct ReplayProgress {
    /// Messages read so far.
    pub read: u64,
    /// Messages compared so far.
    pub compared: u64,
    /// Compared messages with a different decision.
    pub different: u64,
    /// Upper bound of the messages to read; null if it is not yet known.
    #[schema(required)]
    pub expected: Option<u64>,
    /// Whether the report is complete.
    pub ended: bool,
}

/// A replay.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ReplayState)]
pub struct ReplayStateView {
    /// The replay's id.
    pub id: String,
    /// `running`, `done` or `failed`.
    #[schema(value_type = ReplayStateSchema, inline)]
    pub state: ReplayPhase,
    /// The hook.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// The plugins of the candidate.
    pub plugins: Vec<PluginVersionName>,
    /// Start of the range, milliseconds since the epoch.
    #[schema(required)]
    pub from: Option<u64>,
    /// End of the range, exclusive.
    #[schema(required)]
    pub until: Option<u64>,
    /// Maximum number of messages, from the oldest on.
    #[schema(required)]
    pub limit: Option<u64>,
    /// Only this number of newest messages.
    #[schema(required)]
    pub last: Option<u64>,
    /// Time of the start, milliseconds since the epoch.
    pub started: u64,
    /// The progress.
    pub progress: ReplayProgress,
    /// The report: differing verdicts, with examples and prices; null until the replay has ended. Only in the answer for a
    /// single replay.
    // The outer `None`: not part of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReplayReport>)]
    pub report: Option<Option<ReplayReport>>,
}

/// The phase of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPhase {
    /// It runs.
    Running,
    /// It has ended, and has a report.
    Done,
    /// It has failed.
    Failed,
}
