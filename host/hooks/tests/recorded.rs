//! What routers saw is written down with their verdicts, so that a replay sees the same, another time and in another world;
//! and where it cannot, it says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, OnFault, PeerState, Tolerance, Tried, Trying};
use model::{Hook, Message, RejectReason, Routed, Timestamp, Verdict};
use std::time::Duration;
use support::{House, NOW, everything_to, message, patient, peers};

const LATER: Timestamp = Timestamp(NOW.0 + 7 * 86_400_000);

fn asked() -> Message {
    message("good", "8613012345678")
}

fn queued(house: &House, north: u64, south: u64) {
    let state = |queued| PeerState { links: 1, queued };
    let states = [("north".to_owned(), state(north)), ("south".to_owned(), state(south))];
    house.board.publish(states.into_iter().collect());
}

/// A house that writes down what routers see.
fn house() -> House {
    let house = House::recording(true);
    queued(&house, 7, 9);
    house
}

/// What a chain made of a message in the midst of others; and then the world goes on.
fn archived(house: &House, chain: &[Binding]) -> Routed {
    house.hooks.activate(Hook::Router, NOW, chain.to_vec(), None).unwrap();
    // Counters do not begin with nothing.
    for _ in 0..3 {
        let _ = house.hooks.route(&asked(), NOW);
    }
    let routed = house.hooks.route(&asked(), NOW);
    queued(house, 1_000, 2_000);
    for _ in 0..5 {
        let _ = house.hooks.route(&asked(), LATER);
    }
    routed
}

fn replay(house: &House, chain: &[Binding], seen: Option<&[u8]>) -> Tried {
    house.hooks.trial(Hook::Router, chain).unwrap().route(&asked(), LATER, seen)
}

#[test]
fn a_replay_sees_what_was_seen() {
    let house = house();
    let peeper = patient(house.binding("test_peeper", "north"));
    house.hooks.activate(Hook::Router, NOW, vec![peeper.clone()], None).unwrap();
    let routed: Vec<Routed> = (0..3).map(|_| house.hooks.route(&asked(), NOW)).collect();
    queued(&house, 1_000, 2_000);
    for (before, routed) in routed.iter().enumerate() {
        let note = routed.note.as_deref().unwrap();
        let wanted = format!("links 1, queued 7, seen {before} then {}, at {}", before + 1, NOW.0);
        assert_eq!(note, wanted);
        for _ in 0..2 {
            let tried = replay(&house, std::slice::from_ref(&peeper), routed.seen.as_deref());
            assert_eq!((tried.note.as_deref(), tried.missing), (Some(note), None));
            assert_eq!(tried.verdict.unwrap().as_ref(), Some(&routed.verdict));
            assert_eq!(tried.seen, None, "a replay is no record");
        }
    }
    // A replay counts nothing.
    let note = house.hooks.route(&asked(), NOW).note.unwrap();
    assert!(note.contains("queued 1000, seen 3 then 4"), "{note}");
}

#[test]
fn without_a_record_a_replay_says_what_is_missing() {
    let house = house();
    let peeper = patient(house.binding("test_peeper", "north"));
    let blind = patient(house.binding("prefix_router", &everything_to("south")));
    let routed = archived(&house, std::slice::from_ref(&blind));
    assert_eq!(routed.seen, None, "who asks nothing has seen nothing");
    let tried = replay(&house, std::slice::from_ref(&blind), Some(&[]));
    assert_eq!((tried.verdict.unwrap(), tried.missing), (Some(routed.verdict), None));
    let tried = replay(&house, &[peeper], Some(&[]));
    assert_eq!(tried.missing, Some("a peer's state"), "the first thing that it asks");
}

#[test]
fn a_candidate_that_asks_something_else_says_so() {
    let house = house();
    let north = patient(house.binding("test_asker", "to north 1"));
    let routed = archived(&house, std::slice::from_ref(&north));
    let candidate = |document: &str| {
        let candidate = Binding { policy: document.to_owned(), ..north.clone() };
        replay(&house, &[candidate], routed.seen.as_deref())
    };
    assert_eq!(candidate("to north 1").missing, None);
    assert_eq!(candidate("to north 0").missing, None, "less is no matter");
    assert_eq!(candidate("to south 1").missing, Some("a peer's state"));
    assert_eq!(candidate("to north 2").missing, Some("a counter"));
    // Also where it decides nothing, and where it fails after it.
    let passes = candidate("pass south 1");
    assert!(matches!(passes.verdict, Ok(None)));
    assert_eq!(passes.missing, Some("a peer's state"));
    let fails = candidate("to nowhere 1");
    assert!(fails.verdict.is_err());
    assert_eq!(fails.missing, Some("a peer's state"));
}

#[test]
fn another_plugins_counters_are_not_its_own() {
    let house = house();
    let version = house.binding("test_asker", "").version;
    let octets = support::guest("test_asker");
    assert_eq!(house.hooks.upload("stranger", &octets, None).unwrap().version, version);
    let routed = archived(&house, &[patient(Binding::new("test_asker", &version, "to north 1"))]);
    let stranger = |document: &str| {
        let binding = patient(Binding::new("stranger", &version, document));
        replay(&house, &[binding], routed.seen.as_deref()).missing
    };
    assert_eq!(stranger("to north 0"), None, "time and peers are everybody's");
    assert_eq!(stranger("to north 1"), Some("a counter"));
}

