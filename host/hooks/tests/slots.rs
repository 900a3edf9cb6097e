//! Candidates beside what is live: in shadow, as a canary, promoted and dismissed; and what takes itself back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{
    Binding, CandidateState, Comparison, HookError, HookState, Hooks, How, OnFault, Tolerance, Trying,
};
use model::{Hook, RejectReason, Timestamp, Verdict};
use std::collections::HashSet;
use std::time::Duration;
use support::{FORCED, House, NOW, everything_to, message, open, patient, peers, until};

const SHADOW: Trying = Trying::Shadow;
const HALF: Trying = Trying::Canary { share: 5_000 };
const ALL: Trying = Trying::Canary { share: 10_000 };

fn activate(house: &House, chain: &[&Binding]) {
    let chain = chain.iter().copied().cloned().collect();
    house.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
}

fn try_out(house: &House, trying: Trying, chain: &[&Binding]) {
    let chain = chain.iter().copied().cloned().collect();
    house.hooks.try_out(Hook::Router, NOW, trying, chain, None).unwrap();
}

fn state(house: &House) -> HookState {
    house.hooks.state(Hook::Router)
}

fn candidate(house: &House) -> CandidateState {
    state(house).candidate.expect("a candidate is on trial")
}

fn comparison(house: &House) -> Comparison {
    candidate(house).comparison.expect("it is in shadow")
}

/// Kinds of events, the newest first.
fn kinds(house: &House) -> Vec<String> {
    state(house).events.into_iter().map(|event| event.kind).collect()
}

/// The number of calls of each plugin at work, the live ones first.
fn calls(house: &House) -> Vec<u64> {
    house.hooks.counts(Hook::Router).iter().map(|one| one.counts.calls).collect()
}

/// Two faults are too many.
fn impatient(binding: Binding) -> Binding {
    Binding { tolerance: Tolerance { faults: 2, window_ms: 3_600_000 }, ..binding }
}

/// Nothing is ever too many.
fn tolerant(binding: Binding) -> Binding {
    Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn go(house: &House, source: &str, destination: &str) -> Vec<model::PeerId> {
    peers(&house.hooks.route(&message(source, destination), NOW))
}

/// Destinations, all different.
fn number(of: u64) -> String {
    format!("86139{of:08}")
}

#[test]
fn a_shadow_compares_every_answer_and_uses_none() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    let split = "[[route]]\nprefix = \"861390000\"\nlegs = [{ peer = \"south\" }]\n[default]\nlegs = [{ peer = \"north\" }]\n";
    let other = Binding { policy: split.to_owned(), ..live.clone() };
    activate(&house, &[&live]);
    try_out(&house, SHADOW, &[&other]);
    // 0 to 9,999 begin with 861390000; the others do not.
    let asked: Vec<String> = (9_970..10_070).map(number).collect();
    for destination in &asked {
        assert_eq!(go(&house, "good", destination), [house.peer("north")]);
    }
    until("all are compared", || comparison(&house).compared == 100);
    let comparison = comparison(&house);
    assert_eq!((comparison.same, comparison.different, comparison.skipped), (70, 30, 0));
    let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
    assert_eq!((&*difference.from, &*difference.to), ("forward north", "forward south"));
    assert_eq!((difference.count, difference.samples.len()), (30, 5));
    for sample in &difference.samples {
        assert!(sample.starts_with("acme: "), "{sample}");
        assert!(!asked.iter().any(|number| sample.contains(&**number)), "a number is shown: {sample}");
    }
    assert_eq!(calls(&house), [100, 100]);
    let state = state(&house);
    assert_eq!((state.counts[0].live, state.candidate.unwrap().counts[0].live), (true, false));
}

#[test]
fn a_shadow_that_fails_costs_no_message_and_is_told_apart() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    activate(&house, &[&live]);
    for (guest, kind) in [
        ("test_trap", "trap"),
        ("test_loop", "deadline"),
        ("test_hog", "memory"),
        ("test_badpeer", "verdict"),
    ] {
        let candidate = tolerant(house.binding(guest, "north"));
        // A loop is waited for to its end; the others are to have all the time they need.
        let candidate = if guest == "test_loop" { candidate } else { patient(candidate) };
        try_out(&house, SHADOW, &[&candidate]);
        for source in ["bad", "good", "bad"] {
            assert_eq!(go(&house, source, "8613012345678"), [house.peer("north")]);
        }
        until("all are compared", || comparison(&house).compared == 3);
        let comparison = comparison(&house);
        assert_eq!((comparison.same, comparison.different), (1, 2), "{comparison:?}");
        let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
        assert_eq!((&*difference.from, &*difference.to), ("forward north", &*format!("fault ({kind})")));
    }
    assert_eq!(house.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}

