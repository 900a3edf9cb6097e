//! Bindings of plugins to hooks, and requests that change bindings.
//!
//! The crate `hooks` stores [`BindingRecord`], the types that it contains, and [`crate::HookEvent`] on disk: a field that an
//! earlier release did not write needs a default.

use crate::name_schemas::BindingChangeSchema;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// The treatment of a message whose plugin call fails.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// The plugin is called again later.
    // The message is accepted and held; a resolver resolves the number again later; for a delivery policy, the built-in schedule
    // applies.
    #[default]
    Hold,
    /// The message is refused with a temporary error.
    Reject,
    /// The message goes to this peer. For routers only.
    Peer(String),
    /// The plugin is skipped.
    // The next router of the chain decides, the built-in schedule applies, or the message is free.
    Pass,
}

/// The use of plugin instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// One instance serves many calls.
    #[default]
    Warm,
    /// Every call gets a new instance.
    PerCall,
}

/// Grants of a plugin, beyond the standard imports of its world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grants {
    /// URLs that `http` may call: `https://host[:port]/path/prefix`.
    #[serde(default)]
    pub http: Vec<String>,
    /// Timeout of an HTTP request, in milliseconds.
    #[serde(default = "default_http_timeout")]
    pub http_timeout_ms: u64,
    /// Maximum size of an HTTP response, in octets.
    #[serde(default = "default_http_answer")]
    #[schema(value_type = u64)]
    pub http_answer: usize,
    /// Storage for `kv`, in octets; 0: none.
    #[serde(default)]
    pub kv: u64,
    /// The lookup tables that the plugin may open.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The plugin may query the HLR.
    #[serde(default)]
    pub hlr: bool,
    /// The servers and zones that `dns` may query; omitted: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub dns: Option<DnsGrant>,
    /// Guests in languages with a WASI runtime may draw random numbers.
    #[serde(default)]
    pub random: bool,
    /// Durable counters of calendar periods; omitted if there are none. All other counters are in memory, with sliding windows.
    // Not written if empty, so that a release without this field can read the stored bindings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub counters: Vec<CounterGrant>,
    /// The figures that `quality` returns; omitted: figures of whole peers, over five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub quality: Option<QualityGrant>,
}

fn default_http_timeout() -> u64 {
    2_000
}

fn default_http_answer() -> usize {
    256 << 10
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            http: Vec::new(),
            http_timeout_ms: default_http_timeout(),
            http_answer: default_http_answer(),
            kv: 0,
            tables: Vec::new(),
            hlr: false,
            dns: None,
            random: false,
            counters: Vec::new(),
            quality: None,
        }
    }
}

/// The DNS queries that a plugin may send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DnsGrant {
    /// The servers, queried one after the other until one answers: IP addresses, with a port if it is not 53.
    #[schema(min_items = 1, max_items = 4)]
    pub servers: Vec<String>,
    /// The zones: names in them and below them may be queried.
    #[schema(min_items = 1, max_items = 32)]
    pub zones: Vec<String>,
    /// Timeout of a query to one server, in milliseconds.
    #[serde(default = "default_dns_timeout")]
    #[schema(required = false, minimum = 50, maximum = 30_000)]
    pub timeout_ms: u64,
}

fn default_dns_timeout() -> u64 {
    1_000
}

impl Default for DnsGrant {
    fn default() -> Self {
        Self { servers: Vec::new(), zones: Vec::new(), timeout_ms: default_dns_timeout() }
    }
}

/// The figures that `quality` returns, in addition to figures of whole peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QualityGrant {
    /// The sliding window of all figures, in milliseconds.
    #[serde(default = "default_quality_window")]
    #[schema(required = false, minimum = 10_000, maximum = 86_400_000)]
    pub window_ms: u64,
    /// Figures by the leading digits of the destination: the numbers of digits. Each number gives its own set of figures.
    #[serde(default)]
    #[schema(required = false, max_items = 4)]
    pub digits: Vec<u8>,
    /// Figures by the values of these message attributes.
    #[serde(default)]
    #[schema(required = false, max_items = 4)]
    pub attributes: Vec<String>,
}

fn default_quality_window() -> u64 {
    300_000
}

