//! The life of plugins: upload, activation, exchange, rollback, faults and restarts, with the real guests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

mod support;

use arc_swap::ArcSwap;
use hooks::{
    Binding, BindingRecord, Decision, FaultKind, HookError, Hooks, HooksOptions, How, InstanceUse, OnFault,
};
use model::{
    Address, DecidedBy, Directory, Hook, Kind, Message, MessageId, PeerId, Priority, ReceiptRequest,
    RejectReason, Routed, Text, Timestamp, Verdict,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// The guests, by their file names; built if they are not there.
fn guest(name: &str) -> Vec<u8> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = root.join("target/plugins");
        let all = ["prefix_router", "test_trap", "test_loop", "test_hog", "test_badpeer"];
        if !all.iter().all(|name| folder.join(format!("{name}.wasm")).exists()) {
            let status = Command::new(env!("CARGO")).args(["xtask", "plugins"]).current_dir(&root).status();
            assert!(status.expect("cargo starts").success(), "`cargo xtask plugins` failed");
        }
        folder
    });
    let path = folder.join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A policy of the prefix router that sends everything to one peer.
fn all_to(peer: &str) -> String {
    format!("[default]\nlegs = [{{ peer = \"{peer}\" }}]\nnote = \"to {peer}\"\n")
}

struct House {
    folder: TempDir,
    hooks: Arc<Hooks>,
    directory: Directory,
}

fn directory() -> Directory {
    let mut directory = Directory::new();
    for name in ["acme", "east", "west"] {
        directory.intern(name).unwrap();
    }
    directory
}

fn open(folder: &Path) -> Result<Arc<Hooks>, HookError> {
    // Tests run beside each other, and every house reserves address space for all its instances.
    let options = HooksOptions { memory: 64 << 20, instances: 16, ..HooksOptions::default() };
    Hooks::open(folder, options, Arc::new(ArcSwap::from_pointee(directory())), support::powers(folder))
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hooks = open(folder.path()).unwrap();
        Self { folder, hooks, directory: directory() }
    }

    fn restart(self) -> Self {
        let Self { folder, hooks, directory } = self;
        drop(hooks);
        let hooks = open(folder.path()).unwrap();
        Self { folder, hooks, directory }
    }

    fn peer(&self, name: &str) -> PeerId {
        self.directory.id(name).unwrap()
    }

    /// The version of an uploaded guest.
    fn upload(&self, name: &str) -> String {
        self.hooks.upload(name, &guest(name), None).unwrap().version
    }

    fn ask(&self, source: &str) -> Routed {
        self.hooks.route(&message(source), NOW)
    }

    /// The peer that a message goes to.
    fn goes_to(&self, source: &str) -> PeerId {
        leg_of(&self.ask(source))
    }

    fn artefacts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("artefacts")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

const NOW: Timestamp = Timestamp(1_000_000);

/// A binding whose calls may take long: on a busy machine a call may wait for its turn, and that is no fault.
fn bound(plugin: &str, version: &str, policy: &str) -> Binding {
    Binding { deadline: Duration::from_secs(10), ..Binding::new(plugin, version, policy) }
}

fn leg_of(routed: &Routed) -> PeerId {
    match &routed.verdict {
        Verdict::Forward(legs) if legs.len() == 1 => legs[0].peer,
        other => panic!("not forwarded to one leg: {other:?}, {:?}", routed.note),
    }
}

fn message(source: &str) -> Message {
    let by = Arc::new(DecidedBy { plugin: String::new(), version: String::new() });
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin: PeerId(0),
        source: Address::new(5, 0, source.as_bytes()),
        destination: Address::international("8613012345678"),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: Text { octets: bytes::Bytes::from_static(b"hello"), ..Text::default() },
        tlvs: bytes::Bytes::new(),
        accepted_at: NOW,
        scheduled: None,
        expires_at: Timestamp(u64::MAX),
        routed: Routed::new(Verdict::Hold(NOW), by),
    }
}