#[test]
fn a_shadow_that_is_slow_skips_and_says_so() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    activate(&house, &[&live]);
    // It does not return for an hour; the queue behind it is full long before.
    let stuck = house.binding("test_loop", "north");
    let stuck = tolerant(Binding { deadline: Duration::from_secs(3_600), ..stuck });
    try_out(&house, SHADOW, &[&stuck]);
    for _ in 0..5_000 {
        assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("north")]);
    }
    let comparison = comparison(&house);
    // One is being asked, 4,096 wait.
    assert_eq!(comparison.compared, 0);
    assert!((5_000 - 4_097..=5_000 - 4_096).contains(&comparison.skipped), "{comparison:?}");
    house.hooks.dismiss(Hook::Router, NOW).unwrap();
    assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("north")]);
}

#[test]
fn where_neither_decides_they_agree_and_where_both_fail_they_do_not() {
    let house = House::new();
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"north\" }]\n";
    let live = patient(house.binding("prefix_router", passes));
    activate(&house, &[&live]);
    try_out(&house, SHADOW, &[&live]);
    assert_eq!(house.route("good").verdict, Verdict::Reject(RejectReason::NoRoute));
    until("it is compared", || comparison(&house).compared == 1);
    assert_eq!(comparison(&house).same, 1);

    let trap = tolerant(patient(house.binding("test_trap", "north")));
    activate(&house, &[&trap]);
    try_out(&house, SHADOW, &[&trap]);
    assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    until("it is compared", || comparison(&house).compared == 1);
    let [difference] = &comparison(&house).differences[..] else { panic!("{:?}", comparison(&house)) };
    assert_eq!((&*difference.from, &*difference.to), ("fault (trap)", "fault (trap)"));
}

#[test]
fn a_shadow_counts_for_itself_from_nothing() {
    for record in [false, true] {
        let house = House::recording(record);
        let live = patient(house.binding("test_peeper", "north"));
        let counted = || house.route("good").note.expect("the peeper's note");
        activate(&house, &[&live]);
        assert!(counted().contains("seen 0 then 1"));
        for round in 0..2 {
            // The candidate forwards elsewhere and so differs, always.
            let other = Binding { policy: "south".to_owned(), ..live.clone() };
            try_out(&house, SHADOW, &[&other]);
            let before = counted();
            until("it is compared", || comparison(&house).compared == 1);
            let after = counted();
            let (one, two) = (2 + 2 * round, 3 + 2 * round);
            assert!(before.contains(&format!("then {one},")), "{record}: {before}");
            assert!(after.contains(&format!("then {two},")), "{record}: {after}");
            until("it is compared", || comparison(&house).compared == 2);
            // What it counted: two, however often there was a candidate before.
            let spaces = house.counters.metrics();
            let shadow = spaces.iter().find(|(name, _)| name == "test_peeper#shadow");
            assert_eq!(shadow.map(|(_, metrics)| metrics.entries), Some(1), "{record}: {spaces:?}");
            let window = Duration::from_secs(60);
            let sum = |space: &str| house.counters.sum(space, "seen", "8613012345678", window, NOW);
            assert_eq!((sum("test_peeper#shadow"), sum("test_peeper")), (2, two), "{record}");
        }
        house.hooks.dismiss(Hook::Router, NOW).unwrap();
        assert!(house.counters.metrics().iter().all(|(name, _)| name != "test_peeper#shadow"));
    }
}

