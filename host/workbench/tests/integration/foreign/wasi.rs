//! Guests that import WASI get an empty world; their clock, random numbers and output are handled as for all plugins.

use crate::support::{self, passes_cases, plugin_command, root, run};
use arc_swap::ArcSwap;
use capabilities::{
    Counters, DnsClient, Fetch, FetchFailure, FetchRequest, FetchResponse, HttpGrants, LogBudgets,
    MemoryKvStore, TableHlr, TableStore, TableStoreOptions,
};
use hooks::{Binding, Hooks, HooksOptions, HostServices, PeerSnapshots};
use model::{Directory, Hook, Message, Timestamp};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

fn guest_folder(name: &str) -> PathBuf {
    root().join("plugins/wasi-guests").join(name)
}

#[test]
#[ignore = "an interpreter is compiled; another test runs this guest, and the nightly tier this one"]
fn a_python_guest_has_an_empty_wasi_world() {
    passes_cases(&guest_folder("python"), &guest_folder("python").join("cases.toml"));
}

#[test]
fn a_javascript_guest_has_an_empty_wasi_world() {
    passes_cases(&guest_folder("js"), &guest_folder("js").join("cases.toml"));
}

struct OfflineFetch;

impl Fetch for OfflineFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, _: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        Err(FetchFailure::Unreachable("nowhere".to_owned()))
    }
}

/// The Python guest in the host.
struct WasiGuest {
    hooks: Arc<Hooks>,
    version: String,
    _folder: tempfile::TempDir,
}

impl WasiGuest {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run(plugin_command().arg("build").arg(guest_folder("python"))).unwrap();
        let tables =
            Arc::new(TableStore::open(&folder.path().join("tables"), TableStoreOptions::default()).unwrap());
        let services = HostServices {
            peer_snapshots: Arc::new(PeerSnapshots::default()),
            pool_snapshots: Arc::default(),
            account_attributes: Arc::default(),
            peer_secrets: Arc::default(),
            tenant_lines: Arc::default(),
            decode_text: |_| None,
            replace_text: |text, _| Ok(text.clone()),
            counters: Arc::new(Counters::default()),
            durable_counters: Arc::default(),
            quality: Arc::default(),
            kv_store: Arc::new(MemoryKvStore::default()),
            fetch: Arc::new(OfflineFetch),
            dns: Arc::new(DnsClient::new()),
            hlr: Arc::new(TableHlr::new(tables.clone())),
            tables,
            log_budgets: LogBudgets::default(),
        };
        let options = HooksOptions { instances: 8, ..HooksOptions::default() };
        let directory = Arc::new(ArcSwap::from_pointee(Directory::new()));
        let hooks = Hooks::open(&folder.path().join("plugins"), options, directory, services).unwrap();
        let octets = std::fs::read(guest_folder("python").join("test-ambient-python.wasm")).unwrap();
        let version = hooks.upload("guest", &octets, None).unwrap().version;
        Self { hooks, version, _folder: folder }
    }

    fn dry_run(&self, policy: &str, random: bool) -> hooks::DryRun {
        let mut binding = Binding::new("guest", &self.version, policy);
        binding.grants.random = random;
        self.hooks.dry_run(Hook::Router, &[binding]).unwrap()
    }
}

fn message() -> Message {
    support::message("8613012345678")
}

/// Captures the log.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(octets)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn clock_and_random_calls_are_recorded_and_output_is_logged() {
    let guest = WasiGuest::new();
    let (then, later) = (Timestamp(1_800_000_000_000), Timestamp(1_900_000_000_000));
    let note = |outcome: &hooks::DryRunOutcome| outcome.note.as_deref().unwrap().to_owned();

    let clock = guest.dry_run("time", false);
    let first = clock.route(&message(), then, None);
    assert_eq!(note(&first), "1800000000000");
    let again = clock.route(&message(), later, first.call_log.as_deref());
    assert_eq!((note(&again), again.missing), (note(&first), None));

    // Granted random numbers differ, and a replay repeats the recorded ones.
    let chance = guest.dry_run("random", true);
    let drawn = chance.route(&message(), then, None);
    assert_ne!(note(&drawn), note(&chance.route(&message(), then, None)));
    let again = chance.route(&message(), later, drawn.call_log.as_deref());
    assert_eq!((note(&again), again.missing), (note(&drawn), None));
    let never = chance.route(&message(), later, Some(&[]));
    assert_eq!(never.missing, Some("a random number"));
    let fixed = guest.dry_run("random", false);
    assert_eq!(note(&never), note(&fixed.route(&message(), then, None)));

    let talker = guest.dry_run("say", false);
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || talker.route(&message(), then, None));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("plugin says")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for (line, output) in lines.iter().zip(["one line", "another line", "in trouble"]) {
        assert!(
            line.contains(output) && line.contains("plugin=\"guest\"") && line.contains(&guest.version),
            "{line}"
        );
    }
}
