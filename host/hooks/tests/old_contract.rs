//! Plugins built for the previous version of the contract.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, HookError, InstanceUse, Trying, Wit};
use model::Hook;
use support::{House, NOW, everything_to, message, patient, peers, until};

fn goes_to(house: &House, destination: &str) -> String {
    let routed = house.hooks.route(&message("good", destination), NOW);
    let [peer] = peers(&routed)[..] else { panic!("{routed:?}") };
    house.directory.load().name(peer).to_string()
}

#[test]
fn an_old_router_serves_and_is_known_as_one() {
    let house = House::new();
    let old = patient(house.binding("test_old_router", "north"));
    let new = house.binding("prefix_router", "");
    let versions = house.hooks.versions().unwrap();
    let of = |plugin: &str| versions.iter().find(|info| info.plugin == plugin).unwrap();
    assert_eq!((of("test_old_router").wit, of("test_old_router").hook), (Wit::V0_1, Hook::Router));
    assert_eq!((of("prefix_router").wit, of("prefix_router").version.as_str()), (Wit::V0_2, &*new.version));
    assert_eq!((Wit::V0_1.number(), Wit::V0_2.number()), ("0.1.0", "0.2.0"));
    assert!(of("test_old_router").imports.iter().all(|import| import.ends_with("@0.1.0")));

    for instance in [InstanceUse::Warm, InstanceUse::PerCall] {
        let old = Binding { instance, ..old.clone() };
        house.hooks.activate(Hook::Router, NOW, vec![old], None).unwrap();
        let routed = house.route("good");
        assert_eq!(
            (peers(&routed), routed.note.as_deref()),
            (vec![house.peer("north")], Some("by an old router"))
        );
    }
    let house = house.restart();
    assert_eq!(goes_to(&house, "8613012345678"), "north");
    // What it asks while it is configured, and what it says of its document, is served too.
    let empty = Binding { policy: String::new(), ..old.clone() };
    let refused = house.hooks.activate(Hook::Router, NOW, vec![empty], None).unwrap_err();
    assert!(
        matches!(&refused, HookError::Refused { why, .. } if why.contains("the name of a peer")),
        "{refused}"
    );
    let no_rows = Binding { table_rows: 0, ..old.clone() };
    let refused = house.hooks.activate(Hook::Router, NOW, vec![no_rows], None).unwrap_err();
    assert!(matches!(&refused, HookError::Refused { why, .. } if why.contains("rows")), "{refused}");
    let unknown = Binding { policy: "nowhere".to_owned(), ..old };
    house.hooks.activate(Hook::Router, NOW, vec![unknown], None).unwrap();
    let note = house.route("good").note.unwrap();
    assert!(note.starts_with("fault (verdict)"), "{note}");
}

#[test]
fn an_old_router_and_a_new_one_stand_beside_each_other() {
    let house = House::new();
    let old = patient(house.binding("test_old_router", "north"));
    let new = patient(house.binding("prefix_router", &everything_to("south")));
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"reserve\" }]\n";
    let guard = Binding { policy: passes.to_owned(), ..new.clone() };
    let half = Trying::Canary { share: 5_000 };
    for (live, canary, at_home, abroad) in [(&new, &old, "south", "north"), (&old, &new, "north", "south")] {
        house.hooks.activate(Hook::Router, NOW, vec![guard.clone(), live.clone()], None).unwrap();
        house.hooks.try_out(Hook::Router, NOW, half, vec![guard.clone(), canary.clone()], None).unwrap();
        let numbers = || (0..400).map(|number| format!("86139{number:08}"));
        let went: Vec<String> = numbers().map(|number| goes_to(&house, &number)).collect();
        let share = went.iter().filter(|peer| *peer == abroad).count();
        assert_eq!(went.iter().filter(|peer| *peer == at_home).count(), 400 - share);
        assert!((120..280).contains(&share), "{share} of 400");
        assert_eq!(goes_to(&house, "9912345"), "reserve", "the guard is the same in both");
        house.hooks.promote(Hook::Router, NOW, None).unwrap();
        assert_eq!(goes_to(&house, "8613012345678"), abroad);
    }
    // In shadow, one agrees with the other where both go to one peer.
    let agrees = Binding { policy: "south".to_owned(), ..old };
    house.hooks.try_out(Hook::Router, NOW, Trying::Shadow, vec![agrees], None).unwrap();
    assert_eq!(goes_to(&house, "8613012345678"), "south");
    let comparison = || house.hooks.state(Hook::Router).candidate.unwrap().comparison.unwrap();
    until("it is compared", || comparison().compared == 1);
    let differences = comparison().differences;
    assert_eq!(comparison().same, 1, "{differences:?}");
}
