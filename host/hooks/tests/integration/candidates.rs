//! Candidates for the live chain: in shadow, as a canary, promoted and dismissed; and automatic rollbacks.

use crate::support::{
    FORCED, HooksFixture, NOW, forwarded_peers, message, open, route_all_to, wait_until, with_long_deadline,
};
use hooks::{
    Binding, BindingChange, CandidateState, Comparison, HookError, HookStatus, Hooks, OnFault, Tolerance,
    TrialMode,
};
use model::{Hook, RejectReason, Timestamp, Verdict};
use std::collections::HashSet;
use std::time::Duration;

const SHADOW: TrialMode = TrialMode::Shadow;
const HALF: TrialMode = TrialMode::Canary { share: 5_000 };
const ALL: TrialMode = TrialMode::Canary { share: 10_000 };

fn activate(fixture: &HooksFixture, chain: &[&Binding]) {
    let chain = chain.iter().copied().cloned().collect();
    fixture.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
}

fn start_trial(fixture: &HooksFixture, mode: TrialMode, chain: &[&Binding]) {
    let chain = chain.iter().copied().cloned().collect();
    fixture.hooks.start_trial(Hook::Router, NOW, mode, chain, None).unwrap();
}

fn state(fixture: &HooksFixture) -> HookStatus {
    fixture.hooks.status(Hook::Router)
}

fn candidate(fixture: &HooksFixture) -> CandidateState {
    state(fixture).candidate.expect("a candidate is on trial")
}

fn comparison(fixture: &HooksFixture) -> Comparison {
    candidate(fixture).comparison.expect("it is in shadow")
}

/// Kinds of events, newest first.
fn kinds(fixture: &HooksFixture) -> Vec<String> {
    state(fixture).events.into_iter().map(|event| event.kind).collect()
}

/// The number of calls of each active plugin, live ones first.
fn calls(fixture: &HooksFixture) -> Vec<u64> {
    fixture.hooks.counts(Hook::Router).iter().map(|one| one.counts.calls).collect()
}

/// Two faults exceed the tolerance.
fn low_tolerance(binding: Binding) -> Binding {
    Binding { tolerance: Tolerance { faults: 2, window_ms: 3_600_000 }, ..binding }
}

/// No number of faults exceeds the tolerance.
fn no_rollback(binding: Binding) -> Binding {
    Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn routed_peers(fixture: &HooksFixture, source: &str, destination: &str) -> Vec<model::PeerId> {
    forwarded_peers(&fixture.hooks.route(&message(source, destination), NOW))
}

/// Distinct destinations.
fn number(of: u64) -> String {
    format!("86139{of:08}")
}

#[test]
fn a_shadow_is_compared_and_never_used() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let split = "[[route]]\nprefix = \"861390000\"\nlegs = [{ peer = \"south\" }]\n[default]\nlegs = [{ peer = \"north\" }]\n";
    let other = Binding { policy: split.to_owned(), ..live.clone() };
    activate(&fixture, &[&live]);
    start_trial(&fixture, SHADOW, &[&other]);
    // 0 to 9,999 begin with 861390000; the others do not.
    let asked: Vec<String> = (9_970..10_070).map(number).collect();
    for destination in &asked {
        assert_eq!(routed_peers(&fixture, "good", destination), [fixture.peer("north")]);
    }
    wait_until("all are compared", || comparison(&fixture).compared == 100);
    let comparison = comparison(&fixture);
    assert_eq!((comparison.same, comparison.different, comparison.skipped), (70, 30, 0));
    let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
    assert_eq!((&*difference.from, &*difference.to), ("forward north", "forward south"));
    assert_eq!((difference.count, difference.samples.len()), (30, 5));
    for sample in &difference.samples {
        assert!(sample.starts_with("acme: "), "{sample}");
        assert!(!asked.iter().any(|number| sample.contains(&**number)), "a number is shown: {sample}");
    }
    assert_eq!(calls(&fixture), [100, 100]);
    let state = state(&fixture);
    assert_eq!((state.counts[0].live, state.candidate.unwrap().counts[0].live), (true, false));
}