#[test]
fn what_is_no_router_is_refused_at_upload() {
    let house = House::new();
    let refusal = |name: &str, octets: &[u8]| house.hooks.upload(name, octets, None).unwrap_err();
    assert!(matches!(refusal("x", b""), HookError::NotWasm));
    assert!(matches!(refusal("x", b"#!/bin/sh\n"), HookError::NotWasm));
    // An empty core module, and an empty component: magic and version.
    assert!(matches!(refusal("x", b"\0asm\x01\0\0\0"), HookError::NotComponent));
    let wrong = refusal("x", b"\0asm\x0d\0\x01\0");
    assert!(matches!(&wrong, HookError::WrongWorld { found, .. } if found == "nothing"), "{wrong}");
    assert!(wrong.to_string().contains("switchyard:hooks/routing"), "{wrong}");
    let mut broken = guest("test_trap");
    broken.truncate(broken.len() / 2);
    assert!(matches!(refusal("x", &broken), HookError::Broken(_)));
    for name in ["", "../x", "a/b", "a.b", "ü", &"x".repeat(65)] {
        assert!(matches!(refusal(name, &guest("test_trap")), HookError::BadName(_)), "{name:?}");
    }
    assert_eq!(house.hooks.versions().unwrap(), []);
}

#[test]
fn an_upload_serves_nothing_and_uploading_again_is_the_same_version() {
    let house = House::new();
    let first = house.hooks.upload("router", &guest("test_trap"), None).unwrap();
    let again = house.hooks.upload("router", &guest("test_trap"), None).unwrap();
    assert_eq!(first, again);
    assert_eq!(first.version.len(), 12);
    assert_eq!(house.hooks.versions().unwrap(), [first]);
    assert_eq!(house.ask("good").verdict, Verdict::Reject(RejectReason::NoRoute));
    assert!(house.hooks.history(Hook::Router).is_empty());
}

#[test]
fn what_cannot_be_activated_leaves_the_old_binding_live() {
    let house = House::new();
    let version = house.upload("prefix_router");
    let binding = |policy: &str| bound("prefix_router", &version, policy);
    let live = house.hooks.activate(Hook::Router, NOW, vec![binding(&all_to("east"))], None).unwrap();
    let refuse = |chain: Vec<Binding>| house.hooks.activate(Hook::Router, NOW, chain, None).unwrap_err();

    let refused = refuse(vec![binding("this is no policy")]);
    assert!(
        matches!(&refused, HookError::Refused { plugin, why } if plugin == "prefix_router" && !why.is_empty())
    );
    // The second router of a chain is as good a reason as the first.
    let chain = vec![binding(&all_to("west")), binding("[default]\nlegs = 7\n")];
    assert!(matches!(refuse(chain), HookError::Refused { .. }));
    assert!(matches!(refuse(Vec::new()), HookError::EmptyChain));
    let unknown = bound("prefix_router", "000000000000", "");
    assert!(matches!(refuse(vec![unknown]), HookError::Unknown { .. }));
    let outside = bound("../prefix_router", &version, "");
    assert!(matches!(refuse(vec![outside]), HookError::Unknown { .. }));
    let mut nowhere = binding(&all_to("west"));
    nowhere.on_fault = OnFault::Peer("nowhere".to_owned());
    assert!(matches!(refuse(vec![nowhere]), HookError::UnknownPeer(peer) if peer == "nowhere"));
    let mut narrow = binding("[[route]]\nprefix = [\"1\", \"2\"]\nlegs = [{ peer = \"west\" }]\n");
    narrow.table_rows = 1;
    assert!(matches!(refuse(vec![narrow]), HookError::Refused { .. }));

    assert_eq!(house.goes_to("good"), house.peer("east"));
    assert_eq!(house.hooks.history(Hook::Router), [live]);
    let house = house.restart();
    assert_eq!(house.goes_to("good"), house.peer("east"));
}

