//! Hooks over real guests, in a folder that goes away.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part")]

use arc_swap::ArcSwap;
use bytes::Bytes;
use capabilities::{
    CounterOptions, Counters, DurableCounters, Fetch, FetchFailure, Grants, LogBudgets, MemoryValues,
    Request, Response, Shelf, ShelfOptions, TableHlr,
};
use hooks::{Binding, Board, Conditions, Hooks, HooksOptions, PoolBoard, Powers};
use model::{Address, DecidedBy, Directory, Kind, Message, MessageId, PeerId, Priority, ReceiptRequest};
use model::{Routed, Text, Timestamp, Verdict};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Also where a component imports what its binding does not grant.
pub const FORCED: Conditions = Conditions { expected: None, force: true };

/// A component that `cargo xtask plugins` built; built here when it is not there. A guest that cannot be had is a failed
/// test, never a skipped one. `SWITCHYARD_PLUGINS` names another folder.
pub fn guest(name: &str) -> Vec<u8> {
    static BUILT: Once = Once::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let elsewhere = std::env::var_os("SWITCHYARD_PLUGINS").map(PathBuf::from);
    let folder = elsewhere.clone().unwrap_or_else(|| root.join("target/plugins"));
    let path = folder.join(format!("{name}.wasm"));
    if !path.exists() && elsewhere.is_none() {
        BUILT.call_once(|| {
            let status =
                Command::new(env!("CARGO")).current_dir(&root).args(["xtask", "plugins"]).status().unwrap();
            assert!(status.success(), "building the guests: `cargo xtask plugins` failed");
        });
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("guest {}: {error}", path.display()))
}

/// No way out: what the tests of other systems replace.
pub struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: &str, _: &Grants, _: Request) -> Result<Response, FetchFailure> {
        Err(FetchFailure::Unreachable("offline".to_owned()))
    }
}

/// What plugins are given in tests.
pub fn powers(folder: &Path) -> Powers {
    let shelf = Arc::new(Shelf::open(&folder.join("tables"), ShelfOptions::default()).unwrap());
    Powers {
        board: Arc::new(Board::default()),
        pools: Arc::default(),
        counters: Arc::new(Counters::new(CounterOptions::default())),
        durable_counters: Arc::default(),
        values: Arc::new(MemoryValues::default()),
        fetch: Arc::new(Offline),
        hlr: Arc::new(TableHlr::new(shelf.clone())),
        shelf,
        lines: LogBudgets::default(),
    }
}

pub struct House {
    pub hooks: Arc<Hooks>,
    pub counters: Arc<Counters>,
    pub durable: Arc<DurableCounters>,
    pub board: Arc<Board>,
    pub pools: Arc<PoolBoard>,
    pub shelf: Arc<Shelf>,
    pub values: Arc<MemoryValues>,
    fetch: Arc<dyn Fetch>,
    options: HooksOptions,
    pub directory: Arc<ArcSwap<Directory>>,
    pub folder: TempDir,
}

pub fn directory() -> Arc<ArcSwap<Directory>> {
    let mut directory = Directory::new();
    for name in ["acme", "north", "south", "reserve"] {
        directory.intern(name).unwrap();
    }
    Arc::new(ArcSwap::from_pointee(directory))
}

pub fn options() -> HooksOptions {
    // Tests run beside each other, and every house reserves address space for all its instances.
    HooksOptions { memory: 64 << 20, instances: 32, ..HooksOptions::default() }
}

pub fn open(folder: &Path) -> Arc<Hooks> {
    Hooks::open(folder, options(), directory(), powers(folder)).unwrap()
}

impl House {
    pub fn new() -> Self {
        Self::with(options())
    }

    /// Writes down what routers see, or does not.
    pub fn recording(record: bool) -> Self {
        Self::with(HooksOptions { record, ..options() })
    }

    pub fn with(options: HooksOptions) -> Self {
        Self::open(tempfile::tempdir().unwrap(), options, Arc::default(), Arc::new(Offline), Arc::default())
    }

