//! Plugins, hooks, tables and replays.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A plugin version that is kept.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct PluginVersion {
    /// The plugin.
    pub plugin: String,
    /// The first twelve hexadecimal digits of its SHA-256.
    pub version: String,
    /// All of its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Octets of the component.
    pub size: u64,
    /// The hook that it can serve.
    pub hook: String,
    /// The version of the contract that it was built for.
    pub wit: String,
    /// What it imports.
    pub imports: Vec<String>,
    /// The name of the trusted key that signed it.
    #[schema(required)]
    pub signed_by: Option<String>,
}

/// What becomes of a question whose call failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// It is asked again later.
    Hold,
    /// The message is refused; the submitter may try again.
    Reject,
    /// The message goes to this peer. For routers.
    Peer(String),
    /// As if the plugin were not there.
    Pass,
}

/// How instances are used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// One instance serves many calls.
    Warm,
    /// Every call gets a fresh one.
    PerCall,
}

/// What a plugin may use beyond its world's ordinary imports.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grants {
    /// Places that `http` may call: `https://host[:port]/path/prefix`.
    #[schema(required = false)]
    pub http: Vec<String>,
    /// How long one HTTP request may take, in milliseconds.
    #[schema(required = false)]
    pub http_timeout_ms: u64,
    /// Octets that one HTTP answer may have.
    #[schema(required = false)]
    pub http_answer: u64,
    /// Octets that the plugin may keep in `kv`; 0: none.
    #[schema(required = false)]
    pub kv: u64,
    /// The appliance's tables that it may open.
    #[schema(required = false)]
    pub tables: Vec<String>,
    /// It may ask the home location register.
    #[schema(required = false)]
    pub hlr: bool,
    /// Guests of other languages may draw random numbers.
    #[schema(required = false)]
    pub random: bool,
    /// Counters that are durable and count calendar periods; left out where there are none. All other counters are in
    /// memory, over sliding windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub counters: Vec<CounterGrant>,
}

/// A durable counter.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CounterGrant {
    /// The name that the plugin calls it by; no name is there twice.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// The period that it counts: it begins at 0 with each new one.
    pub window: CounterWindow,
    /// The time zone of the period, by its name in the IANA database, such as `Europe/Berlin`; `UTC` unless it is said.
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
pub enum CounterWindow {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first day of a month to that of the next.
    Month,
}

/// How many faults a plugin may have before it is taken back by itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tolerance {
    /// So many faults ...
    pub faults: u32,
    /// ... within so many milliseconds. 0 faults: never.
    pub window_ms: u64,
}

/// Which plugin version serves a hook, with which policy document, within which limits.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Binding {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// All of the component's SHA-256, in hexadecimal digits; left out where it was activated before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sha256: Option<String>,
    /// The policy document.
    pub policy: String,
    /// What becomes of a question whose call failed.
    pub on_fault: OnFault,
    /// Octets of memory that one instance may have.
    pub memory: u64,
    /// How long a call may run, in milliseconds.
    pub deadline_ms: u64,
    /// Rows that its own tables may have.
    pub table_rows: u64,
    /// How instances are used.
    pub instance: InstanceUse,
    /// What it may use beyond the ordinary.
    pub grants: Grants,
    /// How many faults it may have before it is taken back by itself.
    pub tolerance: Tolerance,
}

/// A binding as it is asked for: what is left out is as in the live binding of that plugin, or as is usual.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantedBinding {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    #[schema(nullable = false)]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    pub policy: Option<String>,
    /// What becomes of a question whose call failed.
    #[schema(nullable = false)]
    pub on_fault: Option<OnFault>,
    /// Octets of memory that one instance may have.
    #[schema(nullable = false)]
    pub memory: Option<u64>,
    /// How long a call may run, in milliseconds.
    #[schema(nullable = false)]
    pub deadline_ms: Option<u64>,
    /// Rows that its own tables may have.
    #[schema(nullable = false)]
    pub table_rows: Option<u64>,
    /// How instances are used.
    #[schema(nullable = false)]
    pub instance: Option<InstanceUse>,
    /// What it may use beyond the ordinary.
    #[schema(nullable = false)]
    pub grants: Option<Grants>,
    /// How many faults it may have before it is taken back by itself.
    #[schema(nullable = false)]
    pub tolerance: Option<Tolerance>,
}