#[test]
fn an_exchange_under_load_fails_no_call() {
    let house = House::new();
    let versions = [house.upload("test_trap"), house.upload("test_badpeer")];
    let chains =
        [vec![bound("test_trap", &versions[0], "east")], vec![bound("test_badpeer", &versions[1], "west")]];
    let peers = [house.peer("east"), house.peer("west")];
    house.hooks.activate(Hook::Router, NOW, chains[0].clone(), None).unwrap();
    let done = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let seen: Vec<HashSet<String>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = HashSet::new();
                    let message = message("good");
                    while !done.load(Ordering::Relaxed) {
                        let routed = house.hooks.route(&message, NOW);
                        let which = versions.iter().position(|version| *version == routed.by.version);
                        // The verdict is that version's own: no call is decided half by one and half by the other.
                        assert_eq!(leg_of(&routed), peers[which.expect("one of the two versions")]);
                        seen.insert(routed.by.version.clone());
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    seen
                })
            })
            .collect();
        // Every exchange waits until calls have been made on the chain before it.
        let exchanged: Result<Vec<_>, _> = (1..=10)
            .map(|exchange| {
                let before = calls.load(Ordering::Relaxed);
                while calls.load(Ordering::Relaxed) < before + 50
                    && !callers.iter().any(std::thread::ScopedJoinHandle::is_finished)
                {
                    std::thread::yield_now();
                }
                house.hooks.activate(Hook::Router, NOW, chains[exchange % 2].clone(), None)
            })
            .collect();
        // Before anything is judged: the callers must end in any case.
        done.store(true, Ordering::Relaxed);
        exchanged.unwrap();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let all: HashSet<String> = seen.into_iter().flatten().collect();
    assert_eq!(all, versions.into_iter().collect());
    assert_eq!(house.hooks.history(Hook::Router).len(), 11);
}

#[test]
fn a_rollback_is_one_call_and_can_itself_be_rolled_back() {
    let house = House::new();
    let version = house.upload("prefix_router");
    let binding = |peer: &str| vec![bound("prefix_router", &version, &all_to(peer))];
    assert!(matches!(house.hooks.rollback(Hook::Router, NOW), Err(HookError::NothingBefore)));
    let east = house.hooks.activate(Hook::Router, NOW, binding("east"), None).unwrap().chain;
    assert!(matches!(house.hooks.rollback(Hook::Router, NOW), Err(HookError::NothingBefore)));
    house.hooks.activate(Hook::Router, NOW, binding("west"), None).unwrap();

    let back = house.hooks.rollback(Hook::Router, Timestamp(NOW.0 + 1)).unwrap();
    assert_eq!((back.since, back.chain, back.how), (Timestamp(NOW.0 + 1), east, How::RolledBack));
    assert_eq!(house.goes_to("good"), house.peer("east"));
    house.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(house.goes_to("good"), house.peer("west"));

    // Also after a restart, when the generations before are no longer warm.
    let house = house.restart();
    assert_eq!(house.goes_to("good"), house.peer("west"));
    house.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(house.goes_to("good"), house.peer("east"));
    let back = |record: &BindingRecord| record.how == How::RolledBack;
    let rollbacks: Vec<bool> = house.hooks.history(Hook::Router).iter().map(back).collect();
    assert_eq!(rollbacks, [false, false, true, true, true]);
}

fn fault(name: &str, kind: FaultKind) {
    let house = House::new();
    let version = house.upload(name);
    let index = FaultKind::ALL.iter().position(|known| *known == kind).unwrap();
    let hold = Verdict::Hold(Timestamp(NOW.0 + 30_000));
    for instance in [InstanceUse::Warm, InstanceUse::PerCall] {
        for (on_fault, expected) in [
            (OnFault::Hold, hold.clone()),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Peer("west".to_owned()), Verdict::Forward(vec![model::Leg::to(house.peer("west"))])),
        ] {
            let mut binding = bound(name, &version, "east");
            (binding.on_fault, binding.instance) = (on_fault, instance);
            if kind == FaultKind::Deadline {
                // Every loop is waited for to its end; for the good message after it that is still ample.
                binding.deadline = Duration::from_millis(200);
            }
            house.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
            for round in 1..=2 {
                let routed = house.ask("bad");
                assert_eq!(routed.verdict, expected);
                assert_eq!(*routed.by, DecidedBy { plugin: name.to_owned(), version: version.clone() });
                let note = routed.note.expect("a fault is noted");
                assert!(note.starts_with(&format!("fault ({})", kind.name())), "{note}");
                // The next message finds a plugin that works.
                assert_eq!(house.goes_to("good"), house.peer("east"));
                let counts = house.hooks.counts(Hook::Router);
                assert_eq!(counts[0].by.version, version);
                let mut faults = [0; 5];
                faults[index] = round;
                assert_eq!((counts[0].counts.calls, counts[0].counts.faults), (2 * round, faults));
            }
        }
    }
    let (considered, _) = house.hooks.explain(&message("bad"), NOW);
    assert_eq!(considered.len(), 1);
    assert_eq!(considered[0].outcome.as_ref().unwrap_err().kind, kind);
}

