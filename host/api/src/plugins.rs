//! Views of plugins, hooks, lookup tables and replays.

use super::name_schemas::{
    BindingChangeSchema, HookSchema, PluginFaultKindSchema, PolicyReferenceKindSchema, ReplayStateSchema,
};
use super::replay_report::ReplayReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A stored plugin version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PluginVersion)]
pub struct PluginVersionView {
    /// The plugin.
    pub plugin: String,
    /// The version: the first twelve hexadecimal digits of the component's SHA-256.
    pub version: String,
    /// The component's SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Size of the component, in octets.
    pub size: u64,
    /// The hook that the component implements.
    #[schema(value_type = HookSchema, inline)]
    pub hook: String,
    /// The version of the contract that the component was built for.
    pub wit: String,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
    /// The name of the trusted key that signed the component; null if it is not signed.
    #[schema(required)]
    pub signed_by: Option<String>,
}

/// The treatment of a message whose plugin call fails.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = OnFault)]
pub enum OnFaultView {
    /// The plugin is asked again later.
    Hold,
    /// The message is refused with a temporary error.
    Reject,
    /// The message goes to this peer. For routers only.
    Peer(String),
    /// The plugin is skipped.
    Pass,
}

/// The use of plugin instances.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = InstanceUse)]
pub enum InstanceUseView {
    /// One instance serves many calls.
    Warm,
    /// Every call gets a new instance.
    PerCall,
}

/// Grants of a plugin, beyond the standard imports of its world.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Grants)]
pub struct GrantsView {
    /// URLs that `http` may call: `https://host[:port]/path/prefix`.
    #[schema(required = false)]
    pub http: Vec<String>,
    /// Timeout of an HTTP request, in milliseconds.
    #[schema(required = false)]
    pub http_timeout_ms: u64,
    /// Maximum size of an HTTP response, in octets.
    #[schema(required = false)]
    pub http_answer: u64,
    /// Storage for `kv`, in octets; 0: none.
    #[schema(required = false)]
    pub kv: u64,
    /// The lookup tables that the plugin may open.
    #[schema(required = false)]
    pub tables: Vec<String>,
    /// The plugin may query the HLR.
    #[schema(required = false)]
    pub hlr: bool,
    /// Guests in languages with a WASI runtime may draw random numbers.
    #[schema(required = false)]
    pub random: bool,
    /// Durable counters of calendar periods; omitted if there are none. All other counters are in memory, with sliding windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub counters: Vec<CounterGrantView>,
}

/// A durable counter.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = CounterGrant)]
pub struct CounterGrantView {
    /// The counter's name, unique in its binding.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// The period: the counter restarts at 0 with each new one.
    pub window: CounterWindowView,
    /// The time zone of the period: a name of the IANA database, such as `Europe/Berlin`. Default: `UTC`.
    #[serde(default = "utc")]
    #[schema(required = false)]
    pub zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// The period of a durable counter.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CounterWindow)]
pub enum CounterWindowView {
    /// A calendar hour.
    Hour,
    /// A calendar day.
    Day,
    /// A calendar month.
    Month,
}

/// The faults after which a plugin is rolled back automatically.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Tolerance)]
pub struct ToleranceView {
    /// Number of faults; 0: never.
    pub faults: u32,
    /// Window of the faults, in milliseconds.
    pub window_ms: u64,
}

/// A plugin version on a hook, with its policy document and limits.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Binding)]
pub struct BindingView {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The component's SHA-256, in hexadecimal digits; omitted for old activations that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sha256: Option<String>,
    /// The policy document.
    pub policy: String,
    /// The treatment of a message whose plugin call fails.
    pub on_fault: OnFaultView,
    /// Memory limit of an instance, in octets.
    pub memory: u64,
    /// Deadline of a call, in milliseconds.
    pub deadline_ms: u64,
    /// Maximum rows of the plugin's own tables.
    pub table_rows: u64,
    /// The use of plugin instances.
    pub instance: InstanceUseView,
    /// The grants.
    pub grants: GrantsView,
    /// The faults after which the plugin is rolled back automatically.
    pub tolerance: ToleranceView,
}

/// A requested binding. Omitted fields are taken from the live binding of the same plugin, or get their defaults.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BindingRequest {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    #[schema(nullable = false)]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    pub policy: Option<String>,
    /// The treatment of a message whose plugin call fails.
    #[schema(nullable = false)]
    pub on_fault: Option<OnFaultView>,
    /// Memory limit of an instance, in octets.
    #[schema(nullable = false)]
    pub memory: Option<u64>,
    /// Deadline of a call, in milliseconds.
    #[schema(nullable = false)]
    pub deadline_ms: Option<u64>,
    /// Maximum rows of the plugin's own tables.
    #[schema(nullable = false)]
    pub table_rows: Option<u64>,
    /// The use of plugin instances.
    #[schema(nullable = false)]
    pub instance: Option<InstanceUseView>,
    /// The grants.
    #[schema(nullable = false)]
    pub grants: Option<GrantsView>,
    /// The faults after which the plugin is rolled back automatically.
    #[schema(nullable = false)]
    pub tolerance: Option<ToleranceView>,
}

