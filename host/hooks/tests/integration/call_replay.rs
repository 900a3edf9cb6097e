//! Host calls of routers are recorded with their verdicts, so that a replay sees the same answers later and elsewhere,
//! and reports missing ones.

use crate::support::{HooksFixture, NOW, forwarded_peers, guest, message, route_all_to, with_long_deadline};
use capabilities::{Observed, QualityGrant};
use hooks::{Binding, DryRunOutcome, OnFault, PeerState, Tolerance, TrialMode};
use model::{ErrorClass, Hook, Message, ObservationKind, RejectReason, RoutingDecision, Timestamp, Verdict};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const LATER: Timestamp = Timestamp(NOW.0 + 7 * 86_400_000);

fn test_message() -> Message {
    message("good", "8613012345678")
}

fn queued(fixture: &HooksFixture, north: u64, south: u64) {
    let state = |queued| PeerState { links: 1, queued };
    let states = [("north".to_owned(), state(north)), ("south".to_owned(), state(south))];
    fixture.peer_snapshots.publish(states.into_iter().collect());
}

/// Hooks that record host calls.
fn fixture() -> HooksFixture {
    let fixture = HooksFixture::recording(true);
    queued(&fixture, 7, 9);
    fixture
}

/// Routes a message among others; then the time, the peers and the counters change.
fn archived(fixture: &HooksFixture, chain: &[Binding]) -> RoutingDecision {
    fixture.hooks.activate(Hook::Router, NOW, chain.to_vec(), None).unwrap();
    // The counters start with counts from earlier messages.
    for _ in 0..3 {
        let _ = fixture.hooks.route(&test_message(), NOW);
    }
    let routed = fixture.hooks.route(&test_message(), NOW);
    queued(fixture, 1_000, 2_000);
    for _ in 0..5 {
        let _ = fixture.hooks.route(&test_message(), LATER);
    }
    routed
}

fn replay(fixture: &HooksFixture, chain: &[Binding], seen: Option<&[u8]>) -> DryRunOutcome {
    fixture.hooks.dry_run(Hook::Router, chain).unwrap().route(&test_message(), LATER, seen)
}

#[test]
fn a_replay_repeats_recorded_host_calls() {
    let fixture = fixture();
    let peeper = with_long_deadline(fixture.binding("test_peeper", "north"));
    fixture.hooks.activate(Hook::Router, NOW, vec![peeper.clone()], None).unwrap();
    let routed: Vec<RoutingDecision> = (0..3).map(|_| fixture.hooks.route(&test_message(), NOW)).collect();
    queued(&fixture, 1_000, 2_000);
    for (before, routed) in routed.iter().enumerate() {
        let note = routed.note.as_deref().unwrap();
        let wanted = format!("links 1, queued 7, seen {before} then {}, at {}", before + 1, NOW.0);
        assert_eq!(note, wanted);
        for _ in 0..2 {
            let outcome = replay(&fixture, std::slice::from_ref(&peeper), routed.host_calls.as_deref());
            assert_eq!((outcome.note.as_deref(), outcome.missing), (Some(note), None));
            assert_eq!(outcome.verdict.unwrap().as_ref(), Some(&routed.verdict));
            assert_eq!(outcome.call_log, None, "a replay is no record");
        }
    }
    // A replay counts nothing.
    let note = fixture.hooks.route(&test_message(), NOW).note.unwrap();
    assert!(note.contains("queued 1000, seen 3 then 4"), "{note}");
}

#[test]
fn without_a_record_a_replay_names_the_missing_call() {
    let fixture = fixture();
    let peeper = with_long_deadline(fixture.binding("test_peeper", "north"));
    let blind = with_long_deadline(fixture.binding("prefix_router", &route_all_to("south")));
    let routed = archived(&fixture, std::slice::from_ref(&blind));
    assert_eq!(routed.host_calls, None, "a plugin without host calls has no record");
    let outcome = replay(&fixture, std::slice::from_ref(&blind), Some(&[]));
    assert_eq!((outcome.verdict.unwrap(), outcome.missing), (Some(routed.verdict), None));
    let outcome = replay(&fixture, &[peeper], Some(&[]));
    assert_eq!(outcome.missing, Some("a peer's state"), "the first thing that it asks");
}

#[test]
fn a_candidate_with_other_host_calls_names_the_missing_call() {
    let fixture = fixture();
    let north = with_long_deadline(fixture.binding("test_asker", "to north 1"));
    let routed = archived(&fixture, std::slice::from_ref(&north));
    let candidate = |document: &str| {
        let candidate = Binding { policy: document.to_owned(), ..north.clone() };
        replay(&fixture, &[candidate], routed.host_calls.as_deref())
    };
    assert_eq!(candidate("to north 1").missing, None);
    assert_eq!(candidate("to north 0").missing, None, "fewer calls than recorded are exact");
    assert_eq!(candidate("to south 1").missing, Some("a peer's state"));
    assert_eq!(candidate("to north 2").missing, Some("a counter"));
    // A missing call is reported even if the candidate decides nothing, or fails afterwards.
    let passes = candidate("pass south 1");
    assert!(matches!(passes.verdict, Ok(None)));
    assert_eq!(passes.missing, Some("a peer's state"));
    let fails = candidate("to nowhere 1");
    assert!(fails.verdict.is_err());
    assert_eq!(fails.missing, Some("a peer's state"));
}

