//! `[plugins]` and the initial bindings of hooks.

use super::existing_file;
use capabilities::{CounterGrant, CounterWindow};
use configuration::Section;
use hooks::{Binding, Grants, InstanceUse, OnFault, Tolerance, Trust, TrustedKey};
use model::Hook;
use std::path::{Path, PathBuf};
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

/// Plugin settings and all initial bindings.
#[derive(Debug, Clone)]
pub(crate) struct PluginSettings {
    pub(crate) first_bindings: Vec<FirstBinding>,
    pub(crate) trust: Trust,
    /// How long a message is held after a fault of the router or biller.
    pub(crate) hold: Duration,
    /// A static route that replaces the router, for benchmarks.
    pub(crate) static_peer: Option<String>,
    /// Maximum memory of an instance in octets, and maximum number of instances.
    pub(crate) memory: usize,
    pub(crate) instances: u32,
    /// Number of threads that call resolvers.
    pub(crate) resolver_threads: usize,
    /// The peer that serves the home network's subscribers.
    pub(crate) home: Option<String>,
}

impl PluginSettings {
    pub(crate) fn read(root: &Section<'_>, base: &Path) -> Self {
        let section = root.section("plugins");
        let keys = section.section("trusted-keys");
        let trusted = keys.pairs().into_iter().filter_map(|(name, key)| {
            TrustedKey::new(name, key).map_err(|error| section.error("trusted-keys", error.to_string())).ok()
        });
        let trust = Trust { keys: trusted.collect(), required: section.flag("require-signature", false) };
        if trust.required && trust.keys.is_empty() {
            section.error(
                "require-signature",
                "needs a key in trusted-keys; otherwise all plugins would be rejected",
            );
        }
        let memory = section.size("memory", 256 << 20) as usize;
        let instances = section.number("instances", 256, 8..=4_096) as u32;
        let resolver_threads = section.number("resolver-threads", 16, 1..=256) as usize;
        section.finish();
        let home = root.section("home");
        let home_peer = home.text("peer");
        home.finish();
        let router = root.section("router");
        let static_peer = router.text("static-peer");
        let hold = router.duration("hold", Duration::from_secs(30));
        let names = [
            (Hook::Router, router, "prefix-router"),
            (Hook::Resolver, root.section("resolver"), "table-resolver"),
            (Hook::DeliveryPolicy, root.section("delivery-policy"), "retry-ladder"),
            (Hook::Biller, root.section("biller"), "prepaid"),
        ];
        let first_bindings = names.map(|(hook, section, plugin)| seed(hook, &section, plugin, base));
        Self {
            first_bindings: first_bindings.into_iter().collect(),
            trust,
            hold,
            static_peer,
            memory,
            instances,
            resolver_threads,
            home: home_peer,
        }
    }

    /// All peer names that bindings refer to: section, key and name.
    pub(crate) fn peers(&self) -> Vec<(&'static str, &'static str, &str)> {
        let faults = self.first_bindings.iter().filter_map(|seed| match &seed.binding.on_fault {
            OnFault::Peer(peer) => Some((seed.hook.name(), "on-fault", peer.as_str())),
            OnFault::Hold | OnFault::Reject | OnFault::Pass => None,
        });
        let static_peer = self.static_peer.as_deref().map(|peer| ("router", "static-peer", peer));
        faults.chain(static_peer).chain(self.home.as_deref().map(|peer| ("home", "peer", peer))).collect()
    }
}

fn seed(hook: Hook, section: &Section<'_>, plugin: &str, base: &Path) -> FirstBinding {
    let component = section.text("component").map(|path| existing_file(section, "component", base, &path));
    let policy = section.text("policy").map(|path| existing_file(section, "policy", base, &path));
    let on_fault = match section.text("on-fault").as_deref() {
        None | Some("hold") => OnFault::Hold,
        Some("reject") => OnFault::Reject,
        Some("pass") => OnFault::Pass,
        Some(peer) if hook == Hook::Router => OnFault::Peer(peer.to_owned()),
        Some(other) => {
            section.invalid("on-fault", format!("is {other:?}"), "hold, reject or pass");
            OnFault::Hold
        }
    };
    let plugin = section.text("plugin").unwrap_or_else(|| plugin.to_owned());
    // Resolvers and billers may wait for I/O; their own running time is still short.
    let binding = Binding {
        on_fault,
        memory: section.size("memory", 16 << 20) as usize,
        deadline: Duration::from_millis(section.number("deadline-ms", 20, 1..=10_000)),
        instance: section.choice(
            "instance",
            InstanceUse::Warm,
            &[("warm", InstanceUse::Warm), ("per-call", InstanceUse::PerCall)],
        ),
        grants: grants(&section.section("grants")),
        tolerance: tolerance(&section.section("tolerance")),
        ..Binding::new(&plugin, "", "")
    };
    section.finish();
    FirstBinding { hook, component, policy, binding }
}

fn grants(section: &Section<'_>) -> Grants {
    let known = Grants::default();
    let timeout = section.duration("http-timeout", Duration::from_millis(known.http_timeout_ms));
    let grants = Grants {
        http: section.texts("http").unwrap_or_default(),
        http_timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(known.http_timeout_ms),
        http_answer: section.size("http-response-limit", known.http_answer as u64) as usize,
        kv: section.size("kv", 0),
        tables: section.texts("tables").unwrap_or_default(),
        hlr: section.flag("hlr", false),
        random: section.flag("random", false),
        counters: counters(section),
    };
    section.finish();
    grants
}

fn counters(section: &Section<'_>) -> Vec<CounterGrant> {
    let counter = |section: &Section<'_>| {
        let grant = CounterGrant {
            name: section.required("name", "\"daily\""),
            window: section.choice("window", CounterWindow::Day, &CounterWindow::ALL),
            zone: section.text("zone").unwrap_or_else(|| "UTC".to_owned()),
        };
        if !section.has("window") {
            section.invalid("window", "is missing", "hour, day or month");
        }
        section.finish();
        grant
    };
    let counters: Vec<CounterGrant> = section.sections("counters").iter().map(counter).collect();
    // A missing name was reported before.
    if counters.iter().all(|counter| !counter.name.is_empty())
        && let Err(error) = capabilities::check_counter_grants(&counters)
    {
        section.error("counters", error.to_string());
    }
    counters
}

fn tolerance(section: &Section<'_>) -> Tolerance {
    let known = Tolerance::default();
    let window = section.duration("window", Duration::from_millis(known.window_ms));
    let tolerance = Tolerance {
        faults: section.number("faults", u64::from(known.faults), 0..=100_000) as u32,
        window_ms: u64::try_from(window.as_millis()).unwrap_or(known.window_ms),
    };
    section.finish();
    tolerance
}
