//! Screens: each verdict, chains, the results that routers see, faults, candidates, and replays.

use crate::support::{HooksFixture, NOW, forwarded_peers, message, wait_until, with_long_deadline};
use bytes::Bytes;
use hooks::{Binding, FaultKind, OnFault, Tolerance, TrialMode};
use model::{
    DroppedAs, Hook, Message, MessageChanges, RejectReason, RoutingDecision, ScreenVerdict, Screening,
    Timestamp, Verdict,
};

const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";
const LATER: Timestamp = Timestamp(NOW.0 + 7 * 86_400_000);

fn screen(fixture: &HooksFixture, document: &str) -> Binding {
    let binding = with_long_deadline(fixture.binding("test_moody_screen", document));
    // The giant answer of 16 MiB fits into this, so that the host has to refuse it.
    Binding { memory: 48 << 20, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn activate(fixture: &HooksFixture, documents: &[&str]) -> Vec<Binding> {
    let chain: Vec<Binding> = documents.iter().map(|document| screen(fixture, document)).collect();
    fixture.hooks.activate(Hook::Screen, NOW, chain.clone(), None).unwrap();
    chain
}

fn asked(fixture: &HooksFixture, message: &mut Message) -> Result<Screening, Box<RoutingDecision>> {
    fixture.hooks.screen(message, NOW).map(|screening| *screening.expect("a screen is bound"))
}

fn screened_verdict(fixture: &HooksFixture) -> ScreenVerdict {
    asked(fixture, &mut message("good", GOOD)).expect("no fault").verdict
}

#[test]
fn each_verdict_has_its_host_type() {
    let fixture = HooksFixture::new();
    assert!(matches!(fixture.hooks.screen(&mut message("good", GOOD), NOW), Ok(None)), "no screen is bound");
    for (line, expected) in [
        ("pass", ScreenVerdict::Pass),
        ("reject", ScreenVerdict::Reject(RejectReason::Prohibited)),
        ("quarantine", ScreenVerdict::Quarantine),
        ("drop delivered", ScreenVerdict::Drop(DroppedAs::Delivered)),
        ("drop undeliverable", ScreenVerdict::Drop(DroppedAs::Undeliverable)),
        ("drop rejected", ScreenVerdict::Drop(DroppedAs::Rejected)),
    ] {
        activate(&fixture, &[&format!("ok\nnote text\n{line}")]);
        let mut screened = message("good", GOOD);
        let Screening { verdict, by, note, changes, submitted_text, .. } =
            asked(&fixture, &mut screened).unwrap();
        assert_eq!((verdict, note.as_deref()), (expected, Some("hello")), "{line}");
        assert_eq!((&*by.plugin, changes, submitted_text), ("test_moody_screen", None, None));
        assert_eq!(screened.text.octets, "hello");
    }
}

#[test]
fn changes_add_up_along_the_chain_and_the_second_screen_sees_the_first_ones() {
    let fixture = HooksFixture::new();
    activate(
        &fixture,
        &[
            "ok\ntag list one\ntag kept yes\nset-tlv 1401 first\ntext goodbye all\npass",
            "ok\nnote text\nnote length\nnote attribute list\ntag list two\nremove-tlv 1401\npass",
        ],
    );
    let mut screened = message("good", GOOD);
    let Screening { verdict, note, changes, submitted_text, .. } = asked(&fixture, &mut screened).unwrap();
    assert_eq!((verdict, note.as_deref()), (ScreenVerdict::Pass, Some("goodbye all|11 octets|one")));
    let mut expected = MessageChanges::default();
    expected.change_tlv(0x1401, None);
    expected.set_attribute("list".into(), "two".into());
    expected.set_attribute("kept".into(), "yes".into());
    assert_eq!(changes.as_deref(), Some(&expected));
    assert_eq!(screened.text.octets, "goodbye all");
    assert_eq!(submitted_text.expect("the text was replaced").octets, "hello");

    // The first one that does not pass ends the chain.
    activate(&fixture, &["ok\nquarantine", "ok\nreject"]);
    assert_eq!(screened_verdict(&fixture), ScreenVerdict::Quarantine);
}

#[test]
fn routers_see_attributes_and_text_of_the_screens() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["ok\ntag list grey\ntag kept yes\ntext goodbye"]);
    let router =
        fixture.binding("test_examiner", "note attribute list\nnote text\nattribute list own\nforward north");
    fixture.hooks.activate(Hook::Router, NOW, vec![with_long_deadline(router)], None).unwrap();
    let mut screened = message("good", GOOD);
    let screening = asked(&fixture, &mut screened).unwrap();
    screened.routed.screening = Some(Box::new(screening));
    let routed = fixture.hooks.route(&screened, NOW);
    assert_eq!(forwarded_peers(&routed), [fixture.peer("north")]);
    assert_eq!(routed.note.as_deref(), Some("grey|goodbye"));
    let mut expected = MessageChanges::default();
    expected.set_attribute("list".into(), "own".into());
    expected.set_attribute("kept".into(), "yes".into());
    assert_eq!(routed.changes.as_deref(), Some(&expected));
}

