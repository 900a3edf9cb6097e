//! Components that are not what they should be, and bindings that change while others look.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, HookError, Hooks};
use model::Hook;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{House, NOW, directory, everything_to, guest, options, peers, powers, until};

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
    assert!(count > 0, "the component does not contain what was to be replaced");
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn another_world_version_or_import_is_refused_by_name_and_leaves_nothing_behind() {
    let house = House::new();
    let router = guest("prefix_router");
    let refusal = |octets: &[u8]| house.hooks.upload("p", octets, None).unwrap_err();
    assert!(matches!(refusal(&EMPTY_COMPONENT), HookError::WrongWorld { .. }));
    let newer = refusal(&replaced(&router, b"@0.2.0", b"@0.9.0"));
    assert!(matches!(&newer, HookError::WrongVersion { .. }), "{newer}");
    let words = newer.to_string();
    assert!(words.contains("0.9.0") && words.contains("0.2.0"), "both versions are named: {words}");
    let other = refusal(&replaced(&router, b"switchyard:hooks/routing@", b"switchyard:hooks/tearing@"));
    assert!(matches!(&other, HookError::WrongWorld { .. }), "{other}");
    let foreign = refusal(&replaced(&router, b"switchyard:hooks/tables@", b"switchyard:hooks/wallet@"));
    assert!(
        matches!(&foreign, HookError::ForeignImport { name, .. } if name.contains("wallet")),
        "{foreign}"
    );
    assert_eq!(house.hooks.versions().unwrap(), []);
    assert_eq!(files(&house.folder.path().join("artefacts")), Vec::<PathBuf>::new());
}

#[test]
fn a_component_that_changed_on_disk_is_not_run_under_its_old_version() {
    let house = House::new();
    let binding = house.binding("prefix_router", &everything_to("north"));
    let path = house.folder.path().join("components/prefix_router").join(format!("{}.wasm", binding.version));
    std::fs::write(&path, guest("test_trap")).unwrap();
    let error = house.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap_err();
    assert!(matches!(&error, HookError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("upload it again"), "{error}");
    assert_eq!(house.binding("prefix_router", &everything_to("north")), binding);
    house.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    assert_eq!(peers(&house.route("good")), [house.peer("north")]);
}

/// Twelve digits are 48 bits: somebody with time can make two components that have them in common.
#[test]
fn other_octets_under_a_version_that_exists_are_refused_and_never_run() {
    let house = House::new();
    let binding = house.binding("prefix_router", &everything_to("north"));
    house.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap();
    let other = format!("{}{}", binding.version, "0".repeat(52));
    let replace = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&binding.sha256), "{text}");
        std::fs::write(path, text.replace(&binding.sha256, &other)).unwrap();
    };
    let described =
        house.folder.path().join("components/prefix_router").join(format!("{}.json", binding.version));
    replace(&described);
    let refused = house.hooks.upload("prefix_router", &guest("prefix_router"), None).unwrap_err();
    assert!(matches!(&refused, HookError::OtherOctets { .. }), "{refused}");
    // Nor does a binding serve with other octets than those that it was activated with.
    replace(&house.folder.path().join("router.json"));
    let House { hooks, folder, .. } = house;
    let gone = Arc::downgrade(&hooks);
    drop(hooks);
    until("the old house is gone", || gone.strong_count() == 0);
    let opened = Hooks::open(folder.path(), options(), directory(), powers(folder.path()));
    assert!(matches!(opened, Err(HookError::Damaged { .. })));
}

#[test]
fn two_admins_who_activate_at_once_both_land_in_the_history() {
    let house = House::new();
    let north = house.binding("prefix_router", &everything_to("north"));
    let south = Binding { policy: everything_to("south"), ..north.clone() };
    const TIMES: usize = 15;
    std::thread::scope(|scope| {
        for binding in [&north, &south] {
            let hooks = &house.hooks;
            scope.spawn(move || {
                for _ in 0..TIMES {
                    hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap();
                }
            });
        }
    });
    let history = house.hooks.history(Hook::Router);
    assert_eq!(history.len(), 2 * TIMES);
    assert_eq!(history.iter().filter(|record| record.chain == [north.clone()]).count(), TIMES);
    let last = if history.last().unwrap().chain == [north] { "north" } else { "south" };
    assert_eq!(
        peers(&house.route("good")),
        [house.peer(last)],
        "what the history calls live is what answers"
    );
}
