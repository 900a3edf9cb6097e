//! `[plugins]` and the initial bindings of hooks.

use super::plugin_sources::PluginSource;
use super::unique_names::check_unique;
use capabilities::{CounterGrant, CounterWindow, DnsGrant, QualityGrant};
use configuration::{KeyFormat, Keys, Section, Shape};
use hooks::{Binding, Grants, InstanceUse, LookupCacheOptions, OnFault, Tolerance, Trust, TrustedKey};
use model::Hook;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// The initial binding of a hook.
#[derive(Debug, Clone)]
pub(crate) struct FirstBinding {
    pub(crate) hook: Hook,
    pub(crate) component: Option<PathBuf>,
    pub(crate) policy: Option<PathBuf>,
    /// Limits and grants; the version and the policy come from the files.
    pub(crate) binding: Binding,
}

/// `[plugins]`: settings shared by all plugins.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::check)]
pub(crate) struct PluginKeys {
    /// Public keys of trusted authors, by name, in Base64.
    #[key(format = TrustedKeys)]
    trusted_keys: Vec<TrustedKey>,
    /// Rejects plugins that are not signed with a trusted key.
    #[key(default = false)]
    require_signature: bool,
    /// Maximum memory of a plugin instance.
    #[key(size, default = "256MiB")]
    pub(crate) memory: usize,
    /// Maximum number of running instances.
    #[key(range = 8..=4_096, default = 256)]
    pub(crate) instances: u32,
    /// Number of threads that call resolvers.
    #[key(range = 1..=256, default = 16)]
    pub(crate) resolver_threads: usize,
    /// Number of threads that call lookups.
    #[key(range = 1..=256, default = 16)]
    pub(crate) lookup_threads: usize,
    /// Registries and folders from which the appliance pulls plugins.
    #[key(
        named,
        default_as = "none",
        live = "applies to the next pull",
        added = "plugins can be pulled from it",
        removed = "plugins that were pulled from it stay"
    )]
    pub(crate) sources: Vec<PluginSource>,
}

impl PluginKeys {
    fn check(&mut self, section: &Section<'_>) {
        if self.require_signature && self.trusted_keys.is_empty() {
            let what = "needs a key in trusted-keys; otherwise all plugins would be rejected";
            section.error("require-signature", what);
        }
        let names = self.sources.iter().map(|source| &*source.name);
        check_unique(&section.sections("sources"), names, "source");
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust { keys: self.trusted_keys.clone(), required: self.require_signature }
    }
}

/// Public keys by name.
struct TrustedKeys;

impl KeyFormat<Vec<TrustedKey>> for TrustedKeys {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<Vec<TrustedKey>> {
        let table = section.section(key);
        let report = |error: hooks::HookError| section.error(key, error.to_string());
        let keys = table.pairs().into_iter();
        Some(keys.filter_map(|(name, text)| TrustedKey::new(name, text).map_err(report).ok()).collect())
    }

    fn shape(&self) -> Shape {
        Shape::Map(Box::new(Shape::Value("string", json!({ "type": "string" }))))
    }
}

/// `[home]`: the home network.
#[derive(Debug, Clone, Keys)]
pub(crate) struct HomeKeys {
    /// The peer that serves the home network's subscribers.
    #[key(default_as = "the only `[[gsm]]`", reference = "peer")]
    pub(crate) peer: Option<String>,
}

/// `[router]`: the initial binding of the router.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "the routing of each message reads it without a lock")]
pub(crate) struct RouterKeys {
    #[key(flatten)]
    pub(super) binding: BindingKeys,
    /// How long a message is held after a router fault.
    #[key(default = "30s")]
    pub(crate) hold: Duration,
    /// Sends all messages to this peer without calling a router; for benchmarks.
    #[key(was = "native", reference = "peer")]
    pub(crate) static_peer: Option<String>,
}

/// The treatment of a message whose number could not be looked up in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLookupFailure {
    /// The message is routed without attributes of the number.
    Route,
    /// The message is rejected.
    Reject,
}

const LOOKUP_FAILURES: &[(&str, OnLookupFailure, &str)] = &[
    ("route", OnLookupFailure::Route, "The message is routed without attributes of the number."),
    ("reject", OnLookupFailure::Reject, "The message ends as rejected."),
];

