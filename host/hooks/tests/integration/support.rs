//! Hooks with real guests, in a temporary folder.

use arc_swap::ArcSwap;
use bytes::Bytes;
use capabilities::{
    CounterOptions, Counters, DnsClient, DurableCounters, Fetch, FetchFailure, FetchRequest, FetchResponse,
    HttpGrants, LogBudgets, MemoryKvStore, PeerQuality, TableHlr, TableStore, TableStoreOptions,
};
use hooks::{
    AccountAttributes, ActivationConditions, Binding, Hooks, HooksOptions, HostServices, PeerSecrets,
    PeerSnapshots, PoolSnapshots, TenantLines,
};
use model::{Address, Directory, Message, PeerId, PluginVersion};
use model::{RoutingDecision, Text, Timestamp, Verdict};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Activates a component even if not all of its imports are granted.
pub(crate) const FORCED: ActivationConditions = ActivationConditions { expected: None, force: true };

/// A component that `cargo xtask` has built. A missing guest fails the test instead of skipping it.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let path = testkit::built::plugins().unwrap().join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("guest {}: {error}", path.display()))
}

/// The router that misbehaves as its mood says on messages from "bad" and to numbers that begin with 666. Each mood is a
/// different version, so that a chain can distinguish them.
pub(crate) fn moody_router(mood: &str) -> Vec<u8> {
    testkit::guest::variant(&guest("test_moody_router"), mood)
}

/// Fetches nothing; tests of HTTP replace it.
pub(crate) struct OfflineFetch;

impl Fetch for OfflineFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, _: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        Err(FetchFailure::Unreachable("offline".to_owned()))
    }
}

/// The host services for tests.
pub(crate) fn services(folder: &Path) -> HostServices {
    let tables = Arc::new(TableStore::open(&folder.join("tables"), TableStoreOptions::default()).unwrap());
    HostServices {
        peer_snapshots: Arc::new(PeerSnapshots::default()),
        pool_snapshots: Arc::default(),
        account_attributes: Arc::default(),
        peer_secrets: Arc::default(),
        tenant_lines: Arc::default(),
        decode_text: |text| String::from_utf8(text.octets.to_vec()).ok(),
        replace_text: |text, characters| {
            if characters.len() > 160 {
                return Err("is too long".to_owned());
            }
            Ok(model::Text { octets: characters.to_owned().into(), ..text.clone() })
        },
        counters: Arc::new(Counters::new(CounterOptions::default())),
        durable_counters: Arc::default(),
        quality: Arc::default(),
        kv_store: Arc::new(MemoryKvStore::default()),
        fetch: Arc::new(OfflineFetch),
        dns: Arc::new(DnsClient::new()),
        hlr: Arc::new(TableHlr::new(tables.clone())),
        tables,
        log_budgets: LogBudgets::default(),
    }
}

pub(crate) struct HooksFixture {
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) durable: Arc<DurableCounters>,
    pub(crate) peer_snapshots: Arc<PeerSnapshots>,
    pub(crate) pool_snapshots: Arc<PoolSnapshots>,
    pub(crate) quality: Arc<PeerQuality>,
    pub(crate) account_attributes: Arc<AccountAttributes>,
    pub(crate) secrets: Arc<PeerSecrets>,
    pub(crate) tenant_lines: Arc<TenantLines>,
    pub(crate) tables: Arc<TableStore>,
    pub(crate) values: Arc<MemoryKvStore>,
    fetch: Arc<dyn Fetch>,
    options: HooksOptions,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) folder: TempDir,
}

pub(crate) fn directory() -> Arc<ArcSwap<Directory>> {
    let mut directory = Directory::new();
    for name in ["acme", "north", "south", "reserve"] {
        directory.intern(name).unwrap();
    }
    Arc::new(ArcSwap::from_pointee(directory))
}

pub(crate) fn options() -> HooksOptions {
    // Tests run concurrently, and each host reserves address space for all its instances.
    HooksOptions { memory: 64 << 20, instances: 32, ..HooksOptions::default() }
}

pub(crate) fn open(folder: &Path) -> Arc<Hooks> {
    Hooks::open(folder, options(), directory(), services(folder)).unwrap()
}

impl HooksFixture {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    /// With or without a record of host calls.
    pub(crate) fn recording(record: bool) -> Self {
        Self::with(HooksOptions { record, ..options() })
    }

    pub(crate) fn with(options: HooksOptions) -> Self {
        Self::open(
            tempfile::tempdir().unwrap(),
            options,
            Arc::default(),
            Arc::new(OfflineFetch),
            Arc::default(),
        )
    }

    /// With these durable counters, and a record of host calls.
    pub(crate) fn with_durable_counters(durable: Arc<DurableCounters>) -> Self {
        let options = HooksOptions { record: true, ..options() };
        Self::open(tempfile::tempdir().unwrap(), options, Arc::default(), Arc::new(OfflineFetch), durable)
    }

    /// With an HTTP client.
    pub(crate) fn with_fetch(fetch: Arc<dyn Fetch>) -> Self {
        Self::with_fetch_and_options(options(), fetch)
    }

