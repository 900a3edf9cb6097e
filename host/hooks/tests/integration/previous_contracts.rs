//! Plugins built for earlier contract versions.

use crate::support::{
    HooksFixture, NOW, forwarded_peers, message, route_all_to, wait_until, with_long_deadline,
};
use hooks::{Binding, HookError, InstanceUse, TrialMode, WitVersion};
use model::Hook;
use std::path::Path;

fn destination_peer(fixture: &HooksFixture, destination: &str) -> String {
    let routed = fixture.hooks.route(&message("good", destination), NOW);
    let [peer] = forwarded_peers(&routed)[..] else { panic!("{routed:?}") };
    fixture.directory.load().name(peer).to_string()
}

#[test]
fn a_0_1_router_serves_and_reports_its_contract() {
    let fixture = HooksFixture::new();
    let old = with_long_deadline(fixture.binding("test_old_router", "north"));
    let new = fixture.binding("prefix_router", "");
    let versions = fixture.hooks.versions().unwrap();
    let of = |plugin: &str| versions.iter().find(|info| info.plugin == plugin).unwrap();
    assert_eq!((of("test_old_router").wit, of("test_old_router").hook), (WitVersion::V0_1, Hook::Router));
    assert_eq!(
        (of("prefix_router").wit, of("prefix_router").version.as_str()),
        (WitVersion::V0_3, &*new.version)
    );
    assert_eq!((WitVersion::V0_1.number(), WitVersion::V0_3.number()), ("0.1.0", "0.3.0"));
    assert!(of("test_old_router").imports.iter().all(|import| import.ends_with("@0.1.0")));

    for instance in [InstanceUse::Warm, InstanceUse::PerCall] {
        let old = Binding { instance, ..old.clone() };
        fixture.hooks.activate(Hook::Router, NOW, vec![old], None).unwrap();
        let routed = fixture.route("good");
        assert_eq!(
            (forwarded_peers(&routed), routed.note.as_deref()),
            (vec![fixture.peer("north")], Some("by an old router"))
        );
    }
    let fixture = fixture.restart();
    assert_eq!(destination_peer(&fixture, "8613012345678"), "north");
    // Its host calls during configuration work, and so does its refusal of a document.
    let empty = Binding { policy: String::new(), ..old.clone() };
    let refused = fixture.hooks.activate(Hook::Router, NOW, vec![empty], None).unwrap_err();
    assert!(
        matches!(&refused, HookError::Refused { why, .. } if why.contains("the name of a peer")),
        "{refused}"
    );
    let no_rows = Binding { table_rows: 0, ..old.clone() };
    let refused = fixture.hooks.activate(Hook::Router, NOW, vec![no_rows], None).unwrap_err();
    assert!(matches!(&refused, HookError::Refused { why, .. } if why.contains("rows")), "{refused}");
    let unknown = Binding { policy: "nowhere".to_owned(), ..old };
    fixture.hooks.activate(Hook::Router, NOW, vec![unknown], None).unwrap();
    let note = fixture.route("good").note.unwrap();
    assert!(note.starts_with("fault (verdict)"), "{note}");
}

#[test]
fn a_0_2_router_serves_with_its_host_calls() {
    let fixture = HooksFixture::new();
    let binding = with_long_deadline(fixture.binding("test_router_0_2", "north"));
    let versions = fixture.hooks.versions().unwrap();
    assert_eq!((versions[0].wit, versions[0].hook), (WitVersion::V0_2, Hook::Router));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    for asked in 1..=2 {
        let routed = fixture.route("good");
        assert_eq!(forwarded_peers(&routed), [fixture.peer("north")]);
        let note = format!("{asked} of 1 parts at {}, Ok(())", NOW.0);
        assert_eq!(routed.note.as_deref(), Some(&*note));
        let sender = routed.sender.unwrap();
        assert_eq!((sender.pool.as_str(), &*sender.holder, routed.changes), ("shared", "acme", None));
    }
}

/// A component of a world whose functions all trap.
fn trapping_component(wit: &Path, world: &str) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.packages[package].worlds[world];
    let mut module = wit_component::dummy_module(&resolve, world, wit_parser::ManglingAndAbi::Standard32);
    wit_component::embed_component_metadata(
        &mut module,
        &resolve,
        world,
        wit_component::StringEncoding::UTF8,
    )
    .unwrap();
    wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

