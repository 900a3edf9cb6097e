//! Bindings: which plugin version serves a hook, with which policy, limits and grants.

use crate::fault::Tolerance;
use capabilities::CounterGrant;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What happens to a question whose call failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// The message is accepted and held, and the router is asked again later. (For a resolver: the number is resolved
    /// again later. For a delivery policy: the built-in schedule applies.)
    #[default]
    Hold,
    /// The message is refused with a system error; the submitter may try again.
    Reject,
    /// The message goes to this peer. For routers.
    Peer(String),
    /// As if there were no such plugin: the next router of the chain decides, the built-in schedule applies, the
    /// message is free.
    Pass,
}

/// The use of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// One instance serves many calls.
    #[default]
    Warm,
    /// Every call gets a fresh instance, for plugins that must keep no state.
    PerCall,
}

/// Grants: what a plugin may use beyond the ordinary imports of its world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grants {
    /// URL prefixes that `http` may call: `https://host[:port]/path/prefix`.
    pub http: Vec<String>,
    /// Timeout of one HTTP request, in milliseconds.
    pub http_timeout_ms: u64,
    /// Maximum size of one HTTP response, in octets.
    pub http_answer: usize,
    /// Octets that the plugin may store in `kv`; 0: none.
    pub kv: u64,
    /// The appliance tables that it may open.
    pub tables: Vec<String>,
    /// Whether it may query the home location register.
    pub hlr: bool,
    /// Whether guests in other languages get random numbers; otherwise they get a fixed sequence.
    pub random: bool,
    /// Durable counters over calendar periods. All other counters are in memory, over sliding windows. (Not serialized
    /// if empty, so that a release without this field can read the bindings.)
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterGrant>,
}

impl Grants {
    /// The capabilities that a component imports without any grant.
    pub(crate) fn missing(&self, imports: &[String]) -> Vec<&'static str> {
        let granted = [("http", !self.http.is_empty()), ("kv", self.kv > 0), ("hlr", self.hlr)];
        let imported = |interface: &str| {
            imports.iter().any(|name| {
                name.strip_prefix("switchyard:hooks/").and_then(|rest| rest.split('@').next())
                    == Some(interface)
            })
        };
        granted
            .into_iter()
            .filter(|(name, granted)| !granted && imported(name))
            .map(|(name, _)| name)
            .collect()
    }
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            http: Vec::new(),
            http_timeout_ms: 2_000,
            http_answer: 256 << 10,
            kv: 0,
            tables: Vec::new(),
            hlr: false,
            random: false,
            counters: Vec::new(),
        }
    }
}

/// A binding: which plugin version serves the hook, with which policy document, within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Binding {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The full SHA-256 digest of the component, in hexadecimal: set on activation. Empty in bindings of earlier
    /// releases, which name the version alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The policy document.
    #[serde(default)]
    pub policy: String,
    /// What happens to a question whose call failed.
    #[serde(default)]
    pub on_fault: OnFault,
    /// Maximum memory of one instance, in octets.
    #[serde(default = "default_memory")]
    pub memory: usize,
    /// Maximum running time of a call. Time in which its thread waits, for a processor or for the host, does not count.
    #[serde(default = "default_deadline", with = "milliseconds", rename = "deadline-ms")]
    pub deadline: Duration,
    /// Maximum number of rows in the plugin's own tables.
    #[serde(default = "default_rows")]
    pub table_rows: usize,
    /// The use of instances.
    #[serde(default)]
    pub instance: InstanceUse,
    /// Grants beyond the ordinary imports.
    #[serde(default)]
    pub grants: Grants,
    /// Fault tolerance before an automatic rollback.
    #[serde(default)]
    pub tolerance: Tolerance,
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

impl Binding {
    /// A binding with the default limits.
    #[must_use]
    pub fn new(plugin: &str, version: &str, policy: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            sha256: String::new(),
            policy: policy.to_owned(),
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

/// How a chain became live.
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

/// An entry of the binding history: a chain that became live at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BindingRecord {
    /// Number of the change of this hook, from 1.
    #[serde(default)]
    pub serial: u64,
    /// Start time.
    pub since: Timestamp,
    /// The plugins, in the order of evaluation. Only routers may be more than one.
    pub chain: Vec<Binding>,
    /// How the chain became live.
    #[serde(default, rename = "how")]
    pub change: BindingChange,
    /// The reason of the automatic rollback. Later rollbacks skip such a chain; an admin may activate it again.
    #[serde(default, rename = "condemned", skip_serializing_if = "Option::is_none")]
    pub rollback_reason: Option<String>,
}

/// The mode of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum TrialMode {
    /// The candidate is asked too; its answers are compared but not used.
    Shadow,
    /// The candidate decides a share of the traffic.
    Canary {
        /// Share of all destinations in hundredths of a percent, chosen by a stable hash: 1 to 10,000.
        share: u16,
    },
}

/// A candidate chain on trial beside the live one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateRecord {
    /// Start time.
    pub since: Timestamp,
    /// The mode of the trial.
    #[serde(flatten)]
    pub mode: TrialMode,
    /// The candidate chain.
    pub chain: Vec<Binding>,
}

/// An event of a hook, for the admin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookEvent {
    /// Time of the event.
    pub at: Timestamp,
    /// The kind: `activated`, `candidate`, `candidate-ended`, `candidate-faulty`, `promoted`, `rolled-back`,
    /// `rolled-back-by-itself`, `faulty` (the plugin keeps serving because there is nothing to roll back to; reported
    /// once a minute), `unbound`.
    pub kind: String,
    /// Details.
    pub what: String,
}