#[test]
fn a_failing_shadow_affects_no_message_and_is_reported() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    activate(&fixture, &[&live]);
    for (mood, kind) in
        [("trap", "trap"), ("loop", "deadline"), ("hog", "memory"), ("unknown-peer", "verdict")]
    {
        let candidate = no_rollback(fixture.moody(mood, "north"));
        // A loop runs into its deadline; the others get all the time they need.
        let candidate = if mood == "loop" { candidate } else { with_long_deadline(candidate) };
        start_trial(&fixture, SHADOW, &[&candidate]);
        for source in ["bad", "good", "bad"] {
            assert_eq!(routed_peers(&fixture, source, "8613012345678"), [fixture.peer("north")]);
        }
        wait_until("all are compared", || comparison(&fixture).compared == 3);
        let comparison = comparison(&fixture);
        assert_eq!((comparison.same, comparison.different), (1, 2), "{comparison:?}");
        let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
        assert_eq!((&*difference.from, &*difference.to), ("forward north", &*format!("fault ({kind})")));
    }
    assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}

#[test]
fn a_slow_shadow_skips_questions_and_counts_them() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    activate(&fixture, &[&live]);
    // Its call does not return for an hour: the queue of questions is full long before.
    let stuck = fixture.moody("loop", "north");
    let stuck = no_rollback(Binding { deadline: Duration::from_secs(3_600), ..stuck });
    start_trial(&fixture, SHADOW, &[&stuck]);
    for _ in 0..5_000 {
        assert_eq!(routed_peers(&fixture, "bad", "8613012345678"), [fixture.peer("north")]);
    }
    let comparison = comparison(&fixture);
    // One question is in progress, and 4,096 wait.
    assert_eq!(comparison.compared, 0);
    assert!((5_000 - 4_097..=5_000 - 4_096).contains(&comparison.skipped), "{comparison:?}");
    fixture.hooks.end_trial(Hook::Router, NOW).unwrap();
    assert_eq!(routed_peers(&fixture, "bad", "8613012345678"), [fixture.peer("north")]);
}

#[test]
fn two_undecided_chains_agree_and_two_faults_differ() {
    let fixture = HooksFixture::new();
    let passes = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"north\" }]\n";
    let live = with_long_deadline(fixture.binding("prefix_router", passes));
    activate(&fixture, &[&live]);
    start_trial(&fixture, SHADOW, &[&live]);
    assert_eq!(fixture.route("good").verdict, Verdict::Reject(RejectReason::NoRoute));
    wait_until("it is compared", || comparison(&fixture).compared == 1);
    assert_eq!(comparison(&fixture).same, 1);

    let trap = no_rollback(with_long_deadline(fixture.moody("trap", "north")));
    activate(&fixture, &[&trap]);
    start_trial(&fixture, SHADOW, &[&trap]);
    assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    wait_until("it is compared", || comparison(&fixture).compared == 1);
    let [difference] = &comparison(&fixture).differences[..] else { panic!("{:?}", comparison(&fixture)) };
    assert_eq!((&*difference.from, &*difference.to), ("fault (trap)", "fault (trap)"));
}

#[test]
fn a_shadow_has_its_own_counters() {
    for record in [false, true] {
        let fixture = HooksFixture::recording(record);
        let live = with_long_deadline(fixture.binding("test_peeper", "north"));
        let counted = || fixture.route("good").note.expect("the peeper's note");
        activate(&fixture, &[&live]);
        assert!(counted().contains("seen 0 then 1"));
        for round in 0..2 {
            // The candidate forwards elsewhere and so always differs.
            let other = Binding { policy: "south".to_owned(), ..live.clone() };
            start_trial(&fixture, SHADOW, &[&other]);
            let before = counted();
            wait_until("it is compared", || comparison(&fixture).compared == 1);
            let after = counted();
            let (one, two) = (2 + 2 * round, 3 + 2 * round);
            assert!(before.contains(&format!("then {one},")), "{record}: {before}");
            assert!(after.contains(&format!("then {two},")), "{record}: {after}");
            wait_until("it is compared", || comparison(&fixture).compared == 2);
            // The candidate's count is two in each round: the counts of earlier candidates are gone.
            let spaces = fixture.counters.metrics();
            let shadow = spaces.iter().find(|(name, _)| name == "test_peeper#shadow");
            assert_eq!(shadow.map(|(_, metrics)| metrics.entries), Some(1), "{record}: {spaces:?}");
            let window = Duration::from_secs(60);
            let sum = |space: &str| fixture.counters.sum(space, "seen", "8613012345678", window, NOW);
            assert_eq!((sum("test_peeper#shadow"), sum("test_peeper")), (2, two), "{record}");
        }
        fixture.hooks.end_trial(Hook::Router, NOW).unwrap();
        assert!(fixture.counters.metrics().iter().all(|(name, _)| name != "test_peeper#shadow"));
    }
}

