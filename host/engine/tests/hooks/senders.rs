//! Messages that have a number of a pool for their sender, and messages that wait for one.

use crate::house::{ACCOUNT, FIRST, House, REPLY, by, found, message, subscriber_leg};
use engine::{Answer, Event, Settings};
use model::{
    Address, AddressBytes, Charge, FinalState, LedgerChange, LedgerOperation, Leg, Message, MessageId,
    NoSender, NumberState, Outcome, PoolAnswer, PoolCall, PoolChange, PoolName, PoolNumber, PoolOperation,
    PoolOutcome, PoolRequest, PoolSettings, Quote, Refusal, RejectReason, Routed, SenderWish, StepKind,
    Strategy, Verdict,
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

/// A house whose pool has so many numbers, all up.
fn house(numbers: usize) -> House {
    house_with(numbers, &Settings::default())
}

fn house_with(numbers: usize, settings: &Settings) -> House {
    let mut house = House::new(Settings { country: "49".to_owned(), ..settings.clone() });
    house.link_up(FIRST, 10);
    for digit in 0..numbers {
        operate(&mut house, PoolOperation::Add { number: number(digit), weight: None });
        operate(&mut house, PoolOperation::Reg { number: number(digit) });
    }
    house
}

fn ask(house: &mut House, request: PoolRequest) -> PoolAnswer {
    house.run([Event::Pool { pool: pool(), request, by: "somebody".into(), reply: REPLY }]);
    match house.answers.pop() {
        Some(Answer::Pool(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

fn operate(house: &mut House, operation: PoolOperation) -> PoolOutcome {
    match ask(house, PoolRequest::Do(operation)) {
        PoolAnswer::Outcome(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// Numbers that are to be had, and numbers that are busy.
fn counts(house: &mut House) -> (usize, usize) {
    match ask(house, PoolRequest::Show) {
        PoolAnswer::Pool(pool) => (pool.ready, pool.counts.busy_up + pool.counts.busy_down),
        other => panic!("{other:?}"),
    }
}

fn wish(otherwise: NoSender) -> Option<Box<SenderWish>> {
    Some(Box::new(SenderWish {
        pool: pool(),
        holder: "acme".into(),
        user: "".into(),
        reason: "campaign".into(),
        lease: None,
        otherwise,
        given: None,
    }))
}

fn wishing(otherwise: NoSender) -> Message {
    let mut message = message(ANNE, vec![Leg::to(FIRST)]);
    message.routed.sender = wish(otherwise);
    message
}

fn to_first(otherwise: NoSender) -> Routed {
    Routed { sender: wish(otherwise), ..Routed::new(Verdict::Forward(vec![Leg::to(FIRST)]), by()) }
}

/// The router answers everything that it was asked in the same way, in the order in which it was asked.
fn route_all(house: &mut House, routed: &Routed) -> Vec<MessageId> {
    let asked: Vec<MessageId> = std::mem::take(&mut house.routes).iter().map(|message| message.id).collect();
    for id in &asked {
        house.run([Event::Rerouted { id: *id, routed: routed.clone() }]);
    }
    asked
}

/// The source that a message on a link shows.
fn shown(house: &House, id: MessageId) -> Address {
    let (_, message, leg) = house.sent.iter().find(|(_, message, _)| message.id == id).unwrap();
    message.addresses_on(*leg).0.clone()
}

#[test]
fn a_number_is_taken_with_the_acceptance_and_given_back_at_the_end() {
    let mut house = house(1);
    let id = house.submit(wishing(NoSender::Reject)).unwrap();
    assert_eq!(shown(&house, id), Address::international("4915000"));
    assert_eq!(house.message_on_disk(id).source, Address::new(0, 1, b"10655"), "the submitter's stays");
    let row = house.pools.numbers().remove(&(pool(), number(0))).unwrap();
    assert_eq!((row.state, row.message), (NumberState::BusyUp, Some(id)));
    assert_eq!((&*row.holder, &*row.reason), ("acme", "campaign"));
    // What the submitter asks, he asks under the sender that he knows.
    let source = Some(Address::new(0, 1, b"10655"));
    house.run([Event::Query { origin: ACCOUNT, id, source, reply: REPLY }]);
    assert!(matches!(house.answers.pop(), Some(Answer::State(_))));
    house.answer(id, ACCEPTED);
    assert_eq!(counts(&mut house), (1, 0));
    assert_eq!(house.finished[&id].state, FinalState::Relayed);
    assert_eq!(house.steps(id)[0], StepKind::SenderTaken { pool: pool(), number: number(0) });
    let changes: Vec<(PoolChange, Option<Arc<str>>)> =
        house.pools.journal().skip(2).map(|entry| (entry.change, entry.by.clone())).collect();
    let message = Some(Arc::from("message"));
    assert_eq!(changes, [(PoolChange::Call, message.clone()), (PoolChange::Hangup, message)]);
}

#[test]
fn a_leg_that_names_its_source_goes_first() {
    let mut house = house(1);
    let mut own = wishing(NoSender::Reject);
    let source = Address::new(5, 0, b"ACME");
    let legs = vec![Leg { source: Some(source.clone()), ..Leg::to(FIRST) }];
    own.routed.verdict = Verdict::Forward(legs);
    let id = house.submit(own).unwrap();
    assert_eq!(shown(&house, id), source);
    assert_eq!(counts(&mut house), (0, 1), "it has the number all the same");
}

#[test]
fn every_end_gives_the_number_back() {
    let mut house = house(1);
    let refused = Outcome::Refused { class: model::ErrorClass::Permanent, code: 11, taken: Vec::new() };
    let id = house.submit(wishing(NoSender::Reject)).unwrap();
    house.answer(id, refused);
    assert_eq!((house.finished[&id].state, counts(&mut house)), (FinalState::Failed, (1, 0)));
    house.run([Event::LinkDown { link: model::LinkId(FIRST.0.into()) }]);
    let id = house.submit(wishing(NoSender::Reject)).unwrap();
    house.run([Event::Cancel { origin: ACCOUNT, id, source: None, destination: None, reply: REPLY }]);
    assert_eq!((house.finished[&id].state, counts(&mut house)), (FinalState::Cancelled, (1, 0)));
    let id = house.submit(wishing(NoSender::Reject)).unwrap();
    assert_eq!(counts(&mut house), (0, 1));
    house.pass(crate::house::VALIDITY + Duration::from_secs(70));
    assert_eq!((house.finished[&id].state, counts(&mut house)), (FinalState::Expired, (1, 0)));
}

#[test]
fn no_number_is_to_be_had() {
    let mut house = house(1);
    let first = house.submit(wishing(NoSender::Reject)).unwrap();
    assert_eq!(house.submit(wishing(NoSender::Reject)), TRY_LATER);
    let kept = house.submit(wishing(NoSender::KeepSender)).unwrap();
    assert_eq!(shown(&house, kept), Address::new(0, 1, b"10655"));
    house.answer(kept, ACCEPTED);
    assert_eq!(house.steps(kept)[0], StepKind::NoSender { pool: pool() });
    assert_eq!(counts(&mut house), (0, 1), "the first has it still");
    house.answer(first, ACCEPTED);
    let mut elsewhere = wishing(NoSender::Reject);
    elsewhere.routed.sender.as_mut().unwrap().pool = "nowhere".parse().unwrap();
    assert_eq!(house.submit(elsewhere), TRY_LATER);
}

#[test]
fn who_waits_goes_in_the_order_of_acceptance() {
    let mut house = house(1);
    let first = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting: Vec<MessageId> = (0..3).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    assert_eq!(house.engine.senders(), (1, 3));
    assert_eq!(house.submit(wishing(NoSender::Reject)), TRY_LATER);
    let mut last = first;
    for next in &waiting {
        assert!(house.routes.is_empty());
        house.answer(last, ACCEPTED);
        // Nobody comes in between, though the number is idle until the router has spoken.
        assert_eq!(counts(&mut house), (1, 0));
        assert_eq!(house.submit(wishing(NoSender::Reject)), TRY_LATER);
        let asked = route_all(&mut house, &to_first(NoSender::Hold));
        assert_eq!((asked, house.on_links()), (vec![*next], vec![*next]));
        assert_eq!(shown(&house, *next), Address::international("4915000"));
        last = *next;
    }
    house.answer(last, ACCEPTED);
    assert_eq!((counts(&mut house), house.engine.senders()), ((1, 0), (0, 0)));
    assert!(house.submit(wishing(NoSender::Reject)).is_ok());
    let steps = house.steps(waiting[0]);
    assert_eq!(steps[0], StepKind::NoSender { pool: pool() });
    assert!(steps.contains(&StepKind::SenderTaken { pool: pool(), number: number(0) }), "{steps:?}");
}

#[test]
fn who_waits_and_wants_it_no_more_lets_the_next_go() {
    let mut house = house(1);
    let first = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting: Vec<MessageId> = (0..3).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    house.run([Event::Cancel {
        origin: ACCOUNT,
        id: waiting[0],
        source: None,
        destination: None,
        reply: REPLY,
    }]);
    house.answer(first, ACCEPTED);
    assert_eq!(house.routes.iter().map(|message| message.id).collect::<Vec<_>>(), [waiting[1]]);
    // The router has another idea by now.
    let plain = Routed::new(Verdict::Reject(RejectReason::NoRoute), by());
    route_all(&mut house, &plain);
    assert_eq!(house.finished[&waiting[1]].state, FinalState::Rejected);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[2]]);
    assert_eq!(house.on_links(), [waiting[2]]);
}

#[test]
fn numbers_that_others_give_back_are_for_those_who_wait() {
    let mut house = house(2);
    for digit in 0..2 {
        let call = PoolCall { number: Some(number(digit)), ..PoolCall::default() };
        operate(&mut house, PoolOperation::Call(call));
    }
    let waiting: Vec<MessageId> = (0..3).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    operate(&mut house, PoolOperation::Hangup { number: number(0), ticket: None });
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[0]]);
    operate(&mut house, PoolOperation::Add { number: number(2), weight: None });
    operate(&mut house, PoolOperation::Reg { number: number(2) });
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[1]]);
    // The one who waits asks on his own as well, now and then.
    house.pass(Duration::from_secs(61));
    assert_eq!(route_all(&mut house, &to_first(NoSender::Reject)), [waiting[2]]);
    assert_eq!(house.finished[&waiting[2]].state, FinalState::Rejected);
    assert_eq!(house.engine.senders(), (2, 0));
}

#[test]
fn two_ready_numbers_call_two_up_and_a_late_answer_keeps_its_place() {
    let mut house = house(2);
    let busy: Vec<MessageId> = (0..2).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    let waiting: Vec<MessageId> = (0..3).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    house.answer(busy[0], ACCEPTED);
    house.answer(busy[1], ACCEPTED);
    let asked: Vec<MessageId> = house.routes.iter().map(|message| message.id).collect();
    assert_eq!(asked, waiting[..2]);
    // The second is answered first; the third, which was not called, asks in its own time, and has to wait.
    house.run([Event::Rerouted { id: waiting[1], routed: to_first(NoSender::Hold) }]);
    house.pass(Duration::from_secs(61));
    house.run([Event::Rerouted { id: waiting[2], routed: to_first(NoSender::Hold) }]);
    assert_eq!(house.on_links(), [waiting[1]]);
    house.run([Event::Rerouted { id: waiting[0], routed: to_first(NoSender::Hold) }]);
    assert_eq!(house.on_links(), [waiting[1], waiting[0]]);
    house.routes.clear();
    house.answer(waiting[1], ACCEPTED);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[2]]);
}

