//! Messages with a pool number as their sender, and messages that wait for one.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, by, found, message, subscriber_leg};
use engine::{EngineAnswer, Event, Settings};
use model::{
    AcquireRequest, Address, AddressBytes, Charge, FinalState, LedgerChange, LedgerOperation, Leg, Message,
    MessageId, NumberState, Outcome, PoolAnswer, PoolChange, PoolName, PoolNumber, PoolOperation,
    PoolOutcome, PoolRequest, PoolSettings, Quote, Refusal, RejectReason, RoutingDecision, SenderFallback,
    SenderRequest, StepKind, Strategy, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const ANNE: &str = "4917100000001";
const TRY_LATER: Result<MessageId, Refusal> = Err(Refusal::Rejected(RejectReason::TryLater));

fn pool() -> PoolName {
    "texts".parse().unwrap()
}

fn number(digit: usize) -> PoolNumber {
    format!("+491500{digit}").parse().unwrap()
}

/// A fixture whose pool has this many numbers, all up.
fn fixture(numbers: usize) -> EngineFixture {
    fixture_with(numbers, &Settings::default())
}

fn fixture_with(numbers: usize, settings: &Settings) -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings { country: "49".to_owned(), ..settings.clone() });
    fixture.link_up(FIRST, 10);
    for digit in 0..numbers {
        operate(&mut fixture, PoolOperation::Add { number: number(digit), weight: None });
        operate(&mut fixture, PoolOperation::Reg { number: number(digit) });
    }
    fixture
}