#[test]
fn a_canary_gets_a_stable_share_of_numbers() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let other = Binding { policy: route_all_to("south"), ..live.clone() };
    activate(&fixture, &[&live]);
    let south = fixture.peer("south");
    let chosen = |share| -> HashSet<u64> {
        start_trial(&fixture, TrialMode::Canary { share }, &[&other]);
        (0..100_000).filter(|of| routed_peers(&fixture, "good", &number(*of)) == [south]).collect()
    };
    let tenth = chosen(1_000);
    assert!(tenth.len().abs_diff(10_000) < 1_000, "{} of 100,000", tenth.len());
    let state = candidate(&fixture);
    assert_eq!((state.asked, state.failed), (tenth.len() as u64, 0));
    assert_eq!(state.asked + state.bypassed, 100_000);
    // A number in the canary's share stays in it: in the next trial, in a larger share, and after a restart.
    let fixture = fixture.restart();
    let again = |of: &u64| routed_peers(&fixture, "good", &number(*of)) == [south];
    assert!(tenth.iter().take(1_000).all(again));
    assert!((0..1_000).filter(|of| !tenth.contains(of)).all(|of| !again(&of)));
    start_trial(&fixture, HALF, &[&other]);
    assert!(tenth.iter().take(1_000).all(again));
    for share in [0, 10_001] {
        let refused = fixture.hooks.start_trial(
            Hook::Router,
            NOW,
            TrialMode::Canary { share },
            vec![other.clone()],
            None,
        );
        assert!(matches!(refused, Err(HookError::BadShare)));
    }
    assert_eq!(candidate(&fixture).record.mode, HALF, "a refused trial changes nothing");
}

#[test]
fn a_canary_fault_falls_back_to_the_live_chain() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    activate(&fixture, &[&live]);
    for on_fault in [OnFault::Hold, OnFault::Reject, OnFault::Peer("reserve".to_owned()), OnFault::Pass] {
        let canary = no_rollback(with_long_deadline(fixture.moody("trap", "south")));
        let canary = Binding { on_fault, ..canary };
        start_trial(&fixture, ALL, &[&canary]);
        assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);
        assert_eq!(
            routed_peers(&fixture, "bad", "8613012345678"),
            [fixture.peer("north")],
            "{:?}",
            canary.on_fault
        );
        let state = candidate(&fixture);
        assert_eq!((state.asked, state.failed, state.bypassed), (2, 1, 0));
    }
}

#[test]
fn a_failing_canary_is_dismissed_automatically() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    activate(&fixture, &[&live]);
    let canary = low_tolerance(with_long_deadline(fixture.moody("trap", "south")));
    start_trial(&fixture, ALL, &[&canary]);
    for _ in 0..2 {
        assert_eq!(routed_peers(&fixture, "bad", "8613012345678"), [fixture.peer("north")]);
    }
    // At once, even if the rollback thread has not run yet: the candidate gets no more questions.
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")]);
    wait_until("the candidate is removed", || kinds(&fixture)[0] == "candidate-faulty");
    assert_eq!(candidate_of(&fixture), None);
    let event = &state(&fixture).events[0];
    assert_eq!(event.kind, "candidate-faulty");
    assert!(event.what.contains("test_trap") && event.what.contains("2 trap faults"), "{}", event.what);
    assert_eq!(fixture.hooks.history(Hook::Router).len(), 1);
    let fixture = fixture.restart();
    assert!(state(&fixture).candidate.is_none());
}

