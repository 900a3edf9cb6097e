//! A misbehaving plugin of any world costs one call. The next call works, the other hooks are not affected, and
//! `on-fault` decides about the message.

use crate::support::{HooksFixture, NOW, forwarded_peers, message, with_long_deadline};
use hooks::{Binding, FaultKind, FrontEndRequest, InstanceUse, OnFault, PeerSubmission, Tolerance};
use model::{
    Address, Attempt, Charge, ErrorClass, Hook, Leg, LookupNumber, LookupResult, Message, MessageId,
    NextStep, Outcome, PeerMessageId, RejectReason, RoutingDecision, ScreenVerdict, Settlement, SubmitTicket,
    Subscriber, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// Moods that end in a fault in every world, with the kind of fault.
const FAULTS: [(&str, FaultKind); 7] = [
    ("trap", FaultKind::Trap),
    ("loop", FaultKind::Deadline),
    ("never", FaultKind::Deadline),
    ("hog", FaultKind::Memory),
    ("recurse", FaultKind::Trap),
    ("giant", FaultKind::Trap),
    ("bad-utf8", FaultKind::Trap),
];

const HELD: Verdict = Verdict::Hold(Timestamp(NOW.0 + 30_000));
const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";

fn guest_of(hook: Hook) -> &'static str {
    match hook {
        Hook::Screen => "test_moody_screen",
        Hook::Lookup => "test_moody_lookup",
        Hook::Router => "test_moody_router",
        Hook::Resolver => "test_moody_resolver",
        Hook::DeliveryPolicy => "test_moody_policy",
        Hook::Receipt => "test_moody_receipt",
        Hook::Biller => "test_moody_biller",
        Hook::Peer => "test_moody_peer",
        Hook::FrontEnd => "test_moody_front_end",
    }
}

fn bind(fixture: &HooksFixture, hook: Hook, mood: &str, change: impl FnOnce(Binding) -> Binding) {
    let binding = with_long_deadline(fixture.binding(guest_of(hook), &format!("{mood} north")));
    let never = Tolerance { faults: 0, window_ms: 1 };
    // The giant answer of 16 MiB fits into this, so that the host has to refuse it.
    let mut binding = Binding { tolerance: never, memory: 48 << 20, ..binding };
    if hook == Hook::Peer {
        binding.peers = vec!["north".to_owned()];
    }
    if matches!(mood, "loop" | "never") {
        // It runs into its deadline; time without a processor does not count.
        binding.deadline = Duration::from_millis(60);
    }
    fixture.hooks.activate(hook, NOW, vec![change(binding)], None).unwrap();
}

/// Hooks with a well-behaved plugin each.
fn fixture() -> HooksFixture {
    let fixture = HooksFixture::new();
    for hook in Hook::ALL {
        bind(&fixture, hook, "ok", |binding| binding);
    }
    fixture
}

fn number(digits: &str) -> LookupNumber {
    LookupNumber::of(&Address::international(digits)).unwrap()
}

fn attempt(fixture: &HooksFixture) -> Attempt {
    Attempt {
        number: 1,
        leg: (0, 1),
        peer: fixture.peer("north"),
        class: ErrorClass::Temporary,
        code: 8,
        age: Duration::from_secs(1),
        left: Duration::from_secs(3_600),
    }
}

fn settlement(amount: u64) -> Settlement {
    let (account, message) = ("acme".into(), MessageId(1));
    Settlement { serial: 1, message, account, amount, captured: true, at: NOW }
}

/// A submit attempt at the first peer.
fn submission(destination: &str) -> PeerSubmission {
    let message = Message { id: MessageId(7), ..message("good", destination) };
    let ticket = SubmitTicket { at: NOW, attempt: 1 };
    PeerSubmission { peer: "north".into(), message: Arc::new(message), leg: 0, ticket, want_dlr: true }
}

/// A message to this destination, with a forward verdict to the first peer.
fn priced(fixture: &HooksFixture, destination: &str) -> RoutingDecision {
    let message = message("good", destination);
    let to_north = Verdict::Forward(vec![Leg::to(fixture.peer("north"))]);
    let mut routed = RoutingDecision { verdict: to_north, ..message.routed.clone() };
    fixture.hooks.price(&message, &mut routed, NOW);
    routed
}

