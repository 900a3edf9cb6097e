//! Receipt policies: chains, waits, faults, candidates.

use crate::support::{HooksFixture, NOW, message, wait_until, with_long_deadline};
use hooks::{Binding, OnFault, Tolerance, TrialMode};
use model::{AcceptedSubmission, DlrFacts, DlrState, Hook, ReceiptDecision, ReceiptEvent, ReceiptVerdict};
use std::time::Duration;

const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";

fn policy(fixture: &HooksFixture, document: &str) -> Binding {
    let binding = with_long_deadline(fixture.binding("test_moody_receipt", document));
    Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn activate(fixture: &HooksFixture, documents: &[&str]) {
    let chain = documents.iter().map(|document| policy(fixture, document)).collect();
    fixture.hooks.activate(Hook::Receipt, NOW, chain, None).unwrap();
}

fn decide(fixture: &HooksFixture, number: &str) -> Option<ReceiptDecision> {
    let submission = AcceptedSubmission {
        attempts: 1,
        leg: (0, 2),
        peer: fixture.peer("north"),
        age: Duration::from_secs(1),
        left: Duration::from_secs(3_600),
    };
    let dlr = DlrFacts {
        is_final: true,
        state: DlrState::Delivered,
        error: 0,
        network_error: Some([3, 0, 1]),
        latency: Duration::from_millis(20),
    };
    fixture.hooks.decide_receipt(&message("good", number), submission, ReceiptEvent::Dlr(dlr), NOW)
}

fn verdict(fixture: &HooksFixture) -> Option<(ReceiptVerdict, Option<u64>)> {
    decide(fixture, GOOD).map(|decision| {
        (decision.verdict, decision.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap()))
    })
}

#[test]
fn the_first_policy_that_does_not_accept_decides() {
    let fixture = HooksFixture::new();
    assert_eq!(verdict(&fixture), None, "no policy is bound");
    let remap = ReceiptVerdict::Remap { state: DlrState::Undeliverable, error: 8 };
    for (chain, expected) in [
        (&["ok"][..], (ReceiptVerdict::Accept, None)),
        (&["ok\nwait 5"], (ReceiptVerdict::Accept, Some(5))),
        (&["ok\nnext-leg", "ok\nsuspect"], (ReceiptVerdict::NextLeg, None)),
        (&["ok", "ok\nsuspect"], (ReceiptVerdict::Suspect, None)),
        (&["ok\nwait 5", "ok\nwait 7"], (ReceiptVerdict::Accept, Some(5))),
        (&["ok\nwait 5", "ok\nwait 7\nundeliverable"], (remap, Some(5))),
    ] {
        activate(&fixture, chain);
        assert_eq!(verdict(&fixture), Some(expected), "{chain:?}");
    }
}

#[test]
fn a_fault_is_an_accept_and_the_next_policy_is_asked_if_the_binding_says_so() {
    let fixture = HooksFixture::new();
    for mood in ["trap", "loop", "hog", "bad-utf8"] {
        for (on_fault, expected) in [(OnFault::Hold, None), (OnFault::Pass, Some(ReceiptVerdict::Accept))] {
            let mut failing = Binding { on_fault, ..policy(&fixture, mood) };
            if mood == "loop" {
                failing.deadline = Duration::from_millis(60);
            }
            let chain = vec![failing, policy(&fixture, "ok")];
            fixture.hooks.activate(Hook::Receipt, NOW, chain, None).unwrap();
            let found = decide(&fixture, BAD).map(|decision| decision.verdict);
            assert_eq!(found, expected, "{mood}");
        }
    }
    assert!(!fixture.hooks.faults(Hook::Receipt).is_empty());
    activate(&fixture, &["absurd"]);
    let longest = Duration::from_secs(366 * 86_400);
    assert_eq!(decide(&fixture, BAD).unwrap().wait, Some(longest), "a wait is limited");
}

#[test]
fn a_shadow_is_compared_and_a_canary_decides_its_share() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["ok\nwait 5"]);
    let candidate = || vec![policy(&fixture, "ok\nnext-leg")];
    fixture.hooks.start_trial(Hook::Receipt, NOW, TrialMode::Shadow, candidate(), None).unwrap();
    assert_eq!(verdict(&fixture), Some((ReceiptVerdict::Accept, Some(5))));
    let compare = || fixture.hooks.status(Hook::Receipt).candidate.unwrap().comparison.unwrap();
    wait_until("it is compared", || compare().compared == 1);
    let comparison = compare();
    let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
    assert_eq!((&*difference.from, &*difference.to), ("accept, ask again after 0.005 s", "next leg"));
    let half = TrialMode::Canary { share: 5_000 };
    fixture.hooks.start_trial(Hook::Receipt, NOW, half, candidate(), None).unwrap();
    let by_candidate = |number: u64| {
        let decision = decide(&fixture, &format!("86139{number:08}")).unwrap();
        decision.verdict == ReceiptVerdict::NextLeg
    };
    let share = (0..400).filter(|number| by_candidate(*number)).count();
    assert!((120..280).contains(&share), "{share} of 400");
    fixture.hooks.end_trial(Hook::Receipt, NOW).unwrap();
    assert!(!(0..20).any(by_candidate));
}