fn ask(fixture: &mut EngineFixture, request: PoolRequest) -> PoolAnswer {
    fixture.run([Event::Pool { pool: pool(), request, by: "user".into(), reply: REPLY }]);
    match fixture.answers.pop() {
        Some(EngineAnswer::Pool(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

fn operate(fixture: &mut EngineFixture, operation: PoolOperation) -> PoolOutcome {
    match ask(fixture, PoolRequest::Operation(operation)) {
        PoolAnswer::Outcome(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// The numbers of ready and of leased pool numbers.
fn counts(fixture: &mut EngineFixture) -> (usize, usize) {
    match ask(fixture, PoolRequest::Show) {
        PoolAnswer::Pool(pool) => (pool.ready, pool.counts.busy_up + pool.counts.busy_down),
        other => panic!("{other:?}"),
    }
}

fn sender_request(otherwise: SenderFallback) -> Option<Box<SenderRequest>> {
    Some(Box::new(SenderRequest {
        pool: pool(),
        holder: "acme".into(),
        user: "".into(),
        reason: "campaign".into(),
        lease: None,
        otherwise,
        leased: None,
    }))
}

fn message_with_sender(otherwise: SenderFallback) -> Message {
    let mut message = message(ANNE, vec![Leg::to(FIRST)]);
    message.routed.sender = sender_request(otherwise);
    message
}

fn to_first(otherwise: SenderFallback) -> RoutingDecision {
    RoutingDecision {
        sender: sender_request(otherwise),
        ..RoutingDecision::new(Verdict::Forward(vec![Leg::to(FIRST)]), by())
    }
}

/// Answers all routing requests with this decision, in order.
fn route_all(fixture: &mut EngineFixture, routed: &RoutingDecision) -> Vec<MessageId> {
    let asked: Vec<MessageId> =
        std::mem::take(&mut fixture.routes).iter().map(|message| message.id).collect();
    for id in &asked {
        fixture.run([Event::Rerouted { id: *id, routed: routed.clone(), text: None }]);
    }
    asked
}

/// The source of a message on a link.
fn shown(fixture: &EngineFixture, id: MessageId) -> Address {
    let (_, message, leg) = fixture.sent.iter().find(|(_, message, _)| message.id == id).unwrap();
    message.addresses_on(*leg).0.clone()
}

#[test]
fn a_number_is_leased_at_acceptance_and_released_at_the_end() {
    let mut fixture = fixture(1);
    let id = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    assert_eq!(shown(&fixture, id), Address::international("4915000"));
    assert_eq!(fixture.message_on_disk(id).source, Address::new(0, 1, b"10655"), "the submitter's stays");
    let row = fixture.pools.numbers().remove(&(pool(), number(0))).unwrap();
    assert_eq!((row.state, row.message), (NumberState::BusyUp, Some(id)));
    assert_eq!((&*row.holder, &*row.reason), ("acme", "campaign"));
    // The submitter uses the sender that it submitted.
    let source = Some(Address::new(0, 1, b"10655"));
    fixture.run([Event::Query { origin: ACCOUNT, id, source, reply: REPLY }]);
    assert!(matches!(fixture.answers.pop(), Some(EngineAnswer::State(_))));
    fixture.answer(id, ACCEPTED);
    assert_eq!(counts(&mut fixture), (1, 0));
    assert_eq!(fixture.finished[&id].state, FinalState::Relayed);
    assert_eq!(fixture.steps(id)[0], StepKind::SenderLeased { pool: pool(), number: number(0) });
    let changes: Vec<(PoolChange, Option<Arc<str>>)> =
        fixture.pools.journal().skip(2).map(|entry| (entry.change, entry.by.clone())).collect();
    let message = Some(Arc::from("message"));
    assert_eq!(changes, [(PoolChange::Call, message.clone()), (PoolChange::Hangup, message)]);
}

#[test]
fn a_leg_that_names_its_source_goes_first() {
    let mut fixture = fixture(1);
    let mut own = message_with_sender(SenderFallback::Reject);
    let source = Address::new(5, 0, b"ACME");
    let legs = vec![Leg { source: Some(source.clone()), ..Leg::to(FIRST) }];
    own.routed.verdict = Verdict::Forward(legs);
    let id = fixture.submit(own).unwrap();
    assert_eq!(shown(&fixture, id), source);
    assert_eq!(counts(&mut fixture), (0, 1), "it has the number all the same");
}

#[test]
fn every_final_state_releases_the_number() {
    let mut fixture = fixture(1);
    let refused = Outcome::Refused { class: model::ErrorClass::Permanent, code: 11, taken: Vec::new() };
    let id = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    fixture.answer(id, refused);
    assert_eq!((fixture.finished[&id].state, counts(&mut fixture)), (FinalState::Failed, (1, 0)));
    fixture.run([Event::LinkDown { link: model::LinkId(FIRST.0.into()) }]);
    let id = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    fixture.run([Event::Cancel { origin: ACCOUNT, id, source: None, destination: None, reply: REPLY }]);
    assert_eq!((fixture.finished[&id].state, counts(&mut fixture)), (FinalState::Cancelled, (1, 0)));
    let id = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    assert_eq!(counts(&mut fixture), (0, 1));
    fixture.pass(crate::scenarios::fixture::VALIDITY + Duration::from_secs(70));
    assert_eq!((fixture.finished[&id].state, counts(&mut fixture)), (FinalState::Expired, (1, 0)));
}

#[test]
fn no_number_available() {
    let mut fixture = fixture(1);
    let first = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    assert_eq!(fixture.submit(message_with_sender(SenderFallback::Reject)), TRY_LATER);
    let kept = fixture.submit(message_with_sender(SenderFallback::KeepSender)).unwrap();
    assert_eq!(shown(&fixture, kept), Address::new(0, 1, b"10655"));
    fixture.answer(kept, ACCEPTED);
    assert_eq!(fixture.steps(kept)[0], StepKind::SenderUnavailable { pool: pool() });
    assert_eq!(counts(&mut fixture), (0, 1), "the first has it still");
    fixture.answer(first, ACCEPTED);
    let mut elsewhere = message_with_sender(SenderFallback::Reject);
    elsewhere.routed.sender.as_mut().unwrap().pool = "nowhere".parse().unwrap();
    assert_eq!(fixture.submit(elsewhere), TRY_LATER);
}

#[test]
fn waiting_messages_get_numbers_in_order_of_acceptance() {
    let mut fixture = fixture(1);
    let first = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    assert_eq!(fixture.engine.senders(), (1, 3));
    assert_eq!(fixture.submit(message_with_sender(SenderFallback::Reject)), TRY_LATER);
    let mut last = first;
    for next in &waiting {
        assert!(fixture.routes.is_empty());
        fixture.answer(last, ACCEPTED);
        // The number is reserved for the message while it is being routed.
        assert_eq!(counts(&mut fixture), (1, 0));
        assert_eq!(fixture.submit(message_with_sender(SenderFallback::Reject)), TRY_LATER);
        let asked = route_all(&mut fixture, &to_first(SenderFallback::Hold));
        assert_eq!((asked, fixture.on_links()), (vec![*next], vec![*next]));
        assert_eq!(shown(&fixture, *next), Address::international("4915000"));
        last = *next;
    }
    fixture.answer(last, ACCEPTED);
    assert_eq!((counts(&mut fixture), fixture.engine.senders()), ((1, 0), (0, 0)));
    assert!(fixture.submit(message_with_sender(SenderFallback::Reject)).is_ok());
    let steps = fixture.steps(waiting[0]);
    assert_eq!(steps[0], StepKind::SenderUnavailable { pool: pool() });
    assert!(steps.contains(&StepKind::SenderLeased { pool: pool(), number: number(0) }), "{steps:?}");
}

#[test]
fn a_waiting_message_that_leaves_frees_its_place() {
    let mut fixture = fixture(1);
    let first = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    fixture.run([Event::Cancel {
        origin: ACCOUNT,
        id: waiting[0],
        source: None,
        destination: None,
        reply: REPLY,
    }]);
    fixture.answer(first, ACCEPTED);
    assert_eq!(fixture.routes.iter().map(|message| message.id).collect::<Vec<_>>(), [waiting[1]]);
    // The router has changed its decision.
    let plain = RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), by());
    route_all(&mut fixture, &plain);
    assert_eq!(fixture.finished[&waiting[1]].state, FinalState::Rejected);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[2]]);
    assert_eq!(fixture.on_links(), [waiting[2]]);
}

#[test]
fn released_numbers_go_to_waiting_messages() {
    let mut fixture = fixture(2);
    for digit in 0..2 {
        let call = AcquireRequest { number: Some(number(digit)), ..AcquireRequest::default() };
        operate(&mut fixture, PoolOperation::Call(call));
    }
    let waiting: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    operate(&mut fixture, PoolOperation::Hangup { number: number(0), ticket: None });
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[0]]);
    operate(&mut fixture, PoolOperation::Add { number: number(2), weight: None });
    operate(&mut fixture, PoolOperation::Reg { number: number(2) });
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[1]]);
    // A waiting message is also routed again from time to time.
    fixture.pass(Duration::from_secs(61));
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Reject)), [waiting[2]]);
    assert_eq!(fixture.finished[&waiting[2]].state, FinalState::Rejected);
    assert_eq!(fixture.engine.senders(), (2, 0));
}

