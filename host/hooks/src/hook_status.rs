//! The status of a hook, for admins.

use crate::binding::CandidateRecord;
use crate::call_counts::CallCounts;
use api::{BindingRecord, Comparison, HookEvent, UnknownReference};
use model::{Hook, PluginVersion};
use std::sync::Arc;

/// The status of a candidate.
#[derive(Debug, Clone)]
pub struct CandidateState {
    /// The stored candidate.
    pub record: CandidateRecord,
    /// Call counts of its plugins.
    pub counts: Vec<PluginCounts>,
    /// Questions to the canary.
    pub asked: u64,
    /// Questions that the canary failed and the live chain answered.
    pub failed: u64,
    /// Questions outside the canary's share.
    pub bypassed: u64,
    /// The comparison with the live chain, for a candidate in shadow.
    pub comparison: Option<Comparison>,
}

/// Call counts of one active plugin version.
#[derive(Debug, Clone)]
pub struct PluginCounts {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The tenant that it serves; `None`: all.
    pub tenant: Option<Arc<str>>,
    /// Whether it is in the live chain.
    pub live: bool,
    /// The counts.
    pub counts: CallCounts,
}

/// The status of a hook.
#[derive(Debug, Clone)]
pub struct HookStatus {
    /// The hook.
    pub hook: Hook,
    /// The live binding; serial 0 and an empty chain if nothing was ever activated.
    pub live: BindingRecord,
    /// Call counts of the live plugins.
    pub counts: Vec<PluginCounts>,
    /// The candidate on trial.
    pub candidate: Option<CandidateState>,
    /// Events, newest first.
    pub events: Vec<HookEvent>,
    /// Names in the live policies that the appliance does not know now.
    pub unknown: Vec<UnknownReference>,
}