#[test]
fn unchanged_plugins_of_a_canary_are_shared_with_the_live_chain() {
    let fixture = HooksFixture::new();
    let guard = with_long_deadline(fixture.moody("trap", "north"));
    let passing = Binding {
        policy: "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"north\" }]\n".to_owned(),
        ..with_long_deadline(fixture.binding("prefix_router", ""))
    };
    let north = Binding { policy: route_all_to("north"), ..passing.clone() };
    let south = Binding { policy: route_all_to("south"), ..passing.clone() };
    activate(&fixture, &[&passing, &north]);
    start_trial(&fixture, ALL, &[&passing, &south]);
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);
    // The plugin that passes is shared; the canary's own plugin is counted separately.
    assert_eq!(calls(&fixture), [1, 0, 1]);
    assert_eq!(candidate(&fixture).counts.len(), 1);

    let guard = no_rollback(Binding { on_fault: OnFault::Pass, ..guard });
    activate(&fixture, &[&guard, &north]);
    start_trial(&fixture, ALL, &[&guard, &south]);
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")], "the guard decides");
    assert_eq!(
        routed_peers(&fixture, "bad", "8613012345678"),
        [fixture.peer("south")],
        "the guard is passed over"
    );
    assert_eq!(calls(&fixture), [2, 0, 1]);
    assert_eq!(candidate(&fixture).failed, 0);
    let guard = Binding { on_fault: OnFault::Reject, ..guard };
    activate(&fixture, &[&guard, &north]);
    start_trial(&fixture, ALL, &[&guard, &south]);
    assert_eq!(fixture.route("bad").verdict, Verdict::Reject(RejectReason::Fault));
    assert_eq!(
        (calls(&fixture), candidate(&fixture).failed),
        (vec![1, 0, 0], 0),
        "it is asked once, and answers for itself"
    );
}

#[test]
fn a_failing_live_plugin_is_rolled_back_for_good() {
    let fixture = HooksFixture::new();
    let good = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let trap = low_tolerance(with_long_deadline(fixture.moody("trap", "south")));
    let badpeer = low_tolerance(with_long_deadline(fixture.moody("unknown-peer", "south")));
    let bad_peer_after_good = [&good, &badpeer];
    activate(&fixture, &[&good]);
    activate(&fixture, &bad_peer_after_good);
    activate(&fixture, &[&badpeer]);
    activate(&fixture, &[&trap]);
    let live = || state(&fixture).live;
    let fail = |how: u64| {
        for _ in 0..2 {
            assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
        }
        wait_until("the chain is rolled back", || live().serial == how);
    };
    // Faults below the limit change nothing.
    assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    assert_eq!(live().chain, std::slice::from_ref(&trap));
    assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    wait_until("the chain is rolled back", || live().serial == 5);
    assert_eq!(
        (live().chain, live().change),
        (vec![badpeer.clone()], BindingChange::RolledBackAutomatically)
    );
    let rollback_reason = fixture.hooks.history(Hook::Router)[3].rollback_reason.clone().unwrap();
    assert!(
        rollback_reason.contains("test_trap") && rollback_reason.contains("2 trap faults"),
        "{rollback_reason}"
    );

    // The next target contains the plugin that just failed; the one before that is left.
    fail(6);
    assert_eq!((live().chain, live().change), (vec![good.clone()], BindingChange::RolledBackAutomatically));
    assert_eq!(routed_peers(&fixture, "bad", "8613012345678"), [fixture.peer("north")]);
    let words = &state(&fixture).events[0];
    assert_eq!(words.kind, "rolled-back-by-itself");
    assert!(
        words.what.contains("prefix_router") && words.what.contains("2 verdict faults"),
        "{}",
        words.what
    );

    // A manual rollback skips chains that were rolled back automatically; an admin can activate them again.
    let back = fixture.hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(back.chain, [good.clone(), badpeer.clone()]);
    activate(&fixture, &[&trap]);
    let fixture = fixture.restart();
    for _ in 0..2 {
        assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    }
    wait_until("the chain is rolled back", || state(&fixture).live.serial == 9);
    assert_eq!(state(&fixture).live.chain, [good, badpeer]);
}

#[test]
fn without_an_earlier_chain_a_failing_plugin_keeps_serving() {
    let fixture = HooksFixture::new();
    let trap = low_tolerance(with_long_deadline(fixture.moody("trap", "south")));
    activate(&fixture, &[&trap]);
    for _ in 0..2 {
        assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    }
    wait_until("the event is recorded", || kinds(&fixture)[0] == "faulty");
    // It keeps failing, and is not reported again.
    for _ in 0..100 {
        assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
        assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);
    }
    assert_eq!(kinds(&fixture), ["faulty", "activated"]);
    let event = &state(&fixture).events[0];
    assert!(event.what.contains("there is nothing to roll back to"), "{}", event.what);
    assert_eq!(fixture.hooks.history(Hook::Router).len(), 1);
    assert!(matches!(fixture.hooks.rollback(Hook::Router, NOW), Err(HookError::NoEarlierBinding)));
}