#[test]
fn two_free_numbers_release_two_waiting_messages() {
    let mut fixture = fixture(2);
    let busy: Vec<MessageId> =
        (0..2).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    let waiting: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    fixture.answer(busy[0], ACCEPTED);
    fixture.answer(busy[1], ACCEPTED);
    let asked: Vec<MessageId> = fixture.routes.iter().map(|message| message.id).collect();
    assert_eq!(asked, waiting[..2]);
    // The second is answered first; the third, which got no number, is routed again at its own time and has to wait.
    fixture.run([Event::Rerouted { id: waiting[1], routed: to_first(SenderFallback::Hold), text: None }]);
    fixture.pass(Duration::from_secs(61));
    fixture.run([Event::Rerouted { id: waiting[2], routed: to_first(SenderFallback::Hold), text: None }]);
    assert_eq!(fixture.on_links(), [waiting[1]]);
    fixture.run([Event::Rerouted { id: waiting[0], routed: to_first(SenderFallback::Hold), text: None }]);
    assert_eq!(fixture.on_links(), [waiting[1], waiting[0]]);
    fixture.routes.clear();
    fixture.answer(waiting[1], ACCEPTED);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[2]]);
}

fn stop(sender: &str, subscriber: &str, stop: bool) -> Event {
    Event::OptOut {
        sender: AddressBytes::from_slice(sender.as_bytes()),
        subscriber: AddressBytes::from_slice(subscriber.as_bytes()),
        stop,
        reply: None,
    }
}

#[test]
fn an_opt_out_of_one_number_covers_its_pool() {
    let mut fixture = fixture(2);
    let opted_out = Err(Refusal::Rejected(RejectReason::OptedOut));
    // The subscriber and the handset spell the numbers differently from the pool and the submitter.
    fixture.run([stop("01500 1", &format!("+{ANNE}"), true), stop("0049151", "4917100000002", true)]);
    let told = fixture.submit(message_with_sender(SenderFallback::Reject));
    assert_eq!(told, Ok(MessageId::FIRST), "a short number keeps its digits");
    fixture.run([stop("+4915001", &format!("+{ANNE}"), true)]);
    assert_eq!(fixture.submit(message_with_sender(SenderFallback::KeepSender)), opted_out);
    assert_eq!(counts(&mut fixture), (1, 1), "and no number was taken");
    assert!(
        fixture
            .submit(Message {
                destination: Address::international("4917100000002"),
                ..message_with_sender(SenderFallback::Reject)
            })
            .is_ok()
    );
    fixture.run([stop("+4915001", ANNE, false)]);
    fixture.answer(MessageId::FIRST, ACCEPTED);
    assert!(fixture.submit(message_with_sender(SenderFallback::Reject)).is_ok());
}

