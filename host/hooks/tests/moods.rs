//! What a misbehaving plugin of each world costs: the one call. The next one works, the other hooks notice nothing, and the
//! message fares as the binding's on-fault says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, FaultKind, InstanceUse, OnFault, Tolerance};
use model::{
    Attempt, Charge, ErrorClass, Hook, Leg, MessageId, NextStep, RejectReason, Routed, Settlement,
    Subscriber, Timestamp, Verdict,
};
use std::time::Duration;
use support::{House, NOW, message, patient, peers};

/// Moods that end in a fault in every world, and its kind.
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
        Hook::Router => "test_moody_router",
        Hook::Resolver => "test_moody_resolver",
        Hook::DeliveryPolicy => "test_moody_policy",
        Hook::Biller => "test_moody_biller",
    }
}

fn bind(house: &House, hook: Hook, mood: &str, change: impl FnOnce(Binding) -> Binding) {
    let binding = patient(house.binding(guest_of(hook), &format!("{mood} north")));
    let never = Tolerance { faults: 0, window_ms: 1 };
    // A giant's sixteen mebioctets fit into this, so that it is the host that has to say no.
    let mut binding = Binding { tolerance: never, memory: 48 << 20, ..binding };
    if matches!(mood, "loop" | "never") {
        // Waited for to its end; time without a processor does not count.
        binding.deadline = Duration::from_millis(60);
    }
    house.hooks.activate(hook, NOW, vec![change(binding)], None).unwrap();
}

/// A house with a plugin in every hook, all of them well-behaved.
fn house() -> House {
    let house = House::new();
    for hook in Hook::ALL {
        bind(&house, hook, "ok", |binding| binding);
    }
    house
}

