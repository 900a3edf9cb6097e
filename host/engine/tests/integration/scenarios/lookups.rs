//! Messages that wait for the lookup of their number.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, VALIDITY, by, message};
use engine::{AdminAction, EngineAnswer, Event, LookupStatus, MessageState, Settings};
use model::{
    FinalState, Hook, Leg, Lookup, LookupNumber, LookupResult, Message, MessageId, RoutingDecision, StepKind,
    Verdict,
};
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);

fn unrouted(number: &str) -> Message {
    let mut message = message(number, vec![Leg::to(FIRST)]);
    message.routed = RoutingDecision::new(Verdict::AwaitLookup, by());
    message
}

/// With all content cached, and with none.
fn fixtures() -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| {
        let settings = Settings {
            body_cache,
            lookup_timeout: TIMEOUT,
            lookup_retry_after: RETRY,
            lookups_in_flight: 2,
            ..Settings::default()
        };
        let mut fixture = EngineFixture::new(settings);
        fixture.link_up(FIRST, 100);
        fixture.link_up(ACCOUNT, 100);
        fixture
    })
}

fn answer(fixture: &mut EngineFixture, number: LookupNumber, result: LookupResult) {
    let attributes =
        if result == LookupResult::Found { vec![("mnc".into(), "07".into())] } else { Vec::new() };
    let lookup = Lookup {
        result,
        attributes,
        by: by(),
        note: Some("because".into()),
        cached: false,
        host_calls: None,
    };
    fixture.run([Event::LookedUp { number, lookup: Arc::new(lookup) }]);
}

/// Answers the request to route a message, as a router that forwards it.
fn route(fixture: &mut EngineFixture) -> Arc<Message> {
    let asked = fixture.routes.remove(0);
    let mut routed = asked.routed.clone();
    routed.verdict = Verdict::Forward(vec![Leg::to(FIRST)]);
    fixture.run([Event::Rerouted { id: asked.id, routed, text: None }]);
    asked
}

fn result(message: &Message) -> Option<LookupResult> {
    message.routed.lookup.as_ref().map(|lookup| lookup.result)
}

fn single_lookup(fixture: &mut EngineFixture) -> LookupNumber {
    assert_eq!(fixture.lookups.len(), 1, "{:?}", fixture.lookups);
    fixture.lookups.remove(0)
}

#[test]
fn many_messages_to_a_number_ask_once() {
    for mut fixture in fixtures() {
        let ids: Vec<MessageId> = (0..20).map(|_| fixture.submit(unrouted("8613")).unwrap()).collect();
        let status = LookupStatus { messages: 20, numbers: 1, questions: 1, failed: 0 };
        assert_eq!(fixture.engine.lookup_status(), status);
        assert_eq!(fixture.engine.message(ids[0]).unwrap().state, MessageState::AwaitingLookup);
        assert!(fixture.sent.is_empty() && fixture.routes.is_empty());
        let number = single_lookup(&mut fixture);
        answer(&mut fixture, number, LookupResult::Found);
        for id in &ids {
            let asked = route(&mut fixture);
            assert_eq!(asked.id, *id);
            assert_eq!(asked.routed.lookup.as_ref().unwrap().attribute("mnc"), Some("07"));
        }
        assert_eq!(fixture.engine.lookup_status().messages, 0);
        assert_eq!(fixture.deliver_all(), ids);
        let steps = fixture.steps(ids[0]);
        assert!(
            matches!(&steps[0], StepKind::Decided { hook: Hook::Lookup, note: Some(_), .. }),
            "{steps:?}"
        );
        assert!(matches!(steps[1], StepKind::Rerouted { .. }), "{steps:?}");
    }
}

#[test]
fn without_an_answer_a_message_is_routed_after_its_time() {
    for mut fixture in fixtures() {
        let first = fixture.submit(unrouted("8613")).unwrap();
        let number = single_lookup(&mut fixture);
        fixture.pass(TIMEOUT / 2);
        let second = fixture.submit(unrouted("8613")).unwrap();
        assert_eq!(fixture.lookups, []);
        fixture.pass(TIMEOUT / 2);
        let asked = route(&mut fixture);
        assert_eq!((asked.id, result(&asked)), (first, Some(LookupResult::Failed)));
        assert!(fixture.routes.is_empty());
        // The late answer counts for the messages that still wait.
        answer(&mut fixture, number, LookupResult::Unknown);
        let asked = route(&mut fixture);
        assert_eq!((asked.id, result(&asked)), (second, Some(LookupResult::Unknown)));
        assert_eq!(fixture.deliver_all(), [first, second]);
        assert_eq!(fixture.engine.lookup_status().failed, 1);
    }
}

