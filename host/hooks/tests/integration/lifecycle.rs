//! The life cycle of plugins: upload, activation, replacement, rollback, faults and restarts, with real guests.

use crate::support::{guest, moody_router, services};
use arc_swap::ArcSwap;
use hooks::{
    Binding, BindingChange, BindingRecord, Decision, FaultKind, HookError, Hooks, HooksOptions, InstanceUse,
    OnFault,
};
use model::{
    Address, Directory, Hook, Message, PeerId, PluginVersion, RejectReason, RoutingDecision, Text, Timestamp,
    Verdict,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A policy of the prefix router that sends everything to one peer.
fn all_to(peer: &str) -> String {
    format!("[default]\nlegs = [{{ peer = \"{peer}\" }}]\nnote = \"to {peer}\"\n")
}

struct HooksFixture {
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
    // Tests run concurrently, and each host reserves address space for all its instances.
    let options = HooksOptions { memory: 64 << 20, instances: 16, ..HooksOptions::default() };
    Hooks::open(folder, options, Arc::new(ArcSwap::from_pointee(directory())), services(folder))
}

impl HooksFixture {
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

    /// Uploads the moody router as plugin `test_<mood>`.
    fn upload_moody(&self, mood: &str) -> String {
        self.hooks.upload(&format!("test_{mood}"), &moody_router(mood), None).unwrap().version
    }

    fn ask(&self, source: &str) -> RoutingDecision {
        self.hooks.route(&message(source), NOW)
    }

    /// The peer that a message goes to.
    fn destination_peer(&self, source: &str) -> PeerId {
        leg_of(&self.ask(source))
    }

    fn artefacts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("artefacts")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

const NOW: Timestamp = Timestamp(1_000_000);

/// A binding with a long deadline, because on a busy machine a call may wait for a processor.
fn bound(plugin: &str, version: &str, policy: &str) -> Binding {
    Binding { deadline: Duration::from_secs(10), ..Binding::new(plugin, version, policy) }
}

fn leg_of(routed: &RoutingDecision) -> PeerId {
    match &routed.verdict {
        Verdict::Forward(legs) if legs.len() == 1 => legs[0].peer,
        other => panic!("not forwarded to one leg: {other:?}, {:?}", routed.note),
    }
}

fn message(source: &str) -> Message {
    let by = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
    Message {
        accepted_at: NOW,
        ..Message::new(
            PeerId(0),
            Address::new(5, 0, source.as_bytes()),
            Address::international("8613012345678"),
            Text { octets: bytes::Bytes::from_static(b"hello"), ..Text::default() },
            Timestamp(u64::MAX),
            RoutingDecision::new(Verdict::Hold(NOW), by),
        )
    }
}

#[test]
fn a_component_that_is_no_router_is_refused_at_upload() {
    let fixture = HooksFixture::new();
    let refusal = |name: &str, octets: &[u8]| fixture.hooks.upload(name, octets, None).unwrap_err();
    assert!(matches!(refusal("x", b""), HookError::NotWasm));
    assert!(matches!(refusal("x", b"#!/bin/sh\n"), HookError::NotWasm));
    // An empty core module, and an empty component: magic and version.
    assert!(matches!(refusal("x", b"\0asm\x01\0\0\0"), HookError::NotComponent));
    let wrong = refusal("x", b"\0asm\x0d\0\x01\0");
    assert!(matches!(&wrong, HookError::WrongWorld { found, .. } if found == "nothing"), "{wrong}");
    assert!(wrong.to_string().contains("switchyard:hooks/screening, number-lookup, routing"), "{wrong}");
    let mut broken = moody_router("trap");
    broken.truncate(broken.len() / 2);
    assert!(matches!(refusal("x", &broken), HookError::Broken(_)));
    for name in ["", "../x", "a/b", "a.b", "ü", &"x".repeat(65)] {
        assert!(matches!(refusal(name, &moody_router("trap")), HookError::BadName(_)), "{name:?}");
    }
    assert_eq!(fixture.hooks.versions().unwrap(), []);
}

#[test]
fn bindings_that_another_process_has_stored_are_taken_over() {
    let fixture = HooksFixture::new();
    let version = fixture.upload("prefix_router");
    let other = open(fixture.folder.path()).unwrap();
    let live = || other.status(Hook::Router).live;
    let east = vec![bound("prefix_router", &version, &all_to("east"))];
    let activate =
        |chain: &[Binding]| fixture.hooks.activate(Hook::Router, NOW, chain.to_vec(), None).unwrap();
    let record = activate(&east);
    assert!(!other.is_bound(Hook::Router));
    other.refresh().unwrap();
    assert_eq!(live(), record);
    assert_eq!(leg_of(&other.route(&message("10655"), NOW)), fixture.peer("east"));
    activate(&[bound("prefix_router", &version, &all_to("west"))]);
    other.refresh().unwrap();
    assert_eq!(leg_of(&other.route(&message("10655"), NOW)), fixture.peer("west"));
    fixture.hooks.unbind(Hook::Router, NOW).unwrap();
    other.refresh().unwrap();
    assert!(!other.is_bound(Hook::Router));
    assert_eq!(other.history(Hook::Router), fixture.hooks.history(Hook::Router));
}

#[test]
fn an_upload_is_not_activated_and_is_idempotent() {
    let fixture = HooksFixture::new();
    let first = fixture.hooks.upload("router", &moody_router("trap"), None).unwrap();
    let again = fixture.hooks.upload("router", &moody_router("trap"), None).unwrap();
    assert_eq!(first, again);
    assert_eq!(first.version.len(), 12);
    assert_eq!(fixture.hooks.versions().unwrap(), [first]);
    assert_eq!(fixture.ask("good").verdict, Verdict::Reject(RejectReason::NoRoute));
    assert!(fixture.hooks.history(Hook::Router).is_empty());
}

#[test]
fn a_failed_activation_leaves_the_old_binding_live() {
    let fixture = HooksFixture::new();
    let version = fixture.upload("prefix_router");
    let binding = |policy: &str| bound("prefix_router", &version, policy);
    let live = fixture.hooks.activate(Hook::Router, NOW, vec![binding(&all_to("east"))], None).unwrap();
    let refuse = |chain: Vec<Binding>| fixture.hooks.activate(Hook::Router, NOW, chain, None).unwrap_err();

    let refused = refuse(vec![binding("this is no policy")]);
    assert!(
        matches!(&refused, HookError::Refused { plugin, why } if plugin == "prefix_router" && !why.is_empty())
    );
    // The second router of a chain is checked like the first.
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

    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    assert_eq!(fixture.hooks.history(Hook::Router), [live]);
    let fixture = fixture.restart();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
}

#[test]
fn an_activation_under_load_fails_no_call() {
    let fixture = HooksFixture::new();
    let versions = [fixture.upload_moody("trap"), fixture.upload_moody("unknown-peer")];
    let chains = [
        vec![bound("test_trap", &versions[0], "trap east")],
        vec![bound("test_unknown-peer", &versions[1], "unknown-peer west")],
    ];
    let peers = [fixture.peer("east"), fixture.peer("west")];
    fixture.hooks.activate(Hook::Router, NOW, chains[0].clone(), None).unwrap();
    let done = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let seen: Vec<HashSet<String>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = HashSet::new();
                    let message = message("good");
                    while !done.load(Ordering::Relaxed) {
                        let routed = fixture.hooks.route(&message, NOW);
                        let which = versions.iter().position(|version| *version == routed.by.version);
                        // The verdict is that version's own: no call is decided half by one version and half by the
                        // other.
                        assert_eq!(leg_of(&routed), peers[which.expect("one of the two versions")]);
                        seen.insert(routed.by.version.clone());
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    seen
                })
            })
            .collect();
        // Every activation waits until calls have been made on the previous chain.
        let exchanged: Result<Vec<_>, _> = (1..=10)
            .map(|exchange| {
                let before = calls.load(Ordering::Relaxed);
                while calls.load(Ordering::Relaxed) < before + 50
                    && !callers.iter().any(std::thread::ScopedJoinHandle::is_finished)
                {
                    std::thread::yield_now();
                }
                fixture.hooks.activate(Hook::Router, NOW, chains[exchange % 2].clone(), None)
            })
            .collect();
        // Before any assertion: the callers must end in any case.
        done.store(true, Ordering::Relaxed);
        exchanged.unwrap();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let all: HashSet<String> = seen.into_iter().flatten().collect();
    assert_eq!(all, versions.into_iter().collect());
    assert_eq!(fixture.hooks.history(Hook::Router).len(), 11);
}