#[test]
fn counters_of_another_plugin_are_not_replayed() {
    let fixture = fixture();
    let version = fixture.binding("test_asker", "").version;
    let octets = guest("test_asker");
    assert_eq!(fixture.hooks.upload("stranger", &octets, None).unwrap().version, version);
    let routed =
        archived(&fixture, &[with_long_deadline(Binding::new("test_asker", &version, "to north 1"))]);
    let stranger = |document: &str| {
        let binding = with_long_deadline(Binding::new("stranger", &version, document));
        replay(&fixture, &[binding], routed.host_calls.as_deref()).missing
    };
    assert_eq!(stranger("to north 0"), None, "time and peers are the same for all plugins");
    assert_eq!(stranger("to north 1"), Some("a counter"));
}

#[test]
fn a_chain_has_one_record_and_each_plugin_finds_its_calls() {
    let fixture = fixture();
    // The same plugin twice, so that both use one counter, and another plugin between them.
    let ask = |document: &str| with_long_deadline(fixture.binding("test_asker", document));
    let version = fixture.binding("test_asker", "").version;
    fixture.hooks.upload("stranger", &guest("test_asker"), None).unwrap();
    let stranger = with_long_deadline(Binding::new("stranger", &version, "pass south 1"));
    let chain = [ask("pass north 2"), stranger, ask("to south 3")];
    let routed = archived(&fixture, &chain);
    // Three messages before it with five counts each; then two, then three more.
    let note = format!("south queued 9, counted 20, at {}", NOW.0);
    assert_eq!(routed.note.as_deref(), Some(&*note));
    let outcome = replay(&fixture, &chain, routed.host_calls.as_deref());
    assert_eq!((outcome.note.as_deref(), outcome.missing), (Some(&*note), None));
    // A plugin with more calls than recorded gets no invented answers.
    let more = [ask("pass north 2"), ask("to south 4")];
    assert_eq!(replay(&fixture, &more, routed.host_calls.as_deref()).missing, Some("a counter"));
}

#[test]
fn a_truncated_record_is_truncated_for_all_later_plugins() {
    let fixture = fixture();
    let ask = |document: &str| with_long_deadline(fixture.binding("test_asker", document));
    let chain = [ask("pass north 1"), ask("pass north 1000"), ask("to south 2")];
    let routed = archived(&fixture, &chain);
    let seen = routed.host_calls.as_deref().unwrap();
    assert!(seen.len() < 5_000, "{} octets", seen.len());
    let outcome = replay(&fixture, &chain, Some(seen));
    assert_eq!(outcome.missing, Some("a counter"), "answers to other questions are never used silently");
    let outcome = replay(&fixture, &chain[..1], Some(seen));
    assert_eq!(outcome.missing, None, "entries before the truncation are complete");
}

#[test]
fn calls_before_a_passed_fault_are_recorded() {
    let fixture = fixture();
    let faulty = with_long_deadline(fixture.binding("test_asker", "to nowhere 2"));
    let faulty =
        Binding { on_fault: OnFault::Pass, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..faulty };
    let last = with_long_deadline(fixture.binding("test_asker", "to north 1"));
    let chain = [faulty, last];
    let routed = archived(&fixture, &chain);
    assert_eq!(forwarded_peers(&routed), [fixture.peer("north")]);
    let outcome = replay(&fixture, &chain, routed.host_calls.as_deref());
    assert_eq!((outcome.note, outcome.missing), (routed.note.clone(), None));
    assert_eq!(outcome.verdict.unwrap(), Some(routed.verdict));
}

#[test]
fn an_undecided_message_has_a_record() {
    let fixture = fixture();
    let passes = with_long_deadline(fixture.binding("test_asker", "pass north 1"));
    let routed = archived(&fixture, std::slice::from_ref(&passes));
    assert_eq!(routed.verdict, Verdict::Reject(RejectReason::NoRoute));
    let outcome = replay(&fixture, &[passes], routed.host_calls.as_deref());
    assert!(matches!(outcome.verdict, Ok(None)));
    assert_eq!(outcome.missing, None);
}