#[test]
fn a_rollback_target_that_does_not_start_is_skipped() {
    let fixture = HooksFixture::new();
    let oldest = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let broken = with_long_deadline(fixture.binding("test_peeper", "north"));
    let trap = low_tolerance(with_long_deadline(fixture.moody("trap", "south")));
    activate(&fixture, &[&oldest]);
    activate(&fixture, &[&broken]);
    // Twice, so that the earlier chain is no longer warm.
    activate(&fixture, &[&trap]);
    activate(&fixture, &[&trap]);
    let path = fixture.folder.path().join(format!("components/test_peeper/{}.wasm", broken.version));
    std::fs::write(path, b"rubbish").unwrap();
    for _ in 0..2 {
        assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    }
    wait_until("the chain is rolled back", || {
        state(&fixture).live.change == BindingChange::RolledBackAutomatically
    });
    assert_eq!(state(&fixture).live.chain, [oldest]);
}

#[test]
fn a_candidate_sharing_a_rolled_back_plugin_is_dismissed() {
    let fixture = HooksFixture::new();
    let good = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let trap = low_tolerance(with_long_deadline(fixture.moody("trap", "north")));
    activate(&fixture, &[&good]);
    activate(&fixture, &[&trap, &good]);
    start_trial(&fixture, HALF, &[&trap, &Binding { policy: route_all_to("south"), ..good.clone() }]);
    for _ in 0..2 {
        assert!(matches!(fixture.route("bad").verdict, Verdict::Hold(_)));
    }
    wait_until("both are rolled back", || {
        let state = state(&fixture);
        state.events[0].kind == "candidate-faulty" && state.live.chain == [good.clone()]
    });
    assert_eq!(candidate_of(&fixture), None);
    assert_eq!(kinds(&fixture)[..2], ["candidate-faulty", "rolled-back-by-itself"]);
}

#[test]
fn promotion_and_dismissal_are_recorded_as_events() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    let hooks: &Hooks = &fixture.hooks;
    let nothing = |result: Result<(), HookError>| assert!(matches!(result, Err(HookError::NoCandidate)));
    activate(&fixture, &[&north]);
    nothing(hooks.promote(Hook::Router, NOW, None).map(drop));
    nothing(hooks.end_trial(Hook::Router, NOW));

    start_trial(&fixture, SHADOW, &[&south]);
    let promoted = hooks.promote(Hook::Router, NOW, Some(1)).unwrap();
    assert_eq!(
        (promoted.serial, promoted.change, &promoted.chain),
        (2, BindingChange::Promoted, &vec![south.clone()])
    );
    assert!(state(&fixture).candidate.is_none());
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);

    start_trial(&fixture, ALL, &[&north]);
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")]);
    hooks.promote(Hook::Router, NOW, Some(2)).unwrap();
    // The live chain uses the canary's instances: their counts continue.
    assert_eq!((calls(&fixture), candidate_of(&fixture)), (vec![1], None));

    start_trial(&fixture, ALL, &[&south]);
    hooks.end_trial(Hook::Router, NOW).unwrap();
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")]);
    nothing(hooks.end_trial(Hook::Router, NOW));

    hooks.rollback(Hook::Router, NOW).unwrap();
    hooks.rollback(Hook::Router, NOW).unwrap();
    assert_eq!(
        routed_peers(&fixture, "good", "8613012345678"),
        [fixture.peer("north")],
        "a rollback of a rollback"
    );
    hooks.unbind(Hook::Router, NOW).unwrap();
    let expected = [
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
    let mut found = kinds(&fixture);
    found.reverse();
    assert_eq!(found, expected);
    let fixture = fixture.restart();
    let mut found = kinds(&fixture);
    found.reverse();
    assert_eq!(found, expected, "also after a restart");
    assert!(!fixture.hooks.is_bound(Hook::Router));
}

fn candidate_of(fixture: &HooksFixture) -> Option<Vec<Binding>> {
    state(fixture).candidate.map(|candidate| candidate.record.chain)
}

#[test]
fn a_trial_survives_a_restart() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    activate(&fixture, &[&north]);
    start_trial(&fixture, ALL, &[&south]);
    let fixture = fixture.restart();
    assert_eq!(candidate(&fixture).record.mode, ALL);
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);
    start_trial(&fixture, SHADOW, &[&south]);
    let fixture = fixture.restart();
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")]);
    wait_until("it is compared", || comparison(&fixture).different == 1);
}

