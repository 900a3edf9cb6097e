use crate::house::{ACCOUNT, FIRST, House, REPLY, SECOND, VALIDITY, by, message};
use engine::{Brake, Doing, Event, PeerSettings, Settings, Waiting};
use model::{
    AddressBytes, ErrorClass, FinalState, Hook, Leg, MessageId, Next, NextStep, Outcome, PeerAdvice, PeerId,
    ReceiptRequest,
    StepKind::{self, AwaitingAlert, Decided, Deferred, NextLeg, Refused, Replaced, Responded, Submitted},
    Text,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const NUMBER: &str = "4917100001";

fn house() -> House {
    let mut house = House::new(Settings { delivery_policy: true, ..Settings::default() });
    house.link_up(FIRST, 10);
    house.link_up(SECOND, 10);
    house
}

fn refused(class: ErrorClass) -> Outcome {
    Outcome::Refused { class, code: 8, taken: Vec::new() }
}

fn next(step: NextStep) -> Next {
    Next { step, advice: PeerAdvice::default(), by: by(), note: Some("because".into()) }
}

/// The policy's word on all that it was asked.
fn decide(house: &mut House, next: Option<&Next>) {
    let asked = std::mem::take(&mut house.decisions);
    house.run(asked.into_iter().map(|(id, attempt)| Event::Decided {
        id,
        attempt: attempt.number,
        next: next.cloned(),
    }));
}

/// A message that was refused, and about which the policy has been asked.
fn asked_about(house: &mut House, class: ErrorClass) -> MessageId {
    let id = house.submit(message(NUMBER, vec![Leg::to(FIRST), Leg::to(SECOND)])).unwrap();
    house.outcome_of_all(&refused(class));
    assert_eq!(house.engine.message(id).unwrap().doing, Doing::Deciding);
    assert_eq!((house.engine.deciding(), house.decisions.len()), (1, 1));
    id
}

fn alert() -> Event {
    Event::Alert { msisdn: AddressBytes::from_slice(format!("+{NUMBER}").as_bytes()) }
}

fn due_in(house: &House, id: MessageId) -> Duration {
    house.engine.message(id).unwrap().until.unwrap() - house.now.mono
}

fn brake(house: &House, peer: PeerId) -> Brake {
    house.engine.peers().iter().find(|status| status.peer == peer).unwrap().brake
}

#[test]
fn the_policy_is_told_of_the_attempt_and_its_word_is_in_the_trace() {
    let mut house = house();
    house.pass(Duration::from_secs(1));
    let id = asked_about(&mut house, ErrorClass::Absent);
    let attempt = house.decisions[0].1.clone();
    assert_eq!((attempt.number, attempt.leg, attempt.peer), (1, (0, 2), FIRST));
    assert_eq!((attempt.class, attempt.code, attempt.age), (ErrorClass::Absent, 8, Duration::ZERO));
    assert_eq!(attempt.left, VALIDITY - Duration::from_secs(1));
    decide(&mut house, Some(&next(NextStep::RetryAfter(Duration::from_secs(40)))));
    assert_eq!(due_in(&house, id), Duration::from_secs(40), "to the millisecond");
    house.pass(Duration::from_secs(40));
    house.outcome_of_all(&refused(ErrorClass::Permanent));
    assert_eq!(house.decisions[0].1.number, 2);
    decide(&mut house, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    house.outcome_of_all(&refused(ErrorClass::MemoryFull));
    decide(&mut house, Some(&next(NextStep::NextLeg)));
    assert_eq!(house.sent[0].0, SECOND);
    house.outcome_of_all(&refused(ErrorClass::Temporary));
    assert_eq!((house.decisions[0].1.number, house.decisions[0].1.leg), (4, (1, 2)));
    decide(&mut house, Some(&next(NextStep::NextLeg)));
    let ended = &house.finished[&id];
    assert_eq!((ended.state, ended.error), (FinalState::Failed, 8), "there is no other leg");
    let decided = || Decided { hook: Hook::DeliveryPolicy, by: by(), note: Some("because".into()) };
    let steps: Vec<StepKind> = house
        .steps(id)
        .into_iter()
        .map(|step| match step {
            // When it was due is looked at above.
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
    let mut house = house();
    let id = asked_about(&mut house, ErrorClass::Temporary);
    decide(&mut house, Some(&next(NextStep::Fail)));
    assert_eq!((house.finished[&id].state, house.finished[&id].error), (FinalState::Failed, 8));
    assert_eq!(house.engine.deciding(), 0);
}

#[test]
fn what_waits_for_a_subscriber_is_tried_when_he_is_heard_of_or_in_time() {
    for heard_of in [true, false] {
        for crash in [true, false] {
            let mut house = house();
            let id = asked_about(&mut house, ErrorClass::Absent);
            decide(&mut house, Some(&next(NextStep::AwaitAlert(Duration::from_secs(600)))));
            assert_eq!(due_in(&house, id), Duration::from_secs(600));
            let replace = Event::Replace {
                origin: ACCOUNT,
                id,
                source: model::Address::new(0, 1, b"10655"),
                text: Text { octets: "new".into(), ..Text::default() },
                scheduled: None,
                expires_at: None,
                receipts: ReceiptRequest::NONE,
                reply: REPLY,
            };
            house.run([replace]);
            if crash {
                house.crash();
                house.link_up(FIRST, 1);
            }
            house.run([Event::Alert { msisdn: AddressBytes::from_slice(b"49172") }]);
            assert!(house.sent.is_empty(), "another");
            if heard_of {
                house.run([alert()]);
            } else {
                house.pass(Duration::from_secs(600));
            }
            assert_eq!(house.sent.len(), 1);
            house.run([alert()]);
            assert_eq!(house.sent.len(), 1, "it waits no longer");
            house.outcome_of_all(&ACCEPTED);
            let steps = house.steps(id);
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
fn all_that_wait_for_a_subscriber_come_back_in_order() {
    let mut house = house();
    let ids: Vec<MessageId> =
        (0..9).map(|_| house.submit(message(NUMBER, vec![Leg::to(FIRST)])).unwrap()).collect();
    let other = house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    house.outcome_of_all(&refused(ErrorClass::Absent));
    decide(&mut house, Some(&next(NextStep::AwaitAlert(Duration::from_secs(600)))));
    let cancel = Event::Cancel { origin: ACCOUNT, id: ids[3], source: None, destination: None, reply: REPLY };
    house.run([cancel, alert()]);
    let order = house.outcome_of_all(&ACCEPTED);
    assert_eq!(order, [&ids[..3], &ids[4..]].concat());
    assert_eq!(house.engine.message(other).unwrap().doing, Doing::Deferred);
}

#[test]
fn nothing_is_tried_beyond_its_validity() {
    for step in [NextStep::RetryAfter(Duration::MAX), NextStep::AwaitAlert(Duration::MAX)] {
        let mut house = house();
        let id = asked_about(&mut house, ErrorClass::Absent);
        decide(&mut house, Some(&next(step)));
        assert_eq!(due_in(&house, id), VALIDITY);
        house.pass(VALIDITY + Duration::from_secs(60));
        assert_eq!((house.finished[&id].state, house.sent.len()), (FinalState::Expired, 0));
    }
}

#[test]
fn without_the_policys_word_the_built_in_schedule_decides() {
    let gone = |house: &mut House| {
        house.run([Event::Hooks { resolver: false, delivery_policy: false, biller: false }]);
    };
    let failed = |house: &mut House| decide(house, None);
    for without in [gone, failed] {
        let mut house = house();
        let id = asked_about(&mut house, ErrorClass::Temporary);
        without(&mut house);
        assert_eq!(house.engine.message(id).unwrap().doing, Doing::Deferred);
        let wait = due_in(&house, id);
        assert!((8..=12).contains(&wait.as_secs()), "{wait:?}");
        house.pass(Duration::from_secs(12));
        house.outcome_of_all(&refused(ErrorClass::Permanent));
        if house.engine.deciding() > 0 {
            decide(&mut house, None);
        }
        assert_eq!(house.sent[0].0, SECOND, "the next leg");
        house.outcome_of_all(&ACCEPTED);
        let decided = house.steps(id).iter().any(|step| matches!(step, Decided { .. }));
        assert!(!decided, "nobody has decided anything");
    }
}

#[test]
fn a_word_that_comes_too_late_is_for_nobody() {
    let mut house = house();
    let id = asked_about(&mut house, ErrorClass::Temporary);
    let late = |attempt| Event::Decided { id, attempt, next: Some(next(NextStep::Fail)) };
    house.run([late(0), late(2)]);
    assert_eq!(house.engine.deciding(), 1, "they are of other attempts");
    decide(&mut house, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    house.run([late(1)]);
    house.outcome_of_all(&refused(ErrorClass::Temporary));
    house.run([late(1)]);
    assert_eq!(house.engine.deciding(), 1);
    house
        .run([Event::Cancel { origin: ACCOUNT, id, source: None, destination: None, reply: REPLY }, late(2)]);
    assert_eq!((house.finished[&id].state, house.engine.deciding()), (FinalState::Cancelled, 0));
    // One that never comes leaves the end of validity.
    let id = asked_about_again(&mut house);
    house.pass(VALIDITY + Duration::from_secs(60));
    assert_eq!((house.finished[&id].state, house.engine.deciding()), (FinalState::Expired, 0));
}

fn asked_about_again(house: &mut House) -> MessageId {
    house.decisions.clear();
    asked_about(house, ErrorClass::Temporary)
}

#[test]
fn a_throttled_peer_is_paused_at_once_and_nothing_overtakes() {
    let mut house = house();
    let ids: Vec<MessageId> =
        (0..3).map(|_| house.submit(message("1", vec![Leg::to(FIRST)])).unwrap()).collect();
    let behind: Vec<MessageId> = {
        house.outcome_of_all(&refused(ErrorClass::Throttled));
        (0..3).map(|_| house.submit(message("1", vec![Leg::to(FIRST)])).unwrap()).collect()
    };
    assert!(matches!(brake(&house, FIRST), Brake::SlowStart { .. }) && house.sent.is_empty());
    assert_eq!(house.decisions.len(), 3);
    let pause = PeerAdvice { pause: Some(Duration::from_secs(30)), ..PeerAdvice::default() };
    decide(&mut house, Some(&Next { advice: pause, ..next(NextStep::RetryAfter(Duration::ZERO)) }));
    house.pass(Duration::from_millis(29_999));
    assert!(matches!(brake(&house, FIRST), Brake::Advised { .. }) && house.sent.is_empty());
    house.pass(Duration::from_millis(1));
    let mut order = Vec::new();
    for _ in 0..10 {
        order.extend(house.outcome_of_all(&ACCEPTED));
        house.pass(Duration::from_secs(1));
    }
    assert_eq!(order, [ids, behind].concat());
}

#[test]
fn a_crash_while_deciding_leaves_the_built_in_schedule() {
    for class in [ErrorClass::Temporary, ErrorClass::Permanent, ErrorClass::Throttled] {
        let mut house = house();
        let id = asked_about(&mut house, class);
        let waiting = house.progress_on_disk(id).unwrap().waiting;
        assert!(matches!(waiting, Waiting::Deferred { .. }), "{waiting:?}");
        house.crash();
        house.link_up(FIRST, 10);
        let at_once = class == ErrorClass::Throttled;
        assert_eq!(house.sent.len(), usize::from(at_once), "{class:?}");
        house.pass(Duration::from_secs(12));
        assert_eq!(house.sent.len(), 1);
        house.outcome_of_all(&refused(class));
        assert_eq!(house.decisions[0].1.number, 2);
        decide(&mut house, Some(&next(NextStep::Fail)));
        assert_eq!(house.finished[&id].state, FinalState::Failed);
    }
}

#[test]
fn a_peer_heeds_advice_until_it_is_configured_anew() {
    let mut house = house();
    let rate = PeerAdvice { rate: Some(2.0), window: Some(3), ..PeerAdvice::default() };
    asked_about(&mut house, ErrorClass::Temporary);
    decide(&mut house, Some(&Next { advice: rate, ..next(NextStep::Fail) }));
    // At most two a second...
    for _ in 0..20 {
        house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
    assert_eq!(house.sent.len(), 1);
    assert!(matches!(brake(&house, FIRST), Brake::Rate { .. }));
    house.pass(Duration::from_secs(1));
    assert_eq!(house.sent.len(), 3);
    // ... and at most three unanswered.
    house.pass(Duration::from_secs(10));
    assert_eq!((house.sent.len(), brake(&house, FIRST)), (3, Brake::Window));
    let mut settings = PeerSettings::new(FIRST);
    settings.receipts = false;
    house.run([Event::Peer(settings.clone())]);
    assert_eq!(house.sent.len(), 10, "the link's own window");
    // A lower rate of the configuration stays.
    while !house.sent.is_empty() {
        house.outcome_of_all(&ACCEPTED);
    }
    settings.rate = Some(1.0);
    house.run([Event::Peer(settings)]);
    asked_about(&mut house, ErrorClass::Temporary);
    decide(&mut house, Some(&Next { advice: rate, ..next(NextStep::Fail) }));
    for rate in [0.0, f64::NAN, f64::INFINITY, -1.0] {
        let advice = PeerAdvice { rate: Some(rate), window: Some(u32::MAX), pause: None };
        house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
        house.pass(Duration::from_secs(1));
        house.outcome_of_all(&refused(ErrorClass::Temporary));
        decide(&mut house, Some(&Next { advice, ..next(NextStep::Fail) }));
    }
    for _ in 0..10 {
        house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
    let before = house.sent.len();
    house.pass(Duration::from_secs(4));
    assert_eq!(house.sent.len() - before, 4);
}

#[test]
fn a_policy_that_repeats_at_once_takes_a_breath_after_many_attempts() {
    let mut house = house();
    let id = house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    for _ in 0..200 {
        if house.sent.is_empty() {
            break;
        }
        house.outcome_of_all(&refused(ErrorClass::Temporary));
        decide(&mut house, Some(&next(NextStep::RetryAfter(Duration::ZERO))));
    }
    assert_eq!(house.engine.message(id).unwrap().attempts, 100);
    assert_eq!(due_in(&house, id), Duration::from_secs(1));
}

#[test]
fn reports_of_ours_never_go_to_the_policy() {
    let mut house = house();
    house.link_up(ACCOUNT, 1);
    let mut wants = message("1", vec![Leg::to(FIRST)]);
    wants.receipts = ReceiptRequest::FINAL;
    house.submit(wants).unwrap();
    house.outcome_of_all(&ACCEPTED);
    assert_eq!(house.sent[0].0, ACCOUNT);
    house.outcome_of_all(&refused(ErrorClass::Temporary));
    assert!(house.decisions.is_empty());
}