    pub(crate) fn with_fetch_and_options(options: HooksOptions, fetch: Arc<dyn Fetch>) -> Self {
        Self::open(tempfile::tempdir().unwrap(), options, Arc::default(), fetch, Arc::default())
    }

    fn open(
        folder: TempDir,
        options: HooksOptions,
        values: Arc<MemoryKvStore>,
        fetch: Arc<dyn Fetch>,
        durable: Arc<DurableCounters>,
    ) -> Self {
        let durable_counters = durable.clone();
        let own = HostServices {
            kv_store: values.clone(),
            fetch: fetch.clone(),
            durable_counters,
            ..services(folder.path())
        };
        let (counters, peer_snapshots, tables) =
            (own.counters.clone(), own.peer_snapshots.clone(), own.tables.clone());
        let (pool_snapshots, account_attributes) =
            (own.pool_snapshots.clone(), own.account_attributes.clone());
        let (quality, secrets) = (own.quality.clone(), own.peer_secrets.clone());
        let tenant_lines = own.tenant_lines.clone();
        let hooks = Hooks::open(folder.path(), options.clone(), directory(), own).unwrap();
        let directory = directory();
        Self {
            hooks,
            counters,
            durable,
            peer_snapshots,
            pool_snapshots,
            quality,
            account_attributes,
            secrets,
            tenant_lines,
            tables,
            values,
            fetch,
            options,
            directory,
            folder,
        }
    }

    /// Reopens the same folder.
    pub(crate) fn restart(self) -> Self {
        let options = self.options.clone();
        self.restart_with(options)
    }

    pub(crate) fn restart_with(self, options: HooksOptions) -> Self {
        let durable = self.durable.clone();
        self.restart_with_counters(options, durable)
    }

    /// Reopens the same folder, with recovered durable counters.
    pub(crate) fn restart_with_counters(self, options: HooksOptions, durable: Arc<DurableCounters>) -> Self {
        let Self { hooks, folder, values, fetch, .. } = self;
        let gone = Arc::downgrade(&hooks);
        drop(hooks);
        wait_until("the old hooks are gone", || gone.strong_count() == 0);
        Self::open(folder, options, values, fetch, durable)
    }

    /// Uploads a guest, and binds it to a policy document.
    pub(crate) fn binding(&self, guest_name: &str, policy: &str) -> Binding {
        let info = self.hooks.upload(guest_name, &guest(guest_name), None).unwrap();
        let mut binding = Binding { sha256: info.sha256, ..Binding::new(guest_name, &info.version, policy) };
        if matches!(guest_name, "test_moody_lookup" | "test_moody_peer") {
            // These guests import HTTP.
            binding.grants.http = vec!["http://peer.example/".to_owned()];
        }
        if guest_name == "test_moody_lookup" {
            binding.grants.dns = Some(api::DnsGrant {
                servers: vec!["127.0.0.1:53".to_owned()],
                zones: vec!["peer.example".to_owned()],
                ..api::DnsGrant::default()
            });
        }
        binding
    }

    /// Uploads the moody router as plugin `test_<mood>`, and binds it to the mood and a peer.
    pub(crate) fn moody(&self, mood: &str, peer: &str) -> Binding {
        let plugin = format!("test_{mood}");
        let info = self.hooks.upload(&plugin, &moody_router(mood), None).unwrap();
        Binding { sha256: info.sha256, ..Binding::new(&plugin, &info.version, &format!("{mood} {peer}")) }
    }

    pub(crate) fn peer(&self, name: &str) -> PeerId {
        self.directory.load().id(name).unwrap()
    }

    pub(crate) fn route(&self, source: &str) -> RoutingDecision {
        self.hooks.route(&message(source, "8613012345678"), NOW)
    }
}

/// The binding with a deadline that only a loop exceeds: on a busy machine a call may wait for a processor.
pub(crate) fn with_long_deadline(binding: Binding) -> Binding {
    Binding { deadline: Duration::from_secs(10), ..binding }
}

/// Waits for a condition that other threads bring about.
pub(crate) fn wait_until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "timed out after a minute: {what}");
        std::thread::yield_now();
    }
}

/// A policy document of the default router that sends everything to one peer.
pub(crate) fn route_all_to(peer: &str) -> String {
    format!("[default]\nlegs = [{{ peer = \"{peer}\" }}]\n")
}

/// The peers of a forward verdict, in order; empty for any other verdict.
pub(crate) fn forwarded_peers(routed: &RoutingDecision) -> Vec<PeerId> {
    match &routed.verdict {
        Verdict::Forward(legs) => legs.iter().map(|leg| leg.peer).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn message(source: &str, destination: &str) -> Message {
    let by = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
    Message {
        accepted_at: NOW,
        ..Message::new(
            PeerId(0),
            Address::new(5, 0, source.as_bytes()),
            Address::international(destination),
            Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
            NOW,
            RoutingDecision::new(Verdict::Hold(NOW), by),
        )
    }
}
