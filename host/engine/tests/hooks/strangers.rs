//! A peer that does not know the subscriber.

use crate::house::{House, SERIAL, found, imsi, message, resolved, subscriber_leg};
use crate::serial::refused;
use engine::Settings;
use model::{ErrorClass, FinalState, Imsi, MessageId, Outcome, StepKind, Subscriber, Verdict};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const ANNE: &str = "4917100001";

fn house(delivery_policy: bool) -> House {
    let mut house = House::new(Settings { resolver: true, delivery_policy, ..Settings::default() });
    house.link_up(SERIAL, 10);
    house
}

fn submit(house: &mut House) -> MessageId {
    house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap()
}

/// The subscriber of what is on the link.
fn imsi_of(house: &House, id: MessageId) -> Imsi {
    let (_, message, leg) = house.sent.iter().find(|(_, message, _)| message.id == id).unwrap();
    let Verdict::Forward(legs) = &message.routed.verdict else { panic!() };
    legs[usize::from(*leg)].imsi.clone().unwrap()
}

fn unknown() -> Outcome {
    refused(ErrorClass::UnknownSubscriber)
}

/// A house that remembers an answer of before.
fn remembered(policy: bool) -> House {
    let mut house = house(policy);
    let old = submit(&mut house);
    house.answer_all(&found("262011"));
    house.answer(old, ACCEPTED);
    house
}

#[test]
fn a_remembered_answer_is_forgotten_and_asked_for_once_more() {
    let mut house = remembered(true);
    let ids = [submit(&mut house), submit(&mut house)];
    assert_eq!((imsi_of(&house, ids[0]), house.questions.len()), (imsi("262011"), 0));
    house.answer(ids[0], unknown());
    assert_eq!(house.questions, [model::AddressBytes::from_slice(ANNE.as_bytes())]);
    assert_eq!(house.on_links(), [ids[1]], "the old subscriber is free for the next");
    assert_eq!(house.engine.deciding(), 0, "the policy is not asked while there is a way");
    // While the question is open, another asks nobody a second time.
    house.answer(ids[1], unknown());
    assert_eq!((house.questions.len(), house.sent.len()), (1, 0));
    house.answer_all(&found("262012"));
    assert_eq!((house.on_links(), imsi_of(&house, ids[0])), (vec![ids[0]], imsi("262012")));
    house.answer(ids[0], ACCEPTED);
    assert_eq!(house.deliver_all(), [ids[1]]);
    let steps = house.steps(ids[0]);
    let anew = steps.iter().filter(|step| **step == StepKind::AskedAnew { imsi: imsi("262011") });
    assert_eq!(anew.count(), 1, "{steps:?}");
    assert_eq!(house.finished[&ids[1]].state, FinalState::Delivered);
}

#[test]
fn a_number_that_moves_takes_along_what_waits_for_its_old_subscriber() {
    for known in [false, true] {
        let mut house = house(false);
        let ids = [submit(&mut house), submit(&mut house)];
        house.answer_all(&found("262011"));
        house.answer(ids[0], refused(ErrorClass::MemoryFull));
        assert_eq!((house.on_links().len(), house.status(SERIAL).parked), (0, 1));
        // Somebody else's number, and the same once more: nothing waits for these.
        let numbered = |digits: &str, imsi: Imsi, before: Option<Imsi>| {
            let msisdn = model::AddressBytes::from_slice(digits.as_bytes());
            engine::Event::Numbered { msisdn, imsi, before }
        };
        house.run([numbered("49172", imsi("262019"), None), numbered(ANNE, imsi("262011"), None)]);
        assert!(house.on_links().is_empty());
        house.run([numbered(&format!("+{ANNE}"), imsi("262012"), known.then(|| imsi("262011")))]);
        // Both answers are seconds old, and both are asked for again: the number is known to have moved.
        for id in ids {
            assert_eq!(house.on_links(), [id]);
            house.answer(id, refused(ErrorClass::NumberMoved));
            house.answer_all(&found("262012"));
            assert!(
                house.on_links().iter().all(|id| imsi_of(&house, *id) == imsi("262012") || *id == ids[1])
            );
            if house.on_links().contains(&id) {
                house.answer(id, ACCEPTED);
            }
        }
        house.deliver_all();
        assert!(ids.iter().all(|id| house.finished[id].state == FinalState::Delivered));
    }
}

