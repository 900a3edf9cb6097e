//! Requeries after a peer did not know the subscriber.

use crate::scenarios::fixture::{EngineFixture, SERIAL, found, imsi, message, resolved, subscriber_leg};
use crate::scenarios::serial_delivery::refused;
use engine::Settings;
use model::{ErrorClass, FinalState, Imsi, MessageId, Outcome, StepKind, Subscriber, Verdict};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const ANNE: &str = "4917100001";

fn fixture(delivery_policy: bool) -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings { resolver: true, delivery_policy, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    fixture
}

fn submit(fixture: &mut EngineFixture) -> MessageId {
    fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap()
}

/// The subscriber of the message on the link.
fn imsi_of(fixture: &EngineFixture, id: MessageId) -> Imsi {
    let (_, message, leg) = fixture.sent.iter().find(|(_, message, _)| message.id == id).unwrap();
    let Verdict::Forward(legs) = &message.routed.verdict else { panic!() };
    legs[usize::from(*leg)].imsi.clone().unwrap()
}

fn unknown() -> Outcome {
    refused(ErrorClass::UnknownSubscriber)
}

/// A fixture with a cached answer.
fn cached_fixture(policy: bool) -> EngineFixture {
    let mut fixture = fixture(policy);
    let old = submit(&mut fixture);
    fixture.answer_all(&found("262011"));
    fixture.answer(old, ACCEPTED);
    fixture
}

#[test]
fn a_cached_answer_is_dropped_and_requeried_once() {
    let mut fixture = cached_fixture(true);
    let ids = [submit(&mut fixture), submit(&mut fixture)];
    assert_eq!((imsi_of(&fixture, ids[0]), fixture.questions.len()), (imsi("262011"), 0));
    fixture.answer(ids[0], unknown());
    assert_eq!(fixture.questions, [model::AddressBytes::from_slice(ANNE.as_bytes())]);
    assert_eq!(fixture.on_links(), [ids[1]], "the old subscriber is free for the next");
    assert_eq!(fixture.engine.pending_decisions(), 0, "the policy is not asked while a requery is possible");
    // While the query is pending, another message causes no second one.
    fixture.answer(ids[1], unknown());
    assert_eq!((fixture.questions.len(), fixture.sent.len()), (1, 0));
    fixture.answer_all(&found("262012"));
    assert_eq!((fixture.on_links(), imsi_of(&fixture, ids[0])), (vec![ids[0]], imsi("262012")));
    fixture.answer(ids[0], ACCEPTED);
    assert_eq!(fixture.deliver_all(), [ids[1]]);
    let steps = fixture.steps(ids[0]);
    let anew = steps.iter().filter(|step| **step == StepKind::SubscriberRequeried { imsi: imsi("262011") });
    assert_eq!(anew.count(), 1, "{steps:?}");
    assert_eq!(fixture.finished[&ids[1]].state, FinalState::Delivered);
}

#[test]
fn messages_follow_a_number_to_its_new_subscriber() {
    for known in [false, true] {
        let mut fixture = fixture(false);
        let ids = [submit(&mut fixture), submit(&mut fixture)];
        fixture.answer_all(&found("262011"));
        fixture.answer(ids[0], refused(ErrorClass::MemoryFull));
        assert_eq!((fixture.on_links().len(), fixture.status(SERIAL).blocked_subscribers), (0, 1));
        // Another subscriber's number, and a repetition: no message waits for these.
        let numbered = |digits: &str, imsi: Imsi, before: Option<Imsi>| {
            let msisdn = model::AddressBytes::from_slice(digits.as_bytes());
            engine::Event::SubscriberLearned { msisdn, imsi, before }
        };
        fixture.run([numbered("49172", imsi("262019"), None), numbered(ANNE, imsi("262011"), None)]);
        assert!(fixture.on_links().is_empty());
        fixture.run([numbered(&format!("+{ANNE}"), imsi("262012"), known.then(|| imsi("262011")))]);
        // Both answers are seconds old, and both are requeried, because the number is known to have moved.
        for id in ids {
            assert_eq!(fixture.on_links(), [id]);
            fixture.answer(id, refused(ErrorClass::NumberMoved));
            fixture.answer_all(&found("262012"));
            assert!(
                fixture.on_links().iter().all(|id| imsi_of(&fixture, *id) == imsi("262012") || *id == ids[1])
            );
            if fixture.on_links().contains(&id) {
                fixture.answer(id, ACCEPTED);
            }
        }
        fixture.deliver_all();
        assert!(ids.iter().all(|id| fixture.finished[id].state == FinalState::Delivered));
    }
}

