use crate::house::{
    ACCOUNT, FIRST, House, REPLY, SECOND, VALIDITY, by, found, imsi, message, resolved, subscriber_leg,
};
use engine::{Answer, Doing, Event, ResolvingStatus, Settings};
use model::{
    AddressBytes, FinalState, Hook, Leg, MessageId, Outcome, PeerId,
    StepKind::{self, Decided, NextLeg, Refunded, Resolved, Resolving, UnknownSubscriber},
    Subscriber, Text, Verdict,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };

fn house(change: impl FnOnce(&mut Settings)) -> House {
    let mut settings = Settings { resolver: true, ..Settings::default() };
    change(&mut settings);
    let mut house = House::new(settings);
    house.link_up(FIRST, 10_000);
    house.link_up(SECOND, 10_000);
    house
}

fn decided() -> StepKind {
    Decided { hook: Hook::Resolver, by: by(), note: Some("because".into()) }
}

fn leg_of(message: &model::Message, leg: u8) -> &Leg {
    let Verdict::Forward(legs) = &message.routed.verdict else { panic!("{message:?}") };
    &legs[usize::from(leg)]
}

fn is_final_step(step: &StepKind) -> bool {
    matches!(step, StepKind::Submitted { .. } | StepKind::Responded { .. } | Refunded { .. })
}

/// Steps up to the first hand-over.
fn before_leaving(steps: Vec<StepKind>) -> Vec<StepKind> {
    steps.into_iter().take_while(|step| !is_final_step(step)).collect()
}