fn stop(sender: &str, subscriber: &str, stop: bool) -> Event {
    Event::Consent {
        sender: AddressBytes::from_slice(sender.as_bytes()),
        subscriber: AddressBytes::from_slice(subscriber.as_bytes()),
        stop,
        reply: None,
    }
}

#[test]
fn who_has_told_one_number_to_stop_has_told_the_pool() {
    let mut house = house(2);
    let opted_out = Err(Refusal::Rejected(RejectReason::OptedOut));
    // He writes the number, and his phone tells his own, otherwise than the pool and the submitter do.
    house.run([stop("01500 1", &format!("+{ANNE}"), true), stop("0049151", "4917100000002", true)]);
    let told = house.submit(wishing(NoSender::Reject));
    assert_eq!(told, Ok(MessageId::FIRST), "a short number keeps its digits");
    house.run([stop("+4915001", &format!("+{ANNE}"), true)]);
    assert_eq!(house.submit(wishing(NoSender::KeepSender)), opted_out);
    assert_eq!(counts(&mut house), (1, 1), "and no number was taken");
    assert!(
        house
            .submit(Message {
                destination: Address::international("4917100000002"),
                ..wishing(NoSender::Reject)
            })
            .is_ok()
    );
    house.run([stop("+4915001", ANNE, false)]);
    house.answer(MessageId::FIRST, ACCEPTED);
    assert!(house.submit(wishing(NoSender::Reject)).is_ok());
}