/// Every hook gives a good answer, and its plugin has this number of faults of each kind.
fn assert_good_answers(fixture: &HooksFixture, faults: impl Fn(Hook) -> [u64; 5]) {
    let screening = fixture.hooks.screen(&mut message("good", GOOD), NOW).expect("no fault");
    assert_eq!(screening.expect("a screen is bound").verdict, ScreenVerdict::Pass);
    assert_eq!(forwarded_peers(&fixture.hooks.route(&message("good", GOOD), NOW)), [fixture.peer("north")]);
    let (lookup, lifetime) = fixture.hooks.look_up(&number(GOOD), NOW).expect("a lookup is bound");
    assert_eq!((lookup.result, lifetime), (LookupResult::Found, Duration::from_secs(3_600)));
    let found = fixture.hooks.resolve(GOOD, NOW).subscriber;
    assert!(matches!(&found, Subscriber::Found { imsi, .. } if imsi.0.as_slice() == b"001013012345678"));
    let next = fixture.hooks.next(&message("good", GOOD), &attempt(fixture), NOW).expect("a decision");
    assert_eq!(next.step, NextStep::RetryAfter(Duration::from_secs(1)));
    let quote = priced(fixture, GOOD).quote.expect("a quote");
    assert_eq!(quote.charge.as_ref().map(|charge| charge.amount), Some(1_000));
    assert_eq!(fixture.hooks.settle(&[settlement(1_000)], NOW), Ok(()));
    let accepted = Outcome::Accepted { ids: vec![PeerMessageId::new(b"0000000007-1")] };
    assert_eq!(fixture.hooks.submit(&submission(GOOD), NOW).outcome, accepted);
    assert!(fixture.hooks.read_request(&request(""), NOW).is_ok());
    for hook in Hook::ALL {
        assert_eq!(fixture.hooks.counts(hook)[0].counts.faults, faults(hook), "{hook:?}");
    }
}

/// A request to the front end with this query.
fn request(query: &str) -> FrontEndRequest {
    FrontEndRequest {
        plugin: "test_moody_front_end".into(),
        method: "GET".to_owned(),
        path: "/send".to_owned(),
        query: query.to_owned(),
        ..FrontEndRequest::default()
    }
}

fn only_faults(hook: Hook, kind: FaultKind, count: u64) -> impl Fn(Hook) -> [u64; 5] {
    move |other| FaultKind::ALL.map(|known| if other == hook && known == kind { count } else { 0 })
}

fn noted(note: Option<&str>, kind: FaultKind) {
    let note = note.expect("a fault is noted");
    assert!(note.starts_with(&format!("fault ({})", kind.name())), "{note}");
    assert!(note.len() < 400, "{note}");
}

#[test]
fn a_router_fault_follows_on_fault() {
    let fixture = fixture();
    for (mood, kind) in FAULTS {
        for (on_fault, wanted) in [
            (OnFault::Hold, HELD),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Peer("reserve".to_owned()), Verdict::Forward(vec![Leg::to(fixture.peer("reserve"))])),
        ] {
            bind(&fixture, Hook::Router, mood, |binding| Binding { on_fault, ..binding });
            let routed = fixture.hooks.route(&message("good", BAD), NOW);
            assert_eq!(routed.verdict, wanted, "{mood}: {:?}", routed.note);
            noted(routed.note.as_deref(), kind);
            assert_good_answers(&fixture, only_faults(Hook::Router, kind, 1));
        }
    }
}

