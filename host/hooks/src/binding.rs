//! Which plugin version serves a hook, with what, within which limits; and what is kept of it.

use crate::fault::Tolerance;
use capabilities::CounterGrant;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What becomes of a question whose call failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// The message is accepted, held, and asked about again later. (A resolver's number is asked about again later, a
    /// delivery policy's attempt follows the built-in schedule.)
    #[default]
    Hold,
    /// The message is refused with a system error; the submitter may try again.
    Reject,
    /// The message goes to this peer. For routers.
    Peer(String),
    /// As if the plugin were not there: the next router of the chain decides, the built-in schedule holds, the message is
    /// free.
    Pass,
}

/// How instances are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// One instance serves many calls.
    #[default]
    Warm,
    /// Every call gets a fresh one, for those who want no state at all.
    PerCall,
}

/// What a plugin may use beyond its world's ordinary imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grants {
    /// Places that `http` may call: `https://host[:port]/path/prefix`.
    pub http: Vec<String>,
    /// How long one HTTP request may take, in milliseconds.
    pub http_timeout_ms: u64,
    /// Octets that one HTTP answer may have.
    pub http_answer: usize,
    /// Octets that the plugin may keep in `kv`; 0: none.
    pub kv: u64,
    /// The appliance's tables that it may open.
    pub tables: Vec<String>,
    /// It may ask the home location register.
    pub hlr: bool,
    /// Guests of other languages may draw random numbers; otherwise they get a fixed sequence.
    pub random: bool,
    /// Counters that are durable and count calendar periods. All other counters are in memory, over sliding windows. (Left out
    /// where there are none, so that a release that does not know them reads the bindings.)
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterGrant>,
}

impl Grants {
    /// Of the capabilities that a component imports, those of which nothing is granted.
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

/// Which plugin version serves the hook, with which policy document, within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Binding {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// All of the component's SHA-256, in hexadecimal digits: set when it is activated. Empty in bindings of before, which
    /// hold to the version alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The policy document.
    #[serde(default)]
    pub policy: String,
    /// What becomes of a question whose call failed.
    #[serde(default)]
    pub on_fault: OnFault,
    /// Octets of memory that one instance may have.
    #[serde(default = "default_memory")]
    pub memory: usize,
    /// How long a call may run. Time in which its thread waits, for a processor or for the host, does not count.
    #[serde(default = "default_deadline", with = "milliseconds", rename = "deadline-ms")]
    pub deadline: Duration,
    /// Rows that its own tables may have.
    #[serde(default = "default_rows")]
    pub table_rows: usize,
    /// How instances are used.
    #[serde(default)]
    pub instance: InstanceUse,
    /// What it may use beyond the ordinary.
    #[serde(default)]
    pub grants: Grants,
    /// How many faults it may have before it is taken back by itself.
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

/// How a chain came to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// An admin activated it.
    #[default]
    Activated,
    /// An admin made the candidate live.
    Promoted,
    /// An admin went back to it.
    RolledBack,
    /// The chain after it had too many faults.
    RolledBackByItself,
    /// An admin unbound the hook.
    Unbound,
}

/// One entry of the history: a chain that was live from some time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BindingRecord {
    /// Counts the changes of this hook, from 1.
    #[serde(default)]
    pub serial: u64,
    /// Since when.
    pub since: Timestamp,
    /// The plugins, in the order in which they are asked. Only routers may be more than one.
    pub chain: Vec<Binding>,
    /// How it came to be live.
    #[serde(default)]
    pub how: How,
    /// Why it was taken back by itself; such a chain is not gone back to any more. Who wants it all the same activates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condemned: Option<String>,
}

/// How a candidate is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum Trying {
    /// It is asked as well; its answers are compared, and not used.
    Shadow,
    /// It decides a share of the traffic.
    Canary {
        /// Hundredths of a percent of all destinations, by a stable hash: 1 to 10,000.
        share: u16,
    },
}

/// A chain on trial beside the live one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateRecord {
    /// Since when.
    pub since: Timestamp,
    /// How it is tried.
    #[serde(flatten)]
    pub trying: Trying,
    /// What would be live.
    pub chain: Vec<Binding>,
}

/// Something that an admin will want to know of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookEvent {
    /// When.
    pub at: Timestamp,
    /// What, in a word: `activated`, `candidate`, `candidate-ended`, `candidate-faulty`, `promoted`, `rolled-back`,
    /// `rolled-back-by-itself`, `faulty` (it serves on: there is nothing to go back to; told once a minute), `unbound`.
    pub kind: String,
    /// The rest.
    pub what: String,
}