#[test]
fn he_may_say_so_while_the_message_waits() {
    let mut house = house(1);
    let first = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting = house.submit(wishing(NoSender::Hold)).unwrap();
    house.run([stop("+4915000", ANNE, true)]);
    house.answer(first, ACCEPTED);
    route_all(&mut house, &to_first(NoSender::Hold));
    assert_eq!(house.finished[&waiting].state, FinalState::Rejected);
    assert_eq!(counts(&mut house), (1, 0));
}

#[test]
fn a_scheduled_message_takes_its_number_at_its_time() {
    let mut house = house(1);
    let scheduled = Some(house.now.wall + Duration::from_secs(600));
    let id = house.submit(Message { scheduled, ..wishing(NoSender::Reject) }).unwrap();
    assert_eq!(counts(&mut house), (1, 0));
    house.pass(Duration::from_secs(599));
    assert!(house.routes.is_empty() && house.sent.is_empty());
    house.pass(Duration::from_secs(2));
    assert_eq!(route_all(&mut house, &to_first(NoSender::Reject)), [id]);
    assert_eq!((house.on_links(), counts(&mut house)), (vec![id], (0, 1)));
}

/// Whoever holds a message does not make it leave before its time.
#[test]
fn a_hold_that_ends_early_waits_for_the_schedule() {
    let mut house = house(0);
    let now = house.now.wall;
    let mut held = message(ANNE, Vec::new());
    held.routed.verdict = Verdict::Hold(now + Duration::from_secs(30));
    held.scheduled = Some(now + Duration::from_secs(600));
    let id = house.submit(held).unwrap();
    house.pass(Duration::from_secs(31));
    route_all(&mut house, &Routed::new(Verdict::Forward(vec![Leg::to(FIRST)]), by()));
    house.pass(Duration::from_secs(500));
    assert!(house.sent.is_empty());
    house.crash();
    house.link_up(FIRST, 10);
    assert!(house.sent.is_empty());
    house.pass(Duration::from_secs(100));
    assert_eq!(house.on_links(), [id]);
}