#[test]
fn a_rollback_can_itself_be_rolled_back() {
    let fixture = HooksFixture::new();
    let version = fixture.upload("prefix_router");
    let binding = |peer: &str| vec![bound("prefix_router", &version, &all_to(peer))];
    assert!(matches!(fixture.hooks.rollback(Hook::Router, NOW), Err(HookError::NoEarlierBinding)));
    let east = fixture.hooks.activate(Hook::Router, NOW, binding("east"), None).unwrap().chain;
    assert!(matches!(fixture.hooks.rollback(Hook::Router, NOW), Err(HookError::NoEarlierBinding)));
    fixture.hooks.activate(Hook::Router, NOW, binding("west"), None).unwrap();

    let back = fixture.hooks.rollback(Hook::Router, Timestamp(NOW.0 + 1)).unwrap();
    assert_eq!(
        (back.since, back.chain, back.change),
        (Timestamp(NOW.0 + 1), east, BindingChange::RolledBack)
    );
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    fixture.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("west"));

    // Even after a restart, when earlier generations are no longer warm.
    let fixture = fixture.restart();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("west"));
    fixture.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    let back = |record: &BindingRecord| record.change == BindingChange::RolledBack;
    let rollbacks: Vec<bool> = fixture.hooks.history(Hook::Router).iter().map(back).collect();
    assert_eq!(rollbacks, [false, false, true, true, true]);
}