#[test]
fn a_canary_gets_its_share_of_numbers_and_always_the_same_ones() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    let other = Binding { policy: everything_to("south"), ..live.clone() };
    activate(&house, &[&live]);
    let south = house.peer("south");
    let chosen = |share| -> HashSet<u64> {
        try_out(&house, Trying::Canary { share }, &[&other]);
        (0..100_000).filter(|of| go(&house, "good", &number(*of)) == [south]).collect()
    };
    let tenth = chosen(1_000);
    assert!(tenth.len().abs_diff(10_000) < 1_000, "{} of 100,000", tenth.len());
    let state = candidate(&house);
    assert_eq!((state.asked, state.failed), (tenth.len() as u64, 0));
    assert_eq!(state.asked + state.passed, 100_000);
    // Whoever is chosen stays chosen: in the next trial, in a larger share, and after a restart.
    let house = house.restart();
    let again = |of: &u64| go(&house, "good", &number(*of)) == [south];
    assert!(tenth.iter().take(1_000).all(again));
    assert!((0..1_000).filter(|of| !tenth.contains(of)).all(|of| !again(&of)));
    try_out(&house, HALF, &[&other]);
    assert!(tenth.iter().take(1_000).all(again));
    for share in [0, 10_001] {
        let refused =
            house.hooks.try_out(Hook::Router, NOW, Trying::Canary { share }, vec![other.clone()], None);
        assert!(matches!(refused, Err(HookError::BadShare)));
    }
    assert_eq!(candidate(&house).record.trying, HALF, "what is refused changes nothing");
}

#[test]
fn a_canary_that_faults_is_answered_by_the_live_chain_whatever_its_binding_says() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    activate(&house, &[&live]);
    for on_fault in [OnFault::Hold, OnFault::Reject, OnFault::Peer("reserve".to_owned()), OnFault::Pass] {
        let canary = tolerant(patient(house.binding("test_trap", "south")));
        let canary = Binding { on_fault, ..canary };
        try_out(&house, ALL, &[&canary]);
        assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);
        assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("north")], "{:?}", canary.on_fault);
        let state = candidate(&house);
        assert_eq!((state.asked, state.failed, state.passed), (2, 1, 0));
    }
}

#[test]
fn a_canary_that_fails_too_often_goes_by_itself_and_no_message_is_lost() {
    let house = House::new();
    let live = patient(house.binding("prefix_router", &everything_to("north")));
    activate(&house, &[&live]);
    let canary = impatient(patient(house.binding("test_trap", "south")));
    try_out(&house, ALL, &[&canary]);
    for _ in 0..2 {
        assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("north")]);
    }
    // At once, whether or not the steward has been there yet: nobody is given to it any more.
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")]);
    until("it is gone", || kinds(&house)[0] == "candidate-faulty");
    assert_eq!(candidate_of(&house), None);
    let event = &state(&house).events[0];
    assert_eq!(event.kind, "candidate-faulty");
    assert!(event.what.contains("test_trap") && event.what.contains("2 trap faults"), "{}", event.what);
    assert_eq!(house.hooks.history(Hook::Router).len(), 1);
    let house = house.restart();
    assert!(state(&house).candidate.is_none());
}

#[test]
fn what_a_canary_leaves_unchanged_is_shared_and_what_fails_there_is_no_fault_of_the_canary() {
    let house = House::new();
    let guard = patient(house.binding("test_trap", "north"));
    let passing = Binding {
        policy: "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"north\" }]\n".to_owned(),
        ..patient(house.binding("prefix_router", ""))
    };
    let north = Binding { policy: everything_to("north"), ..passing.clone() };
    let south = Binding { policy: everything_to("south"), ..passing.clone() };
    activate(&house, &[&passing, &north]);
    try_out(&house, ALL, &[&passing, &south]);
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);
    // The one that passes is one and the same; the canary's own is counted apart.
    assert_eq!(calls(&house), [1, 0, 1]);
    assert_eq!(candidate(&house).counts.len(), 1);

    let guard = tolerant(Binding { on_fault: OnFault::Pass, ..guard });
    activate(&house, &[&guard, &north]);
    try_out(&house, ALL, &[&guard, &south]);
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")], "the guard decides");
    assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("south")], "the guard is passed over");
    assert_eq!(calls(&house), [2, 0, 1]);
    assert_eq!(candidate(&house).failed, 0);
    let guard = Binding { on_fault: OnFault::Reject, ..guard };
    activate(&house, &[&guard, &north]);
    try_out(&house, ALL, &[&guard, &south]);
    assert_eq!(house.route("bad").verdict, Verdict::Reject(RejectReason::Fault));
    assert_eq!(
        (calls(&house), candidate(&house).failed),
        (vec![1, 0, 0], 0),
        "it is asked once, and answers for itself"
    );
}