/// `[lookup]`: the initial binding of the lookup, and the settings of all lookups.
#[derive(Debug, Clone, Keys)]
#[keys(restart = "the engine and the cache of answers are created at the start", check = Self::check)]
pub(crate) struct LookupKeys {
    #[key(flatten)]
    pub(super) binding: BindingKeys,
    /// How long a message waits for the lookup of its number. Failed lookups are repeated within this time.
    #[key(default = "2s")]
    pub(crate) timeout: Duration,
    /// Delay before a failed lookup is repeated.
    #[key(default = "250ms")]
    pub(crate) retry_after: Duration,
    /// The treatment of a message without an answer.
    #[key(words = LOOKUP_FAILURES, default = "route")]
    pub(crate) on_failure: OnLookupFailure,
    /// Maximum number of cached answers; 0 disables the cache. A million answers take about 300 MiB.
    #[key(range = 0..=100_000_000, default = 1_000_000)]
    cache_entries: usize,
    /// Minimum time for which an answer is cached, even if its plugin gives a shorter one.
    #[key(default = "1s")]
    min_lifetime: Duration,
    /// Maximum time for which an answer is cached.
    #[key(default = "24h")]
    max_lifetime: Duration,
}

impl LookupKeys {
    fn check(&mut self, section: &Section<'_>) {
        if self.min_lifetime > self.max_lifetime {
            section.error("min-lifetime", "is longer than max-lifetime");
        }
    }

    pub(crate) fn cache(&self) -> LookupCacheOptions {
        LookupCacheOptions {
            entries: self.cache_entries,
            min_lifetime: self.min_lifetime,
            max_lifetime: self.max_lifetime,
        }
    }
}

const INSTANCE_USES: &[(&str, InstanceUse, &str)] = &[
    ("warm", InstanceUse::Warm, "An instance serves many calls."),
    ("per-call", InstanceUse::PerCall, "An instance serves one call."),
];

/// The initial binding of a hook.
#[derive(Debug, Clone, Keys)]
#[keys(live = "none: it applies to the first start only; change bindings at /v1/hooks")]
pub(crate) struct BindingKeys {
    #[key(flatten)]
    plugin: InitialPlugin,
    /// The reaction to a fault: `hold`, `reject`, `pass` or, for a router, the name of a peer.
    #[key(default = "hold")]
    on_fault: String,
}

/// The plugin of an initial binding.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "none: it applies to the first start only; change bindings at /v1/hooks")]
pub(crate) struct InitialPlugin {
    /// The plugin's name.
    #[key(default_as = "the default plugin of the hook")]
    plugin: Option<String>,
    /// The plugin's component file.
    #[key(existing)]
    component: Option<PathBuf>,
    /// The policy document passed to the plugin.
    #[key(existing)]
    policy: Option<PathBuf>,
    /// Maximum memory of an instance.
    #[key(size, default = "16MiB")]
    memory: usize,
    /// Maximum running time of one call, in milliseconds.
    #[key(range = 1..=10_000, default = 20)]
    deadline_ms: u64,
    /// Whether an instance is reused.
    #[key(words = INSTANCE_USES, default = "warm")]
    instance: InstanceUse,
    /// The plugin's grants.
    #[key(default_as = "none")]
    grants: GrantKeys,
    /// The number of faults after which the previous binding is restored.
    tolerance: ToleranceKeys,
}

impl BindingKeys {
    /// The binding of a hook, whose section has these keys.
    pub(super) fn first_binding(&self, hook: Hook, section: &Section<'_>) -> FirstBinding {
        let on_fault = match &*self.on_fault {
            "hold" => OnFault::Hold,
            "reject" => OnFault::Reject,
            "pass" => OnFault::Pass,
            peer if hook == Hook::Router => OnFault::Peer(peer.to_owned()),
            other => {
                section.invalid("on-fault", format!("is {other:?}"), "hold, reject or pass");
                OnFault::Hold
            }
        };
        self.plugin.first_binding(hook, on_fault)
    }
}