#[test]
fn a_trap_costs_one_call() {
    fault("test_trap", FaultKind::Trap);
}

#[test]
fn a_loop_costs_one_call() {
    fault("test_loop", FaultKind::Deadline);
}

#[test]
fn hunger_for_memory_costs_one_call() {
    fault("test_hog", FaultKind::Memory);
}

#[test]
fn an_unknown_peer_costs_one_call() {
    fault("test_badpeer", FaultKind::Verdict);
}

#[test]
fn faults_of_many_callers_leave_no_instance_behind() {
    let house = House::new();
    let version = house.upload("test_trap");
    house.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "east")], None).unwrap();
    // Many more faults than there are instances: one that leaked would show as "no instance".
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(matches!(house.ask("bad").verdict, Verdict::Hold(_)));
                }
            });
        }
    });
    assert_eq!(house.goes_to("good"), house.peer("east"));
    assert_eq!(house.hooks.counts(Hook::Router)[0].counts.faults, [80, 0, 0, 0, 0]);
}

#[test]
fn the_first_router_that_decides_ends_the_chain() {
    let house = House::new();
    let version = house.upload("prefix_router");
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"west\" }]\n";
    let binding = |policy: &str| bound("prefix_router", &version, policy);
    house.hooks.activate(Hook::Router, NOW, vec![binding(passes), binding(&all_to("east"))], None).unwrap();
    assert_eq!(house.goes_to("good"), house.peer("east"));
    let (considered, _) = house.hooks.explain(&message("good"), NOW);
    assert_eq!(considered.len(), 2);
    assert!(matches!(considered[0].outcome, Ok(Decision { verdict: None, .. })));
    house.hooks.activate(Hook::Router, NOW, vec![binding(passes)], None).unwrap();
    let routed = house.ask("good");
    assert_eq!(routed.verdict, Verdict::Reject(RejectReason::NoRoute));
    assert_eq!(routed.note.as_deref(), Some("no router decided"));
}

#[test]
fn a_restart_uses_the_artefact_and_mends_a_damaged_one() {
    let house = House::new();
    let version = house.upload("test_trap");
    house.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "east")], None).unwrap();
    let [artefact] = &house.artefacts()[..] else { panic!("one artefact: {:?}", house.artefacts()) };
    let whole = std::fs::read(artefact).unwrap();
    let written = || std::fs::metadata(artefact).unwrap().modified().unwrap();
    // A time long ago: an artefact that is compiled again gets a new one.
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let age = || std::fs::File::open(artefact).unwrap().set_modified(long_ago).unwrap();
    age();

    let house = house.restart();
    assert_eq!(house.goes_to("good"), house.peer("east"));
    assert_eq!(written(), long_ago, "compiled again, though the artefact was whole");

    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    for octets in [damaged, whole[..whole.len() / 3].to_vec(), Vec::new()] {
        std::fs::write(artefact, &octets).unwrap();
        age();
        let house = House {
            hooks: open(house.folder.path()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
            directory: directory(),
        };
        assert_eq!(house.goes_to("good"), house.peer("east"));
        assert!(written() > long_ago, "a damaged artefact was left as it is");
        assert_eq!(std::fs::metadata(artefact).unwrap().len(), whole.len() as u64);
    }
}

#[test]
fn a_chain_whose_component_is_gone_stops_the_start() {
    let house = House::new();
    let version = house.upload("test_trap");
    house.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "east")], None).unwrap();
    let House { folder, hooks, .. } = house;
    drop(hooks);
    std::fs::remove_file(folder.path().join(format!("components/test_trap/{version}.wasm"))).unwrap();
    let error = open(folder.path()).err().expect("no start without the live router");
    assert!(matches!(&error, HookError::Unknown { version: gone, .. } if *gone == version), "{error}");
}