impl Default for QualityGrant {
    fn default() -> Self {
        Self { window_ms: default_quality_window(), digits: Vec::new(), attributes: Vec::new() }
    }
}

/// A durable counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CounterGrant {
    /// The counter's name, unique within the binding.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// The period: the counter restarts at 0 with each new one.
    pub window: CounterWindow,
    /// The time zone of the period: a name of the IANA database, such as `Europe/Berlin`. Default: `UTC`.
    #[serde(default = "utc")]
    #[schema(required = false)]
    pub zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// The period of a durable counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterWindow {
    /// A calendar hour.
    Hour,
    /// A calendar day.
    Day,
    /// A calendar month.
    Month,
}

impl CounterWindow {
    /// All windows with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("hour", Self::Hour), ("day", Self::Day), ("month", Self::Month)];

    /// Its name, as written in grants.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// The faults after which a plugin is rolled back automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tolerance {
    /// Number of faults; 0: never.
    pub faults: u32,
    /// Window of the faults, in milliseconds.
    pub window_ms: u64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { faults: 10, window_ms: 10_000 }
    }
}

/// A plugin version on a hook, with its policy document and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Binding {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version: the first twelve hexadecimal digits of `sha256`.
    pub version: String,
    /// The component's full SHA-256, in hexadecimal digits. Only a component with this hash is loaded. Omitted only in
    /// history that an earlier release wrote without it, for versions that are no longer stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The policy document.
    #[serde(default)]
    #[schema(required)]
    pub policy: String,
    /// The tenant that it serves, by name: it is called only for messages that accounts of the tenant's branch submit.
    /// Omitted: it serves all messages. For the hook `router` only.
    // Not written if there is none, so that a release without this field can read the stored bindings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant: Option<String>,
    /// Names of peers. For the hook `peer`: the peers that it serves; each `[[plugin-peer]]` has one binding. For a router
    /// of a tenant: the peers to which it may forward.
    // Not written if empty, so that a release without this field can read the stored bindings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// The treatment of a message whose plugin call fails.
    #[serde(default)]
    #[schema(required)]
    pub on_fault: OnFault,
    /// Memory limit of an instance, in octets.
    #[serde(default = "default_memory")]
    #[schema(required, value_type = u64)]
    pub memory: usize,
    /// Deadline of a call, in milliseconds.
    // Time in which the plugin's thread waits for a processor or for the host does not count.
    #[serde(default = "default_deadline", with = "milliseconds", rename = "deadline-ms")]
    #[schema(required, value_type = u64)]
    pub deadline: Duration,
    /// Maximum rows of the plugin's own tables.
    #[serde(default = "default_rows")]
    #[schema(required, value_type = u64)]
    pub table_rows: usize,
    /// The use of plugin instances.
    #[serde(default)]
    #[schema(required)]
    pub instance: InstanceUse,
    /// The grants.
    #[serde(default)]
    #[schema(required)]
    pub grants: Grants,
    /// The faults after which the plugin is rolled back automatically.
    #[serde(default)]
    #[schema(required)]
    pub tolerance: Tolerance,
}

impl Binding {
    /// A binding with the default limits.
    #[must_use]
    pub fn new(plugin: &str, version: &str, policy: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            sha256: String::new(),
            policy: policy.to_owned(),
            tenant: None,
            peers: Vec::new(),
            on_fault: OnFault::default(),
            memory: default_memory(),
            deadline: default_deadline(),
            table_rows: default_rows(),
            instance: InstanceUse::default(),
            grants: Grants::default(),
            tolerance: Tolerance::default(),
        }
    }
}

fn default_memory() -> usize {
    16 << 20
}

fn default_deadline() -> Duration {
    Duration::from_millis(20)
}

fn default_rows() -> usize {
    10_000_000
}

mod milliseconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// The change that made a chain live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingChange {
    /// An admin activated it.
    #[default]
    Activated,
    /// An admin promoted the candidate.
    Promoted,
    /// An admin rolled back to it.
    RolledBack,
    /// The next chain had too many faults and was rolled back automatically.
    #[serde(rename = "rolled-back-by-itself")]
    RolledBackAutomatically,
    /// An admin removed the plugins from the hook.
    Unbound,
}