#[test]
fn a_live_plugin_that_fails_too_often_is_taken_back_and_never_gone_back_to() {
    let house = House::new();
    let good = patient(house.binding("prefix_router", &everything_to("north")));
    let trap = impatient(patient(house.binding("test_trap", "south")));
    let badpeer = impatient(patient(house.binding("test_badpeer", "south")));
    let bad_peer_after_good = [&good, &badpeer];
    activate(&house, &[&good]);
    activate(&house, &bad_peer_after_good);
    activate(&house, &[&badpeer]);
    activate(&house, &[&trap]);
    let live = || state(&house).live;
    let fail = |how: u64| {
        for _ in 0..2 {
            assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
        }
        until("it is taken back", || live().serial == how);
    };
    // One fault less than too many changes nothing.
    assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    assert_eq!(live().chain, std::slice::from_ref(&trap));
    assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    until("it is taken back", || live().serial == 5);
    assert_eq!((live().chain, live().how), (vec![badpeer.clone()], How::RolledBackByItself));
    let condemned = house.hooks.history(Hook::Router)[3].condemned.clone().unwrap();
    assert!(condemned.contains("test_trap") && condemned.contains("2 trap faults"), "{condemned}");

    // The next one back contains what has just failed, and the one before that is what is left.
    fail(6);
    assert_eq!((live().chain, live().how), (vec![good.clone()], How::RolledBackByItself));
    assert_eq!(go(&house, "bad", "8613012345678"), [house.peer("north")]);
    let words = &state(&house).events[0];
    assert_eq!(words.kind, "rolled-back-by-itself");
    assert!(
        words.what.contains("prefix_router") && words.what.contains("2 verdict faults"),
        "{}",
        words.what
    );

    // An admin's way back leads past what was condemned; an admin who wants it all the same can activate it.
    let back = house.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(back.chain, [good.clone(), badpeer.clone()]);
    activate(&house, &[&trap]);
    let house = house.restart();
    for _ in 0..2 {
        assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    }
    until("it is taken back", || state(&house).live.serial == 9);
    assert_eq!(state(&house).live.chain, [good, badpeer]);
}

#[test]
fn with_nothing_to_go_back_to_it_serves_on_and_says_so() {
    let house = House::new();
    let trap = impatient(patient(house.binding("test_trap", "south")));
    activate(&house, &[&trap]);
    for _ in 0..2 {
        assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    }
    until("it is told", || kinds(&house)[0] == "faulty");
    // It goes on and on, and that is not told again and again.
    for _ in 0..100 {
        assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
        assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);
    }
    assert_eq!(kinds(&house), ["faulty", "activated"]);
    let event = &state(&house).events[0];
    assert!(event.what.contains("there is nothing to go back to"), "{}", event.what);
    assert_eq!(house.hooks.history(Hook::Router).len(), 1);
    assert!(matches!(house.hooks.rollback(Hook::Router, NOW), Err(HookError::NothingBefore)));
}

#[test]
fn a_way_back_that_does_not_start_is_passed_over() {
    let house = House::new();
    let oldest = patient(house.binding("prefix_router", &everything_to("north")));
    let broken = patient(house.binding("test_peeper", "north"));
    let trap = impatient(patient(house.binding("test_trap", "south")));
    activate(&house, &[&oldest]);
    activate(&house, &[&broken]);
    // Twice, so that what was live before is not warm any more.
    activate(&house, &[&trap]);
    activate(&house, &[&trap]);
    let path = house.folder.path().join(format!("components/test_peeper/{}.wasm", broken.version));
    std::fs::write(path, b"rubbish").unwrap();
    for _ in 0..2 {
        assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    }
    until("it is taken back", || state(&house).live.how == How::RolledBackByItself);
    assert_eq!(state(&house).live.chain, [oldest]);
}

#[test]
fn a_candidate_that_shares_what_was_taken_back_goes_with_it() {
    let house = House::new();
    let good = patient(house.binding("prefix_router", &everything_to("north")));
    let trap = impatient(patient(house.binding("test_trap", "north")));
    activate(&house, &[&good]);
    activate(&house, &[&trap, &good]);
    try_out(&house, HALF, &[&trap, &Binding { policy: everything_to("south"), ..good.clone() }]);
    for _ in 0..2 {
        assert!(matches!(house.route("bad").verdict, Verdict::Hold(_)));
    }
    until("both are gone", || {
        let state = state(&house);
        state.events[0].kind == "candidate-faulty" && state.live.chain == [good.clone()]
    });
    assert_eq!(candidate_of(&house), None);
    assert_eq!(kinds(&house)[..2], ["candidate-faulty", "rolled-back-by-itself"]);
}

