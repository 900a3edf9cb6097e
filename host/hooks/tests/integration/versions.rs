//! Invalid components, and concurrent changes of bindings.

use crate::support::{
    HooksFixture, NOW, directory, forwarded_peers, guest, moody_router, options, route_all_to, services,
    wait_until,
};
use hooks::{Binding, BindingChange, BindingRecord, HookError, Hooks};
use model::Hook;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The smallest component: it imports and exports nothing.
const EMPTY_COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

fn replaced(octets: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len(), "lengths are written in front of names");
    let mut all = octets.to_vec();
    let mut count = 0;
    for start in 0..=all.len() - old.len() {
        if all[start..].starts_with(old) {
            all[start..start + old.len()].copy_from_slice(new);
            count += 1;
        }
    }
    assert!(count > 0, "the component does not contain the text to replace");
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn an_unknown_world_version_or_import_is_refused_by_name() {
    let fixture = HooksFixture::new();
    let router = guest("prefix_router");
    let refusal = |octets: &[u8]| fixture.hooks.upload("p", octets, None).unwrap_err();
    assert!(matches!(refusal(&EMPTY_COMPONENT), HookError::WrongWorld { .. }));
    let newer = refusal(&replaced(&router, b"@0.3.0", b"@0.9.0"));
    assert!(matches!(&newer, HookError::WrongVersion { .. }), "{newer}");
    let words = newer.to_string();
    assert!(words.contains("0.9.0") && words.contains("0.3.0"), "both versions are named: {words}");
    let other = refusal(&replaced(&router, b"switchyard:hooks/routing@", b"switchyard:hooks/tearing@"));
    assert!(matches!(&other, HookError::WrongWorld { .. }), "{other}");
    let foreign = refusal(&replaced(&router, b"switchyard:hooks/tables@", b"switchyard:hooks/wallet@"));
    assert!(
        matches!(&foreign, HookError::ForeignImport { name, .. } if name.contains("wallet")),
        "{foreign}"
    );
    assert_eq!(fixture.hooks.versions().unwrap(), []);
    assert_eq!(files(&fixture.folder.path().join("artefacts")), Vec::<PathBuf>::new());
}

#[test]
fn a_component_changed_on_disk_is_not_run() {
    let fixture = HooksFixture::new();
    let binding = fixture.binding("prefix_router", &route_all_to("north"));
    let path =
        fixture.folder.path().join("components/prefix_router").join(format!("{}.wasm", binding.version));
    std::fs::write(&path, moody_router("trap")).unwrap();
    let error = fixture.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap_err();
    assert!(matches!(&error, HookError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("upload it again"), "{error}");
    assert_eq!(fixture.binding("prefix_router", &route_all_to("north")), binding);
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("north")]);
}

/// Twelve digits are 48 bits: an attacker with time can make two components that share them.
#[test]
fn another_component_under_an_existing_version_is_refused() {
    let fixture = HooksFixture::new();
    let binding = fixture.binding("prefix_router", &route_all_to("north"));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap();
    let other = format!("{}{}", binding.version, "0".repeat(52));
    let replace = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&binding.sha256), "{text}");
        std::fs::write(path, text.replace(&binding.sha256, &other)).unwrap();
    };
    let described =
        fixture.folder.path().join("components/prefix_router").join(format!("{}.json", binding.version));
    replace(&described);
    let refused = fixture.hooks.upload("prefix_router", &guest("prefix_router"), None).unwrap_err();
    assert!(matches!(&refused, HookError::DigestConflict { .. }), "{refused}");
    // A binding serves only with the octets that were activated.
    replace(&fixture.folder.path().join("router.json"));
    let HooksFixture { hooks, folder, .. } = fixture;
    let gone = Arc::downgrade(&hooks);
    drop(hooks);
    wait_until("the old hooks are gone", || gone.strong_count() == 0);
    let opened = Hooks::open(folder.path(), options(), directory(), services(folder.path()));
    assert!(matches!(opened, Err(HookError::Damaged { .. })));
}

#[test]
fn a_version_is_bound_by_the_whole_digest_however_it_is_named() {
    let fixture = HooksFixture::new();
    let binding = fixture.binding("prefix_router", &route_all_to("north"));
    assert_eq!((binding.version.len(), binding.sha256.len()), (12, 64));
    for digits in [6, 12, 64] {
        let named = Binding {
            version: binding.sha256[..digits].to_owned(),
            sha256: String::new(),
            ..binding.clone()
        };
        let record = fixture.hooks.activate(Hook::Router, NOW, vec![named], None).unwrap();
        assert_eq!(record.chain.as_slice(), std::slice::from_ref(&binding));
    }
}

/// A file of release 0.1.0: a list of records without digests.
#[test]
fn bindings_without_digests_get_them_at_the_start() {
    let fixture = HooksFixture::new();
    let north = fixture.binding("prefix_router", &route_all_to("north"));
    let gone = Binding { version: "0".repeat(12), ..north.clone() };
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    let record = |serial: u64, binding: &Binding| BindingRecord {
        serial,
        since: NOW,
        chain: vec![Binding { sha256: String::new(), ..binding.clone() }],
        change: BindingChange::Activated,
        rollback_reason: None,
    };
    let records = [record(1, &gone), record(2, &north), record(3, &south)];
    let path = fixture.folder.path().join("router.json");
    let written = serde_json::to_string(&records).unwrap();
    assert!(!written.contains("sha256"), "{written}");
    std::fs::write(&path, written).unwrap();

    let fixture = fixture.restart();
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("south")]);
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let digest = |index: usize| stored["records"][index]["chain"][0]["sha256"].as_str();
    assert_eq!([digest(0), digest(1), digest(2)], [None, Some(&*north.sha256), Some(&*north.sha256)]);
    let history = fixture.hooks.history(Hook::Router);
    assert_eq!(history[2].chain, [south]);
    let record = fixture.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(record.chain, [north]);
}

#[test]
fn concurrent_activations_are_both_recorded() {
    let fixture = HooksFixture::new();
    let north = fixture.binding("prefix_router", &route_all_to("north"));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    const TIMES: usize = 15;
    std::thread::scope(|scope| {
        for binding in [&north, &south] {
            let hooks = &fixture.hooks;
            scope.spawn(move || {
                for _ in 0..TIMES {
                    hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap();
                }
            });
        }
    });
    let history = fixture.hooks.history(Hook::Router);
    assert_eq!(history.len(), 2 * TIMES);
    assert_eq!(history.iter().filter(|record| record.chain == [north.clone()]).count(), TIMES);
    let last = if history.last().unwrap().chain == [north] { "north" } else { "south" };
    assert_eq!(
        forwarded_peers(&fixture.route("good")),
        [fixture.peer(last)],
        "what the history calls live is what answers"
    );
}