    /// With these durable counters, and answers on record.
    pub fn counting(durable: Arc<DurableCounters>) -> Self {
        let options = HooksOptions { record: true, ..options() };
        Self::open(tempfile::tempdir().unwrap(), options, Arc::default(), Arc::new(Offline), durable)
    }

    /// With a way out.
    pub fn online(fetch: Arc<dyn Fetch>) -> Self {
        Self::online_with(options(), fetch)
    }

    pub fn online_with(options: HooksOptions, fetch: Arc<dyn Fetch>) -> Self {
        Self::open(tempfile::tempdir().unwrap(), options, Arc::default(), fetch, Arc::default())
    }

    fn open(
        folder: TempDir,
        options: HooksOptions,
        values: Arc<MemoryValues>,
        fetch: Arc<dyn Fetch>,
        durable: Arc<DurableCounters>,
    ) -> Self {
        let durable_counters = durable.clone();
        let own = Powers {
            values: values.clone(),
            fetch: fetch.clone(),
            durable_counters,
            ..powers(folder.path())
        };
        let (counters, board, shelf) = (own.counters.clone(), own.board.clone(), own.shelf.clone());
        let pools = own.pools.clone();
        let hooks = Hooks::open(folder.path(), options.clone(), directory(), own).unwrap();
        let directory = directory();
        Self { hooks, counters, durable, board, pools, shelf, values, fetch, options, directory, folder }
    }

    /// The same folder, opened anew.
    pub fn restart(self) -> Self {
        let options = self.options.clone();
        self.restart_with(options)
    }

    pub fn restart_with(self, options: HooksOptions) -> Self {
        let durable = self.durable.clone();
        self.restart_counting(options, durable)
    }

    /// With durable counters that were recovered.
    pub fn restart_counting(self, options: HooksOptions, durable: Arc<DurableCounters>) -> Self {
        let Self { hooks, folder, values, fetch, .. } = self;
        let gone = Arc::downgrade(&hooks);
        drop(hooks);
        until("the old house is gone", || gone.strong_count() == 0);
        Self::open(folder, options, values, fetch, durable)
    }

    /// Uploads a guest, and binds it to a policy document.
    pub fn binding(&self, guest_name: &str, policy: &str) -> Binding {
        let info = self.hooks.upload(guest_name, &guest(guest_name), None).unwrap();
        Binding { sha256: info.sha256, ..Binding::new(guest_name, &info.version, policy) }
    }

    pub fn peer(&self, name: &str) -> PeerId {
        self.directory.load().id(name).unwrap()
    }

    pub fn route(&self, source: &str) -> Routed {
        self.hooks.route(&message(source, "8613012345678"), NOW)
    }
}

/// The same with so long a deadline that only a loop misses it: on a busy machine a call may wait for its turn.
pub fn patient(binding: Binding) -> Binding {
    Binding { deadline: Duration::from_secs(10), ..binding }
}

/// Waits until something is so that other threads bring about.
pub fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "a minute has gone by, and not yet: {what}");
        std::thread::yield_now();
    }
}

/// A policy document of the default router that sends everything to one peer.
pub fn everything_to(peer: &str) -> String {
    format!("[default]\nlegs = [{{ peer = \"{peer}\" }}]\n")
}

/// The peers that a verdict forwards to, in order; nothing for any other verdict.
pub fn peers(routed: &Routed) -> Vec<PeerId> {
    match &routed.verdict {
        Verdict::Forward(legs) => legs.iter().map(|leg| leg.peer).collect(),
        _ => Vec::new(),
    }
}

pub fn message(source: &str, destination: &str) -> Message {
    let by = Arc::new(DecidedBy { plugin: String::new(), version: String::new() });
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin: PeerId(0),
        source: Address::new(5, 0, source.as_bytes()),
        destination: Address::international(destination),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
        tlvs: Bytes::new(),
        accepted_at: NOW,
        scheduled: None,
        expires_at: NOW,
        routed: Routed::new(Verdict::Hold(NOW), by),
    }
}
