use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, VALIDITY, by, message};
use engine::{BlockedBy, Event, MessageState, PeerSettings, Settings};
use model::WaitState;
use model::{
    AddressBytes, DeliveryDecision, DlrRequest, ErrorClass, FinalState, Hook, Leg, MessageId, NextStep,
    Outcome, PeerAdvice, PeerId,
    StepKind::{self, AwaitingAlert, Decided, Deferred, NextLeg, Refused, Replaced, Responded, Submitted},
    Text,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const NUMBER: &str = "4917100001";

fn fixture() -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings { delivery_policy: true, ..Settings::default() });
    fixture.link_up(FIRST, 10);
    fixture.link_up(SECOND, 10);
    fixture
}

fn refused(class: ErrorClass) -> Outcome {
    Outcome::Refused { class, code: 8, taken: Vec::new() }
}

fn next(step: NextStep) -> DeliveryDecision {
    DeliveryDecision { step, advice: PeerAdvice::default(), by: by(), note: Some("because".into()) }
}

/// Answers all pending decisions.
fn decide(fixture: &mut EngineFixture, next: Option<&DeliveryDecision>) {
    let asked = std::mem::take(&mut fixture.decisions);
    fixture.run(asked.into_iter().map(|(id, attempt)| Event::Decided {
        id,
        attempt: attempt.number,
        next: next.cloned(),
    }));
}

/// A refused message with a pending decision.
fn undecided_message(fixture: &mut EngineFixture, class: ErrorClass) -> MessageId {
    let id = fixture.submit(message(NUMBER, vec![Leg::to(FIRST), Leg::to(SECOND)])).unwrap();
    fixture.outcome_of_all(&refused(class));
    assert_eq!(fixture.engine.message(id).unwrap().state, MessageState::Deciding);
    assert_eq!((fixture.engine.pending_decisions(), fixture.decisions.len()), (1, 1));
    id
}

fn alert() -> Event {
    Event::Alert { msisdn: AddressBytes::from_slice(format!("+{NUMBER}").as_bytes()) }
}

fn due_in(fixture: &EngineFixture, id: MessageId) -> Duration {
    fixture.engine.message(id).unwrap().until.unwrap() - fixture.now.mono
}

fn blocked_by(fixture: &EngineFixture, peer: PeerId) -> BlockedBy {
    fixture.engine.peers().iter().find(|status| status.peer == peer).unwrap().blocked_by
}