fn charge(amount: u64) -> Option<Box<Quote>> {
    let charge = Charge { account: "acme".into(), amount, keep_on_failure: false, settle: false };
    Some(Box::new(Quote { charge: Some(charge), by: by(), note: None }))
}

#[test]
fn what_cannot_be_paid_takes_no_number_and_what_has_none_costs_nothing() {
    let mut house = house(1);
    for change in [LedgerChange::Limit { credit: 0 }, LedgerChange::Fund { amount: 10 }] {
        let key = format!("{change:?}").into();
        let operation =
            LedgerOperation { key, account: "acme".into(), change, actor: "".into(), reason: "".into() };
        house.run([Event::Ledger { operation, reply: REPLY }]);
    }
    house.answers.clear();
    let priced = |amount| {
        let mut message = wishing(NoSender::Reject);
        message.routed.quote = charge(amount);
        message
    };
    assert_eq!(house.submit(priced(11)), Err(Refusal::Rejected(RejectReason::NoCredit)));
    assert_eq!(counts(&mut house), (1, 0));
    house.submit(priced(4)).unwrap();
    assert_eq!(house.submit(priced(4)), TRY_LATER);
    let balance = house.engine.balance("acme").unwrap();
    assert_eq!((balance.balance, balance.reserved), (6, 4));
}

