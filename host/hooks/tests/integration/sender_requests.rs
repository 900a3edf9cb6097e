//! Sender requests of routers: validation, when they apply, and that shadows and replays treat them as part of the
//! decision.

use crate::support::{
    HooksFixture, NOW, forwarded_peers, message, options, route_all_to, wait_until, with_long_deadline,
};
use hooks::{Binding, HooksOptions, OnFault, PoolState, TrialMode};
use model::{Hook, RejectReason, RoutingDecision, SenderFallback, SenderRequest, Timestamp, Verdict};
use std::time::Duration;

const LATER: Timestamp = Timestamp(NOW.0 + 86_400_000);

fn taker(fixture: &HooksFixture, document: &str) -> Binding {
    with_long_deadline(fixture.binding("test_taker", document))
}

fn live(fixture: &HooksFixture, chain: Vec<Binding>) {
    fixture.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
}

/// The routing decision of a router with this document.
fn routed(fixture: &HooksFixture, document: &str) -> RoutingDecision {
    live(fixture, vec![taker(fixture, document)]);
    fixture.route("good")
}

fn sender_request(pool: &str, otherwise: SenderFallback) -> SenderRequest {
    SenderRequest {
        pool: pool.parse().unwrap(),
        holder: "acme".into(),
        user: "".into(),
        reason: "".into(),
        lease: None,
        otherwise,
        leased: None,
    }
}

fn publish_pool(fixture: &HooksFixture, ready: u64) {
    let state = PoolState { ready, busy: 1, down: 2, total: 9 };
    fixture.pool_snapshots.publish([("texts".to_owned(), state)].into_iter().collect());
}

#[test]
fn a_sender_request_carries_all_its_fields() {
    let fixture = HooksFixture::new();
    let routed_plain = routed(&fixture, "take texts hold\nto north");
    assert_eq!(routed_plain.sender.as_deref(), Some(&sender_request("texts", SenderFallback::Hold)));
    assert_eq!(
        (routed_plain.note.as_deref(), forwarded_peers(&routed_plain)),
        (Some("asked"), vec![fixture.peer("north")])
    );
    let whole =
        routed(&fixture, "take texts keep-sender user=ann holder=support reason=news lease=1500\nto north");
    let expected = SenderRequest {
        holder: "support".into(),
        user: "ann".into(),
        reason: "news".into(),
        lease: Some(Duration::from_millis(1_500)),
        ..sender_request("texts", SenderFallback::KeepSender)
    };
    assert_eq!(whole.sender.as_deref(), Some(&expected));
    // The last valid request applies; an invalid one is ignored.
    let twice = routed(&fixture, "take texts hold\ntake others reject\ntake a/b hold\nto north");
    assert_eq!(twice.sender.as_deref(), Some(&sender_request("others", SenderFallback::Reject)));
    let note = twice.note.unwrap();
    assert!(note.starts_with("asked; asked; \"a/b\" cannot be the name of a pool"), "{note}");
}

#[test]
fn a_sender_request_applies_to_forwarded_messages_only() {
    let options = HooksOptions { home: Some(model::PeerId(1)), ..options() };
    let fixture = HooksFixture::with(options);
    for (document, counts) in [
        ("take texts hold\nto north", true),
        ("take texts hold\nhome", true),
        ("take texts hold\nhold", false),
        ("take texts hold\nreject", false),
        ("to north", false),
        ("early texts\nto north", false),
    ] {
        assert_eq!(routed(&fixture, document).sender.is_some(), counts, "{document}");
    }
    // A router that passes or fails requests nothing.
    let others = with_long_deadline(fixture.binding("prefix_router", &route_all_to("south")));
    live(&fixture, vec![taker(&fixture, "take texts hold"), others.clone()]);
    let passed = fixture.route("good");
    assert_eq!((forwarded_peers(&passed), passed.sender), (vec![fixture.peer("south")], None));
    let trapping = Binding { on_fault: OnFault::Pass, ..taker(&fixture, "take texts hold\nto north\ntrap") };
    live(&fixture, vec![trapping, others]);
    let passed = fixture.route("good");
    assert_eq!((forwarded_peers(&passed), passed.sender), (vec![fixture.peer("south")], None));
    let to_peer = Binding {
        on_fault: OnFault::Peer("reserve".to_owned()),
        ..taker(&fixture, "take texts hold\nto north\ntrap")
    };
    live(&fixture, vec![to_peer]);
    let fixed = fixture.route("good");
    assert_eq!((forwarded_peers(&fixed), fixed.sender), (vec![fixture.peer("reserve")], None));
}

#[test]
fn pool_states_are_recorded_and_replayed() {
    let fixture = HooksFixture::recording(true);
    publish_pool(&fixture, 6);
    let document = "state texts\nstate nowhere\ntake texts reject\nto north";
    let chain = [taker(&fixture, document)];
    live(&fixture, chain.to_vec());
    let routed = fixture.route("good");
    let note = "6 ready, 1 busy, 2 down of 9; no pool; asked";
    assert_eq!(routed.note.as_deref(), Some(note));
    publish_pool(&fixture, 0);
    let trial = fixture.hooks.dry_run(Hook::Router, &chain).unwrap();
    let asked = message("good", "8613012345678");
    let outcome = trial.route(&asked, LATER, routed.host_calls.as_deref());
    assert_eq!((outcome.note.as_deref(), outcome.missing), (Some(note), None));
    assert_eq!((outcome.sender, outcome.verdict.unwrap()), (routed.sender, Some(routed.verdict)));
    let without = trial.route(&asked, LATER, Some(&[]));
    assert_eq!(without.missing, Some("a number pool's state"));
    let (explained, _) = fixture.hooks.explain(&asked, NOW);
    let decision = explained[0].outcome.as_ref().unwrap();
    assert_eq!(decision.sender.as_deref(), Some(&sender_request("texts", SenderFallback::Reject)));
}

#[test]
fn a_shadow_with_another_sender_request_differs() {
    let fixture = HooksFixture::new();
    live(&fixture, vec![taker(&fixture, "take texts hold\nto north")]);
    let compared = |document: &str| {
        let chain = vec![taker(&fixture, document)];
        fixture.hooks.start_trial(Hook::Router, NOW, TrialMode::Shadow, chain, None).unwrap();
        assert!(fixture.route("good").sender.is_some());
        let comparison = || fixture.hooks.status(Hook::Router).candidate.unwrap().comparison.unwrap();
        wait_until("the candidate has answered", || comparison().compared == 1);
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
fn a_router_without_pool_support_still_serves() {
    let fixture = HooksFixture::new();
    let plain = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    live(&fixture, vec![plain]);
    assert_eq!(fixture.route("good").sender, None);
    let old = with_long_deadline(fixture.binding("test_old_router", "north"));
    live(&fixture, vec![old]);
    let routed = fixture.route("good");
    assert!(!matches!(routed.verdict, Verdict::Reject(RejectReason::Fault)), "{routed:?}");
    assert_eq!(routed.sender, None);
}