fn fault(mood: &str, kind: FaultKind) {
    let fixture = HooksFixture::new();
    let (name, version) = (format!("test_{mood}"), fixture.upload_moody(mood));
    let index = FaultKind::ALL.iter().position(|known| *known == kind).unwrap();
    let hold = Verdict::Hold(Timestamp(NOW.0 + 30_000));
    for instance in [InstanceUse::Warm, InstanceUse::PerCall] {
        for (on_fault, expected) in [
            (OnFault::Hold, hold.clone()),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Peer("west".to_owned()), Verdict::Forward(vec![model::Leg::to(fixture.peer("west"))])),
        ] {
            let mut binding = bound(&name, &version, &format!("{mood} east"));
            (binding.on_fault, binding.instance) = (on_fault, instance);
            if kind == FaultKind::Deadline {
                // Every loop runs into its deadline; this is still ample for the good message after it.
                binding.deadline = Duration::from_millis(200);
            }
            fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
            for round in 1..=2 {
                let routed = fixture.ask("bad");
                assert_eq!(routed.verdict, expected);
                assert_eq!(*routed.by, PluginVersion { plugin: name.clone(), version: version.clone() });
                let note = routed.note.expect("a fault is noted");
                assert!(note.starts_with(&format!("fault ({})", kind.name())), "{note}");
                // The next message finds a working plugin.
                assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
                let counts = fixture.hooks.counts(Hook::Router);
                assert_eq!(counts[0].by.version, version);
                let mut faults = [0; 5];
                faults[index] = round;
                assert_eq!((counts[0].counts.calls, counts[0].counts.faults), (2 * round, faults));
            }
        }
    }
    let (considered, _) = fixture.hooks.explain(&message("bad"), NOW);
    assert_eq!(considered.len(), 1);
    assert_eq!(considered[0].outcome.as_ref().unwrap_err().kind, kind);
}

