//! Plugins built for the previous contract version.

use crate::support::{
    HooksFixture, NOW, forwarded_peers, message, route_all_to, wait_until, with_long_deadline,
};
use hooks::{Binding, HookError, InstanceUse, TrialMode, WitVersion};
use model::Hook;

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
        (WitVersion::V0_2, &*new.version)
    );
    assert_eq!((WitVersion::V0_1.number(), WitVersion::V0_2.number()), ("0.1.0", "0.2.0"));
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
fn a_0_1_and_a_0_2_router_serve_in_one_chain() {
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