#[test]
fn a_candidate_is_promoted_or_dismissed_and_events_tell_all_of_it() {
    let house = House::new();
    let north = patient(house.binding("prefix_router", &everything_to("north")));
    let south = Binding { policy: everything_to("south"), ..north.clone() };
    let hooks: &Hooks = &house.hooks;
    let nothing = |result: Result<(), HookError>| assert!(matches!(result, Err(HookError::NoCandidate)));
    activate(&house, &[&north]);
    nothing(hooks.promote(Hook::Router, NOW, None).map(drop));
    nothing(hooks.dismiss(Hook::Router, NOW));

    try_out(&house, SHADOW, &[&south]);
    let promoted = hooks.promote(Hook::Router, NOW, Some(1)).unwrap();
    assert_eq!((promoted.serial, promoted.how, &promoted.chain), (2, How::Promoted, &vec![south.clone()]));
    assert!(state(&house).candidate.is_none());
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);

    try_out(&house, ALL, &[&north]);
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")]);
    hooks.promote(Hook::Router, NOW, Some(2)).unwrap();
    // The very instances that were the canary: their counts go on.
    assert_eq!((calls(&house), candidate_of(&house)), (vec![1], None));

    try_out(&house, ALL, &[&south]);
    hooks.dismiss(Hook::Router, NOW).unwrap();
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")]);
    nothing(hooks.dismiss(Hook::Router, NOW));

    hooks.rollback(Hook::Router, NOW).unwrap();
    hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")], "a rollback of a rollback");
    hooks.unbind(Hook::Router, NOW).unwrap();
    let told = [
        "activated",
        "candidate",
        "promoted",
        "candidate",
        "promoted",
        "candidate",
        "candidate-ended",
        "rolled-back",
        "rolled-back",
        "unbound",
    ];
    let mut found = kinds(&house);
    found.reverse();
    assert_eq!(found, told);
    let house = house.restart();
    let mut found = kinds(&house);
    found.reverse();
    assert_eq!(found, told, "also after a restart");
    assert!(!house.hooks.is_bound(Hook::Router));
}

fn candidate_of(house: &House) -> Option<Vec<Binding>> {
    state(house).candidate.map(|candidate| candidate.record.chain)
}

#[test]
fn a_trial_goes_on_after_a_restart() {
    let house = House::new();
    let north = patient(house.binding("prefix_router", &everything_to("north")));
    let south = Binding { policy: everything_to("south"), ..north.clone() };
    activate(&house, &[&north]);
    try_out(&house, ALL, &[&south]);
    let house = house.restart();
    assert_eq!(candidate(&house).record.trying, ALL);
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);
    try_out(&house, SHADOW, &[&south]);
    let house = house.restart();
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")]);
    until("it is compared", || comparison(&house).different == 1);
}

#[test]
fn a_candidate_that_does_not_start_after_a_restart_is_gone_and_told() {
    let house = House::new();
    let north = patient(house.binding("prefix_router", &everything_to("north")));
    activate(&house, &[&north]);
    let candidate = patient(house.binding("test_trap", "south"));
    try_out(&house, ALL, &[&candidate]);
    let path = house.folder.path().join(format!("components/test_trap/{}.wasm", candidate.version));
    std::fs::write(&path, b"rubbish").unwrap();
    let house = house.restart();
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("north")]);
    assert_eq!(candidate_of(&house), None);
    let event = &state(&house).events[0];
    assert_eq!(event.kind, "candidate-faulty");
    assert!(event.what.contains("damaged"), "{}", event.what);
}