fn attempt(house: &House) -> Attempt {
    Attempt {
        number: 1,
        leg: (0, 1),
        peer: house.peer("north"),
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

/// A message to this destination, with its verdict: routed by nobody, to the first peer.
fn priced(house: &House, destination: &str) -> Routed {
    let message = message("good", destination);
    let to_north = Verdict::Forward(vec![Leg::to(house.peer("north"))]);
    let mut routed = Routed { verdict: to_north, ..message.routed.clone() };
    house.hooks.price(&message, &mut routed, NOW);
    routed
}

/// Every hook answers something good as it should, and its plugin has had so many faults of these kinds.
fn all_is_well(house: &House, faults: impl Fn(Hook) -> [u64; 5]) {
    assert_eq!(peers(&house.hooks.route(&message("good", GOOD), NOW)), [house.peer("north")]);
    let found = house.hooks.resolve(GOOD, NOW).subscriber;
    assert!(matches!(&found, Subscriber::Found { imsi, .. } if imsi.0.as_slice() == b"001013012345678"));
    let next = house.hooks.next(&message("good", GOOD), &attempt(house), NOW).expect("a decision");
    assert_eq!(next.step, NextStep::RetryAfter(Duration::from_secs(1)));
    let quote = priced(house, GOOD).quote.expect("a quote");
    assert_eq!(quote.charge.as_ref().map(|charge| charge.amount), Some(1_000));
    assert_eq!(house.hooks.settle(&[settlement(1_000)], NOW), Ok(()));
    for hook in Hook::ALL {
        assert_eq!(house.hooks.counts(hook)[0].counts.faults, faults(hook), "{hook:?}");
    }
}

fn only(hook: Hook, kind: FaultKind, count: u64) -> impl Fn(Hook) -> [u64; 5] {
    move |other| FaultKind::ALL.map(|known| if other == hook && known == kind { count } else { 0 })
}

fn noted(note: Option<&str>, kind: FaultKind) {
    let note = note.expect("a fault is noted");
    assert!(note.starts_with(&format!("fault ({})", kind.name())), "{note}");
    assert!(note.len() < 400, "{note}");
}

#[test]
fn a_routers_fault_is_answered_by_its_binding() {
    let house = house();
    for (mood, kind) in FAULTS {
        for (on_fault, wanted) in [
            (OnFault::Hold, HELD),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Peer("reserve".to_owned()), Verdict::Forward(vec![Leg::to(house.peer("reserve"))])),
        ] {
            bind(&house, Hook::Router, mood, |binding| Binding { on_fault, ..binding });
            let routed = house.hooks.route(&message("good", BAD), NOW);
            assert_eq!(routed.verdict, wanted, "{mood}: {:?}", routed.note);
            noted(routed.note.as_deref(), kind);
            all_is_well(&house, only(Hook::Router, kind, 1));
        }
    }
}

#[test]
fn after_a_router_that_is_passed_over_the_next_one_decides() {
    let house = house();
    let next = patient(house.binding("test_moody_router", "ok south"));
    for (mood, _) in FAULTS {
        bind(&house, Hook::Router, mood, |binding| Binding { on_fault: OnFault::Pass, ..binding });
        let first = house.hooks.history(Hook::Router).pop().unwrap().chain.remove(0);
        // Alone, it is as if nothing were there; but the note tells.
        let alone = house.hooks.route(&message("good", BAD), NOW);
        assert_eq!(alone.verdict, Verdict::Reject(RejectReason::NoRoute));
        assert!(alone.note.as_deref().unwrap().starts_with("no router decided; fault ("), "{:?}", alone.note);
        house.hooks.activate(Hook::Router, NOW, vec![first, next.clone()], None).unwrap();
        for (destination, peer) in [(BAD, "south"), (GOOD, "north")] {
            let routed = house.hooks.route(&message("good", destination), NOW);
            assert_eq!(peers(&routed), [house.peer(peer)], "{mood}");
        }
        let (considered, _) = house.hooks.explain(&message("good", BAD), NOW);
        assert!(considered[0].outcome.is_err() && considered[1].outcome.is_ok(), "{considered:?}");
    }
}

#[test]
fn a_resolvers_fault_means_later() {
    let house = house();
    let odd = [("unknown-peer", FaultKind::Verdict), ("absurd", FaultKind::Verdict)];
    for (mood, kind) in FAULTS.into_iter().chain(odd) {
        bind(&house, Hook::Resolver, mood, |binding| binding);
        let resolution = house.hooks.resolve(BAD, NOW);
        assert_eq!(resolution.subscriber, Subscriber::TryLater { after: None }, "{mood}");
        noted(resolution.note.as_deref(), kind);
        all_is_well(&house, only(Hook::Resolver, kind, 1));
    }
    bind(&house, Hook::Resolver, "try-later", |binding| binding);
    assert_eq!(house.hooks.resolve(BAD, NOW).subscriber, Subscriber::TryLater { after: None });
    all_is_well(&house, |_| [0; 5]);
}

#[test]
fn a_policys_fault_leaves_the_built_in_schedule() {
    let house = house();
    // A giant note and one that is no text; a rate that is no number.
    for (mood, kind) in FAULTS.into_iter().chain([("absurd", FaultKind::Verdict)]) {
        bind(&house, Hook::DeliveryPolicy, mood, |binding| binding);
        assert_eq!(house.hooks.next(&message("good", BAD), &attempt(&house), NOW), None, "{mood}");
        all_is_well(&house, only(Hook::DeliveryPolicy, kind, 1));
    }
    for (mood, step) in
        [("unknown-peer", NextStep::NextLeg), ("try-later", NextStep::AwaitAlert(Duration::from_secs(1)))]
    {
        bind(&house, Hook::DeliveryPolicy, mood, |binding| binding);
        let next = house.hooks.next(&message("good", BAD), &attempt(&house), NOW).unwrap();
        assert_eq!(next.step, step);
    }
}

#[test]
fn a_billers_fault_is_answered_by_its_binding() {
    let house = house();
    for (mood, kind) in FAULTS.into_iter().chain([("absurd", FaultKind::Verdict)]) {
        let forward = Verdict::Forward(vec![Leg::to(house.peer("north"))]);
        for (on_fault, wanted) in [
            (OnFault::Hold, HELD),
            (OnFault::Reject, Verdict::Reject(RejectReason::Fault)),
            (OnFault::Pass, forward),
        ] {
            let free = on_fault == OnFault::Pass;
            bind(&house, Hook::Biller, mood, |binding| Binding { on_fault, ..binding });
            let routed = priced(&house, BAD);
            assert_eq!((&routed.verdict, &routed.quote), (&wanted, &None), "{mood}");
            if !free {
                noted(routed.note.as_deref(), kind);
            }
            all_is_well(&house, only(Hook::Biller, kind, 1));
        }
    }
    bind(&house, Hook::Biller, "try-later", |binding| binding);
    assert_eq!(priced(&house, BAD).verdict, Verdict::Reject(RejectReason::NoCredit));
    assert_eq!(house.hooks.resolve(GOOD, NOW).by.plugin, "test_moody_resolver");
}

#[test]
fn a_settlement_that_fails_is_to_be_told_again() {
    let house = house();
    for (mood, kind) in FAULTS {
        bind(&house, Hook::Biller, mood, |binding| binding);
        let told = house.hooks.settle(&[settlement(1_000), settlement(666)], NOW);
        noted(Some(&told.unwrap_err()), kind);
        all_is_well(&house, only(Hook::Biller, kind, 1));
    }
    bind(&house, Hook::Biller, "try-later", |binding| binding);
    assert_eq!(house.hooks.settle(&[settlement(666)], NOW), Err("not now".to_owned()));
    all_is_well(&house, |_| [0; 5]);
}

#[test]
fn absurd_times_and_prices_are_brought_into_bounds_or_refused() {
    let house = house();
    bind(&house, Hook::Router, "absurd", |binding| binding);
    let Verdict::Hold(until) = house.hooks.route(&message("good", BAD), NOW).verdict else { panic!("held") };
    assert!(until <= Timestamp(253_402_300_799_999), "{until:?} has no date");
    let most = house.hooks.route(&message("good", BAD), NOW);
    assert!(most.note.is_none());
    bind(&house, Hook::Biller, "unknown-peer", |binding| binding);
    let charge = priced(&house, BAD).quote.unwrap().charge.unwrap();
    // The ledger is who knows accounts.
    assert_eq!((&*charge.account, charge.amount <= Charge::MOST), ("no-such-account", true));
}

#[test]
fn an_instance_for_every_call_fares_the_same() {
    let house = house();
    for (mood, kind) in FAULTS {
        bind(&house, Hook::Router, mood, |binding| Binding { instance: InstanceUse::PerCall, ..binding });
        for _ in 0..2 {
            let routed = house.hooks.route(&message("good", BAD), NOW);
            assert_eq!(routed.verdict, HELD);
            noted(routed.note.as_deref(), kind);
        }
        all_is_well(&house, only(Hook::Router, kind, 2));
    }
}

#[test]
fn memory_beyond_what_the_house_has_is_the_plugins_hunger_too() {
    let house = house();
    // The house allows 64 MiB; the binding says more.
    bind(&house, Hook::Router, "hog", |binding| Binding { memory: 1 << 30, ..binding });
    let routed = house.hooks.route(&message("good", BAD), NOW);
    noted(routed.note.as_deref(), FaultKind::Memory);
    all_is_well(&house, only(Hook::Router, FaultKind::Memory, 1));
}