#[test]
fn after_a_passed_fault_the_next_router_decides() {
    let fixture = fixture();
    let next = with_long_deadline(fixture.binding("test_moody_router", "ok south"));
    for (mood, _) in FAULTS {
        bind(&fixture, Hook::Router, mood, |binding| Binding { on_fault: OnFault::Pass, ..binding });
        let first = fixture.hooks.history(Hook::Router).pop().unwrap().chain.remove(0);
        // If it is the only plugin, the result is the same as without a plugin, but the note has the fault.
        let alone = fixture.hooks.route(&message("good", BAD), NOW);
        assert_eq!(alone.verdict, Verdict::Reject(RejectReason::NoRoute));
        assert!(alone.note.as_deref().unwrap().starts_with("no router decided; fault ("), "{:?}", alone.note);
        fixture.hooks.activate(Hook::Router, NOW, vec![first, next.clone()], None).unwrap();
        for (destination, peer) in [(BAD, "south"), (GOOD, "north")] {
            let routed = fixture.hooks.route(&message("good", destination), NOW);
            assert_eq!(forwarded_peers(&routed), [fixture.peer(peer)], "{mood}");
        }
        let (considered, _) = fixture.hooks.explain(&message("good", BAD), NOW);
        assert!(considered[0].outcome.is_err() && considered[1].outcome.is_ok(), "{considered:?}");
    }
}

#[test]
fn a_resolver_fault_means_try_later() {
    let fixture = fixture();
    for (mood, kind) in FAULTS.into_iter().chain([("absurd", FaultKind::Verdict)]) {
        bind(&fixture, Hook::Resolver, mood, |binding| binding);
        let resolution = fixture.hooks.resolve(BAD, NOW);
        assert_eq!(resolution.subscriber, Subscriber::TryLater { after: None }, "{mood}");
        noted(resolution.note.as_deref(), kind);
        assert_good_answers(&fixture, only_faults(Hook::Resolver, kind, 1));
    }
    // Answers that are not faults: "try later", and an unknown peer that the plugin returns.
    for mood in ["try-later", "unknown-peer"] {
        bind(&fixture, Hook::Resolver, mood, |binding| binding);
        let resolution = fixture.hooks.resolve(BAD, NOW);
        assert_eq!(resolution.subscriber, Subscriber::TryLater { after: None }, "{mood}");
        let names_peer = resolution.note.is_some_and(|note| note.contains("served by peer \"no-such-peer\""));
        assert_eq!(names_peer, mood == "unknown-peer");
        assert_good_answers(&fixture, |_| [0; 5]);
    }
}

#[test]
fn a_lookup_fault_is_a_failed_lookup() {
    let fixture = fixture();
    let odd = [("unknown-peer", FaultKind::Verdict), ("absurd", FaultKind::Verdict)];
    for (mood, kind) in FAULTS.into_iter().chain(odd) {
        for on_fault in [OnFault::Hold, OnFault::Pass] {
            bind(&fixture, Hook::Lookup, mood, |binding| Binding { on_fault, ..binding });
            let (lookup, lifetime) = fixture.hooks.look_up(&number(BAD), NOW).unwrap();
            assert_eq!((lookup.result, lifetime), (LookupResult::Failed, Duration::ZERO), "{mood}");
            noted(lookup.note.as_deref(), kind);
            assert_good_answers(&fixture, only_faults(Hook::Lookup, kind, 1));
        }
    }
    bind(&fixture, Hook::Lookup, "try-later", |binding| binding);
    let (lookup, _) = fixture.hooks.look_up(&number(BAD), NOW).unwrap();
    assert_eq!((lookup.result, lookup.note), (LookupResult::Failed, None));
    assert_good_answers(&fixture, |_| [0; 5]);
}

#[test]
fn a_delivery_policy_fault_uses_the_built_in_schedule() {
    let fixture = fixture();
    // A giant note, and one that is not text; a rate that is not a number.
    for (mood, kind) in FAULTS.into_iter().chain([("absurd", FaultKind::Verdict)]) {
        bind(&fixture, Hook::DeliveryPolicy, mood, |binding| binding);
        assert_eq!(fixture.hooks.next(&message("good", BAD), &attempt(&fixture), NOW), None, "{mood}");
        assert_good_answers(&fixture, only_faults(Hook::DeliveryPolicy, kind, 1));
    }
    for (mood, step) in
        [("unknown-peer", NextStep::NextLeg), ("try-later", NextStep::AwaitAlert(Duration::from_secs(1)))]
    {
        bind(&fixture, Hook::DeliveryPolicy, mood, |binding| binding);
        let next = fixture.hooks.next(&message("good", BAD), &attempt(&fixture), NOW).unwrap();
        assert_eq!(next.step, step);
    }
}