#[test]
fn of_two_admins_who_saw_the_same_one_is_told_that_it_has_changed() {
    let house = House::new();
    let north = patient(house.binding("prefix_router", &everything_to("north")));
    let south = Binding { policy: everything_to("south"), ..north.clone() };
    activate(&house, &[&north]);
    let hooks = &house.hooks;
    let results: Vec<Result<u64, HookError>> = std::thread::scope(|scope| {
        let admins: Vec<_> = [&north, &south]
            .map(|binding| {
                scope.spawn(move || {
                    let record = hooks.activate(Hook::Router, NOW, vec![binding.clone()], Some(1));
                    record.map(|record| record.serial)
                })
            })
            .into_iter()
            .collect();
        admins.into_iter().map(|admin| admin.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| matches!(result, Ok(2))).count(), 1, "{results:?}");
    let late = results.iter().find_map(|result| result.as_ref().err()).expect("one is late");
    assert!(matches!(late, HookError::Changed { expected: 1, found: 2, .. }), "{late}");
    let changed = |result: Result<(), HookError>| assert!(matches!(result, Err(HookError::Changed { .. })));
    changed(hooks.try_out(Hook::Router, NOW, ALL, vec![south.clone()], Some(1)).map(drop));
    try_out(&house, ALL, &[&south]);
    changed(hooks.promote(Hook::Router, NOW, Some(1)).map(drop));
    assert_eq!(hooks.history(Hook::Router).len(), 2);
    hooks.promote(Hook::Router, NOW, Some(2)).unwrap();
}

#[test]
fn a_candidate_that_cannot_start_leaves_the_one_before_it_on_trial() {
    let house = House::new();
    let north = patient(house.binding("prefix_router", &everything_to("north")));
    let south = Binding { policy: everything_to("south"), ..north.clone() };
    activate(&house, &[&north]);
    try_out(&house, ALL, &[&south]);
    let refuse = |trying| {
        let refused = Binding { policy: "no policy".to_owned(), ..north.clone() };
        house.hooks.try_out(Hook::Router, NOW, trying, vec![refused], None).unwrap_err()
    };
    for trying in [SHADOW, ALL] {
        assert!(matches!(refuse(trying), HookError::Refused { .. }));
    }
    assert_eq!(candidate_of(&house), Some(vec![south]));
    assert_eq!(go(&house, "good", "8613012345678"), [house.peer("south")]);
    assert_eq!(kinds(&house), ["candidate", "activated"]);
}

#[test]
fn what_happened_is_dated() {
    let house = House::new();
    let north = house.binding("prefix_router", &everything_to("north"));
    let then = Timestamp(NOW.0 + 5);
    house.hooks.activate(Hook::Router, then, vec![north], None).unwrap();
    assert_eq!(state(&house).events[0].at, then);
    assert_eq!(state(&house).live.since, then);
    drop(open(house.folder.path()));
}

/// Not a message of such a rule would arrive, so nobody makes it live by mistake.
#[test]
fn a_policy_that_names_an_unknown_peer_is_refused_unless_it_is_forced() {
    let house = House::new();
    let good = house.binding("prefix_router", &everything_to("north"));
    activate(&house, &[&good]);
    let wrong = Binding { policy: everything_to("nort"), ..good.clone() };
    let refused = house.hooks.activate(Hook::Router, NOW, vec![wrong.clone()], None).unwrap_err();
    assert!(refused.to_string().contains("prefix_router names peer \"nort\""), "{refused}");
    for trying in [SHADOW, HALF] {
        let refused = house.hooks.try_out(Hook::Router, NOW, trying, vec![wrong.clone()], None).unwrap_err();
        assert!(matches!(refused, HookError::UnknownReferences { .. }), "{refused}");
    }
    assert!(state(&house).candidate.is_none() && state(&house).unknown.is_empty());

    house.hooks.activate(Hook::Router, NOW, vec![wrong], FORCED).unwrap();
    let unknown = state(&house).unknown;
    assert_eq!((unknown.len(), unknown[0].reference.name.as_str()), (1, "nort"));
    // What was live may be gone back to in any case.
    let house = house.restart();
    house.hooks.rollback(Hook::Router, NOW).unwrap();
    assert!(state(&house).unknown.is_empty());
}

#[test]
fn a_component_that_imports_what_is_not_granted_is_refused_unless_it_is_forced() {
    let house = House::new();
    let policy = "url = \"http://127.0.0.1:9/{msisdn}\"\n";
    let bare = house.binding("http_resolver", policy);
    let refused = house.hooks.activate(Hook::Resolver, NOW, vec![bare.clone()], None).unwrap_err();
    assert!(refused.to_string().contains("imports http"), "{refused}");
    let mut granted = bare.clone();
    granted.grants.http = vec!["http://127.0.0.1:9/".to_owned()];
    house.hooks.activate(Hook::Resolver, NOW, vec![granted], None).unwrap();
    house.hooks.activate(Hook::Resolver, NOW, vec![bare], FORCED).unwrap();
}