/// What is to be live: one binding, or a chain.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Activation {
    /// All of it, in the order in which they are asked; nothing but `expected` stands beside it.
    pub chain: Option<Vec<WantedBinding>>,
    /// The place of the one binding in the live chain; without it, it is alone.
    pub position: Option<u64>,
    /// The serial of the change that was seen last: if there was another since, nothing is done (409).
    pub expected: Option<u64>,
    /// Also where a policy names peers or pools that do not exist, or a component imports what its binding does not grant.
    /// Without it, such a request is refused (422).
    #[schema(nullable = false)]
    pub force: Option<bool>,
    /// Why, for the audit log.
    #[schema(max_length = 256)]
    pub why: Option<String>,
    /// The plugin.
    #[schema(nullable = false)]
    pub plugin: Option<String>,
    /// Its version.
    #[schema(nullable = false)]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    pub policy: Option<String>,
    /// What becomes of a question whose call failed.
    #[schema(nullable = false)]
    pub on_fault: Option<OnFault>,
    /// Octets of memory that one instance may have.
    #[schema(nullable = false)]
    pub memory: Option<u64>,
    /// How long a call may run, in milliseconds.
    #[schema(nullable = false)]
    pub deadline_ms: Option<u64>,
    /// Rows that its own tables may have.
    #[schema(nullable = false)]
    pub table_rows: Option<u64>,
    /// How instances are used.
    #[schema(nullable = false)]
    pub instance: Option<InstanceUse>,
    /// What it may use beyond the ordinary.
    #[schema(nullable = false)]
    pub grants: Option<Grants>,
    /// How many faults it may have before it is taken back by itself.
    #[schema(nullable = false)]
    pub tolerance: Option<Tolerance>,
}

/// How a candidate is tried.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It is asked as well; its answers are compared, and not used.
    Shadow,
    /// It decides a share of the traffic.
    Canary,
}

/// What is to be on trial: as [`Activation`], and how.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Trial {
    /// How.
    pub mode: Mode,
    /// The share of the traffic, in percent, for a canary.
    #[schema(minimum = 0.01, maximum = 100)]
    pub share: Option<f64>,
    /// What.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: Activation,
}

/// What is to be made live: the candidate.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// The serial of the change that was seen last: if there was another since, nothing is done (409).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Why, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub why: Option<String>,
}

/// Going back to what was live before.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRollback {
    /// Why, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub why: Option<String>,
}

/// A name in the policy of a live plugin that the appliance does not know.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct UnknownReference {
    /// The plugin.
    pub plugin: String,
    /// `peer`, `pool` or `table`.
    pub kind: String,
    /// What the policy names.
    pub name: String,
}

/// A chain that was live from some time on.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct BindingRecord {
    /// Counts the changes of this hook, from 1; 0 when nothing ever was live.
    pub serial: u64,
    /// Since when, milliseconds since the epoch.
    pub since: u64,
    /// The plugins, in the order in which they are asked.
    pub chain: Vec<Binding>,
    /// How it came to be live: `activated`, `promoted`, `rolled-back`, `rolled-back-by-itself`, `unbound`.
    pub how: String,
    /// Why it was taken back by itself; such a chain is not gone back to any more.
    #[schema(nullable = false)]
    pub condemned: Option<String>,
}

/// A chain on trial.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CandidateRecord {
    /// Since when, milliseconds since the epoch.
    pub since: u64,
    /// How it is tried.
    pub mode: Mode,
    /// The share of the traffic, in hundredths of a percent, for a canary.
    #[schema(nullable = false)]
    pub share: Option<u16>,
    /// What would be live.
    pub chain: Vec<Binding>,
}

/// Counts of one plugin version at work.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PluginCounts {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Whether it is the live one.
    pub live: bool,
    /// Calls.
    pub calls: u64,
    /// Faults, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Nanoseconds in all.
    pub nanoseconds: u64,
    /// Log lines that were over the plugin's budget, and left out.
    pub log_lines_left_out: u64,
}

/// What differed between the live chain and a candidate.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Difference {
    /// What was answered.
    pub from: String,
    /// What the candidate would have answered.
    pub to: String,
    /// How often.
    pub count: u64,
    /// Some of the questions, numbers hidden.
    pub samples: Vec<String>,
    /// The ids of their messages, in the same order; null where there is no one message, or it was not accepted.
    pub messages: Vec<Option<String>>,
}

/// A question at which a version failed.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct FaultExample {
    /// When, milliseconds since the epoch.
    pub at: u64,
    /// What kind of fault: `trap`, `deadline`, `memory`, `verdict` or `instance`.
    pub kind: String,
    /// The fault in words.
    pub what: String,
    /// The question, numbers hidden.
    pub question: String,
    /// The id of the message; null where it was not accepted, or the question is not about one message.
    #[schema(required)]
    pub message: Option<String>,
}

/// A version that has failed since the start.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct FaultyVersion {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Faults since the start.
    pub faults: u64,
    /// The last of them, newest first.
    pub examples: Vec<FaultExample>,
}

/// How a candidate in shadow compares.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Comparison {
    /// Questions that both were asked.
    pub compared: u64,
    /// Of these, with the same answer.
    pub same: u64,
    /// With another.
    pub different: u64,
    /// Questions that were not compared because the candidate was too slow.
    pub skipped: u64,
    /// What differed, most frequent first.
    pub differences: Vec<Difference>,
}