#[test]
fn a_number_that_was_nobodys_is_asked_about_again_when_it_is_somebodys() {
    let mut house = house(false);
    let id = submit(&mut house);
    house.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(house.finished[&id].state, FinalState::Failed);
    let msisdn = model::AddressBytes::from_slice(ANNE.as_bytes());
    house.run([engine::Event::Numbered { msisdn, imsi: imsi("262011"), before: None }]);
    let id = submit(&mut house);
    assert_eq!(house.questions.len(), 1);
    house.answer_all(&found("262011"));
    assert_eq!(house.on_links(), [id]);
}

#[test]
fn the_same_answer_again_is_tried_and_then_final() {
    for policy in [false, true] {
        let mut house = remembered(policy);
        let id = submit(&mut house);
        house.answer(id, unknown());
        house.answer_all(&found("262011"));
        assert_eq!(house.on_links(), [id]);
        house.answer(id, unknown());
        if policy {
            assert_eq!(house.decisions[0].1.class, ErrorClass::Permanent);
            let (id, attempt) = house.decisions[0].clone();
            house.run([engine::Event::Decided { id, attempt: attempt.number, next: None }]);
        }
        assert_eq!((house.finished[&id].state, house.questions.len()), (FinalState::Failed, 0));
        // The answer that nobody knew is not kept for others.
        submit(&mut house);
        assert_eq!(house.questions.len(), 1);
    }
}

#[test]
fn an_answer_that_was_just_given_is_final_at_once() {
    let mut house = house(false);
    let id = submit(&mut house);
    house.answer_all(&found("262011"));
    house.answer(id, unknown());
    assert_eq!((house.finished[&id].state, house.questions.len()), (FinalState::Failed, 0));
}

#[test]
fn an_answer_that_has_aged_while_the_message_waited_is_asked_for_again() {
    let mut house = house(false);
    let ids = [submit(&mut house), submit(&mut house)];
    house.answer_all(&found("262011"));
    house.answer(ids[0], refused(ErrorClass::Absent));
    house.pass(Duration::from_secs(12));
    house.answer(ids[0], unknown());
    assert_eq!(house.questions.len(), 1, "it has served an attempt before");
    house.pass(Duration::from_secs(61));
    house.answer_all(&found("262013"));
    house.answer(ids[0], ACCEPTED);
    house.answer(ids[1], ACCEPTED);
    assert_eq!(house.engine.live(), 0);
}

#[test]
fn the_number_may_have_nobody_by_now_or_nobody_to_ask() {
    let mut house = remembered(false);
    let id = submit(&mut house);
    house.answer(id, unknown());
    house.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(house.finished[&id].state, FinalState::Failed);
    assert_eq!(house.finished[&id].error, 1);

    let mut house = remembered(false);
    let id = submit(&mut house);
    house.run([engine::Event::Hooks { resolver: false, delivery_policy: false, biller: false }]);
    house.answer(id, unknown());
    assert_eq!((house.finished[&id].state, house.finished[&id].error), (FinalState::Failed, 8));
}

#[test]
fn a_leg_whose_subscriber_nobody_looked_for_is_final() {
    let mut house = house(false);
    let id = house.submit(crate::serial::to(ANNE)).unwrap();
    house.answer(id, unknown());
    assert_eq!(house.finished[&id].state, FinalState::Failed);
}

#[test]
fn a_crash_asks_again_and_tries_once() {
    let mut house = remembered(false);
    let id = submit(&mut house);
    house.answer(id, unknown());
    house.crash();
    house.link_up(SERIAL, 10);
    assert_eq!((house.questions.len(), house.sent.len()), (1, 0));
    house.run([resolved(ANNE.as_bytes(), found("262011"))]);
    house.questions.clear();
    house.answer(id, unknown());
    assert_eq!((house.finished[&id].state, house.questions.len()), (FinalState::Failed, 0));
}

#[test]
fn who_was_remembered_at_acceptance_is_asked_about_anew_after_a_crash_as_well() {
    let mut house = remembered(false);
    house.run([engine::Event::LinkDown { link: model::LinkId(SERIAL.0.into()) }]);
    let id = submit(&mut house);
    assert_eq!(house.progress_on_disk(id), None);
    // The subscriber stands in the message, who found him nowhere.
    house.crash();
    house.link_up(SERIAL, 10);
    assert_eq!((imsi_of(&house, id), house.questions.len()), (imsi("262011"), 0));
    house.answer(id, unknown());
    assert_eq!((house.questions.len(), house.sent.len()), (1, 0));
    house.answer_all(&found("262012"));
    assert_eq!(imsi_of(&house, id), imsi("262012"));
    house.answer(id, unknown());
    assert_eq!((house.finished[&id].state, house.questions.len()), (FinalState::Failed, 0), "and once only");
}