#[test]
fn what_a_chain_saw_is_one_record_and_each_finds_its_own() {
    let house = house();
    // The same plugin twice, so that both ask for one counter, and one of another name between.
    let ask = |document: &str| patient(house.binding("test_asker", document));
    let version = house.binding("test_asker", "").version;
    house.hooks.upload("stranger", &support::guest("test_asker"), None).unwrap();
    let stranger = patient(Binding::new("stranger", &version, "pass south 1"));
    let chain = [ask("pass north 2"), stranger, ask("to south 3")];
    let routed = archived(&house, &chain);
    // Three messages before it, five counts each; then two, then three more.
    let note = format!("south queued 9, counted 20, at {}", NOW.0);
    assert_eq!(routed.note.as_deref(), Some(&*note));
    let tried = replay(&house, &chain, routed.seen.as_deref());
    assert_eq!((tried.note.as_deref(), tried.missing), (Some(&*note), None));
    // One that asks more often than was asked then is not given anything made up.
    let more = [ask("pass north 2"), ask("to south 4")];
    assert_eq!(replay(&house, &more, routed.seen.as_deref()).missing, Some("a counter"));
}

#[test]
fn a_record_that_is_cut_is_cut_for_all_that_come_after() {
    let house = house();
    let ask = |document: &str| patient(house.binding("test_asker", document));
    let chain = [ask("pass north 1"), ask("pass north 1000"), ask("to south 2")];
    let routed = archived(&house, &chain);
    let seen = routed.seen.as_deref().unwrap();
    assert!(seen.len() < 5_000, "{} octets", seen.len());
    let tried = replay(&house, &chain, Some(seen));
    assert_eq!(tried.missing, Some("a counter"), "never the answers to other questions, without a word");
    let tried = replay(&house, &chain[..1], Some(seen));
    assert_eq!(tried.missing, None, "what came before the cut is whole");
}

#[test]
fn what_was_seen_before_a_fault_that_is_passed_over_is_on_record_too() {
    let house = house();
    let faulty = patient(house.binding("test_asker", "to nowhere 2"));
    let faulty =
        Binding { on_fault: OnFault::Pass, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..faulty };
    let last = patient(house.binding("test_asker", "to north 1"));
    let chain = [faulty, last];
    let routed = archived(&house, &chain);
    assert_eq!(peers(&routed), [house.peer("north")]);
    let tried = replay(&house, &chain, routed.seen.as_deref());
    assert_eq!((tried.note, tried.missing), (routed.note.clone(), None));
    assert_eq!(tried.verdict.unwrap(), Some(routed.verdict));
}

#[test]
fn what_nobody_decided_has_a_record_as_well() {
    let house = house();
    let passes = patient(house.binding("test_asker", "pass north 1"));
    let routed = archived(&house, std::slice::from_ref(&passes));
    assert_eq!(routed.verdict, Verdict::Reject(RejectReason::NoRoute));
    let tried = replay(&house, &[passes], routed.seen.as_deref());
    assert!(matches!(tried.verdict, Ok(None)));
    assert_eq!(tried.missing, None);
}

#[test]
fn who_only_wants_to_know_counts_nothing() {
    let house = house();
    let asker = patient(house.binding("test_asker", "to north 1"));
    house.hooks.activate(Hook::Router, NOW, vec![asker.clone()], None).unwrap();
    let counted = |note: Option<&str>| {
        let words: Vec<&str> = note.unwrap().split(", ").collect();
        words[1].to_owned()
    };
    assert_eq!(counted(house.hooks.route(&asked(), NOW).note.as_deref()), "counted 1");
    let calls = || house.hooks.counts(Hook::Router)[0].counts.calls;
    let before = calls();
    let (_, routed) = house.hooks.explain(&asked(), NOW);
    assert_eq!((calls(), counted(routed.note.as_deref())), (before, "counted 2".to_owned()));
    for _ in 0..3 {
        let (considered, _) = house.hooks.explain(&asked(), NOW);
        let decision = considered[0].outcome.as_ref().unwrap();
        assert_eq!(counted(decision.note.as_deref()), "counted 2", "as if it were the next one");
        // A trial counts for itself, and so does an activation's self-check.
        let tried = replay(&house, std::slice::from_ref(&asker), None);
        assert!(tried.missing.is_none() && tried.seen.is_some());
        house.hooks.activate(Hook::Router, NOW, vec![asker.clone()], None).unwrap();
    }
    assert_eq!(counted(house.hooks.route(&asked(), NOW).note.as_deref()), "counted 2");
    let spaces = house.counters.metrics();
    let entries: Vec<u64> =
        spaces.iter().filter(|(name, _)| name == "test_asker").map(|(_, metrics)| metrics.entries).collect();
    assert_eq!(entries, [1], "the self-check's number is not among them: {spaces:?}");
    let window = Duration::from_secs(60);
    assert_eq!(house.counters.sum("test_asker", "asked", "8613012345678", window, NOW), 2);
}

#[test]
fn what_a_canary_saw_that_failed_is_not_the_live_chains() {
    let house = house();
    let live = patient(house.binding("test_asker", "to north 1"));
    house.hooks.activate(Hook::Router, NOW, vec![live.clone()], None).unwrap();
    let canary = Binding { policy: "to nowhere 2".to_owned(), ..live.clone() };
    let all = Trying::Canary { share: 10_000 };
    house.hooks.try_out(Hook::Router, NOW, all, vec![canary], None).unwrap();
    let routed = house.hooks.route(&asked(), NOW);
    let note = routed.note.as_deref().unwrap();
    assert!(note.starts_with("north queued 7, counted 3"), "{note}");
    let tried = replay(&house, &[live], routed.seen.as_deref());
    assert_eq!((tried.note.as_deref(), tried.missing), (Some(note), None));
}
