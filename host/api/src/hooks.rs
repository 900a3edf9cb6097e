//! The state of hooks: live chains, candidates, counts, faults and events.

use crate::bindings::{BindingRecord, CandidateRecordView};
use crate::name_schemas::{HookSchema, PluginFaultKindSchema, PolicyReferenceKindSchema};
use model::{Hook, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A hook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = HookState)]
pub struct HookStateView {
    /// Its name.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// The live chain.
    pub live: BindingRecord,
    /// Counts of the live plugins.
    pub counts: Vec<PluginCountsView>,
    /// The candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub candidate: Option<CandidateStateView>,
    /// Events, newest first.
    pub events: Vec<HookEvent>,
    /// Plugin versions with faults since the start of the daemon, the most recent fault first. Includes versions that were
    /// rolled back automatically.
    pub faults: Vec<FaultyVersion>,
    /// Unknown names in the live policies; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownReference>,
    /// Earlier chains, newest first; only in the answer for a single hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history: Option<Vec<BindingRecord>>,
}

/// Counts of a running plugin version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PluginCounts)]
pub struct PluginCountsView {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The tenant that the binding serves; omitted if it serves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant: Option<String>,
    /// Whether the version is live.
    pub live: bool,
    /// Number of calls.
    pub calls: u64,
    /// Faults, by kind.
    pub faults: PluginFaultCounts,
    /// Total duration of the calls, in nanoseconds.
    pub nanoseconds: u64,
    /// The largest linear memory of any instance so far, in octets.
    pub memory: u64,
    /// Number of host calls, by interface of the contract; interfaces without calls are left out.
    pub host_calls: BTreeMap<String, u64>,
    /// Log lines dropped because of the plugin's log budget.
    pub log_lines_left_out: u64,
}

/// Faults of a running plugin version, by kind.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
pub struct PluginFaultCounts {
    /// The plugin trapped.
    pub trap: u64,
    /// A call exceeded its deadline.
    pub deadline: u64,
    /// An instance exceeded its memory limit.
    pub memory: u64,
    /// An answer was invalid.
    pub verdict: u64,
    /// There was no instance for a call.
    pub instance: u64,
}

impl PluginFaultCounts {
    /// The counts with the names of their kinds.
    #[must_use]
    pub fn by_kind(self) -> [(&'static str, u64); 5] {
        let Self { trap, deadline, memory, verdict, instance } = self;
        [
            ("deadline", deadline),
            ("instance", instance),
            ("memory", memory),
            ("trap", trap),
            ("verdict", verdict),
        ]
    }

    /// Faults of all kinds.
    #[must_use]
    pub fn total(self) -> u64 {
        self.by_kind().iter().map(|(_, count)| count).sum()
    }
}

/// A candidate with its results so far.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = CandidateState)]
pub struct CandidateStateView {
    /// The candidate.
    #[serde(flatten)]
    pub record: CandidateRecordView,
    /// Counts of its plugins.
    pub counts: Vec<PluginCountsView>,
    /// Questions sent to the canary.
    pub asked: u64,
    /// Questions on which the canary failed and the live chain answered.
    pub failed: u64,
    /// Questions that bypassed the canary.
    pub bypassed: u64,
    /// The comparison, in shadow mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub comparison: Option<Comparison>,
}

/// The comparison of a candidate in shadow mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Comparison {
    /// Questions that both chains answered.
    pub compared: u64,
    /// Questions with the same answer.
    pub same: u64,
    /// Questions with different answers.
    pub different: u64,
    /// Questions not compared because the candidate was too slow.
    pub skipped: u64,
    /// The differences, most frequent first.
    pub differences: Vec<AnswerDifference>,
}

/// A difference between the answers of the live chain and a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct AnswerDifference {
    /// The answer of the live chain.
    pub from: String,
    /// The answer of the candidate.
    pub to: String,
    /// Number of occurrences.
    pub count: u64,
    /// Sample questions, with masked numbers.
    pub samples: Vec<String>,
    /// The message ids of the samples, in the same order; null if the question is not about one message, or the message was
    /// refused.
    pub messages: Vec<Option<String>>,
}

/// A plugin version with faults since the start of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct FaultyVersion {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// Faults since the start of the daemon.
    pub faults: u64,
    /// The most recent faults, newest first.
    pub examples: Vec<FaultExample>,
}

/// A question on which a plugin version failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct FaultExample {
    /// The number of the fault among all faults of the hook since the start of the daemon, from 1.
    pub id: u64,
    /// Time of the fault, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub at: Timestamp,
    /// The kind of fault: `trap`, `deadline`, `memory`, `verdict` or `instance`.
    #[schema(value_type = PluginFaultKindSchema, inline)]
    pub kind: String,
    /// The fault, for people.
    pub what: String,
    /// The plugin's last report: the message of a panic or an exception, with several lines; null if it reported nothing.
    #[schema(required)]
    pub report: Option<String>,
    /// The plugin's call stack, innermost frame first; empty if the call has returned, or the report has a stack.
    pub stack: Vec<StackFrame>,
    /// The question, with masked numbers.
    pub question: String,
    /// The message id; null if the question is not about one message, or the message was refused.
    #[schema(required)]
    pub message: Option<String>,
}

/// A fault as a case for the plugin's author.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct FaultCase {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// A `[[case]]` to append to `cases.toml`: the question with unmasked numbers and its text, the policy document, the time and the
    /// host's answers.
    pub case: String,
}

/// A frame of a plugin's call stack.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct StackFrame {
    /// The function's name in its language.
    pub function: String,
    /// The place in the source, as `FILE:LINE`; null if the plugin's debug information is not stored.
    #[schema(required)]
    pub source: Option<String>,
}

/// An event of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct HookEvent {
    /// Time of the event, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub at: Timestamp,
    /// The kind of event, for programs.
    // `activated`, `candidate`, `candidate-ended`, `candidate-faulty`, `promoted`, `rolled-back`, `rolled-back-by-itself`, `faulty`
    // (the plugin keeps serving because there is nothing to roll back to; reported once a minute), `unbound`.
    pub kind: String,
    /// Details of the event.
    pub what: String,
}

/// A name in the policy of a live plugin that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct UnknownReference {
    /// The plugin.
    pub plugin: String,
    /// `peer`, `pool` or `table`.
    #[schema(value_type = PolicyReferenceKindSchema, inline)]
    pub kind: PolicyReferenceKind,
    /// The unknown name.
    pub name: String,
}

/// The kind of a name in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyReferenceKind {
    /// A peer, an account or a network.
    Peer,
    /// A number pool.
    Pool,
    /// A table that the binding grants.
    Table,
}

impl PolicyReferenceKind {
    /// The name in the API, which is also the noun for messages to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Pool => "pool",
            Self::Table => "table",
        }
    }
}