#[test]
fn one_question_serves_all_that_wait_and_the_answer_those_that_come_later() {
    let mut house = house(|_| {});
    let plain = house.submit(message("4917100001", vec![Leg::to(FIRST)])).unwrap();
    let first = house.submit(message("4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    let second = house.submit(message("+4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    assert_eq!(house.questions, [AddressBytes::from_slice(b"4917100001")]);
    assert_eq!(house.sent.len(), 1, "others do not wait");
    assert_eq!(house.engine.message(first).unwrap().doing, Doing::Resolving);
    let status =
        ResolvingStatus { numbers: 1, messages: 2, questions: 1, in_flight: 1, ..Default::default() };
    assert_eq!(house.engine.resolving(), status);
    house.answer_all(&found("262011234567890"));
    let order: Vec<MessageId> = house.sent.iter().map(|(_, message, _)| message.id).collect();
    assert_eq!(order, [plain, first, second]);
    let leg = leg_of(&house.sent[1].1, 0).clone();
    assert_eq!((leg.imsi, leg.peer), (Some(imsi("262011234567890")), FIRST));
    assert_eq!(leg_of(house.message_on_disk(second), 0).imsi, Some(imsi("262011234567890")));
    let third = house.submit(message("4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    assert!(house.questions.is_empty(), "it is remembered");
    assert_eq!(leg_of(house.message_on_disk(third), 0).imsi, Some(imsi("262011234567890")));
    assert_eq!(house.progress_on_disk(third), None, "and costs no second write");
    house.outcome_of_all(&ACCEPTED);
    let resolved = |cached| Resolved { peer: FIRST, cached };
    assert_eq!(before_leaving(house.steps(second)), [Resolving, decided(), resolved(false)]);
    assert_eq!(before_leaving(house.steps(third)), [decided(), resolved(true)]);
    let status = ResolvingStatus { cached: 1, hits: 1, questions: 1, ..Default::default() };
    assert_eq!(house.engine.resolving(), status);
}

#[test]
fn whatever_stands_for_a_number_is_asked_about_and_answered() {
    let mut house = house(|_| {});
    for odd in ["", "+", "++49", "+49+", "ACME", "\u{0}", "a number that is longer than 22 octets"] {
        house.submit(message(odd, vec![subscriber_leg(FIRST)])).unwrap();
    }
    // An empty number is one, however many plus signs it has.
    assert_eq!(house.questions.len(), 6);
    house.answer_all(&found("7"));
    assert_eq!((house.sent.len(), house.engine.resolving().in_flight), (7, 0));
}

#[test]
fn the_answer_may_name_the_peer_that_serves_the_subscriber() {
    let mut house = house(|_| {});
    let serving = |peer| Subscriber::Found { imsi: imsi("262011234567890"), peer, valid: None };
    // One that is not there, and the one that it came from, cannot be meant.
    for (number, peer, to) in
        [("1", Some(SECOND), SECOND), ("2", Some(PeerId(77)), FIRST), ("3", Some(ACCOUNT), FIRST)]
    {
        for _ in ["asked", "remembered"] {
            house.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
            house.answer_all(&serving(peer));
            assert_eq!(house.sent.pop().unwrap().0, to, "{peer:?}");
        }
    }
}

#[test]
fn an_unknown_subscriber_is_a_permanent_failure_of_the_leg() {
    let mut house = house(|_| {});
    for cached in [false, true] {
        let alone = house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
        let other = house.submit(message("1", vec![subscriber_leg(FIRST), Leg::to(SECOND)])).unwrap();
        house.answer_all(&Subscriber::Unknown { valid: None });
        let ended = &house.finished[&alone];
        assert_eq!((ended.state, ended.error, ended.peer), (FinalState::Failed, 1, None));
        let waiting: &[StepKind] = if cached { &[] } else { &[Resolving] };
        let unknown = [decided(), UnknownSubscriber { cached }];
        assert_eq!(house.steps(alone), [waiting, &unknown].concat());
        assert_eq!(
            house.sent.last().map(|(peer, message, leg)| (*peer, message.id, *leg)),
            Some((SECOND, other, 1))
        );
        house.outcome_of_all(&ACCEPTED);
        let next = [NextLeg { peer: SECOND }];
        assert_eq!(before_leaving(house.steps(other)), [waiting, &unknown, &next].concat());
    }
    // It holds for a shorter time than that there is one.
    house.pass(Duration::from_secs(61));
    assert_eq!(house.engine.resolving().cached, 0, "the sweep has been by");
    house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    assert_eq!(house.questions.len(), 1);
}

#[test]
fn the_next_leg_may_need_its_subscriber_as_well() {
    let mut house = house(|_| {});
    let mut second = subscriber_leg(SECOND);
    second.destination = Some(model::Address::international("2"));
    let id = house.submit(message("1", vec![subscriber_leg(FIRST), second])).unwrap();
    house.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(house.questions, [AddressBytes::from_slice(b"2")]);
    house.crash();
    assert_eq!(house.questions, [AddressBytes::from_slice(b"2")], "and is asked again after a crash");
    house.link_up(SECOND, 1);
    house.answer_all(&found("7"));
    assert_eq!(leg_of(&house.sent[0].1, 1).imsi, Some(imsi("7")));
    house.outcome_of_all(&ACCEPTED);
    assert_eq!(house.finished[&id].state, FinalState::Relayed);
}

#[test]
fn a_resolver_that_wants_time_is_asked_again_then() {
    let mut house = house(|_| {});
    let id = house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    for (after, seconds) in [(None, 5), (Some(30), 30), (Some(0), 1), (Some(100_000), 3600)] {
        let after = after.map(Duration::from_secs);
        house.answer_all(&Subscriber::TryLater { after });
        let status = house.engine.message(id).unwrap();
        assert_eq!(status.until.unwrap() - house.now.mono, Duration::from_secs(seconds));
        assert_eq!(status.said, Some((by(), Some("because".into()))));
        let other = house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
        house.pass(Duration::from_millis(seconds * 1000 - 1));
        assert!(house.questions.is_empty(), "also where another joins: {other:?}");
        house.pass(Duration::from_millis(1));
        assert_eq!(house.questions.len(), 1);
    }
    // A resolver that takes the place of this one is asked at once.
    house.answer_all(&Subscriber::TryLater { after: None });
    house.run([Event::ResolverExchanged]);
    assert_eq!(house.questions.len(), 1);
    house.run([Event::ResolverExchanged]);
    house.pass(Duration::from_secs(10));
    assert_eq!(house.questions.len(), 1, "what is under way is asked of nobody else");
    // Validity ends it, though nobody ever answers; and nobody is asked for the dead.
    house.pass(VALIDITY);
    assert_eq!((house.engine.live(), house.finished[&id].state), (0, FinalState::Expired));
    house.answer_all(&Subscriber::TryLater { after: None });
    house.pass(Duration::from_secs(60));
    assert!(house.questions.is_empty());
    assert_eq!(house.engine.resolving().in_flight, 0);
}

#[test]
fn a_waiting_message_can_be_cancelled_and_replaced_and_its_turn_passes() {
    let mut house = house(|_| {});
    let [gone, kept] = [0, 1].map(|_| house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap());
    let cancel = Event::Cancel { origin: ACCOUNT, id: gone, source: None, destination: None, reply: REPLY };
    let replace = Event::Replace {
        origin: ACCOUNT,
        id: kept,
        source: model::Address::new(0, 1, b"10655"),
        text: Text { octets: "new".into(), ..Text::default() },
        scheduled: None,
        expires_at: None,
        receipts: model::ReceiptRequest::NONE,
        reply: REPLY,
    };
    house.run([cancel, replace]);
    assert_eq!(house.answers, [Answer::Done, Answer::Done]);
    house.answer_all(&found("7"));
    assert_eq!(house.sent.len(), 1);
    assert_eq!((house.sent[0].1.id, &house.sent[0].1.text.octets[..]), (kept, &b"new"[..]));
    assert_eq!(house.engine.resolving().messages, 0);
}

#[test]
fn waiting_for_the_subscriber_is_waiting_for_the_leg() {
    let mut house = house(|_| {});
    let mut first = subscriber_leg(FIRST);
    first.longest_wait = Some(Duration::from_secs(3));
    let id = house.submit(message("1", vec![first.clone(), Leg::to(SECOND)])).unwrap();
    house.pass(Duration::from_secs(3));
    assert_eq!(house.sent.last().map(|(peer, message, _)| (*peer, message.id)), Some((SECOND, id)));
    house.outcome_of_all(&ACCEPTED);
    house.answer_all(&found("7"));
    assert!(house.sent.is_empty() && house.engine.resolving().messages == 0);
    // The time goes on in the queue.
    house.run([Event::LinkDown { link: model::LinkId(1) }]);
    let id = house.submit(message("2", vec![first, Leg::to(SECOND)])).unwrap();
    house.pass(Duration::from_secs(2));
    house.answer_all(&found("7"));
    assert!(house.sent.is_empty());
    house.pass(Duration::from_secs(1));
    assert_eq!(house.sent.last().map(|(peer, message, _)| (*peer, message.id)), Some((SECOND, id)));
}

#[test]
fn a_scheduled_message_finds_its_subscriber_when_its_time_comes() {
    for body_cache in [0, 1 << 20] {
        let mut house = house(|settings| settings.body_cache = body_cache);
        let mut later = message("1", vec![subscriber_leg(FIRST)]);
        later.scheduled = Some(house.now.wall + Duration::from_secs(100));
        house.submit(later).unwrap();
        house.run([Event::LinkDown { link: model::LinkId(1) }]);
        house.pass(Duration::from_secs(99));
        assert!(house.questions.is_empty());
        house.pass(Duration::from_secs(1));
        assert_eq!(house.questions.len(), 1, "whether or not a link is up");
        house.answer_all(&Subscriber::Found { imsi: imsi("7"), peer: Some(SECOND), valid: None });
        assert_eq!(house.sent[0].0, SECOND);
    }
}

#[test]
fn questions_at_a_time_are_bounded_and_asked_in_order() {
    let mut house = house(|settings| settings.resolve_in_flight = 3);
    let numbers: Vec<String> = (100..110).map(|n| n.to_string()).collect();
    for number in &numbers {
        house.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
    }
    let mut asked = Vec::new();
    while !house.questions.is_empty() {
        assert!(house.questions.len() <= 3);
        let first = house.questions.remove(0);
        house.run([resolved(&first, found("7"))]);
        asked.push(String::from_utf8(first.to_vec()).unwrap());
    }
    assert_eq!(asked, numbers);
    assert_eq!(house.sent.len(), 10);
}

#[test]
fn an_answer_holds_as_long_as_it_says() {
    let mut house = house(|settings| settings.resolve_cache_limit = 2);
    let held = |seconds| Subscriber::Found {
        imsi: imsi("7"),
        peer: None,
        valid: Some(Duration::from_secs(seconds)),
    };
    let questions = |house: &mut House, number: &str| {
        house.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
        house.questions.len()
    };
    assert_eq!(questions(&mut house, "1"), 1);
    house.answer_all(&held(0));
    assert_eq!(questions(&mut house, "1"), 1, "it was for those that waited");
    house.answer_all(&held(10));
    assert_eq!(questions(&mut house, "1"), 0);
    house.pass(Duration::from_secs(10));
    assert_eq!(questions(&mut house, "1"), 1);
    house.answer_all(&held(10));
    for number in ["2", "3"] {
        questions(&mut house, number);
        house.answer_all(&held(20));
    }
    assert_eq!(house.engine.resolving().cached, 2);
    assert_eq!(questions(&mut house, "1"), 1, "beyond the limit the first to end goes");
}

#[test]
fn five_thousand_wait_on_few_numbers_and_on_many() {
    const MESSAGES: usize = 5_000;
    for numbers in [1, 10, MESSAGES] {
        for body_cache in [0, 1 << 30] {
            let mut house = house(|settings| settings.body_cache = body_cache);
            let accept = |n: usize| Event::Accept {
                message: Box::new(message(&format!("49{}", n % numbers), vec![subscriber_leg(FIRST)])),
                reply: REPLY,
            };
            house.run((0..MESSAGES).map(accept));
            assert_eq!(house.engine.resolving().messages as usize, MESSAGES);
            let mut asked = 0;
            while !house.questions.is_empty() {
                asked += house.questions.len();
                house.answer_all(&found("7"));
            }
            assert_eq!((asked, house.sent.len()), (numbers, MESSAGES));
            assert!(house.all_different() && house.loads.iter().all(|run| *run <= 1024), "{:?}", house.loads);
            assert_eq!(house.loads.iter().sum::<usize>(), if body_cache == 0 { MESSAGES } else { 0 });
            // In order for each number, and in all where they were released together.
            if numbers == 1 {
                assert!(house.sent.is_sorted_by_key(|(_, message, _)| message.id));
            }
            house.outcome_of_all(&ACCEPTED);
            assert_eq!((house.engine.live(), house.finished.len()), (0, MESSAGES));
            assert!(house.finished.values().all(|ended| ended.state == FinalState::Relayed));
        }
    }
}

#[test]
fn a_resolver_is_exchanged_while_five_thousand_wait() {
    const MESSAGES: usize = 5_000;
    let hooks = |resolver| Event::Hooks { resolver, delivery_policy: false, biller: false };
    for numbers in [10, 700, MESSAGES] {
        let mut house = house(|_| {});
        let accept = |n: usize| Event::Accept {
            message: Box::new(message(&format!("49{}", n % numbers), vec![subscriber_leg(FIRST)])),
            reply: REPLY,
        };
        house.run((0..MESSAGES / 2).map(accept));
        // Another generation serves it: what the old one cannot answer any more is asked again.
        house.run([hooks(true)]);
        house.answer_all(&Subscriber::TryLater { after: None });
        house.run((MESSAGES / 2..MESSAGES).map(accept));
        house.pass(Duration::from_secs(5));
        // It is taken away and put back within a run: everything is asked of the new one.
        let old = std::mem::take(&mut house.questions);
        house.run([hooks(false), hooks(true)]);
        assert_eq!(house.questions.len(), numbers.min(1000));
        let asked = house.engine.resolving().questions;
        while !house.questions.is_empty() {
            house.answer_all(&found("7"));
        }
        // Words of one that has gone move nothing.
        house.run(old.iter().map(|number| resolved(number, Subscriber::Unknown { valid: None })));
        let asked = house.engine.resolving().questions - asked;
        assert_eq!(asked as usize, numbers - numbers.min(1000), "one question for a number");
        assert!(house.sent.len() == MESSAGES && house.all_different());
        house.outcome_of_all(&ACCEPTED);
        assert_eq!(house.finished.len(), MESSAGES);
        let once = |ended: &model::Final| {
            ended.steps.iter().filter(|step| matches!(step.kind, Resolved { .. })).count() == 1
        };
        assert!(house.finished.values().all(once));
    }
}

#[test]
fn without_a_resolver_such_legs_fail_and_say_so() {
    let hooks = |resolver| Event::Hooks { resolver, delivery_policy: false, biller: false };
    let mut house = house(|_| {});
    house.submit(message("3", vec![subscriber_leg(FIRST)])).unwrap();
    house.answer_all(&found("7"));
    house.outcome_of_all(&ACCEPTED);
    let waiting: Vec<MessageId> = ["1", "2", "2"]
        .map(|number| house.submit(message(number, vec![subscriber_leg(FIRST), Leg::to(SECOND)])).unwrap())
        .to_vec();
    house.run([hooks(false)]);
    assert_eq!(house.sent.len(), 3, "the next leg takes them");
    let late = house.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    let steps = house.steps(late);
    assert!(
        matches!(&steps[..], [Decided { note: Some(note), .. }, UnknownSubscriber { cached: false }]
            if &**note == "no resolver is bound"),
        "{steps:?}"
    );
    house.outcome_of_all(&ACCEPTED);
    assert!(waiting.iter().all(|id| house.finished[id].state == FinalState::Relayed));
    house.questions.clear();
    house.run([hooks(true)]);
    for number in ["1", "3"] {
        house.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
    }
    assert_eq!(house.questions.len(), 2, "nothing of before is remembered");
}

#[test]
fn nobody_overtakes_those_that_are_still_being_read_back() {
    let mut house = house(|settings| settings.body_cache = 0);
    let accept =
        |_| Event::Accept { message: Box::new(message("1", vec![subscriber_leg(FIRST)])), reply: REPLY };
    house.run((0..3_000).map(accept));
    house.held = Some(Vec::new());
    house.answer_all(&found("7"));
    house.run([accept(0)]);
    assert_eq!((house.loads.iter().sum::<usize>(), house.sent.len()), (1024, 0));
    let read = house.held.take().unwrap();
    house.run(read);
    assert_eq!(house.sent.len(), 3_001);
    assert!(house.sent.is_sorted_by_key(|(_, message, _)| message.id));
}

#[test]
fn a_resolver_that_comes_back_in_time_is_asked_for_those_that_are_still_there() {
    let hooks = |resolver| Event::Hooks { resolver, delivery_policy: false, biller: false };
    let mut house = house(|settings| settings.body_cache = 0);
    let accept =
        |_| Event::Accept { message: Box::new(message("1", vec![subscriber_leg(FIRST)])), reply: REPLY };
    house.run((0..3_000).map(accept));
    house.held = Some(Vec::new());
    house.run([hooks(false)]);
    house.questions.clear();
    house.run([hooks(true)]);
    let read = house.held.take().unwrap();
    house.run(read);
    assert_eq!((house.questions.len(), house.finished.len()), (1, 0));
    house.answer_all(&found("7"));
    assert_eq!(house.sent.len(), 3_000);
}

#[test]
fn what_waited_at_a_crash_is_asked_about_again() {
    for body_cache in [0, 1 << 20] {
        let mut house = house(|settings| settings.body_cache = body_cache);
        let ids: Vec<MessageId> = (0..50)
            .map(|n| house.submit(message(&format!("49{}", n % 7), vec![subscriber_leg(FIRST)])).unwrap())
            .collect();
        let before = house.questions.clone();
        house.crash();
        assert_eq!(house.questions, before);
        house.link_up(FIRST, 1);
        let first = house.questions.remove(0);
        house.run([resolved(&first, found("7"))]);
        // What was answered stays answered.
        house.sent.clear();
        house.crash();
        assert_eq!(house.questions.len(), 6);
        house.link_up(FIRST, 1);
        let mut order = house.deliver_all();
        order.sort_unstable();
        order.dedup();
        assert_eq!(order, ids);
    }
}