#[test]
fn a_biller_fault_follows_on_fault() {
    let fixture = fixture();
    for (mood, kind) in FAULTS.into_iter().chain([("absurd", FaultKind::Verdict)]) {
        let forward = Verdict::Forward(vec![Leg::to(fixture.peer("north"))]);
        for (on_fault, wanted) in [
            (OnFault::Hold, HELD),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Pass, forward),
        ] {
            let free = on_fault == OnFault::Pass;
            bind(&fixture, Hook::Biller, mood, |binding| Binding { on_fault, ..binding });
            let routed = priced(&fixture, BAD);
            assert_eq!((&routed.verdict, &routed.quote), (&wanted, &None), "{mood}");
            if !free {
                noted(routed.note.as_deref(), kind);
            }
            assert_good_answers(&fixture, only_faults(Hook::Biller, kind, 1));
        }
    }
    bind(&fixture, Hook::Biller, "try-later", |binding| binding);
    assert_eq!(priced(&fixture, BAD).verdict, Verdict::Reject(RejectReason::NoCredit));
    assert_eq!(fixture.hooks.resolve(GOOD, NOW).by.plugin, "test_moody_resolver");
}

#[test]
fn a_failed_settlement_is_retried() {
    let fixture = fixture();
    for (mood, kind) in FAULTS {
        bind(&fixture, Hook::Biller, mood, |binding| binding);
        let result = fixture.hooks.settle(&[settlement(1_000), settlement(666)], NOW);
        noted(Some(&result.unwrap_err()), kind);
        assert_good_answers(&fixture, only_faults(Hook::Biller, kind, 1));
    }
    bind(&fixture, Hook::Biller, "try-later", |binding| binding);
    assert_eq!(fixture.hooks.settle(&[settlement(666)], NOW), Err("not now".to_owned()));
    assert_good_answers(&fixture, |_| [0; 5]);
}

#[test]
fn out_of_range_times_and_prices_are_clamped_or_refused() {
    let fixture = fixture();
    bind(&fixture, Hook::Router, "absurd", |binding| binding);
    let Verdict::Hold(until) = fixture.hooks.route(&message("good", BAD), NOW).verdict else {
        panic!("held")
    };
    assert!(until <= Timestamp(253_402_300_799_999), "{until:?} has no date");
    let most = fixture.hooks.route(&message("good", BAD), NOW);
    assert!(most.note.is_none());
    bind(&fixture, Hook::Biller, "unknown-peer", |binding| binding);
    let charge = priced(&fixture, BAD).quote.unwrap().charge.unwrap();
    // Only the ledger knows the accounts.
    assert_eq!((&*charge.account, charge.amount <= Charge::MAX), ("no-such-account", true));
}

#[test]
fn faults_are_the_same_with_an_instance_per_call() {
    let fixture = fixture();
    for (mood, kind) in FAULTS {
        bind(&fixture, Hook::Router, mood, |binding| Binding { instance: InstanceUse::PerCall, ..binding });
        for _ in 0..2 {
            let routed = fixture.hooks.route(&message("good", BAD), NOW);
            assert_eq!(routed.verdict, HELD);
            noted(routed.note.as_deref(), kind);
        }
        assert_good_answers(&fixture, only_faults(Hook::Router, kind, 2));
    }
}

#[test]
fn memory_over_the_host_limit_is_a_memory_fault() {
    let fixture = fixture();
    // The host's limit is 64 MiB; the binding exceeds it.
    bind(&fixture, Hook::Router, "hog", |binding| Binding { memory: 1 << 30, ..binding });
    let routed = fixture.hooks.route(&message("good", BAD), NOW);
    noted(routed.note.as_deref(), FaultKind::Memory);
    assert_good_answers(&fixture, only_faults(Hook::Router, FaultKind::Memory, 1));
}