/// An activation: one binding, or a chain.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ActivationRequest {
    /// The complete chain, in calling order. Only `expected`, `force` and `why` may be given with it.
    pub chain: Option<Vec<BindingRequest>>,
    /// The position of the one binding in the live chain. If omitted, the binding replaces the chain.
    pub position: Option<u64>,
    /// The serial of the last change that the client has seen. If the hook was changed since, the request is refused (409).
    pub expected: Option<u64>,
    /// Activate even if a policy names unknown peers or pools, or a component imports an interface that its binding does not
    /// grant. Otherwise such a request is refused (422).
    #[schema(nullable = false)]
    pub force: Option<bool>,
    /// Reason for the change, for the audit log.
    #[schema(max_length = 256)]
    pub why: Option<String>,
    /// The plugin.
    #[schema(nullable = false)]
    pub plugin: Option<String>,
    /// The plugin's version.
    #[schema(nullable = false)]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    pub policy: Option<String>,
    /// The treatment of a message whose plugin call fails.
    #[schema(nullable = false)]
    pub on_fault: Option<OnFaultView>,
    /// Memory limit of an instance, in octets.
    #[schema(nullable = false)]
    pub memory: Option<u64>,
    /// Deadline of a call, in milliseconds.
    #[schema(nullable = false)]
    pub deadline_ms: Option<u64>,
    /// Maximum rows of the plugin's own tables.
    #[schema(nullable = false)]
    pub table_rows: Option<u64>,
    /// The use of plugin instances.
    #[schema(nullable = false)]
    pub instance: Option<InstanceUseView>,
    /// The grants.
    #[schema(nullable = false)]
    pub grants: Option<GrantsView>,
    /// The faults after which the plugin is rolled back automatically.
    #[schema(nullable = false)]
    pub tolerance: Option<ToleranceView>,
}

/// The mode of a trial.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = TrialMode)]
pub enum TrialModeView {
    /// The candidate is called too; its answers are compared but not used.
    Shadow,
    /// The candidate decides a share of the traffic.
    Canary,
}

/// A trial: an [`ActivationRequest`] with a mode.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TrialRequest {
    /// The mode.
    pub mode: TrialModeView,
    /// The share of the traffic for a canary, in percent.
    #[schema(minimum = 0.01, maximum = 100)]
    pub share: Option<f64>,
    /// The candidate.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: ActivationRequest,
}

/// A promotion: the candidate becomes live.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromotionRequest {
    /// The serial of the last change that the client has seen. If the hook was changed since, the request is refused (409).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Reason for the change, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub why: Option<String>,
}

/// A rollback to the previous chain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRollbackRequest {
    /// Reason for the change, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub why: Option<String>,
}

/// A name in the policy of a live plugin that does not exist.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = UnknownReference)]
pub struct UnknownReferenceView {
    /// The plugin.
    pub plugin: String,
    /// `peer`, `pool` or `table`.
    #[schema(value_type = PolicyReferenceKindSchema, inline)]
    pub kind: String,
    /// The unknown name.
    pub name: String,
}

/// A chain in the history of a hook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = BindingRecord)]
pub struct BindingRecordView {
    /// Serial of the change, counted from 1 for each hook; 0 if no chain was ever live.
    pub serial: u64,
    /// Start, milliseconds since the epoch.
    pub since: u64,
    /// The plugins, in calling order.
    pub chain: Vec<BindingView>,
    /// The kind of change: `activated`, `promoted`, `rolled-back`, `rolled-back-by-itself`, `unbound`.
    #[schema(value_type = BindingChangeSchema, inline)]
    pub how: String,
    /// Why the chain was rolled back automatically. A rollback does not return to such a chain.
    #[schema(nullable = false)]
    pub condemned: Option<String>,
}

/// A chain on trial.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = CandidateRecord)]
pub struct CandidateRecordView {
    /// Start, milliseconds since the epoch.
    pub since: u64,
    /// The mode of the trial.
    pub mode: TrialModeView,
    /// The share of the traffic for a canary, in hundredths of a percent.
    #[schema(nullable = false)]
    pub share: Option<u16>,
    /// The chain of the candidate.
    pub chain: Vec<BindingView>,
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
    /// Whether the version is live.
    pub live: bool,
    /// Number of calls.
    pub calls: u64,
    /// Faults, by kind.
    #[schema(value_type = PluginFaultCounts)]
    pub faults: BTreeMap<String, u64>,
    /// Total duration of the calls, in nanoseconds.
    pub nanoseconds: u64,
    /// Log lines dropped because of the plugin's log budget.
    pub log_lines_left_out: u64,
}

/// Faults of a running plugin version, by kind.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only a schema")]
struct PluginFaultCounts {
    /// The plugin trapped.
    trap: u64,
    /// A call exceeded its deadline.
    deadline: u64,
    /// An instance exceeded its memory limit.
    memory: u64,
    /// An answer was invalid.
    verdict: u64,
    /// There was no instance for a call.
    instance: u64,
}