#[test]
fn explain_counts_nothing() {
    let fixture = fixture();
    let asker = with_long_deadline(fixture.binding("test_asker", "to north 1"));
    fixture.hooks.activate(Hook::Router, NOW, vec![asker.clone()], None).unwrap();
    let counted = |note: Option<&str>| {
        let words: Vec<&str> = note.unwrap().split(", ").collect();
        words[1].to_owned()
    };
    assert_eq!(counted(fixture.hooks.route(&test_message(), NOW).note.as_deref()), "counted 1");
    let calls = || fixture.hooks.counts(Hook::Router)[0].counts.calls;
    let before = calls();
    let (_, routed) = fixture.hooks.explain(&test_message(), NOW);
    assert_eq!((calls(), counted(routed.note.as_deref())), (before, "counted 2".to_owned()));
    for _ in 0..3 {
        let (considered, _) = fixture.hooks.explain(&test_message(), NOW);
        let decision = considered[0].outcome.as_ref().unwrap();
        assert_eq!(counted(decision.note.as_deref()), "counted 2", "as if it were the next one");
        // A trial has its own counters, and so has the self-check of an activation.
        let outcome = replay(&fixture, std::slice::from_ref(&asker), None);
        assert!(outcome.missing.is_none() && outcome.call_log.is_some());
        fixture.hooks.activate(Hook::Router, NOW, vec![asker.clone()], None).unwrap();
    }
    assert_eq!(counted(fixture.hooks.route(&test_message(), NOW).note.as_deref()), "counted 2");
    let spaces = fixture.counters.metrics();
    let entries: Vec<u64> =
        spaces.iter().filter(|(name, _)| name == "test_asker").map(|(_, metrics)| metrics.entries).collect();
    assert_eq!(entries, [1], "the self-check's number is not among them: {spaces:?}");
    let window = Duration::from_secs(60);
    assert_eq!(fixture.counters.sum("test_asker", "asked", "8613012345678", window, NOW), 2);
}

#[test]
fn host_calls_of_a_failed_canary_are_not_recorded() {
    let fixture = fixture();
    let live = with_long_deadline(fixture.binding("test_asker", "to north 1"));
    fixture.hooks.activate(Hook::Router, NOW, vec![live.clone()], None).unwrap();
    let canary = Binding { policy: "to nowhere 2".to_owned(), ..live.clone() };
    let all = TrialMode::Canary { share: 10_000 };
    fixture.hooks.start_trial(Hook::Router, NOW, all, vec![canary], None).unwrap();
    let routed = fixture.hooks.route(&test_message(), NOW);
    let note = routed.note.as_deref().unwrap();
    assert!(note.starts_with("north queued 7, counted 3"), "{note}");
    let outcome = replay(&fixture, &[live], routed.host_calls.as_deref());
    assert_eq!((outcome.note.as_deref(), outcome.missing), (Some(note), None));
}

#[test]
fn figures_of_peers_are_recorded_and_replayed() {
    let fixture = fixture();
    let document =
        "note quality north\nnote quality-by-digits north\nnote quality-by-brand north\nforward north";
    let mut binding = with_long_deadline(fixture.binding("test_examiner", document));
    binding.grants.quality =
        Some(QualityGrant { window_ms: 60_000, digits: vec![4], attributes: vec!["brand".to_owned()] });
    let asked = test_message();
    let brand = BTreeMap::from([("brand".to_owned(), "B-1".to_owned())]);
    fixture.account_attributes.publish(HashMap::from([(asked.origin, brand)]));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).unwrap();
    let observe = |digits: &[u8], brand: &str, kind| {
        fixture.quality.observe(&[Observed {
            peer: "north",
            digits,
            attribute: &|_| Some(brand.to_owned()),
            at: NOW,
            kind,
        }]);
    };
    observe(b"8613", "B-1", ObservationKind::Accepted);
    observe(b"8613", "B-2", ObservationKind::Delivered { after: Duration::from_millis(900) });
    observe(b"8614", "B-1", ObservationKind::Refused(ErrorClass::Permanent));
    let routed = fixture.hooks.route(&asked, NOW);
    let note = "accepted 1, refused 1, delivered 1, median Some(1000)|accepted 1, refused 0, delivered 1, \
                median Some(1000)|accepted 1, refused 1, delivered 0, median None";
    assert_eq!(routed.note.as_deref(), Some(note));

    // The world changes; the replay does not.
    observe(b"8613", "B-1", ObservationKind::Accepted);
    fixture.account_attributes.publish(HashMap::new());
    let again = replay(&fixture, std::slice::from_ref(&binding), routed.host_calls.as_deref());
    assert_eq!((again.note.as_deref(), again.missing), (Some(note), None));
    let other_window = QualityGrant { window_ms: 61_000, ..binding.grants.quality.clone().unwrap() };
    let mut other = binding.clone();
    other.grants.quality = Some(other_window);
    let again = replay(&fixture, &[other], routed.host_calls.as_deref());
    assert_eq!(again.missing, Some("figures of a peer"));

    // A binding without the grant has figures of whole peers only.
    binding.grants.quality = None;
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    let routed = fixture.hooks.route(&asked, NOW);
    let note = routed.note.as_deref().unwrap();
    assert!(note.starts_with("accepted 2, ") && note.matches("\"not-granted\"").count() == 2, "{note}");
}

#[test]
fn an_invalid_grant_of_figures_is_refused() {
    let fixture = fixture();
    let mut binding = with_long_deadline(fixture.binding("test_examiner", "forward north"));
    binding.grants.quality =
        Some(QualityGrant { window_ms: 60_000, digits: vec![9], attributes: Vec::new() });
    let refused = fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap_err().to_string();
    assert!(refused.starts_with("grants.quality: digits has 9"), "{refused}");
}