#[test]
fn an_opt_out_while_the_message_waits() {
    let mut fixture = fixture(1);
    let first = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    fixture.run([stop("+4915000", ANNE, true)]);
    fixture.answer(first, ACCEPTED);
    route_all(&mut fixture, &to_first(SenderFallback::Hold));
    assert_eq!(fixture.finished[&waiting].state, FinalState::Rejected);
    assert_eq!(counts(&mut fixture), (1, 0));
}

#[test]
fn a_scheduled_message_takes_its_number_at_its_time() {
    let mut fixture = fixture(1);
    let scheduled = Some(fixture.now.wall + Duration::from_secs(600));
    let id = fixture.submit(Message { scheduled, ..message_with_sender(SenderFallback::Reject) }).unwrap();
    assert_eq!(counts(&mut fixture), (1, 0));
    fixture.pass(Duration::from_secs(599));
    assert!(fixture.routes.is_empty() && fixture.sent.is_empty());
    fixture.pass(Duration::from_secs(2));
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Reject)), [id]);
    assert_eq!((fixture.on_links(), counts(&mut fixture)), (vec![id], (0, 1)));
}

/// A holding router does not make a message leave before its schedule.
#[test]
fn a_hold_that_ends_early_waits_for_the_schedule() {
    let mut fixture = fixture(0);
    let now = fixture.now.wall;
    let mut held = message(ANNE, Vec::new());
    held.routed.verdict = Verdict::Hold(now + Duration::from_secs(30));
    held.scheduled = Some(now + Duration::from_secs(600));
    let id = fixture.submit(held).unwrap();
    fixture.pass(Duration::from_secs(31));
    route_all(&mut fixture, &RoutingDecision::new(Verdict::Forward(vec![Leg::to(FIRST)]), by()));
    fixture.pass(Duration::from_secs(500));
    assert!(fixture.sent.is_empty());
    fixture.crash();
    fixture.link_up(FIRST, 10);
    assert!(fixture.sent.is_empty());
    fixture.pass(Duration::from_secs(100));
    assert_eq!(fixture.on_links(), [id]);
}

fn charge(amount: u64) -> Option<Box<Quote>> {
    let charge =
        Charge { account: "acme".into(), amount, keep_on_failure: false, settle: false, tenants: Vec::new() };
    Some(Box::new(Quote { charge: Some(charge), by: by(), note: None }))
}

#[test]
fn refused_messages_lease_no_number_and_cost_nothing() {
    let mut fixture = fixture(1);
    for change in [LedgerChange::Limit { credit: 0 }, LedgerChange::Fund { amount: 10 }] {
        let key = format!("{change:?}").into();
        let operation =
            LedgerOperation { key, account: "acme".into(), change, actor: "".into(), reason: "".into() };
        fixture.run([Event::Ledger { operation, reply: REPLY }]);
    }
    fixture.answers.clear();
    let priced = |amount| {
        let mut message = message_with_sender(SenderFallback::Reject);
        message.routed.quote = charge(amount);
        message
    };
    assert_eq!(fixture.submit(priced(11)), Err(Refusal::Rejected(RejectReason::NoCredit)));
    assert_eq!(counts(&mut fixture), (1, 0));
    fixture.submit(priced(4)).unwrap();
    assert_eq!(fixture.submit(priced(4)), TRY_LATER);
    let balance = fixture.engine.balance("acme").unwrap();
    assert_eq!((balance.balance, balance.reserved), (6, 4));
}