#[test]
fn a_trap_costs_one_call() {
    fault("trap", FaultKind::Trap);
}

#[test]
fn a_loop_costs_one_call() {
    fault("loop", FaultKind::Deadline);
}

#[test]
fn a_memory_fault_costs_one_call() {
    fault("hog", FaultKind::Memory);
}

#[test]
fn an_unknown_peer_costs_one_call() {
    fault("unknown-peer", FaultKind::Verdict);
}

#[test]
fn concurrent_faults_leak_no_instance() {
    let fixture = HooksFixture::new();
    let version = fixture.upload_moody("trap");
    fixture.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "trap east")], None).unwrap();
    // Many more faults than instances: a leak would show as "no instance".
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(matches!(fixture.ask("bad").verdict, Verdict::Hold(_)));
                }
            });
        }
    });
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [80, 0, 0, 0, 0]);
}

#[test]
fn the_first_router_that_decides_ends_the_chain() {
    let fixture = HooksFixture::new();
    let version = fixture.upload("prefix_router");
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"west\" }]\n";
    let binding = |policy: &str| bound("prefix_router", &version, policy);
    fixture.hooks.activate(Hook::Router, NOW, vec![binding(passes), binding(&all_to("east"))], None).unwrap();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    let (considered, _) = fixture.hooks.explain(&message("good"), NOW);
    assert_eq!(considered.len(), 2);
    assert!(matches!(considered[0].outcome, Ok(Decision { verdict: None, .. })));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding(passes)], None).unwrap();
    let routed = fixture.ask("good");
    assert_eq!(routed.verdict, Verdict::Reject(RejectReason::NoRoute));
    assert_eq!(routed.note.as_deref(), Some("no router decided"));
}

#[test]
fn a_restart_uses_the_artefact_and_replaces_a_damaged_one() {
    let fixture = HooksFixture::new();
    let version = fixture.upload_moody("trap");
    fixture.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "trap east")], None).unwrap();
    let [artefact] = &fixture.artefacts()[..] else { panic!("one artefact: {:?}", fixture.artefacts()) };
    let whole = std::fs::read(artefact).unwrap();
    let written = || std::fs::metadata(artefact).unwrap().modified().unwrap();
    // A time long ago: a newly compiled artefact gets a new one.
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let age = || std::fs::File::open(artefact).unwrap().set_modified(long_ago).unwrap();
    age();

    let fixture = fixture.restart();
    assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
    assert_eq!(written(), long_ago, "compiled again, though the artefact was whole");

    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    for octets in [damaged, whole[..whole.len() / 3].to_vec(), Vec::new()] {
        std::fs::write(artefact, &octets).unwrap();
        age();
        let fixture = HooksFixture {
            hooks: open(fixture.folder.path()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
            directory: directory(),
        };
        assert_eq!(fixture.destination_peer("good"), fixture.peer("east"));
        assert!(written() > long_ago, "a damaged artefact was left as it is");
        assert_eq!(std::fs::metadata(artefact).unwrap().len(), whole.len() as u64);
    }
}

#[test]
fn a_missing_component_of_the_live_chain_fails_the_start() {
    let fixture = HooksFixture::new();
    let version = fixture.upload_moody("trap");
    fixture.hooks.activate(Hook::Router, NOW, vec![bound("test_trap", &version, "trap east")], None).unwrap();
    let HooksFixture { folder, hooks, .. } = fixture;
    drop(hooks);
    std::fs::remove_file(folder.path().join(format!("components/test_trap/{version}.wasm"))).unwrap();
    let error = open(folder.path()).err().expect("no start without the live router");
    assert!(matches!(&error, HookError::Unknown { version: gone, .. } if *gone == version), "{error}");
}