#[test]
fn of_many_each_has_one_or_is_refused() {
    let mut house = house(2);
    let messages = (0..3).map(|_| wishing(NoSender::Reject)).collect();
    house.run([Event::AcceptMany { messages, shared_id: false, key: None, reply: REPLY }]);
    let Some(Answer::AcceptedMany(results)) = house.answers.pop() else { panic!() };
    let [first, second] = [MessageId::FIRST, MessageId(MessageId::FIRST.0 + 1)];
    assert_eq!(results, [Ok(first), Ok(second), TRY_LATER]);
    let held: Vec<(PoolNumber, MessageId)> =
        house.pools.held().into_iter().map(|(_, number, id)| (number, id)).collect();
    assert_eq!(held, [(number(0), first), (number(1), second)]);
}

#[test]
fn numbers_and_lines_survive_a_crash() {
    let mut house = house(1);
    let first = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting: Vec<MessageId> = (0..2).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    house.crash();
    house.link_up(FIRST, 10);
    assert_eq!((house.engine.senders(), counts(&mut house)), ((1, 2), (0, 1)));
    // It was on its way and is sent again, under the same number.
    assert_eq!((house.on_links(), shown(&house, first)), (vec![first], Address::international("4915000")));
    assert_eq!(house.submit(wishing(NoSender::Reject)), TRY_LATER);
    house.answer(first, ACCEPTED);
    let steps = house.steps(first);
    let taken = StepKind::SenderTaken { pool: pool(), number: number(0) };
    assert_eq!(steps.iter().filter(|step| **step == taken).count(), 1, "{steps:?}");
    // Who was called up and not answered asks again.
    assert_eq!(house.routes.len(), 1);
    house.crash();
    house.link_up(FIRST, 10);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[0]]);
    house.answer(waiting[0], ACCEPTED);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[1]]);
    house.answer(waiting[1], ACCEPTED);
    assert_eq!((house.engine.senders(), counts(&mut house)), ((0, 0), (1, 0)));
}

#[test]
fn a_number_of_a_message_that_is_not_there_is_given_back_at_the_start() {
    let mut house = house(1);
    house.submit(wishing(NoSender::Hold)).unwrap();
    house.lose_messages();
    house.crash();
    assert_eq!(counts(&mut house), (1, 0));
    assert!(house.pools.held().is_empty());
}

#[test]
fn a_lease_that_ends_makes_the_number_anothers() {
    let mut house = house(1);
    let mut short = wishing(NoSender::Hold);
    short.routed.sender.as_mut().unwrap().lease = Some(Duration::from_secs(10));
    let first = house.submit(short).unwrap();
    let second = house.submit(wishing(NoSender::Hold)).unwrap();
    house.pass(Duration::from_secs(11));
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [second]);
    house.answer(first, ACCEPTED);
    assert_eq!(house.pools.held(), [(pool(), number(0), second)], "the first's end is not the second's");
    house.answer(second, ACCEPTED);
    assert_eq!(counts(&mut house), (1, 0));
}

#[test]
fn a_number_that_is_taken_away_is_not_given_back() {
    let mut house = house(1);
    let id = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting = house.submit(wishing(NoSender::Hold)).unwrap();
    ask(&mut house, PoolRequest::Remove { with_numbers: true });
    operate(&mut house, PoolOperation::Add { number: number(0), weight: None });
    operate(&mut house, PoolOperation::Reg { number: number(0) });
    operate(&mut house, PoolOperation::Call(PoolCall::default()));
    house.answer(id, ACCEPTED);
    assert_eq!(counts(&mut house), (0, 1), "it is another pool, and another's number");
    operate(&mut house, PoolOperation::Hangup { number: number(0), ticket: None });
    house.pass(Duration::from_secs(61));
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting]);
    assert_eq!(house.on_links(), [waiting]);
}

#[test]
fn a_verdict_that_is_none_to_forward_takes_nothing() {
    let mut house = house(1);
    let mut held = wishing(NoSender::Reject);
    held.routed.verdict = Verdict::Hold(house.now.wall + Duration::from_secs(5));
    let id = house.submit(held).unwrap();
    assert_eq!(house.message_on_disk(id).routed.sender, None);
    assert_eq!(counts(&mut house), (1, 0));
    house.pass(Duration::from_secs(6));
    let hold = Verdict::Hold(house.now.wall + Duration::from_secs(5));
    route_all(&mut house, &Routed { verdict: hold, ..to_first(NoSender::Reject) });
    assert_eq!((counts(&mut house), house.engine.senders()), ((1, 0), (0, 0)));
}

