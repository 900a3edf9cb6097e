//! Routers that want a number of a pool for the sender of a message: what they may ask, when it counts, and that shadows and
//! replays see it as a part of the decision.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, HooksOptions, OnFault, PoolState, Trying};
use model::{Hook, NoSender, RejectReason, Routed, SenderWish, Timestamp, Verdict};
use std::time::Duration;
use support::{House, NOW, everything_to, message, options, patient, peers, until};

const LATER: Timestamp = Timestamp(NOW.0 + 86_400_000);

fn taker(house: &House, document: &str) -> Binding {
    patient(house.binding("test_taker", document))
}

fn live(house: &House, chain: Vec<Binding>) {
    house.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
}

/// What a router of this document makes of a message.
fn routed(house: &House, document: &str) -> Routed {
    live(house, vec![taker(house, document)]);
    house.route("good")
}

fn wish(pool: &str, otherwise: NoSender) -> SenderWish {
    SenderWish {
        pool: pool.parse().unwrap(),
        holder: "acme".into(),
        user: "".into(),
        reason: "".into(),
        lease: None,
        otherwise,
        given: None,
    }
}

fn pools(house: &House, ready: u64) {
    let state = PoolState { ready, busy: 1, down: 2, total: 9 };
    house.pools.publish([("texts".to_owned(), state)].into_iter().collect());
}

#[test]
fn a_number_is_asked_for_with_all_that_can_be_said() {
    let house = House::new();
    let routed_plain = routed(&house, "take texts hold\nto north");
    assert_eq!(routed_plain.sender.as_deref(), Some(&wish("texts", NoSender::Hold)));
    assert_eq!(
        (routed_plain.note.as_deref(), peers(&routed_plain)),
        (Some("asked"), vec![house.peer("north")])
    );
    let whole =
        routed(&house, "take texts keep-sender user=ann holder=desk reason=news lease=1500\nto north");
    let expected = SenderWish {
        holder: "desk".into(),
        user: "ann".into(),
        reason: "news".into(),
        lease: Some(Duration::from_millis(1_500)),
        ..wish("texts", NoSender::KeepSender)
    };
    assert_eq!(whole.sender.as_deref(), Some(&expected));
    // The last one counts, and what is wrong is no wish.
    let twice = routed(&house, "take texts hold\ntake others reject\ntake a/b hold\nto north");
    assert_eq!(twice.sender.as_deref(), Some(&wish("others", NoSender::Reject)));
    let note = twice.note.unwrap();
    assert!(note.starts_with("asked; asked; \"a/b\" cannot be the name of a pool"), "{note}");
}

#[test]
fn it_counts_where_the_message_goes_out_and_in_no_other_call() {
    let options = HooksOptions { home: Some(model::PeerId(1)), ..options() };
    let house = House::with(options);
    for (document, counts) in [
        ("take texts hold\nto north", true),
        ("take texts hold\nhome", true),
        ("take texts hold\nhold", false),
        ("take texts hold\nreject", false),
        ("to north", false),
        ("early texts\nto north", false),
    ] {
        assert_eq!(routed(&house, document).sender.is_some(), counts, "{document}");
    }
    // Who passes has asked for nothing, nor has who fails.
    let others = patient(house.binding("prefix_router", &everything_to("south")));
    live(&house, vec![taker(&house, "take texts hold"), others.clone()]);
    let passed = house.route("good");
    assert_eq!((peers(&passed), passed.sender), (vec![house.peer("south")], None));
    let trapping = Binding { on_fault: OnFault::Pass, ..taker(&house, "take texts hold\nto north\ntrap") };
    live(&house, vec![trapping, others]);
    let passed = house.route("good");
    assert_eq!((peers(&passed), passed.sender), (vec![house.peer("south")], None));
    let to_peer = Binding {
        on_fault: OnFault::Peer("reserve".to_owned()),
        ..taker(&house, "take texts hold\nto north\ntrap")
    };
    live(&house, vec![to_peer]);
    let fixed = house.route("good");
    assert_eq!((peers(&fixed), fixed.sender), (vec![house.peer("reserve")], None));
}

#[test]
fn the_state_of_a_pool_is_written_down_and_seen_again() {
    let house = House::recording(true);
    pools(&house, 6);
    let document = "state texts\nstate nowhere\ntake texts reject\nto north";
    let chain = [taker(&house, document)];
    live(&house, chain.to_vec());
    let routed = house.route("good");
    let note = "6 ready, 1 busy, 2 down of 9; no pool; asked";
    assert_eq!(routed.note.as_deref(), Some(note));
    pools(&house, 0);
    let trial = house.hooks.trial(Hook::Router, &chain).unwrap();
    let asked = message("good", "8613012345678");
    let tried = trial.route(&asked, LATER, routed.seen.as_deref());
    assert_eq!((tried.note.as_deref(), tried.missing), (Some(note), None));
    assert_eq!((tried.sender, tried.verdict.unwrap()), (routed.sender, Some(routed.verdict)));
    let without = trial.route(&asked, LATER, Some(&[]));
    assert_eq!(without.missing, Some("a number pool's state"));
    let (explained, _) = house.hooks.explain(&asked, NOW);
    let decision = explained[0].outcome.as_ref().unwrap();
    assert_eq!(decision.sender.as_deref(), Some(&wish("texts", NoSender::Reject)));
}

#[test]
fn a_shadow_that_wants_another_sender_differs() {
    let house = House::new();
    live(&house, vec![taker(&house, "take texts hold\nto north")]);
    let compared = |document: &str| {
        let chain = vec![taker(&house, document)];
        house.hooks.try_out(Hook::Router, NOW, Trying::Shadow, chain, None).unwrap();
        assert!(house.route("good").sender.is_some());
        let comparison = || house.hooks.state(Hook::Router).candidate.unwrap().comparison.unwrap();
        until("the candidate has answered", || comparison().compared == 1);
        let comparison = comparison();
        (comparison.same, comparison.differences.first().map(|one| (one.from.clone(), one.to.clone())))
    };
    assert_eq!(compared("take texts hold\nto north"), (1, None));
    let words = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
    let from = "forward north, sender of texts else hold";
    assert_eq!(compared("to north"), (0, words(from, "forward north")));
    let other = "forward north, sender of texts else reject";
    assert_eq!(compared("take texts reject\nto north"), (0, words(from, other)));
}

#[test]
fn a_router_built_before_there_were_pools_serves_on() {
    let house = House::new();
    let plain = patient(house.binding("prefix_router", &everything_to("north")));
    live(&house, vec![plain]);
    assert_eq!(house.route("good").sender, None);
    let old = patient(house.binding("test_old_router", "north"));
    live(&house, vec![old]);
    let routed = house.route("good");
    assert!(!matches!(routed.verdict, Verdict::Reject(RejectReason::Fault)), "{routed:?}");
    assert_eq!(routed.sender, None);
}