/// A difference between the answers of the live chain and a candidate.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = AnswerDifference)]
pub struct AnswerDifferenceView {
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

/// A question on which a plugin version failed.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = FaultExample)]
pub struct FaultExampleView {
    /// Time of the fault, milliseconds since the epoch.
    pub at: u64,
    /// The kind of fault: `trap`, `deadline`, `memory`, `verdict` or `instance`.
    #[schema(value_type = PluginFaultKindSchema, inline)]
    pub kind: String,
    /// The fault, for people.
    pub what: String,
    /// The question, with masked numbers.
    pub question: String,
    /// The message id; null if the question is not about one message, or the message was refused.
    #[schema(required)]
    pub message: Option<String>,
}

/// A plugin version with faults since the start of the daemon.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = FaultyVersion)]
pub struct FaultyVersionView {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// Faults since the start of the daemon.
    pub faults: u64,
    /// The most recent faults, newest first.
    pub examples: Vec<FaultExampleView>,
}

/// The comparison of a candidate in shadow mode.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Comparison)]
pub struct ComparisonView {
    /// Questions that both chains answered.
    pub compared: u64,
    /// Questions with the same answer.
    pub same: u64,
    /// Questions with different answers.
    pub different: u64,
    /// Questions not compared because the candidate was too slow.
    pub skipped: u64,
    /// The differences, most frequent first.
    pub differences: Vec<AnswerDifferenceView>,
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
    #[schema(nullable = false)]
    pub comparison: Option<ComparisonView>,
}

/// An event of a hook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = HookEvent)]
pub struct HookEventView {
    /// Time of the event, milliseconds since the epoch.
    pub at: u64,
    /// The kind of event, for programs.
    pub kind: String,
    /// Details of the event.
    pub what: String,
}

/// A hook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = HookState)]
pub struct HookStateView {
    /// Its name.
    #[schema(value_type = HookSchema, inline)]
    pub hook: String,
    /// The live chain.
    pub live: BindingRecordView,
    /// Counts of the live plugins.
    pub counts: Vec<PluginCountsView>,
    /// The candidate.
    #[schema(nullable = false)]
    pub candidate: Option<CandidateStateView>,
    /// Events, newest first.
    pub events: Vec<HookEventView>,
    /// Plugin versions with faults since the start of the daemon, the most recent fault first. Includes versions that were
    /// rolled back automatically.
    pub faults: Vec<FaultyVersionView>,
    /// Unknown names in the live policies; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownReferenceView>,
    /// Earlier chains, newest first; only in the answer for a single hook.
    #[schema(nullable = false)]
    pub history: Option<Vec<BindingRecordView>>,
}

/// A replay: an [`ActivationRequest`] with the messages to replay.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReplayRequest {
    /// The hook to replay; default: router.
    #[schema(nullable = false)]
    pub hook: Option<ReplayHook>,
    /// Messages accepted at or after this time, such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    pub from: Option<TimeValue>,
    /// Messages accepted before this time.
    pub until: Option<TimeValue>,
    /// Maximum number of messages, from the oldest on.
    #[schema(minimum = 1)]
    pub limit: Option<u64>,
    /// Only this number of newest messages, without DLRs of the appliance.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Number of threads; default: the number of CPUs.
    #[schema(minimum = 1)]
    pub threads: Option<u64>,
    /// The candidate.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: ActivationRequest,
}

/// Hooks that a replay supports.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayHook {
    /// The router.
    Router,
    /// The biller.
    Biller,
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ReplayProgress)]
pub struct ReplayProgressView {
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
    pub state: String,
    /// The hook.
    #[schema(value_type = HookSchema, inline)]
    pub hook: String,
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
    pub progress: ReplayProgressView,
    /// The report: differing verdicts, with examples and prices; null until the replay has ended. Only in the answer for a
    /// single replay.
    #[schema(value_type = Option<ReplayReport>)]
    pub report: Option<serde_json::Value>,
}

/// How a table is searched.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = TableKind)]
pub enum TableKindView {
    /// By the exact key.
    Exact,
    /// By the longest key that is a prefix of the number.
    Prefix,
}

/// The result of filling a table.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct TableFillResult {
    /// The match of keys: exact or longest prefix.
    pub kind: TableKindView,
    /// Number of keys.
    pub rows: u64,
    /// Memory in octets.
    pub octets: u64,
}

/// A lookup table.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Table)]
pub struct TableView {
    /// Its name.
    pub name: String,
    /// The match of keys: exact or longest prefix.
    pub kind: TableKindView,
    /// Number of keys.
    pub rows: u64,
    /// Memory in octets.
    pub octets: u64,
}

/// The result of a lookup.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TableLookUp)]
pub struct TableLookUpView {
    /// The value of the exact key; null if there is none.
    #[schema(required)]
    pub exact: Option<String>,
    /// The longest key that is a prefix of the requested one; null if there is none.
    #[schema(required)]
    pub longest: Option<LongestKeyView>,
}

/// The longest key that is a prefix of another.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = LongestKey)]
pub struct LongestKeyView {
    /// Its length.
    pub length: u64,
    /// Its value.
    pub value: String,
}