#[test]
fn each_message_of_a_submission_gets_a_number_or_is_refused() {
    let mut fixture = fixture(2);
    let messages = (0..3).map(|_| message_with_sender(SenderFallback::Reject)).collect();
    fixture.run([Event::AcceptMany { messages, shared_id: false, key: None, reply: REPLY }]);
    let Some(EngineAnswer::AcceptedMany(results)) = fixture.answers.pop() else { panic!() };
    let [first, second] = [MessageId::FIRST, MessageId(MessageId::FIRST.0 + 1)];
    assert_eq!(results, [Ok(first), Ok(second), TRY_LATER]);
    let held: Vec<(PoolNumber, MessageId)> =
        fixture.pools.held().into_iter().map(|(_, number, id)| (number, id)).collect();
    assert_eq!(held, [(number(0), first), (number(1), second)]);
}

#[test]
fn leases_and_waiting_messages_survive_a_crash() {
    let mut fixture = fixture(1);
    let first = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting: Vec<MessageId> =
        (0..2).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    fixture.crash();
    fixture.link_up(FIRST, 10);
    assert_eq!((fixture.engine.senders(), counts(&mut fixture)), ((1, 2), (0, 1)));
    // It was on a link and is sent again, under the same number.
    assert_eq!(
        (fixture.on_links(), shown(&fixture, first)),
        (vec![first], Address::international("4915000"))
    );
    assert_eq!(fixture.submit(message_with_sender(SenderFallback::Reject)), TRY_LATER);
    fixture.answer(first, ACCEPTED);
    let steps = fixture.steps(first);
    let taken = StepKind::SenderLeased { pool: pool(), number: number(0) };
    assert_eq!(steps.iter().filter(|step| **step == taken).count(), 1, "{steps:?}");
    // A message whose routing was lost is routed again.
    assert_eq!(fixture.routes.len(), 1);
    fixture.crash();
    fixture.link_up(FIRST, 10);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[0]]);
    fixture.answer(waiting[0], ACCEPTED);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[1]]);
    fixture.answer(waiting[1], ACCEPTED);
    assert_eq!((fixture.engine.senders(), counts(&mut fixture)), ((0, 0), (1, 0)));
}

#[test]
fn a_number_leased_by_a_missing_message_is_released_at_start() {
    let mut fixture = fixture(1);
    fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    fixture.lose_messages();
    fixture.crash();
    assert_eq!(counts(&mut fixture), (1, 0));
    assert!(fixture.pools.held().is_empty());
}

#[test]
fn an_expired_lease_frees_the_number() {
    let mut fixture = fixture(1);
    let mut short = message_with_sender(SenderFallback::Hold);
    short.routed.sender.as_mut().unwrap().lease = Some(Duration::from_secs(10));
    let first = fixture.submit(short).unwrap();
    let second = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    fixture.pass(Duration::from_secs(11));
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [second]);
    fixture.answer(first, ACCEPTED);
    assert_eq!(fixture.pools.held(), [(pool(), number(0), second)], "the first's end is not the second's");
    fixture.answer(second, ACCEPTED);
    assert_eq!(counts(&mut fixture), (1, 0));
}

#[test]
fn a_revoked_number_is_not_released_twice() {
    let mut fixture = fixture(1);
    let id = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    ask(&mut fixture, PoolRequest::Remove { with_numbers: true });
    operate(&mut fixture, PoolOperation::Add { number: number(0), weight: None });
    operate(&mut fixture, PoolOperation::Reg { number: number(0) });
    operate(&mut fixture, PoolOperation::Call(AcquireRequest::default()));
    fixture.answer(id, ACCEPTED);
    assert_eq!(counts(&mut fixture), (0, 1), "it is another pool, and another's number");
    operate(&mut fixture, PoolOperation::Hangup { number: number(0), ticket: None });
    fixture.pass(Duration::from_secs(61));
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting]);
    assert_eq!(fixture.on_links(), [waiting]);
}

#[test]
fn a_verdict_other_than_forward_leases_no_number() {
    let mut fixture = fixture(1);
    let mut held = message_with_sender(SenderFallback::Reject);
    held.routed.verdict = Verdict::Hold(fixture.now.wall + Duration::from_secs(5));
    let id = fixture.submit(held).unwrap();
    assert_eq!(fixture.message_on_disk(id).routed.sender, None);
    assert_eq!(counts(&mut fixture), (1, 0));
    fixture.pass(Duration::from_secs(6));
    let hold = Verdict::Hold(fixture.now.wall + Duration::from_secs(5));
    route_all(&mut fixture, &RoutingDecision { verdict: hold, ..to_first(SenderFallback::Reject) });
    assert_eq!((counts(&mut fixture), fixture.engine.senders()), ((1, 0), (0, 0)));
}