#[test]
fn a_failed_question_is_repeated_as_long_as_messages_wait() {
    for mut fixture in fixtures() {
        let id = fixture.submit(unrouted("8613")).unwrap();
        for _ in 0..3 {
            let number = single_lookup(&mut fixture);
            answer(&mut fixture, number, LookupResult::Failed);
            assert_eq!(fixture.lookups, []);
            fixture.pass(RETRY);
        }
        let number = single_lookup(&mut fixture);
        answer(&mut fixture, number, LookupResult::Failed);
        fixture.pass(TIMEOUT);
        let asked = route(&mut fixture);
        let lookup = asked.routed.lookup.clone().unwrap();
        assert_eq!(
            (asked.id, lookup.result, lookup.note.as_deref()),
            (id, LookupResult::Failed, Some("because"))
        );
        fixture.pass(TIMEOUT);
        assert_eq!(fixture.lookups, [], "nobody waits for the number");
        assert_eq!(fixture.engine.lookup_status().numbers, 0);
    }
}

#[test]
fn a_message_that_waits_survives_a_crash_and_is_asked_again() {
    for mut fixture in fixtures() {
        let id = fixture.submit(unrouted("8613")).unwrap();
        let number = single_lookup(&mut fixture);
        fixture.crash();
        fixture.link_up(FIRST, 10);
        fixture.link_up(ACCOUNT, 10);
        fixture.pass(Duration::from_secs(1));
        let asked = fixture.routes.remove(0);
        assert_eq!((asked.id, result(&asked)), (id, None));
        // The number is not cached after the restart.
        let routed = RoutingDecision::new(Verdict::AwaitLookup, by());
        fixture.run([Event::Rerouted { id, routed, text: None }]);
        assert_eq!(single_lookup(&mut fixture), number);
        answer(&mut fixture, number, LookupResult::Found);
        // After a crash before the routing is written, the question is asked again.
        fixture.crash();
        fixture.link_up(FIRST, 10);
        fixture.link_up(ACCOUNT, 10);
        fixture.pass(Duration::from_secs(1));
        route(&mut fixture);
        assert_eq!(fixture.deliver_all(), [id]);
    }
}

#[test]
fn a_waiting_message_can_be_cancelled_and_expires() {
    for mut fixture in fixtures() {
        let cancelled = fixture.submit(unrouted("8613")).unwrap();
        let action = AdminAction::Cancel;
        fixture.run([Event::AdminAction { id: cancelled, action, by: "ada".into(), reply: REPLY }]);
        assert_eq!(fixture.answers.pop(), Some(EngineAnswer::Done));
        assert_eq!(fixture.finished[&cancelled].state, FinalState::Cancelled);
        let number = single_lookup(&mut fixture);
        answer(&mut fixture, number, LookupResult::Found);
        assert!(fixture.routes.is_empty());
        let expired = fixture.submit(unrouted("8614")).unwrap();
        fixture.pass(TIMEOUT);
        assert_eq!(fixture.routes.len(), 1);
        fixture.pass(VALIDITY + Duration::from_secs(2));
        assert_eq!(fixture.finished[&expired].state, FinalState::Expired);
        assert_eq!(fixture.engine.lookup_status().messages, 0);
    }
}

#[test]
fn no_more_questions_are_pending_than_the_limit() {
    for mut fixture in fixtures() {
        for number in ["8611", "8612", "8613", "8614"] {
            fixture.submit(unrouted(number)).unwrap();
        }
        assert_eq!(fixture.lookups.len(), 2);
        let number = fixture.lookups.remove(0);
        answer(&mut fixture, number, LookupResult::Unknown);
        assert_eq!(fixture.lookups.len(), 2);
        // No message waits for the other numbers any longer: they are not asked.
        fixture.pass(TIMEOUT);
        for number in std::mem::take(&mut fixture.lookups) {
            answer(&mut fixture, number, LookupResult::Unknown);
        }
        assert_eq!(fixture.lookups, []);
    }
}