/// Moods that end in a fault, with its kind.
const FAULTS: [(&str, FaultKind); 8] = [
    ("trap", FaultKind::Trap),
    ("hog", FaultKind::Memory),
    ("recurse", FaultKind::Trap),
    ("giant", FaultKind::Trap),
    ("bad-utf8", FaultKind::Trap),
    ("many-legs", FaultKind::Trap),
    ("unknown-peer", FaultKind::Verdict),
    ("absurd", FaultKind::Verdict),
];

#[test]
fn a_fault_follows_on_fault() {
    let fixture = HooksFixture::new();
    let held = Verdict::Hold(Timestamp(NOW.0 + 30_000));
    for (mood, kind) in FAULTS {
        let bind = |on_fault| {
            let chain = vec![
                Binding { on_fault, ..screen(&fixture, mood) },
                screen(&fixture, "ok\ntag after fault\npass"),
            ];
            fixture.hooks.activate(Hook::Screen, NOW, chain, None).unwrap();
        };
        let begin = format!("fault ({})", kind.name());
        for (on_fault, expected) in
            [(OnFault::Hold, held.clone()), (OnFault::Reject, Verdict::Reject(RejectReason::Fault))]
        {
            bind(on_fault);
            let failed = asked(&fixture, &mut message("good", BAD)).expect_err(mood);
            assert_eq!(failed.verdict, expected, "{mood}");
            assert!(failed.note.as_deref().unwrap().starts_with(&begin), "{mood}: {:?}", failed.note);
        }
        // The next screen decides.
        bind(OnFault::Pass);
        let passed = asked(&fixture, &mut message("good", BAD)).unwrap();
        assert_eq!(passed.verdict, ScreenVerdict::Pass);
        assert!(passed.changes.is_some(), "{mood}");
        // If it is the only screen, the result is the same as without a screen, but the note has the fault.
        let alone = Binding { on_fault: OnFault::Pass, ..screen(&fixture, mood) };
        fixture.hooks.activate(Hook::Screen, NOW, vec![alone], None).unwrap();
        let passed = asked(&fixture, &mut message("good", BAD)).unwrap();
        assert_eq!((passed.verdict, passed.changes), (ScreenVerdict::Pass, None));
        assert!(passed.note.as_deref().unwrap().starts_with(&begin), "{mood}: {:?}", passed.note);
        // The next message is screened as before.
        assert_eq!(screened_verdict(&fixture), ScreenVerdict::Pass);
    }
}

#[test]
fn a_text_that_does_not_fit_is_a_fault() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["absurd"]);
    let failed = asked(&fixture, &mut message("good", BAD)).expect_err("too long");
    let note = failed.note.unwrap();
    assert!(note.contains("the new text is too long"), "{note}");
}