impl InitialPlugin {
    /// The binding of a hook, with this reaction to faults.
    pub(super) fn first_binding(&self, hook: Hook, on_fault: OnFault) -> FirstBinding {
        let plugin = match hook {
            Hook::Screen => "firewall",
            Hook::Lookup => "number-portability",
            Hook::Router => "prefix-router",
            Hook::Resolver => "table-resolver",
            Hook::DeliveryPolicy => "retry-ladder",
            Hook::Receipt => "second-chance",
            Hook::Biller => "prepaid",
            Hook::Peer => "http-peer",
            Hook::FrontEnd => "kannel-front-end",
        };
        // Resolvers and billers may wait for I/O; their own running time is still short.
        let binding = Binding {
            on_fault,
            memory: self.memory,
            deadline: Duration::from_millis(self.deadline_ms),
            instance: self.instance,
            grants: self.grants.grants(),
            tolerance: Tolerance { faults: self.tolerance.faults, window_ms: millis(self.tolerance.window) },
            ..Binding::new(self.plugin.as_deref().unwrap_or(plugin), "", "")
        };
        FirstBinding { hook, component: self.component.clone(), policy: self.policy.clone(), binding }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The grants of a plugin.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
struct GrantKeys {
    /// Allowed URL prefixes for HTTP requests.
    http: Vec<String>,
    /// Maximum duration of an HTTP request.
    #[key(default = "2s")]
    http_timeout: Duration,
    /// Maximum size of an HTTP response.
    #[key(size, default = "256KiB", was = "http-answer")]
    http_response_limit: usize,
    /// Maximum size of its durable key-value store.
    #[key(size, default = "0")]
    kv: u64,
    /// Lookup tables that the plugin may read.
    #[key(reference = "table")]
    tables: Vec<String>,
    /// Whether the plugin may query the HLR.
    #[key(default = false)]
    hlr: bool,
    /// The DNS queries that the plugin may send.
    #[key(default_as = "none")]
    dns: Option<DnsKeys>,
    /// Whether the plugin may use random numbers.
    #[key(default = false)]
    random: bool,
    /// The plugin's durable counters. Its other counters are kept in memory.
    counters: Vec<CounterKeys>,
    /// The figures of the capability `quality`.
    #[key(default_as = "whole peers, over five minutes")]
    quality: Option<QualityKeys>,
}

impl GrantKeys {
    fn check(&mut self, section: &Section<'_>) {
        // A missing name is already reported.
        if self.counters.iter().all(|counter| !counter.name.is_empty())
            && let Err(error) = capabilities::check_counter_grants(&self.grants().counters)
        {
            section.error("counters", error.to_string());
        }
        if let Some(grant) = &self.grants().dns
            && let Err(error) = capabilities::check_dns_grant(grant)
        {
            section.error("dns", error.to_string());
        }
        if let Some(grant) = &self.grants().quality
            && let Err(error) = capabilities::check_quality_grant(grant)
        {
            section.error("quality", error.to_string());
        }
    }

    fn grants(&self) -> Grants {
        let counters = self.counters.iter().map(|counter| CounterGrant {
            name: counter.name.clone(),
            window: counter.window.unwrap_or(CounterWindow::Day),
            zone: counter.zone.clone(),
        });
        Grants {
            http: self.http.clone(),
            http_timeout_ms: millis(self.http_timeout),
            http_answer: self.http_response_limit,
            kv: self.kv,
            tables: self.tables.clone(),
            hlr: self.hlr,
            random: self.random,
            dns: self.dns.as_ref().map(|dns| DnsGrant {
                servers: dns.servers.clone(),
                zones: dns.zones.clone(),
                timeout_ms: millis(dns.timeout),
            }),
            counters: counters.collect(),
            quality: self.quality.as_ref().map(|quality| QualityGrant {
                window_ms: quality.window_ms,
                digits: quality.digits.clone(),
                attributes: quality.attributes.clone(),
            }),
        }
    }
}

/// The DNS queries that a plugin may send.
#[derive(Debug, Clone, PartialEq, Keys)]
struct DnsKeys {
    /// The DNS servers, queried in order until one answers: IP addresses, with a port if it is not 53.
    servers: Vec<String>,
    /// The permitted zones, including all names below them.
    zones: Vec<String>,
    /// Maximum time per server.
    #[key(default = "1s")]
    timeout: Duration,
}

const COUNTER_WINDOWS: &[(&str, CounterWindow, &str)] = &[
    ("hour", CounterWindow::Hour, "A full hour."),
    ("day", CounterWindow::Day, "A day, from midnight to midnight."),
    ("month", CounterWindow::Month, "A calendar month."),
];

/// A durable counter.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
struct CounterKeys {
    /// The name that the plugin uses.
    #[key(example = "daily")]
    name: String,
    /// The period of the counter.
    #[key(words = COUNTER_WINDOWS, required)]
    window: Option<CounterWindow>,
    /// IANA time zone of the period.
    #[key(default = "UTC")]
    zone: String,
}

impl CounterKeys {
    fn check(&mut self, section: &Section<'_>) {
        if !section.has("window") {
            section.invalid("window", "is missing", "hour, day or month");
        }
    }
}

/// The figures of the capability `quality`, which describe the quality of peers.
#[derive(Debug, Clone, PartialEq, Keys)]
struct QualityKeys {
    /// The sliding window of all figures, in milliseconds.
    #[key(range = 10_000..=86_400_000, default = 300_000)]
    window_ms: u64,
    /// Numbers of leading digits of the destination (1 to 8) by which figures are grouped; up to four.
    digits: Vec<u8>,
    /// Attributes of messages by whose values figures are grouped; up to four.
    attributes: Vec<String>,
}

/// The fault tolerance of a plugin.
#[derive(Debug, Clone, PartialEq, Keys)]
struct ToleranceKeys {
    /// Maximum number of faults within `window`; 0: any number.
    #[key(range = 0..=100_000, default = 10)]
    faults: u32,
    /// The window in which faults are counted.
    #[key(default = "10s")]
    window: Duration,
}