/// A candidate, and how it fares.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CandidateState {
    /// What it is.
    #[serde(flatten)]
    pub record: CandidateRecord,
    /// Counts of its plugins.
    pub counts: Vec<PluginCounts>,
    /// Questions that a canary was given.
    pub asked: u64,
    /// Of these, those that it failed and the live chain answered.
    pub failed: u64,
    /// Questions that went past a canary.
    pub passed: u64,
    /// Of a candidate in shadow.
    #[schema(nullable = false)]
    pub comparison: Option<Comparison>,
}

/// Something that happened to a hook.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct HookEvent {
    /// When, milliseconds since the epoch.
    pub at: u64,
    /// What, in a word.
    pub kind: String,
    /// The rest.
    pub what: String,
}

/// A hook.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct HookState {
    /// Its name.
    pub hook: String,
    /// What is live.
    pub live: BindingRecord,
    /// Counts of the live plugins.
    pub counts: Vec<PluginCounts>,
    /// What is on trial.
    #[schema(nullable = false)]
    pub candidate: Option<CandidateState>,
    /// What happened, newest first.
    pub events: Vec<HookEvent>,
    /// Versions that have failed since the start, the last one first; what was taken back by itself among them.
    pub faults: Vec<FaultyVersion>,
    /// Peers and pools that the live policies name and that do not exist; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownReference>,
    /// What was live, newest first; only where one hook is asked for.
    #[schema(nullable = false)]
    pub history: Option<Vec<BindingRecord>>,
}

/// What a replay is to do: as [`Activation`], and over which messages.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WantedReplay {
    /// What is tried; a router where it is left out.
    #[schema(nullable = false)]
    pub hook: Option<ReplayedHook>,
    /// Messages accepted at this time or later: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
    pub from: Option<Moment>,
    /// Messages accepted before this time.
    pub until: Option<Moment>,
    /// At most so many, the oldest.
    #[schema(minimum = 1)]
    pub limit: Option<u64>,
    /// Only the newest so many; receipts of the appliance's own are not counted.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// On so many threads; as many as there are processors otherwise.
    #[schema(minimum = 1)]
    pub threads: Option<u64>,
    /// With what.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: Activation,
}

/// Hooks that decide what is archived.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayedHook {
    /// Where a message goes.
    Router,
    /// What it costs.
    Biller,
}

/// A time: such as 2026-11-20T20:32:25Z, or milliseconds since the epoch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a moment: milliseconds since the epoch, or a text as RFC 3339 has it"
)]
pub enum Moment {
    /// Milliseconds since the epoch.
    Milliseconds(u64),
    /// As RFC 3339 has it.
    #[schema(format = DateTime)]
    Text(String),
}

/// Which replay it is.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ReplayBegun {
    /// Its id.
    pub id: String,
}

/// A plugin version.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct VersionName {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
}

/// How far a replay is.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ReplayProgress {
    /// Messages read so far.
    pub read: u64,
    /// Messages judged so far.
    pub judged: u64,
    /// Of those: the candidate decides otherwise.
    pub different: u64,
    /// Messages in all, at most; null where that is not known yet.
    #[schema(required)]
    pub expected: Option<u64>,
    /// Whether there is a report.
    pub ended: bool,
}

/// A replay.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ReplayState {
    /// Its id.
    pub id: String,
    /// `running`, `done` or `failed`.
    pub state: String,
    /// What is tried.
    pub hook: String,
    /// With which plugins.
    pub plugins: Vec<VersionName>,
    /// From this time on, milliseconds since the epoch.
    #[schema(required)]
    pub from: Option<u64>,
    /// Before this time.
    #[schema(required)]
    pub until: Option<u64>,
    /// At most so many messages, the oldest.
    #[schema(required)]
    pub limit: Option<u64>,
    /// Only the newest so many.
    #[schema(required)]
    pub last: Option<u64>,
    /// When it began, milliseconds since the epoch.
    pub begun: u64,
    /// How far it is.
    pub progress: ReplayProgress,
    /// Which verdicts differ, from what to what, with examples and prices; null until it has ended. Only where one replay is
    /// asked for.
    pub report: Option<serde_json::Value>,
}

/// How a table is searched.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// For exactly the key.
    Exact,
    /// For the longest key that a number begins with.
    Prefix,
}

/// A table that was filled.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct FilledTable {
    /// How it is searched.
    pub kind: TableKind,
    /// How many keys it has.
    pub rows: u64,
    /// Octets of memory.
    pub octets: u64,
}

/// A table.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// How it is searched.
    pub kind: TableKind,
    /// How many keys it has.
    pub rows: u64,
    /// Octets of memory.
    pub octets: u64,
}

/// What a table says of a key.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct LookedUp {
    /// The value of exactly this key.
    #[schema(required)]
    pub exact: Option<String>,
    /// The longest key that it begins with.
    #[schema(required)]
    pub longest: Option<LongestKey>,
}

/// The longest key that another begins with.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct LongestKey {
    /// Its length.
    pub length: u64,
    /// Its value.
    pub value: String,
}