#[test]
fn the_policy_gets_the_attempt_and_its_decision_is_traced() {
    let mut fixture = fixture();
    fixture.pass(Duration::from_secs(1));
    let id = undecided_message(&mut fixture, ErrorClass::Absent);
    let attempt = fixture.decisions[0].1.clone();
    assert_eq!((attempt.number, attempt.leg, attempt.peer), (1, (0, 2), FIRST));
    assert_eq!((attempt.class, attempt.code, attempt.age), (ErrorClass::Absent, 8, Duration::ZERO));
    assert_eq!(attempt.left, VALIDITY - Duration::from_secs(1));
    decide(&mut fixture, Some(&next(NextStep::RetryAfter(Duration::from_secs(40)))));
    assert_eq!(due_in(&fixture, id), Duration::from_secs(40), "to the millisecond");
    fixture.pass(Duration::from_secs(40));
    fixture.outcome_of_all(&refused(ErrorClass::Permanent));
    assert_eq!(fixture.decisions[0].1.number, 2);
    decide(&mut fixture, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    fixture.outcome_of_all(&refused(ErrorClass::MemoryFull));
    decide(&mut fixture, Some(&next(NextStep::NextLeg)));
    assert_eq!(fixture.sent[0].0, SECOND);
    fixture.outcome_of_all(&refused(ErrorClass::Temporary));
    assert_eq!((fixture.decisions[0].1.number, fixture.decisions[0].1.leg), (4, (1, 2)));
    decide(&mut fixture, Some(&next(NextStep::NextLeg)));
    let ended = &fixture.finished[&id];
    assert_eq!((ended.state, ended.error), (FinalState::Failed, 8), "there is no other leg");
    let decided = || Decided { hook: Hook::DeliveryPolicy, by: by(), note: Some("because".into()) };
    let steps: Vec<StepKind> = fixture
        .steps(id)
        .into_iter()
        .map(|step| match step {
            // The time of the next attempt is checked above.
            Deferred { .. } => Deferred { until: Default::default() },
            other => other,
        })
        .collect();
    let submitted = |peer, attempt| Submitted { peer, attempt };
    let refused = || Refused { code: 8 };
    let expected = [
        vec![submitted(FIRST, 1), refused(), decided(), Deferred { until: Default::default() }],
        vec![submitted(FIRST, 2), refused(), decided()],
        vec![submitted(FIRST, 3), refused(), decided(), NextLeg { peer: SECOND }],
        vec![submitted(SECOND, 4), refused(), decided()],
    ];
    assert_eq!(steps, expected.concat());
}

#[test]
fn giving_up_ends_a_message_though_it_has_another_leg() {
    let mut fixture = fixture();
    let id = undecided_message(&mut fixture, ErrorClass::Temporary);
    decide(&mut fixture, Some(&next(NextStep::Fail)));
    assert_eq!((fixture.finished[&id].state, fixture.finished[&id].error), (FinalState::Failed, 8));
    assert_eq!(fixture.engine.pending_decisions(), 0);
}

#[test]
fn an_alert_ends_the_wait_for_a_subscriber() {
    for is_alerted in [true, false] {
        for crash in [true, false] {
            let mut fixture = fixture();
            let id = undecided_message(&mut fixture, ErrorClass::Absent);
            decide(&mut fixture, Some(&next(NextStep::AwaitAlert(Duration::from_secs(600)))));
            assert_eq!(due_in(&fixture, id), Duration::from_secs(600));
            let replace = Event::Replace {
                origin: ACCOUNT,
                id,
                source: model::Address::new(0, 1, b"10655"),
                text: Text { octets: "new".into(), ..Text::default() },
                scheduled: None,
                expires_at: None,
                dlr_request: DlrRequest::NONE,
                reply: REPLY,
            };
            fixture.run([replace]);
            if crash {
                fixture.crash();
                fixture.link_up(FIRST, 1);
            }
            fixture.run([Event::Alert { msisdn: AddressBytes::from_slice(b"49172") }]);
            assert!(fixture.sent.is_empty(), "another");
            if is_alerted {
                fixture.run([alert()]);
            } else {
                fixture.pass(Duration::from_secs(600));
            }
            assert_eq!(fixture.sent.len(), 1);
            fixture.run([alert()]);
            assert_eq!(fixture.sent.len(), 1, "it waits no longer");
            fixture.outcome_of_all(&ACCEPTED);
            let steps = fixture.steps(id);
            assert!(
                matches!(
                    steps[..],
                    [
                        _,
                        Refused { .. },
                        Decided { .. },
                        AwaitingAlert { .. },
                        Replaced,
                        Submitted { .. },
                        Responded { .. }
                    ]
                ),
                "{steps:?}"
            );
        }
    }
}

#[test]
fn messages_for_a_requeried_subscriber_keep_their_order() {
    let mut fixture = fixture();
    let ids: Vec<MessageId> =
        (0..9).map(|_| fixture.submit(message(NUMBER, vec![Leg::to(FIRST)])).unwrap()).collect();
    let other = fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    fixture.outcome_of_all(&refused(ErrorClass::Absent));
    decide(&mut fixture, Some(&next(NextStep::AwaitAlert(Duration::from_secs(600)))));
    let cancel = Event::Cancel { origin: ACCOUNT, id: ids[3], source: None, destination: None, reply: REPLY };
    fixture.run([cancel, alert()]);
    let order = fixture.outcome_of_all(&ACCEPTED);
    assert_eq!(order, [&ids[..3], &ids[4..]].concat());
    assert_eq!(fixture.engine.message(other).unwrap().state, MessageState::Deferred);
}

#[test]
fn nothing_is_tried_beyond_its_validity() {
    for step in [NextStep::RetryAfter(Duration::MAX), NextStep::AwaitAlert(Duration::MAX)] {
        let mut fixture = fixture();
        let id = undecided_message(&mut fixture, ErrorClass::Absent);
        decide(&mut fixture, Some(&next(step)));
        assert_eq!(due_in(&fixture, id), VALIDITY);
        fixture.pass(VALIDITY + Duration::from_secs(60));
        assert_eq!((fixture.finished[&id].state, fixture.sent.len()), (FinalState::Expired, 0));
    }
}

#[test]
fn without_a_decision_the_built_in_schedule_applies() {
    let gone = |fixture: &mut EngineFixture| {
        fixture.run([Event::HooksChanged {
            resolver: false,
            delivery_policy: false,
            receipt: false,
            biller: false,
        }]);
    };
    let failed = |fixture: &mut EngineFixture| decide(fixture, None);
    for without in [gone, failed] {
        let mut fixture = fixture();
        let id = undecided_message(&mut fixture, ErrorClass::Temporary);
        without(&mut fixture);
        assert_eq!(fixture.engine.message(id).unwrap().state, MessageState::Deferred);
        let wait = due_in(&fixture, id);
        assert!((8..=12).contains(&wait.as_secs()), "{wait:?}");
        fixture.pass(Duration::from_secs(12));
        fixture.outcome_of_all(&refused(ErrorClass::Permanent));
        if fixture.engine.pending_decisions() > 0 {
            decide(&mut fixture, None);
        }
        assert_eq!(fixture.sent[0].0, SECOND, "the next leg");
        fixture.outcome_of_all(&ACCEPTED);
        let decided = fixture.steps(id).iter().any(|step| matches!(step, Decided { .. }));
        assert!(!decided, "nobody has decided anything");
    }
}

#[test]
fn a_late_decision_is_ignored() {
    let mut fixture = fixture();
    let id = undecided_message(&mut fixture, ErrorClass::Temporary);
    let late = |attempt| Event::Decided { id, attempt, next: Some(next(NextStep::Fail)) };
    fixture.run([late(0), late(2)]);
    assert_eq!(fixture.engine.pending_decisions(), 1, "they are of other attempts");
    decide(&mut fixture, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    fixture.run([late(1)]);
    fixture.outcome_of_all(&refused(ErrorClass::Temporary));
    fixture.run([late(1)]);
    assert_eq!(fixture.engine.pending_decisions(), 1);
    fixture
        .run([Event::Cancel { origin: ACCOUNT, id, source: None, destination: None, reply: REPLY }, late(2)]);
    assert_eq!((fixture.finished[&id].state, fixture.engine.pending_decisions()), (FinalState::Cancelled, 0));
    // A decision that never comes leaves the end of validity.
    let id = next_undecided_message(&mut fixture);
    fixture.pass(VALIDITY + Duration::from_secs(60));
    assert_eq!((fixture.finished[&id].state, fixture.engine.pending_decisions()), (FinalState::Expired, 0));
}

fn next_undecided_message(fixture: &mut EngineFixture) -> MessageId {
    fixture.decisions.clear();
    undecided_message(fixture, ErrorClass::Temporary)
}

#[test]
fn a_throttled_peer_is_paused_at_once_and_nothing_overtakes() {
    let mut fixture = fixture();
    let ids: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap()).collect();
    let waiters: Vec<MessageId> = {
        fixture.outcome_of_all(&refused(ErrorClass::Throttled));
        (0..3).map(|_| fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap()).collect()
    };
    assert!(matches!(blocked_by(&fixture, FIRST), BlockedBy::SlowStart { .. }) && fixture.sent.is_empty());
    assert_eq!(fixture.decisions.len(), 3);
    let pause = PeerAdvice { pause: Some(Duration::from_secs(30)), ..PeerAdvice::default() };
    decide(
        &mut fixture,
        Some(&DeliveryDecision { advice: pause, ..next(NextStep::RetryAfter(Duration::ZERO)) }),
    );
    fixture.pass(Duration::from_millis(29_999));
    assert!(matches!(blocked_by(&fixture, FIRST), BlockedBy::PolicyPause { .. }) && fixture.sent.is_empty());
    fixture.pass(Duration::from_millis(1));
    let mut order = Vec::new();
    for _ in 0..10 {
        order.extend(fixture.outcome_of_all(&ACCEPTED));
        fixture.pass(Duration::from_secs(1));
    }
    assert_eq!(order, [ids, waiters].concat());
}

#[test]
fn a_crash_while_deciding_leaves_the_built_in_schedule() {
    for class in [ErrorClass::Temporary, ErrorClass::Permanent, ErrorClass::Throttled] {
        let mut fixture = fixture();
        let id = undecided_message(&mut fixture, class);
        let waiting = fixture.progress_on_disk(id).unwrap().waiting;
        assert!(matches!(waiting, WaitState::Deferred { .. }), "{waiting:?}");
        fixture.crash();
        fixture.link_up(FIRST, 10);
        let at_once = class == ErrorClass::Throttled;
        assert_eq!(fixture.sent.len(), usize::from(at_once), "{class:?}");
        fixture.pass(Duration::from_secs(12));
        assert_eq!(fixture.sent.len(), 1);
        fixture.outcome_of_all(&refused(class));
        assert_eq!(fixture.decisions[0].1.number, 2);
        decide(&mut fixture, Some(&next(NextStep::Fail)));
        assert_eq!(fixture.finished[&id].state, FinalState::Failed);
    }
}

#[test]
fn policy_advice_holds_until_the_peer_is_reconfigured() {
    let mut fixture = fixture();
    let rate = PeerAdvice { rate: Some(2.0), window: Some(3), ..PeerAdvice::default() };
    undecided_message(&mut fixture, ErrorClass::Temporary);
    decide(&mut fixture, Some(&DeliveryDecision { advice: rate, ..next(NextStep::Fail) }));
    // At most two per second...
    for _ in 0..20 {
        fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
    assert_eq!(fixture.sent.len(), 1);
    assert!(matches!(blocked_by(&fixture, FIRST), BlockedBy::Rate { .. }));
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.sent.len(), 3);
    // ... and at most three unanswered.
    fixture.pass(Duration::from_secs(10));
    assert_eq!((fixture.sent.len(), blocked_by(&fixture, FIRST)), (3, BlockedBy::Window));
    let mut settings = PeerSettings::new(FIRST);
    settings.sends_dlrs = false;
    fixture.run([Event::Peer(settings.clone())]);
    assert_eq!(fixture.sent.len(), 10, "the link's own window");
    // A lower configured rate stays.
    while !fixture.sent.is_empty() {
        fixture.outcome_of_all(&ACCEPTED);
    }
    settings.rate = Some(1.0);
    fixture.run([Event::Peer(settings)]);
    undecided_message(&mut fixture, ErrorClass::Temporary);
    decide(&mut fixture, Some(&DeliveryDecision { advice: rate, ..next(NextStep::Fail) }));
    for rate in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        let advice = PeerAdvice { rate: Some(rate), window: Some(u32::MAX), pause: None };
        fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
        fixture.pass(Duration::from_secs(1));
        fixture.outcome_of_all(&refused(ErrorClass::Temporary));
        decide(&mut fixture, Some(&DeliveryDecision { advice, ..next(NextStep::Fail) }));
    }
    for _ in 0..10 {
        fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
    let before = fixture.sent.len();
    fixture.pass(Duration::from_secs(4));
    assert_eq!(fixture.sent.len() - before, 4);
}

#[test]
fn after_many_attempts_a_minimum_retry_delay_applies() {
    let mut fixture = fixture();
    let id = fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    for _ in 0..200 {
        if fixture.sent.is_empty() {
            break;
        }
        fixture.outcome_of_all(&refused(ErrorClass::Temporary));
        decide(&mut fixture, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    }
    assert_eq!(fixture.engine.message(id).unwrap().attempts, 100);
    assert_eq!(due_in(&fixture, id), Duration::from_secs(1));
}

#[test]
fn dlrs_for_submitters_never_go_to_the_policy() {
    let mut fixture = fixture();
    fixture.link_up(ACCOUNT, 1);
    let mut wants = message("1", vec![Leg::to(FIRST)]);
    wants.dlr_request = DlrRequest::FINAL;
    fixture.submit(wants).unwrap();
    fixture.outcome_of_all(&ACCEPTED);
    assert_eq!(fixture.sent[0].0, ACCOUNT);
    fixture.outcome_of_all(&refused(ErrorClass::Temporary));
    assert!(fixture.decisions.is_empty());
}