#[test]
fn a_message_has_its_number_while_its_subscriber_is_looked_for() {
    let mut fixture = EngineFixture::new(Settings { resolver: true, ..Settings::default() });
    fixture.link_up(FIRST, 10);
    operate(&mut fixture, PoolOperation::Add { number: number(0), weight: None });
    operate(&mut fixture, PoolOperation::Reg { number: number(0) });
    let home = |otherwise| {
        let mut message = message(ANNE, vec![subscriber_leg(FIRST)]);
        message.routed.sender = sender_request(otherwise);
        message
    };
    let id = fixture.submit(home(SenderFallback::Reject)).unwrap();
    assert_eq!(fixture.submit(home(SenderFallback::Reject)), TRY_LATER);
    fixture.answer_all(&found("262011"));
    assert_eq!(shown(&fixture, id), Address::international("4915000"));
    fixture.answer(id, ACCEPTED);
    // A cached answer.
    let id = fixture.submit(home(SenderFallback::Reject)).unwrap();
    fixture.answer(id, ACCEPTED);
    let steps = fixture.steps(id);
    assert!(matches!(steps[0], StepKind::SenderLeased { .. }), "{steps:?}");
    fixture.run([Event::ResolverReplaced]);
    let id = fixture.submit(Message {
        destination: Address::international("4917100000009"),
        ..home(SenderFallback::Reject)
    });
    fixture.answer_all(&model::Subscriber::Unknown { valid: None });
    assert_eq!(fixture.finished[&id.unwrap()].state, FinalState::Failed);
    assert_eq!(counts(&mut fixture), (1, 0));
}

#[test]
fn nearest_and_sticky_strategies_use_the_destination() {
    let mut fixture = fixture(0);
    for text in ["+4917", "+4930", "+1212"] {
        let number = text.parse().unwrap();
        operate(&mut fixture, PoolOperation::Add { number, weight: None });
        operate(&mut fixture, PoolOperation::Reg { number });
    }
    ask(
        &mut fixture,
        PoolRequest::Configure(PoolSettings { strategy: Strategy::Nearest, ..PoolSettings::default() }),
    );
    let id = fixture.submit(message_with_sender(SenderFallback::Reject)).unwrap();
    assert_eq!(shown(&fixture, id), Address::international("4917"));
    fixture.answer(id, ACCEPTED);
    ask(
        &mut fixture,
        PoolRequest::Configure(PoolSettings { strategy: Strategy::Sticky, ..PoolSettings::default() }),
    );
    let destinations = [Address::international(ANNE), Address::new(0, 1, format!("+{ANNE}").as_bytes())];
    let shown = destinations.map(|destination| {
        let id =
            fixture.submit(Message { destination, ..message_with_sender(SenderFallback::Reject) }).unwrap();
        let shown = shown(&fixture, id);
        fixture.answer(id, ACCEPTED);
        shown
    });
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn a_message_that_replaces_another_gets_its_number_in_turn() {
    let mut fixture = fixture(1);
    fixture.run([Event::LinkDown { link: model::LinkId(FIRST.0.into()) }]);
    fixture.link_up(ACCOUNT, 10);
    let dlr_request = model::DlrRequest::FINAL;
    let old = fixture.submit(Message { dlr_request, ..message_with_sender(SenderFallback::Hold) }).unwrap();
    let new = fixture
        .submit(Message { replace_if_present: true, ..message_with_sender(SenderFallback::Hold) })
        .unwrap();
    assert_eq!(fixture.finished[&old].state, FinalState::Cancelled);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [new]);
    assert_eq!(fixture.pools.held(), [(pool(), number(0), new)]);
}

#[test]
fn content_is_loaded_for_the_message_that_gets_the_number() {
    let mut fixture = fixture_with(1, &Settings { body_cache: 0, ..Settings::default() });
    let first = fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap();
    let waiting: Vec<MessageId> =
        (0..2).map(|_| fixture.submit(message_with_sender(SenderFallback::Hold)).unwrap()).collect();
    fixture.loads.clear();
    fixture.answer(first, ACCEPTED);
    // Without a delay.
    assert_eq!(fixture.loads, [1]);
    assert_eq!(route_all(&mut fixture, &to_first(SenderFallback::Hold)), [waiting[0]]);
    assert_eq!(fixture.on_links(), [waiting[0]]);
}