#[test]
fn a_message_has_its_number_while_its_subscriber_is_looked_for() {
    let mut house = House::new(Settings { resolver: true, ..Settings::default() });
    house.link_up(FIRST, 10);
    operate(&mut house, PoolOperation::Add { number: number(0), weight: None });
    operate(&mut house, PoolOperation::Reg { number: number(0) });
    let home = |otherwise| {
        let mut message = message(ANNE, vec![subscriber_leg(FIRST)]);
        message.routed.sender = wish(otherwise);
        message
    };
    let id = house.submit(home(NoSender::Reject)).unwrap();
    assert_eq!(house.submit(home(NoSender::Reject)), TRY_LATER);
    house.answer_all(&found("262011"));
    assert_eq!(shown(&house, id), Address::international("4915000"));
    house.answer(id, ACCEPTED);
    // An answer that is remembered.
    let id = house.submit(home(NoSender::Reject)).unwrap();
    house.answer(id, ACCEPTED);
    let steps = house.steps(id);
    assert!(matches!(steps[0], StepKind::SenderTaken { .. }), "{steps:?}");
    house.run([Event::ResolverExchanged]);
    let id = house
        .submit(Message { destination: Address::international("4917100000009"), ..home(NoSender::Reject) });
    house.answer_all(&model::Subscriber::Unknown { valid: None });
    assert_eq!(house.finished[&id.unwrap()].state, FinalState::Failed);
    assert_eq!(counts(&mut house), (1, 0));
}

#[test]
fn the_nearest_and_the_same_number_are_found_by_the_destination() {
    let mut house = house(0);
    for text in ["+4917", "+4930", "+1212"] {
        let number = text.parse().unwrap();
        operate(&mut house, PoolOperation::Add { number, weight: None });
        operate(&mut house, PoolOperation::Reg { number });
    }
    ask(
        &mut house,
        PoolRequest::Configure(PoolSettings { strategy: Strategy::Nearest, ..PoolSettings::default() }),
    );
    let id = house.submit(wishing(NoSender::Reject)).unwrap();
    assert_eq!(shown(&house, id), Address::international("4917"));
    house.answer(id, ACCEPTED);
    ask(
        &mut house,
        PoolRequest::Configure(PoolSettings { strategy: Strategy::Sticky, ..PoolSettings::default() }),
    );
    let destinations = [Address::international(ANNE), Address::new(0, 1, format!("+{ANNE}").as_bytes())];
    let shown = destinations.map(|destination| {
        let id = house.submit(Message { destination, ..wishing(NoSender::Reject) }).unwrap();
        let shown = shown(&house, id);
        house.answer(id, ACCEPTED);
        shown
    });
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn a_message_that_replaces_another_gets_its_number_in_turn() {
    let mut house = house(1);
    house.run([Event::LinkDown { link: model::LinkId(FIRST.0.into()) }]);
    house.link_up(ACCOUNT, 10);
    let receipts = model::ReceiptRequest::FINAL;
    let old = house.submit(Message { receipts, ..wishing(NoSender::Hold) }).unwrap();
    let new = house.submit(Message { replace_if_present: true, ..wishing(NoSender::Hold) }).unwrap();
    assert_eq!(house.finished[&old].state, FinalState::Cancelled);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [new]);
    assert_eq!(house.pools.held(), [(pool(), number(0), new)]);
}

#[test]
fn content_is_read_back_for_the_one_whose_turn_it_is() {
    let mut house = house_with(1, &Settings { body_cache: 0, ..Settings::default() });
    let first = house.submit(wishing(NoSender::Hold)).unwrap();
    let waiting: Vec<MessageId> = (0..2).map(|_| house.submit(wishing(NoSender::Hold)).unwrap()).collect();
    house.loads.clear();
    house.answer(first, ACCEPTED);
    // No time goes by.
    assert_eq!(house.loads, [1]);
    assert_eq!(route_all(&mut house, &to_first(NoSender::Hold)), [waiting[0]]);
    assert_eq!(house.on_links(), [waiting[0]]);
}