#[test]
fn an_unassigned_number_is_requeried_once_it_is_assigned() {
    let mut fixture = fixture(false);
    let id = submit(&mut fixture);
    fixture.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(fixture.finished[&id].state, FinalState::Failed);
    let msisdn = model::AddressBytes::from_slice(ANNE.as_bytes());
    fixture.run([engine::Event::SubscriberLearned { msisdn, imsi: imsi("262011"), before: None }]);
    let id = submit(&mut fixture);
    assert_eq!(fixture.questions.len(), 1);
    fixture.answer_all(&found("262011"));
    assert_eq!(fixture.on_links(), [id]);
}

#[test]
fn the_same_answer_again_is_tried_once() {
    for policy in [false, true] {
        let mut fixture = cached_fixture(policy);
        let id = submit(&mut fixture);
        fixture.answer(id, unknown());
        fixture.answer_all(&found("262011"));
        assert_eq!(fixture.on_links(), [id]);
        fixture.answer(id, unknown());
        if policy {
            assert_eq!(fixture.decisions[0].1.class, ErrorClass::Permanent);
            let (id, attempt) = fixture.decisions[0].clone();
            fixture.run([engine::Event::Decided { id, attempt: attempt.number, next: None }]);
        }
        assert_eq!((fixture.finished[&id].state, fixture.questions.len()), (FinalState::Failed, 0));
        // The outdated answer is not cached for others.
        submit(&mut fixture);
        assert_eq!(fixture.questions.len(), 1);
    }
}

#[test]
fn a_fresh_answer_is_not_requeried() {
    let mut fixture = fixture(false);
    let id = submit(&mut fixture);
    fixture.answer_all(&found("262011"));
    fixture.answer(id, unknown());
    assert_eq!((fixture.finished[&id].state, fixture.questions.len()), (FinalState::Failed, 0));
}

#[test]
fn an_answer_that_aged_in_the_queue_is_requeried() {
    let mut fixture = fixture(false);
    let ids = [submit(&mut fixture), submit(&mut fixture)];
    fixture.answer_all(&found("262011"));
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    fixture.pass(Duration::from_secs(12));
    fixture.answer(ids[0], unknown());
    assert_eq!(fixture.questions.len(), 1, "it has served an attempt before");
    fixture.pass(Duration::from_secs(61));
    fixture.answer_all(&found("262013"));
    fixture.answer(ids[0], ACCEPTED);
    fixture.answer(ids[1], ACCEPTED);
    assert_eq!(fixture.engine.live(), 0);
}

#[test]
fn a_requery_without_subscriber_or_resolver_fails_the_leg() {
    let mut fixture = cached_fixture(false);
    let id = submit(&mut fixture);
    fixture.answer(id, unknown());
    fixture.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(fixture.finished[&id].state, FinalState::Failed);
    assert_eq!(fixture.finished[&id].error, 1);

    let mut fixture = cached_fixture(false);
    let id = submit(&mut fixture);
    fixture.run([engine::Event::HooksChanged {
        resolver: false,
        delivery_policy: false,
        receipt: false,
        biller: false,
    }]);
    fixture.answer(id, unknown());
    assert_eq!((fixture.finished[&id].state, fixture.finished[&id].error), (FinalState::Failed, 8));
}

#[test]
fn a_leg_without_resolver_is_not_requeried() {
    let mut fixture = fixture(false);
    let id = fixture.submit(crate::scenarios::serial_delivery::to(ANNE)).unwrap();
    fixture.answer(id, unknown());
    assert_eq!(fixture.finished[&id].state, FinalState::Failed);
}

#[test]
fn a_crash_during_a_requery_repeats_the_query_and_submits_once() {
    let mut fixture = cached_fixture(false);
    let id = submit(&mut fixture);
    fixture.answer(id, unknown());
    fixture.crash();
    fixture.link_up(SERIAL, 10);
    assert_eq!((fixture.questions.len(), fixture.sent.len()), (1, 0));
    fixture.run([resolved(ANNE.as_bytes(), found("262011"))]);
    fixture.questions.clear();
    fixture.answer(id, unknown());
    assert_eq!((fixture.finished[&id].state, fixture.questions.len()), (FinalState::Failed, 0));
}

#[test]
fn a_subscriber_cached_at_acceptance_is_requeried_after_a_crash() {
    let mut fixture = cached_fixture(false);
    fixture.run([engine::Event::LinkDown { link: model::LinkId(SERIAL.0.into()) }]);
    let id = submit(&mut fixture);
    assert_eq!(fixture.progress_on_disk(id), None);
    // The message records the unknown subscriber.
    fixture.crash();
    fixture.link_up(SERIAL, 10);
    assert_eq!((imsi_of(&fixture, id), fixture.questions.len()), (imsi("262011"), 0));
    fixture.answer(id, unknown());
    assert_eq!((fixture.questions.len(), fixture.sent.len()), (1, 0));
    fixture.answer_all(&found("262012"));
    assert_eq!(imsi_of(&fixture, id), imsi("262012"));
    fixture.answer(id, unknown());
    assert_eq!(
        (fixture.finished[&id].state, fixture.questions.len()),
        (FinalState::Failed, 0),
        "and once only"
    );
}