#[test]
fn a_shadow_is_compared_and_never_used() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["ok\npass"]);
    let candidate = vec![screen(&fixture, "ok\ntext other\nquarantine")];
    fixture.hooks.start_trial(Hook::Screen, NOW, TrialMode::Shadow, candidate, None).unwrap();
    for _ in 0..3 {
        let mut screened = message("good", GOOD);
        assert_eq!(asked(&fixture, &mut screened).unwrap().verdict, ScreenVerdict::Pass);
        assert_eq!(screened.text.octets, "hello");
    }
    let compare = || fixture.hooks.status(Hook::Screen).candidate.unwrap().comparison.unwrap();
    wait_until("all are compared", || compare().compared == 3);
    let comparison = compare();
    let [difference] = &comparison.differences[..] else { panic!("one kind: {comparison:?}") };
    assert_eq!((&*difference.from, &*difference.to), ("pass", "quarantine, text replaced"));
    assert_eq!((comparison.same, comparison.different), (0, 3));

    // Two screens that pass a message differ if they change it differently.
    activate(&fixture, &["ok\ntag list grey"]);
    for (candidate, same) in [("ok\ntag list grey", true), ("ok\ntag list black", false), ("ok", false)] {
        let candidate = vec![screen(&fixture, candidate)];
        fixture.hooks.start_trial(Hook::Screen, NOW, TrialMode::Shadow, candidate, None).unwrap();
        assert!(asked(&fixture, &mut message("good", GOOD)).is_ok());
        wait_until("it is compared", || compare().compared == 1);
        assert_eq!(compare().same == 1, same);
    }
}

#[test]
fn a_canary_decides_its_share_and_is_promoted_and_rolled_back() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["ok\npass"]);
    let candidate = vec![screen(&fixture, "ok\nreject")];
    let half = TrialMode::Canary { share: 5_000 };
    fixture.hooks.start_trial(Hook::Screen, NOW, half, candidate, None).unwrap();
    let rejected = |number: u64| {
        let mut asked = message("good", &format!("86139{number:08}"));
        let screening = fixture.hooks.screen(&mut asked, NOW).unwrap().unwrap();
        screening.verdict == ScreenVerdict::Reject(RejectReason::Prohibited)
    };
    let first: Vec<bool> = (0..400).map(rejected).collect();
    let share = first.iter().filter(|rejected| **rejected).count();
    assert!((120..280).contains(&share), "{share} of 400");
    assert_eq!((0..400).map(rejected).collect::<Vec<_>>(), first, "a destination stays in its share");
    fixture.hooks.promote(Hook::Screen, NOW, None).unwrap();
    assert!((0..20).all(rejected));
    fixture.hooks.rollback(Hook::Screen, NOW).unwrap();
    assert!(!(0..20).any(rejected));
}

#[test]
fn a_replay_repeats_recorded_host_calls() {
    let fixture = HooksFixture::recording(true);
    let chain = activate(&fixture, &["ok\nnote count\nnote time\npass"]);
    let mut archived = Vec::new();
    for _ in 0..3 {
        archived.push(asked(&fixture, &mut message("good", GOOD)).unwrap());
    }
    let dry_run = fixture.hooks.dry_run(Hook::Screen, &chain).unwrap();
    for (number, screening) in (1..).zip(&archived) {
        let note = format!("{number}|{}", NOW.0);
        assert_eq!(screening.note.as_deref(), Some(&*note));
        let again = dry_run.screen(&message("good", GOOD), LATER, screening.host_calls.as_deref());
        let decision = again.decision.unwrap().unwrap();
        assert_eq!((decision.note.as_deref(), again.missing), (Some(&*note), None));
    }
    // Without a record, the missing call is named, and nothing is counted.
    let without = dry_run.screen(&message("good", GOOD), LATER, Some(&[]));
    assert_eq!(without.missing, Some("a counter"));
    assert_eq!(
        asked(&fixture, &mut message("good", GOOD)).unwrap().note.unwrap().split('|').next(),
        Some("4")
    );
}

#[test]
fn explain_shows_each_step_and_changes_nothing() {
    let fixture = HooksFixture::new();
    activate(&fixture, &["ok\nnote count\ntext first", "ok\nnote text\nreject", "ok\nquarantine"]);
    for _ in 0..2 {
        let mut screened = message("good", GOOD);
        screened.text.octets = Bytes::from_static(b"hello again");
        let (steps, outcome) = fixture.hooks.explain_screening(&mut screened, NOW);
        let notes: Vec<_> =
            steps.iter().map(|step| step.outcome.as_ref().unwrap().note.as_deref().unwrap()).collect();
        assert_eq!(notes, ["1", "first"]);
        let screening = outcome.unwrap().unwrap();
        assert_eq!(screening.verdict, ScreenVerdict::Reject(RejectReason::Prohibited));
    }
}
