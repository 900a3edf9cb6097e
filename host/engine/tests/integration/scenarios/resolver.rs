use crate::scenarios::fixture::{
    ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, VALIDITY, by, found, imsi, message, resolved,
    subscriber_leg,
};
use engine::{EngineAnswer, Event, MessageState, ResolverStatus, Settings};
use model::{
    AddressBytes, FinalState, Hook, Leg, MessageId, Outcome, PeerId,
    StepKind::{self, Decided, NextLeg, Refunded, Resolved, Resolving, UnknownSubscriber},
    Subscriber, Text, Verdict,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };

fn fixture(change: impl FnOnce(&mut Settings)) -> EngineFixture {
    let mut settings = Settings { resolver: true, ..Settings::default() };
    change(&mut settings);
    let mut fixture = EngineFixture::new(settings);
    fixture.link_up(FIRST, 10_000);
    fixture.link_up(SECOND, 10_000);
    fixture
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

/// The steps up to the first attempt.
fn steps_before_attempt(steps: Vec<StepKind>) -> Vec<StepKind> {
    steps.into_iter().take_while(|step| !is_final_step(step)).collect()
}

#[test]
fn one_query_serves_all_waiting_messages_and_is_cached() {
    let mut fixture = fixture(|_| {});
    let plain = fixture.submit(message("4917100001", vec![Leg::to(FIRST)])).unwrap();
    let first = fixture.submit(message("4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    let second = fixture.submit(message("+4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    assert_eq!(fixture.questions, [AddressBytes::from_slice(b"4917100001")]);
    assert_eq!(fixture.sent.len(), 1, "others do not wait");
    assert_eq!(fixture.engine.message(first).unwrap().state, MessageState::Resolving);
    let status = ResolverStatus { numbers: 1, messages: 2, questions: 1, in_flight: 1, ..Default::default() };
    assert_eq!(fixture.engine.resolver_status(), status);
    fixture.answer_all(&found("262011234567890"));
    let order: Vec<MessageId> = fixture.sent.iter().map(|(_, message, _)| message.id).collect();
    assert_eq!(order, [plain, first, second]);
    let leg = leg_of(&fixture.sent[1].1, 0).clone();
    assert_eq!((leg.imsi, leg.peer), (Some(imsi("262011234567890")), FIRST));
    assert_eq!(leg_of(fixture.message_on_disk(second), 0).imsi, Some(imsi("262011234567890")));
    let third = fixture.submit(message("4917100001", vec![subscriber_leg(FIRST)])).unwrap();
    assert!(fixture.questions.is_empty(), "it is cached");
    assert_eq!(leg_of(fixture.message_on_disk(third), 0).imsi, Some(imsi("262011234567890")));
    assert_eq!(fixture.progress_on_disk(third), None, "and costs no second write");
    fixture.outcome_of_all(&ACCEPTED);
    let resolved = |cached| Resolved { peer: FIRST, cached };
    assert_eq!(steps_before_attempt(fixture.steps(second)), [Resolving, decided(), resolved(false)]);
    assert_eq!(steps_before_attempt(fixture.steps(third)), [decided(), resolved(true)]);
    let status = ResolverStatus { cached: 1, hits: 1, questions: 1, ..Default::default() };
    assert_eq!(fixture.engine.resolver_status(), status);
}

#[test]
fn any_destination_is_resolved() {
    let mut fixture = fixture(|_| {});
    for odd in ["", "+", "++49", "+49+", "ACME", "\u{0}", "a number that is longer than 22 octets"] {
        fixture.submit(message(odd, vec![subscriber_leg(FIRST)])).unwrap();
    }
    // A number of plus signs only is empty.
    assert_eq!(fixture.questions.len(), 6);
    fixture.answer_all(&found("7"));
    assert_eq!((fixture.sent.len(), fixture.engine.resolver_status().in_flight), (7, 0));
}

#[test]
fn the_answer_may_name_the_peer_that_serves_the_subscriber() {
    let mut fixture = fixture(|_| {});
    let serving = |peer| Subscriber::Found { imsi: imsi("262011234567890"), peer, valid: None };
    // An unconfigured peer and the origin are ignored.
    for (number, peer, to) in
        [("1", Some(SECOND), SECOND), ("2", Some(PeerId(77)), FIRST), ("3", Some(ACCOUNT), FIRST)]
    {
        for _ in ["asked", "remembered"] {
            fixture.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
            fixture.answer_all(&serving(peer));
            assert_eq!(fixture.sent.pop().unwrap().0, to, "{peer:?}");
        }
    }
}

#[test]
fn an_unknown_subscriber_is_a_permanent_failure_of_the_leg() {
    let mut fixture = fixture(|_| {});
    for cached in [false, true] {
        let alone = fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
        let other = fixture.submit(message("1", vec![subscriber_leg(FIRST), Leg::to(SECOND)])).unwrap();
        fixture.answer_all(&Subscriber::Unknown { valid: None });
        let ended = &fixture.finished[&alone];
        assert_eq!((ended.state, ended.error, ended.peer), (FinalState::Failed, 1, None));
        let waiting: &[StepKind] = if cached { &[] } else { &[Resolving] };
        let unknown = [decided(), UnknownSubscriber { cached }];
        assert_eq!(fixture.steps(alone), [waiting, &unknown].concat());
        assert_eq!(
            fixture.sent.last().map(|(peer, message, leg)| (*peer, message.id, *leg)),
            Some((SECOND, other, 1))
        );
        fixture.outcome_of_all(&ACCEPTED);
        let next = [NextLeg { peer: SECOND }];
        assert_eq!(steps_before_attempt(fixture.steps(other)), [waiting, &unknown, &next].concat());
    }
    // An answer without subscriber is cached for a shorter time.
    fixture.pass(Duration::from_secs(61));
    assert_eq!(fixture.engine.resolver_status().cached, 0, "the sweep is over");
    fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    assert_eq!(fixture.questions.len(), 1);
}

#[test]
fn the_next_leg_may_need_its_subscriber_as_well() {
    let mut fixture = fixture(|_| {});
    let mut second = subscriber_leg(SECOND);
    second.destination = Some(model::Address::international("2"));
    let id = fixture.submit(message("1", vec![subscriber_leg(FIRST), second])).unwrap();
    fixture.answer_all(&Subscriber::Unknown { valid: None });
    assert_eq!(fixture.questions, [AddressBytes::from_slice(b"2")]);
    fixture.crash();
    assert_eq!(fixture.questions, [AddressBytes::from_slice(b"2")], "and is asked again after a crash");
    fixture.link_up(SECOND, 1);
    fixture.answer_all(&found("7"));
    assert_eq!(leg_of(&fixture.sent[0].1, 1).imsi, Some(imsi("7")));
    fixture.outcome_of_all(&ACCEPTED);
    assert_eq!(fixture.finished[&id].state, FinalState::Relayed);
}

#[test]
fn a_resolver_that_defers_is_queried_again_later() {
    let mut fixture = fixture(|_| {});
    let id = fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    for (after, seconds) in [(None, 5), (Some(30), 30), (Some(0), 1), (Some(100_000), 3600)] {
        let after = after.map(Duration::from_secs);
        fixture.answer_all(&Subscriber::TryLater { after });
        let status = fixture.engine.message(id).unwrap();
        assert_eq!(status.until.unwrap() - fixture.now.mono, Duration::from_secs(seconds));
        assert_eq!(status.resolver_deferral, Some((by(), Some("because".into()))));
        let other = fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
        fixture.pass(Duration::from_millis(seconds * 1000 - 1));
        assert!(fixture.questions.is_empty(), "also where another joins: {other:?}");
        fixture.pass(Duration::from_millis(1));
        assert_eq!(fixture.questions.len(), 1);
    }
    // A replacing resolver is queried at once.
    fixture.answer_all(&Subscriber::TryLater { after: None });
    fixture.run([Event::ResolverReplaced]);
    assert_eq!(fixture.questions.len(), 1);
    fixture.run([Event::ResolverReplaced]);
    fixture.pass(Duration::from_secs(10));
    assert_eq!(fixture.questions.len(), 1, "a pending query is not repeated");
    // The validity ends the wait without an answer, and finished messages cause no query.
    fixture.pass(VALIDITY);
    assert_eq!((fixture.engine.live(), fixture.finished[&id].state), (0, FinalState::Expired));
    fixture.answer_all(&Subscriber::TryLater { after: None });
    fixture.pass(Duration::from_secs(60));
    assert!(fixture.questions.is_empty());
    assert_eq!(fixture.engine.resolver_status().in_flight, 0);
}

#[test]
fn a_message_waiting_for_its_subscriber_can_be_cancelled_and_replaced() {
    let mut fixture = fixture(|_| {});
    let [gone, kept] = [0, 1].map(|_| fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap());
    let cancel = Event::Cancel { origin: ACCOUNT, id: gone, source: None, destination: None, reply: REPLY };
    let replace = Event::Replace {
        origin: ACCOUNT,
        id: kept,
        source: model::Address::new(0, 1, b"10655"),
        text: Text { octets: "new".into(), ..Text::default() },
        scheduled: None,
        expires_at: None,
        dlr_request: model::DlrRequest::NONE,
        reply: REPLY,
    };
    fixture.run([cancel, replace]);
    assert_eq!(fixture.answers, [EngineAnswer::Done, EngineAnswer::Done]);
    fixture.answer_all(&found("7"));
    assert_eq!(fixture.sent.len(), 1);
    assert_eq!((fixture.sent[0].1.id, &fixture.sent[0].1.text.octets[..]), (kept, &b"new"[..]));
    assert_eq!(fixture.engine.resolver_status().messages, 0);
}

#[test]
fn waiting_for_the_resolver_counts_as_waiting_for_the_leg() {
    let mut fixture = fixture(|_| {});
    let mut first = subscriber_leg(FIRST);
    first.longest_wait = Some(Duration::from_secs(3));
    let id = fixture.submit(message("1", vec![first.clone(), Leg::to(SECOND)])).unwrap();
    fixture.pass(Duration::from_secs(3));
    assert_eq!(fixture.sent.last().map(|(peer, message, _)| (*peer, message.id)), Some((SECOND, id)));
    fixture.outcome_of_all(&ACCEPTED);
    fixture.answer_all(&found("7"));
    assert!(fixture.sent.is_empty() && fixture.engine.resolver_status().messages == 0);
    // The leg's longest wait continues in the queue.
    fixture.run([Event::LinkDown { link: model::LinkId(1) }]);
    let id = fixture.submit(message("2", vec![first, Leg::to(SECOND)])).unwrap();
    fixture.pass(Duration::from_secs(2));
    fixture.answer_all(&found("7"));
    assert!(fixture.sent.is_empty());
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.sent.last().map(|(peer, message, _)| (*peer, message.id)), Some((SECOND, id)));
}

#[test]
fn a_scheduled_message_is_resolved_at_its_time() {
    for body_cache in [0, 1 << 20] {
        let mut fixture = fixture(|settings| settings.body_cache = body_cache);
        let mut later = message("1", vec![subscriber_leg(FIRST)]);
        later.scheduled = Some(fixture.now.wall + Duration::from_secs(100));
        fixture.submit(later).unwrap();
        fixture.run([Event::LinkDown { link: model::LinkId(1) }]);
        fixture.pass(Duration::from_secs(99));
        assert!(fixture.questions.is_empty());
        fixture.pass(Duration::from_secs(1));
        assert_eq!(fixture.questions.len(), 1, "whether or not a link is up");
        fixture.answer_all(&Subscriber::Found { imsi: imsi("7"), peer: Some(SECOND), valid: None });
        assert_eq!(fixture.sent[0].0, SECOND);
    }
}

#[test]
fn concurrent_queries_are_bounded_and_in_order() {
    let mut fixture = fixture(|settings| settings.resolve_in_flight = 3);
    let numbers: Vec<String> = (100..110).map(|n| n.to_string()).collect();
    for number in &numbers {
        fixture.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
    }
    let mut asked = Vec::new();
    while !fixture.questions.is_empty() {
        assert!(fixture.questions.len() <= 3);
        let first = fixture.questions.remove(0);
        fixture.run([resolved(&first, found("7"))]);
        asked.push(String::from_utf8(first.to_vec()).unwrap());
    }
    assert_eq!(asked, numbers);
    assert_eq!(fixture.sent.len(), 10);
}

#[test]
fn a_resolver_answer_is_cached_for_its_validity() {
    let mut fixture = fixture(|settings| settings.resolve_cache_limit = 2);
    let held = |seconds| Subscriber::Found {
        imsi: imsi("7"),
        peer: None,
        valid: Some(Duration::from_secs(seconds)),
    };
    let questions = |fixture: &mut EngineFixture, number: &str| {
        fixture.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
        fixture.questions.len()
    };
    assert_eq!(questions(&mut fixture, "1"), 1);
    fixture.answer_all(&held(0));
    assert_eq!(questions(&mut fixture, "1"), 1, "it was for those that waited");
    fixture.answer_all(&held(10));
    assert_eq!(questions(&mut fixture, "1"), 0);
    fixture.pass(Duration::from_secs(10));
    assert_eq!(questions(&mut fixture, "1"), 1);
    fixture.answer_all(&held(10));
    for number in ["2", "3"] {
        questions(&mut fixture, number);
        fixture.answer_all(&held(20));
    }
    assert_eq!(fixture.engine.resolver_status().cached, 2);
    assert_eq!(questions(&mut fixture, "1"), 1, "beyond the limit the first to end goes");
}

#[test]
fn five_thousand_wait_on_few_numbers_and_on_many() {
    const MESSAGES: usize = 5_000;
    for numbers in [1, 10, MESSAGES] {
        for body_cache in [0, 1 << 30] {
            let mut fixture = fixture(|settings| settings.body_cache = body_cache);
            let accept = |n: usize| Event::Accept {
                message: Box::new(message(&format!("49{}", n % numbers), vec![subscriber_leg(FIRST)])),
                reply: REPLY,
            };
            fixture.run((0..MESSAGES).map(accept));
            assert_eq!(fixture.engine.resolver_status().messages as usize, MESSAGES);
            let mut asked = 0;
            while !fixture.questions.is_empty() {
                asked += fixture.questions.len();
                fixture.answer_all(&found("7"));
            }
            assert_eq!((asked, fixture.sent.len()), (numbers, MESSAGES));
            assert!(
                fixture.all_different() && fixture.loads.iter().all(|run| *run <= 1024),
                "{:?}",
                fixture.loads
            );
            assert_eq!(fixture.loads.iter().sum::<usize>(), if body_cache == 0 { MESSAGES } else { 0 });
            // In order per number, and in order overall if released together.
            if numbers == 1 {
                assert!(fixture.sent.is_sorted_by_key(|(_, message, _)| message.id));
            }
            fixture.outcome_of_all(&ACCEPTED);
            assert_eq!((fixture.engine.live(), fixture.finished.len()), (0, MESSAGES));
            assert!(fixture.finished.values().all(|ended| ended.state == FinalState::Relayed));
        }
    }
}

#[test]
fn the_resolver_is_replaced_while_five_thousand_wait() {
    const MESSAGES: usize = 5_000;
    let hooks =
        |resolver| Event::HooksChanged { resolver, delivery_policy: false, receipt: false, biller: false };
    for numbers in [10, 700, MESSAGES] {
        let mut fixture = fixture(|_| {});
        let accept = |n: usize| Event::Accept {
            message: Box::new(message(&format!("49{}", n % numbers), vec![subscriber_leg(FIRST)])),
            reply: REPLY,
        };
        fixture.run((0..MESSAGES / 2).map(accept));
        // Another generation is bound: it gets the queries that the old one can no longer answer.
        fixture.run([hooks(true)]);
        fixture.answer_all(&Subscriber::TryLater { after: None });
        fixture.run((MESSAGES / 2..MESSAGES).map(accept));
        fixture.pass(Duration::from_secs(5));
        // Unbound and bound again within a run: the new one gets all queries.
        let old = std::mem::take(&mut fixture.questions);
        fixture.run([hooks(false), hooks(true)]);
        assert_eq!(fixture.questions.len(), numbers.min(1000));
        let asked = fixture.engine.resolver_status().questions;
        while !fixture.questions.is_empty() {
            fixture.answer_all(&found("7"));
        }
        // Answers of an unbound resolver move nothing.
        fixture.run(old.iter().map(|number| resolved(number, Subscriber::Unknown { valid: None })));
        let asked = fixture.engine.resolver_status().questions - asked;
        assert_eq!(asked as usize, numbers - numbers.min(1000), "one question for a number");
        assert!(fixture.sent.len() == MESSAGES && fixture.all_different());
        fixture.outcome_of_all(&ACCEPTED);
        assert_eq!(fixture.finished.len(), MESSAGES);
        let once = |ended: &model::FinalRecord| {
            ended.steps.iter().filter(|step| matches!(step.kind, Resolved { .. })).count() == 1
        };
        assert!(fixture.finished.values().all(once));
    }
}

#[test]
fn without_a_resolver_legs_that_need_it_fail() {
    let hooks =
        |resolver| Event::HooksChanged { resolver, delivery_policy: false, receipt: false, biller: false };
    let mut fixture = fixture(|_| {});
    fixture.submit(message("3", vec![subscriber_leg(FIRST)])).unwrap();
    fixture.answer_all(&found("7"));
    fixture.outcome_of_all(&ACCEPTED);
    let waiting: Vec<MessageId> = ["1", "2", "2"]
        .map(|number| fixture.submit(message(number, vec![subscriber_leg(FIRST), Leg::to(SECOND)])).unwrap())
        .to_vec();
    fixture.run([hooks(false)]);
    assert_eq!(fixture.sent.len(), 3, "the next leg takes them");
    let late = fixture.submit(message("1", vec![subscriber_leg(FIRST)])).unwrap();
    let steps = fixture.steps(late);
    assert!(
        matches!(&steps[..], [Decided { note: Some(note), .. }, UnknownSubscriber { cached: false }]
            if &**note == "no resolver is bound"),
        "{steps:?}"
    );
    fixture.outcome_of_all(&ACCEPTED);
    assert!(waiting.iter().all(|id| fixture.finished[id].state == FinalState::Relayed));
    fixture.questions.clear();
    fixture.run([hooks(true)]);
    for number in ["1", "3"] {
        fixture.submit(message(number, vec![subscriber_leg(FIRST)])).unwrap();
    }
    assert_eq!(fixture.questions.len(), 2, "nothing is cached");
}

#[test]
fn no_message_overtakes_one_whose_content_is_loading() {
    let mut fixture = fixture(|settings| settings.body_cache = 0);
    let accept =
        |_| Event::Accept { message: Box::new(message("1", vec![subscriber_leg(FIRST)])), reply: REPLY };
    fixture.run((0..3_000).map(accept));
    fixture.held = Some(Vec::new());
    fixture.answer_all(&found("7"));
    fixture.run([accept(0)]);
    assert_eq!((fixture.loads.iter().sum::<usize>(), fixture.sent.len()), (1024, 0));
    let read = fixture.held.take().unwrap();
    fixture.run(read);
    assert_eq!(fixture.sent.len(), 3_001);
    assert!(fixture.sent.is_sorted_by_key(|(_, message, _)| message.id));
}

#[test]
fn a_rebound_resolver_is_queried_for_messages_still_waiting() {
    let hooks =
        |resolver| Event::HooksChanged { resolver, delivery_policy: false, receipt: false, biller: false };
    let mut fixture = fixture(|settings| settings.body_cache = 0);
    let accept =
        |_| Event::Accept { message: Box::new(message("1", vec![subscriber_leg(FIRST)])), reply: REPLY };
    fixture.run((0..3_000).map(accept));
    fixture.held = Some(Vec::new());
    fixture.run([hooks(false)]);
    fixture.questions.clear();
    fixture.run([hooks(true)]);
    let read = fixture.held.take().unwrap();
    fixture.run(read);
    assert_eq!((fixture.questions.len(), fixture.finished.len()), (1, 0));
    fixture.answer_all(&found("7"));
    assert_eq!(fixture.sent.len(), 3_000);
}

#[test]
fn pending_queries_are_repeated_after_a_crash() {
    for body_cache in [0, 1 << 20] {
        let mut fixture = fixture(|settings| settings.body_cache = body_cache);
        let ids: Vec<MessageId> = (0..50)
            .map(|n| fixture.submit(message(&format!("49{}", n % 7), vec![subscriber_leg(FIRST)])).unwrap())
            .collect();
        let before = fixture.questions.clone();
        fixture.crash();
        assert_eq!(fixture.questions, before);
        fixture.link_up(FIRST, 1);
        let first = fixture.questions.remove(0);
        fixture.run([resolved(&first, found("7"))]);
        // Previous answers stay.
        fixture.sent.clear();
        fixture.crash();
        assert_eq!(fixture.questions.len(), 6);
        fixture.link_up(FIRST, 1);
        let mut order = fixture.deliver_all();
        order.sort_unstable();
        order.dedup();
        assert_eq!(order, ids);
    }
}