/// A guest is linked and its functions have the right types before `configure` is called: one that traps there has passed
/// both checks.
#[test]
fn every_world_of_every_version_is_linked_with_its_types() {
    let fixture = HooksFixture::new();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let mut served = 0;
    for (folder, version) in
        [("", WitVersion::V0_3), ("previous/0.2", WitVersion::V0_2), ("previous/0.1", WitVersion::V0_1)]
    {
        for hook in Hook::ALL {
            let is_newer = version != WitVersion::V0_3
                && matches!(hook, Hook::Screen | Hook::Lookup | Hook::Receipt | Hook::Peer | Hook::FrontEnd);
            if is_newer || version == WitVersion::V0_1 && hook != Hook::Router {
                continue;
            }
            let batch = match (version, hook) {
                (WitVersion::V0_3, Hook::Screen) => Some("batch-screen"),
                (WitVersion::V0_3, Hook::Router) => Some("batch-router"),
                (WitVersion::V0_3, Hook::Biller) => Some("batch-biller"),
                _ => None,
            };
            for world in [hook.name()].into_iter().chain(batch) {
                let component = trapping_component(&wit.join(folder), world);
                let plugin = format!("{world}-{}", version.number().replace('.', "-"));
                let info = fixture.hooks.upload(&plugin, &component, None).unwrap();
                assert_eq!((info.hook, info.wit), (hook, version));
                let binding = Binding::new(&plugin, &info.version, "");
                let refused = fixture.hooks.activate(hook, NOW, vec![binding], None).unwrap_err();
                let HookError::Faulty { stage, why, .. } = &refused else { panic!("{plugin}: {refused}") };
                assert_eq!((*stage, why.contains("unreachable")), ("configuration", true), "{plugin}: {why}");
                served += 1;
            }
        }
    }
    assert_eq!(served, 17);
}

#[test]
fn a_0_1_and_a_0_3_router_serve_in_one_chain() {
    let fixture = HooksFixture::new();
    let old = with_long_deadline(fixture.binding("test_old_router", "north"));
    let new = with_long_deadline(fixture.binding("prefix_router", &route_all_to("south")));
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"reserve\" }]\n";
    let guard = Binding { policy: passes.to_owned(), ..new.clone() };
    let half = TrialMode::Canary { share: 5_000 };
    for (live, canary, at_home, abroad) in [(&new, &old, "south", "north"), (&old, &new, "north", "south")] {
        fixture.hooks.activate(Hook::Router, NOW, vec![guard.clone(), live.clone()], None).unwrap();
        fixture
            .hooks
            .start_trial(Hook::Router, NOW, half, vec![guard.clone(), canary.clone()], None)
            .unwrap();
        let numbers = || (0..400).map(|number| format!("86139{number:08}"));
        let went: Vec<String> = numbers().map(|number| destination_peer(&fixture, &number)).collect();
        let share = went.iter().filter(|peer| *peer == abroad).count();
        assert_eq!(went.iter().filter(|peer| *peer == at_home).count(), 400 - share);
        assert!((120..280).contains(&share), "{share} of 400");
        assert_eq!(destination_peer(&fixture, "9912345"), "reserve", "the guard is the same in both");
        fixture.hooks.promote(Hook::Router, NOW, None).unwrap();
        assert_eq!(destination_peer(&fixture, "8613012345678"), abroad);
    }
    // In shadow it agrees if both forward to the same peer.
    let agrees = Binding { policy: "south".to_owned(), ..old };
    fixture.hooks.start_trial(Hook::Router, NOW, TrialMode::Shadow, vec![agrees], None).unwrap();
    assert_eq!(destination_peer(&fixture, "8613012345678"), "south");
    let comparison = || fixture.hooks.status(Hook::Router).candidate.unwrap().comparison.unwrap();
    wait_until("it is compared", || comparison().compared == 1);
    let differences = comparison().differences;
    assert_eq!(comparison().same, 1, "{differences:?}");
}