#[test]
fn a_candidate_that_fails_to_restart_is_dismissed() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    activate(&fixture, &[&north]);
    let candidate = with_long_deadline(fixture.moody("trap", "south"));
    start_trial(&fixture, ALL, &[&candidate]);
    let path = fixture.folder.path().join(format!("components/test_trap/{}.wasm", candidate.version));
    std::fs::write(&path, b"rubbish").unwrap();
    let fixture = fixture.restart();
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("north")]);
    assert_eq!(candidate_of(&fixture), None);
    let event = &state(&fixture).events[0];
    assert_eq!(event.kind, "candidate-faulty");
    assert!(event.what.contains("damaged"), "{}", event.what);
}

#[test]
fn a_stale_serial_is_refused() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    activate(&fixture, &[&north]);
    let hooks = &fixture.hooks;
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
    changed(hooks.start_trial(Hook::Router, NOW, ALL, vec![south.clone()], Some(1)).map(drop));
    start_trial(&fixture, ALL, &[&south]);
    changed(hooks.promote(Hook::Router, NOW, Some(1)).map(drop));
    assert_eq!(hooks.history(Hook::Router).len(), 2);
    hooks.promote(Hook::Router, NOW, Some(2)).unwrap();
}

#[test]
fn a_failed_candidate_leaves_the_previous_one() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    activate(&fixture, &[&north]);
    start_trial(&fixture, ALL, &[&south]);
    let refuse = |mode| {
        let refused = Binding { policy: "no policy".to_owned(), ..north.clone() };
        fixture.hooks.start_trial(Hook::Router, NOW, mode, vec![refused], None).unwrap_err()
    };
    for mode in [SHADOW, ALL] {
        assert!(matches!(refuse(mode), HookError::Refused { .. }));
    }
    assert_eq!(candidate_of(&fixture), Some(vec![south]));
    assert_eq!(routed_peers(&fixture, "good", "8613012345678"), [fixture.peer("south")]);
    assert_eq!(kinds(&fixture), ["candidate", "activated"]);
}

#[test]
fn events_have_timestamps() {
    let fixture = HooksFixture::new();
    let north = fixture.binding("prefix_router", &route_all_to("north"));
    let then = Timestamp(NOW.0 + 5);
    fixture.hooks.activate(Hook::Router, then, vec![north], None).unwrap();
    assert_eq!(state(&fixture).events[0].at, then);
    assert_eq!(state(&fixture).live.since, then);
    drop(open(fixture.folder.path()));
}

/// Every message of such a rule would fail, so an accidental activation is refused.
#[test]
fn an_unknown_peer_in_a_policy_is_refused_unless_forced() {
    let fixture = HooksFixture::new();
    let good = fixture.binding("prefix_router", &route_all_to("north"));
    activate(&fixture, &[&good]);
    let wrong = Binding { policy: route_all_to("nort"), ..good.clone() };
    let refused = fixture.hooks.activate(Hook::Router, NOW, vec![wrong.clone()], None).unwrap_err();
    assert!(refused.to_string().contains("prefix_router names peer \"nort\""), "{refused}");
    for mode in [SHADOW, HALF] {
        let refused =
            fixture.hooks.start_trial(Hook::Router, NOW, mode, vec![wrong.clone()], None).unwrap_err();
        assert!(matches!(refused, HookError::UnknownReferences { .. }), "{refused}");
    }
    assert!(state(&fixture).candidate.is_none() && state(&fixture).unknown.is_empty());

    fixture.hooks.activate(Hook::Router, NOW, vec![wrong], FORCED).unwrap();
    let unknown = state(&fixture).unknown;
    assert_eq!((unknown.len(), unknown[0].name.as_str()), (1, "nort"));
    // A rollback to an earlier chain is always allowed.
    let fixture = fixture.restart();
    fixture.hooks.rollback(Hook::Router, NOW).unwrap();
    assert!(state(&fixture).unknown.is_empty());
}

#[test]
fn an_import_without_a_grant_is_refused_unless_forced() {
    let fixture = HooksFixture::new();
    let policy = "url = \"http://127.0.0.1:9/{msisdn}\"\n";
    let bare = fixture.binding("http_resolver", policy);
    let refused = fixture.hooks.activate(Hook::Resolver, NOW, vec![bare.clone()], None).unwrap_err();
    assert!(refused.to_string().contains("imports http"), "{refused}");
    let mut granted = bare.clone();
    granted.grants.http = vec!["http://127.0.0.1:9/".to_owned()];
    fixture.hooks.activate(Hook::Resolver, NOW, vec![granted], None).unwrap();
    fixture.hooks.activate(Hook::Resolver, NOW, vec![bare], FORCED).unwrap();
}