impl BindingChange {
    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Activated => "activated",
            Self::Promoted => "promoted",
            Self::RolledBack => "rolled-back",
            Self::RolledBackAutomatically => "rolled-back-by-itself",
            Self::Unbound => "unbound",
        }
    }
}

/// A chain in the history of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BindingRecord {
    /// Serial of the change, counted from 1 for each hook; 0 if no chain was ever live.
    #[serde(default)]
    #[schema(required)]
    pub serial: u64,
    /// Start, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub since: Timestamp,
    /// The plugins, in calling order.
    pub chain: Vec<Binding>,
    /// The kind of change: `activated`, `promoted`, `rolled-back`, `rolled-back-by-itself`, `unbound`.
    #[serde(default, rename = "how")]
    #[schema(required, value_type = BindingChangeSchema, inline)]
    pub change: BindingChange,
    /// Reason of the automatic rollback of this chain; `None` if there was none. A rollback does not return to a chain with
    /// a reason.
    #[serde(default, rename = "condemned", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rollback_reason: Option<String>,
}

/// The mode of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = TrialMode)]
pub enum TrialModeView {
    /// The candidate is called too; its answers are compared but not used.
    Shadow,
    /// The candidate decides a share of the traffic.
    Canary,
}

impl TrialModeView {
    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Canary => "canary",
        }
    }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub share: Option<u16>,
    /// The chain of the candidate.
    pub chain: Vec<Binding>,
}

/// A requested binding. Omitted fields are taken from the live binding of the same plugin for the same tenant, or get their defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BindingRequest {
    /// The plugin.
    pub plugin: String,
    /// The plugin's version: its SHA-256 in hexadecimal digits, or a unique prefix of at least 6 digits.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The tenant that it serves, for the hook `router`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// For the hook `peer`: the peers that it serves. For a router of a tenant: the peers to which it may forward.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<String>>,
    /// The treatment of a message whose plugin call fails.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_fault: Option<OnFault>,
    /// Memory limit of an instance, in octets.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Deadline of a call, in milliseconds.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Maximum rows of the plugin's own tables.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_rows: Option<u64>,
    /// The use of plugin instances.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceUse>,
    /// The grants.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// The faults after which the plugin is rolled back automatically.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

/// An activation: one binding, or a chain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ActivationRequest {
    /// The complete chain, in calling order. Only `expected`, `force` and `why` may be given with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<Vec<BindingRequest>>,
    /// The position of the one binding in the live chain. If omitted, the binding replaces the chain, except for bindings of tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The serial of the last change that the client has seen. If the hook was changed since, the request is refused (409).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Activate even if a policy names unknown peers or pools, or a component imports an interface that its binding does not
    /// grant. Otherwise such a request is refused (422).
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Reason for the change, for the audit log.
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The plugin.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The plugin's version: its SHA-256 in hexadecimal digits, or a unique prefix of at least 6 digits.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The policy document.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The tenant that it serves, for the hook `router`. The binding replaces the binding of the same plugin for the same
    /// tenant. If there is none, it becomes the first of the chain. Other bindings stay.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// For the hook `peer`: the peers that it serves. Their previous bindings are replaced; other peers keep theirs. For a
    /// router of a tenant: the peers to which it may forward.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<String>>,
    /// The treatment of a message whose plugin call fails.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_fault: Option<OnFault>,
    /// Memory limit of an instance, in octets.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Deadline of a call, in milliseconds.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Maximum rows of the plugin's own tables.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_rows: Option<u64>,
    /// The use of plugin instances.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceUse>,
    /// The grants.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
    /// The faults after which the plugin is rolled back automatically.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

impl ActivationRequest {
    /// An activation of this plugin alone.
    #[must_use]
    pub fn of(plugin: &str, version: &str, policy: &str) -> Self {
        Self {
            plugin: Some(plugin.to_owned()),
            version: Some(version.to_owned()),
            policy: Some(policy.to_owned()),
            ..Self::default()
        }
    }
}

/// A trial: an [`ActivationRequest`] with a mode.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialRequest {
    /// The mode.
    pub mode: TrialModeView,
    /// The share of the traffic for a canary, in percent.
    #[schema(minimum = 0.01, maximum = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
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
