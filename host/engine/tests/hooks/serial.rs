//! One message at a time for a subscriber.

use crate::house::{ACCOUNT, FIRST, House, REPLY, SECOND, SERIAL, VALIDITY, found, message, subscriber_leg};
use engine::{Before, Brake, Doing, Event, Output, PeerSettings, Settings, Uncertainty};
use model::{
    Address, ErrorClass, FinalState, Kind, Leg, LinkId, Message, MessageId, Outcome, Priority,
    ReceiptRequest, Refusal, StepKind, Text, Timestamp,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";

pub(crate) fn house() -> House {
    let mut house = House::new(Settings::default());
    house.link_up(SERIAL, 10);
    house
}

pub(crate) fn refused(class: ErrorClass) -> Outcome {
    Outcome::Refused { class, code: 8, taken: Vec::new() }
}

pub(crate) fn to(number: &str) -> Message {
    message(number, vec![Leg::to(SERIAL)])
}

fn urgent(number: &str, priority: u8) -> Message {
    Message { priority: Priority::new(priority), ..to(number) }
}

fn event(message: Message) -> Event {
    Event::Accept { message: Box::new(message), reply: REPLY }
}

fn doing(house: &House, id: MessageId) -> Doing {
    house.engine.message(id).unwrap().doing
}

#[test]
fn one_at_a_time_for_a_subscriber_and_many_subscribers_at_once() {
    let mut house = house();
    house.run([event(to(ANNE)), event(to(ANNE)), event(to(BOB)), event(to(ANNE)), event(to(BOB))]);
    let id = |n: u64| MessageId(MessageId::FIRST.0 + n);
    assert_eq!(house.on_links(), [id(0), id(2)]);
    // What follows is known, since it came in the same run.
    assert_eq!(house.left.iter().map(|(_, more, _)| *more).collect::<Vec<_>>(), [true, true]);
    let status = house.status(SERIAL);
    assert_eq!((status.queued, status.aside, status.parked, status.in_flight), (3, 3, 0, 2));
    assert_eq!((status.brake, status.oldest.is_some()), (Brake::Subscribers, true));
    let behind = house.engine.message(id(3)).unwrap();
    let before = Some(Before { id: id(0), parked_until: None });
    assert_eq!(
        (behind.doing, behind.before, behind.until, behind.queue_length),
        (Doing::Aside, before, None, 3)
    );
    house.answer(id(0), ACCEPTED);
    assert_eq!(house.on_links(), [id(2), id(1)]);
    assert_eq!(house.left.last().map(|(id, more, _)| (*id, *more)), Some((id(1), true)));
    house.answer(id(2), refused(ErrorClass::Permanent));
    house.answer(id(1), ACCEPTED);
    assert_eq!(house.on_links(), [id(4), id(3)], "what fails for good lets the next one go");
    assert!(house.left[3..].iter().all(|(_, more, _)| !more), "nothing follows");
    house.outcome_of_all(&ACCEPTED);
    assert_eq!((house.engine.live(), house.status(SERIAL).brake), (0, Brake::Idle));
    assert_eq!(house.finished[&id(0)].state, FinalState::Delivered, "the handset has it");
    assert_eq!(house.finished[&id(2)].state, FinalState::Failed);
}

#[test]
fn a_message_that_its_handset_refuses_lets_the_others_pass_and_has_three_attempts() {
    for crash in [false, true] {
        let mut house = house();
        let ids: Vec<MessageId> = (0..4).map(|_| house.submit(to(ANNE)).unwrap()).collect();
        house.answer(ids[0], refused(ErrorClass::ThisMessage));
        assert_eq!((doing(&house, ids[0]), house.on_links()), (Doing::Deferred, vec![ids[1]]));
        assert_eq!(house.status(SERIAL).parked, 0);
        if crash {
            house.crash();
            house.link_up(SERIAL, 10);
        }
        // What was under way when the crash came is in doubt, and tried again by itself.
        let mut taken = Vec::new();
        while let Some(id) = house.on_links().first().copied() {
            house.answer(id, ACCEPTED);
            taken.push(id);
        }
        assert_eq!(taken, ids[1..]);
        for attempt in 2..=3 {
            assert_eq!(doing(&house, ids[0]), Doing::Deferred);
            house.pass(Duration::from_secs(60));
            assert_eq!(house.on_links(), [ids[0]], "attempt {attempt}");
            house.answer(ids[0], refused(ErrorClass::ThisMessage));
        }
        assert_eq!((house.engine.live(), house.finished[&ids[0]].state), (0, FinalState::Failed));
        assert_eq!(house.finished[&ids[0]].error, 8);
    }
}

#[test]
fn links_and_windows_of_any_number_change_nothing() {
    let mut house = House::new(Settings::default());
    for link in 1..=4 {
        house.run([Event::LinkUp { link: LinkId(link * 100 + 3), peer: SERIAL, window: 5 }]);
    }
    house.run((0..40).map(|n| event(to(if n % 2 == 0 { ANNE } else { BOB }))));
    assert_eq!((house.sent.len(), house.status(SERIAL).aside), (2, 38));
}

#[test]
fn the_subscriber_is_known_by_imsi_whatever_the_number() {
    let mut house = House::new(Settings { resolver: true, ..Settings::default() });
    house.link_up(SERIAL, 10);
    let legs = || vec![subscriber_leg(SERIAL)];
    house.run([event(message(ANNE, legs())), event(message(BOB, legs())), event(message("1", legs()))]);
    house.run([
        crate::house::resolved(ANNE.as_bytes(), found("262011")),
        crate::house::resolved(BOB.as_bytes(), found("262011")),
        crate::house::resolved(b"1", found("262012")),
    ]);
    assert_eq!((house.sent.len(), house.status(SERIAL).aside), (2, 1), "two numbers of one subscriber");
    // And no other peer's messages to it are any of this peer's business.
    let other = house.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap();
    house.link_up(FIRST, 1);
    assert!(house.on_links().contains(&other));
    assert_eq!(house.deliver_all().len(), 4);
}

#[test]
fn the_more_urgent_goes_first_and_otherwise_the_older() {
    let mut house = house();
    let ids: Vec<MessageId> = [0, 0, 2, 1, 2, 0, 3]
        .into_iter()
        .map(|priority| house.submit(urgent(ANNE, priority)).unwrap())
        .collect();
    assert_eq!(house.on_links(), ids[..1]);
    let order: Vec<MessageId> =
        house.deliver_all().iter().map(|id| MessageId(id.0 - MessageId::FIRST.0)).collect();
    assert_eq!(order, [0, 6, 2, 4, 3, 1, 5].map(MessageId));
}

#[test]
fn what_was_not_sent_or_was_throttled_goes_back_to_its_place() {
    for outcome in [Outcome::NotSent, refused(ErrorClass::Throttled), refused(ErrorClass::QueueFull)] {
        let mut house = house();
        let ids: Vec<MessageId> = (0..4).map(|_| house.submit(to(ANNE)).unwrap()).collect();
        house.answer(ids[0], outcome);
        house.pass(Duration::from_secs(3));
        assert_eq!(house.on_links(), [ids[0]]);
        assert_eq!(house.deliver_all(), ids);
        assert_eq!(house.status(SERIAL).parked, 0);
    }
}

#[test]
fn a_link_that_drops_brings_the_doubtful_one_back_first() {
    let mut house = house();
    let ids: Vec<MessageId> = (0..4).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    let bob = house.submit(to(BOB)).unwrap();
    let ticket = house.left[0].2;
    house.run([Event::LinkDown { link: LinkId(SERIAL.0.into()) }]);
    assert_eq!((house.status(SERIAL).queued, house.status(SERIAL).aside), (5, 3));
    house.sent.clear();
    house.link_up(SERIAL, 10);
    assert_eq!(house.on_links(), [ids[0], bob]);
    assert_eq!(house.left[2].2, ticket, "what repeats a hand-over has its name");
    assert_eq!(house.deliver_all(), [ids[0], bob, ids[1], ids[2], ids[3]]);
}

#[test]
fn a_crash_brings_the_doubtful_one_back_first() {
    let mut house = house();
    let ids: Vec<MessageId> = (0..4).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    house.answer(ids[0], ACCEPTED);
    let ticket = house.left[1].2;
    house.crash();
    house.link_up(SERIAL, 10);
    assert_eq!((house.on_links(), house.left[0].2), (vec![ids[1]], ticket));
    assert_eq!(house.deliver_all(), ids[1..]);
}

#[test]
fn a_message_leaves_from_behind_by_any_way() {
    let mut house = house();
    let legs = |wait| {
        let leg = Leg { longest_wait: wait, ..Leg::to(SERIAL) };
        vec![leg, Leg::to(SECOND)]
    };
    let wait = Some(Duration::from_secs(30));
    let first = house.submit(to(ANNE)).unwrap();
    let cancelled = house.submit(to(ANNE)).unwrap();
    let moved = house.submit(message(ANNE, legs(wait))).unwrap();
    let short = Message { expires_at: Timestamp(house.now.wall.0 + 20_000), ..to(ANNE) };
    let expired = house.submit(short).unwrap();
    let replaced = house.submit(to(ANNE)).unwrap();
    let rescheduled = house.submit(to(ANNE)).unwrap();
    let last = house.submit(to(ANNE)).unwrap();
    assert_eq!(house.engine.message(moved).unwrap().until, Some(house.now.mono + Duration::from_secs(30)));
    let replace = |id, scheduled, text: &'static str| Event::Replace {
        origin: ACCOUNT,
        id,
        source: Address::new(0, 1, b"10655"),
        text: Text { octets: text.into(), ..Text::default() },
        scheduled,
        expires_at: None,
        receipts: ReceiptRequest::NONE,
        reply: REPLY,
    };
    let later = Timestamp(house.now.wall.0 + 60_000);
    house.run([
        Event::Cancel { origin: ACCOUNT, id: cancelled, source: None, destination: None, reply: REPLY },
        replace(replaced, None, "new text"),
        replace(rescheduled, Some(later), "later"),
    ]);
    assert_eq!(house.finished[&cancelled].state, FinalState::Cancelled);
    assert_eq!(&house.message_on_disk(replaced).text.octets[..], b"new text");
    assert_eq!((doing(&house, replaced), doing(&house, rescheduled)), (Doing::Aside, Doing::Deferred));
    house.pass(Duration::from_secs(31));
    assert_eq!(house.finished[&expired].state, FinalState::Expired);
    assert_eq!(house.engine.message(moved).unwrap().peer, SECOND);
    assert_eq!(house.status(SERIAL).aside, 2);
    house.pass(Duration::from_secs(30));
    assert_eq!(doing(&house, rescheduled), Doing::Aside, "its time has come, and its turn has not");
    house.answer(first, ACCEPTED);
    assert_eq!(house.on_links(), [replaced]);
    house.answer(replaced, ACCEPTED);
    assert_eq!(house.on_links(), [rescheduled]);
    house.answer(rescheduled, ACCEPTED);
    assert_eq!(house.on_links(), [last]);
    house.answer(last, ACCEPTED);
    house.link_up(SECOND, 1);
    assert_eq!(house.deliver_all(), [moved]);
    assert_eq!((house.status(SERIAL).aside, house.status(SERIAL).queued), (0, 0));
}

#[test]
fn the_one_that_was_called_may_leave_and_another_is_called() {
    // The first has been answered, the second is back in the queue, and no link is up.
    let mut house = house();
    let ids: Vec<MessageId> = (0..4).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    house.run([
        Event::LinkPaused { link: LinkId(SERIAL.0.into()) },
        Event::Outcome { link: LinkId(SERIAL.0.into()), id: ids[0], outcome: ACCEPTED },
    ]);
    house.sent.clear();
    house.run([Event::LinkDown { link: LinkId(SERIAL.0.into()) }]);
    assert_eq!((doing(&house, ids[1]), doing(&house, ids[2])), (Doing::Queued, Doing::Aside));
    house.run([Event::Cancel { origin: ACCOUNT, id: ids[1], source: None, destination: None, reply: REPLY }]);
    assert_eq!((doing(&house, ids[2]), doing(&house, ids[3])), (Doing::Queued, Doing::Aside));
    let urgent = house.submit(urgent(ANNE, 3)).unwrap();
    house.link_up(SERIAL, 10);
    assert_eq!(house.on_links(), [urgent]);
    assert_eq!(house.deliver_all(), [urgent, ids[2], ids[3]]);
}

#[test]
fn the_longest_wait_for_a_leg_holds_for_one_that_was_called() {
    let mut house = house();
    let first = house.submit(to(ANNE)).unwrap();
    let leg = Leg { longest_wait: Some(Duration::from_secs(30)), ..Leg::to(SERIAL) };
    let second = house.submit(message(ANNE, vec![leg, Leg::to(SECOND)])).unwrap();
    house.run([Event::LinkPaused { link: LinkId(SERIAL.0.into()) }]);
    house.answer(first, ACCEPTED);
    assert_eq!(doing(&house, second), Doing::Queued);
    house.pass(Duration::from_secs(30));
    assert_eq!(house.engine.message(second).unwrap().peer, SECOND);
}

#[test]
fn those_behind_count_for_the_queues_limit() {
    let mut house = house();
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.queue_limit, settings.receipts) = (true, 3, false);
    house.run([Event::Peer(settings)]);
    for _ in 0..4 {
        house.submit(to(ANNE)).unwrap();
    }
    assert_eq!(house.submit(to(ANNE)), Err(Refusal::QueueFull));
}

#[test]
fn content_is_read_back_for_the_one_that_is_called() {
    let mut house = House::new(Settings { body_cache: 0, ..Settings::default() });
    house.link_up(SERIAL, 10);
    let ids: Vec<MessageId> = (0..5).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    assert_eq!(house.loads.len(), 0);
    house.held = Some(Vec::new());
    house.answer(ids[0], ACCEPTED);
    assert_eq!((house.on_links(), house.loads.len()), (vec![], 1));
    // Nobody waits for the disk but who must.
    let bob = house.submit(to(BOB)).unwrap();
    assert_eq!(house.on_links(), [bob]);
    // Nor is it overtaken by one whose content is there.
    let late = house.submit(to(ANNE)).unwrap();
    assert_eq!((house.on_links(), doing(&house, late)), (vec![bob], Doing::Aside));
    let loaded = house.held.take().unwrap();
    house.run(loaded);
    assert_eq!(house.on_links(), [bob, ids[1]]);
    let expected = [vec![bob], ids[1..].to_vec(), vec![late]].concat();
    assert_eq!(house.deliver_all(), expected);
}

#[test]
fn a_hundred_thousand_for_one_subscriber_are_each_set_aside_once() {
    const MANY: u64 = 100_000;
    for link_first in [true, false] {
        let mut house = House::new(Settings::default());
        if link_first {
            house.link_up(SERIAL, 50);
        }
        for _ in 0..MANY / 1000 {
            house.run((0..1000).map(|_| event(to(ANNE))));
        }
        house.run((0..20).map(|n| event(to(&format!("49172{n}")))));
        if !link_first {
            // The others stand behind them in the queue: they are reached in so many runs, and other peers' come between.
            let mut out = Output::default();
            let up = Event::LinkUp { link: LinkId(SERIAL.0.into()), peer: SERIAL, window: 50 };
            house.engine.apply(house.now, up, &mut out);
            house.engine.settle(house.now, &mut out);
            assert!(
                (1000..5000).contains(&house.engine.totals().set_aside),
                "one look is not to take for ever"
            );
            assert_eq!(house.engine.deadline(), Some(house.now.mono), "and the next is not to wait");
            house.carry_on(out);
        }
        assert_eq!(house.sent.len(), 21, "the others wait for nobody");
        assert_eq!(house.engine.totals().set_aside, MANY - 1);
        house.outcome_of_all(&ACCEPTED);
        for _ in 0..1000 {
            house.outcome_of_all(&ACCEPTED);
        }
        assert_eq!(house.engine.totals().set_aside, MANY - 1, "none is walked over again");
        assert_eq!(house.status(SERIAL).aside, MANY - 1002);
    }
}

#[test]
fn the_last_of_many_and_one_between_leave_at_once() {
    let mut house = house();
    for _ in 0..10 {
        house.run((0..1000).map(|_| event(to(ANNE))));
    }
    let id = |n: u64| MessageId(MessageId::FIRST.0 + n);
    for n in [9_999, 5_000, 1] {
        house.run([Event::Cancel {
            origin: ACCOUNT,
            id: id(n),
            source: None,
            destination: None,
            reply: REPLY,
        }]);
        assert_eq!(house.finished[&id(n)].state, FinalState::Cancelled);
    }
    assert_eq!(house.status(SERIAL).aside, 9_996);
    house.answer(id(0), ACCEPTED);
    assert_eq!(house.on_links(), [id(2)]);
}

#[test]
fn a_peer_may_become_serial_and_cease_to_be() {
    let mut house = House::new(Settings::default());
    house.link_up(FIRST, 10);
    let ids: Vec<MessageId> =
        (0..3).map(|_| house.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap()).collect();
    assert_eq!(house.sent.len(), 3);
    let settings = |serial| {
        let mut settings = PeerSettings::new(FIRST);
        settings.uncertainty = Uncertainty::SendAgain;
        settings.receipts = false;
        settings.serial = serial;
        Event::Peer(settings)
    };
    house.run([settings(true)]);
    let next: Vec<MessageId> =
        (0..3).map(|_| house.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap()).collect();
    assert_eq!((house.sent.len(), house.status(FIRST).aside), (3, 3), "those on their way count");
    house.answer(ids[0], ACCEPTED);
    assert_eq!(house.on_links(), [ids[1], ids[2], next[0]]);
    house.run([settings(false)]);
    assert_eq!(house.on_links(), [ids[1], ids[2], next[0], next[1], next[2]]);
    assert_eq!((house.status(FIRST).aside, house.status(FIRST).parked), (0, 0));
    assert_eq!(house.deliver_all().len(), 5);
}

#[test]
fn a_receipt_for_a_subscriber_is_resolved_and_waits_for_the_handset() {
    let mut house = House::new(Settings { resolver: true, ..Settings::default() });
    house.link_up(SERIAL, 10);
    house.link_up(FIRST, 10);
    let mut mo = message(BOB, vec![Leg::to(FIRST)]);
    mo.origin = SERIAL;
    mo.source = Address::international(ANNE);
    mo.receipts = ReceiptRequest::FINAL;
    mo.tlvs = [&[0x15, 0x01, 0, 1, 42][..], &[0x02, 0x04, 0, 1, 7]].concat().into();
    let id = house.submit(mo).unwrap();
    house.answer(id, ACCEPTED);
    assert_eq!(house.questions.len(), 1);
    house.answer_all(&found("262011"));
    let (peer, receipt, leg) = house.sent[0].clone();
    assert!(matches!(&receipt.kind, Kind::Receipt(text) if text.of == id));
    assert_eq!((peer, &receipt.tlvs[..]), (SERIAL, &[0x15, 0x01, 0, 1, 42][..]));
    let model::Verdict::Forward(legs) = &receipt.routed.verdict else { panic!() };
    assert_eq!(legs[usize::from(leg)].imsi, Some(crate::house::imsi("262011")));
    house.answer(receipt.id, refused(ErrorClass::Absent));
    assert_eq!((house.status(SERIAL).parked, house.sent.len()), (1, 0));
    // It survives a restart like any message, and goes when the subscriber is heard of.
    house.crash();
    house.link_up(SERIAL, 10);
    house.run([Event::Reachable { imsi: crate::house::imsi("262011") }]);
    assert_eq!(house.on_links(), [receipt.id]);
    house.answer(receipt.id, ACCEPTED);
    assert_eq!(house.engine.live(), 0);
}

#[test]
fn a_receipt_for_nobody_is_dropped_and_without_a_resolver_it_goes_by_number() {
    for resolver in [true, false] {
        let mut house = House::new(Settings { resolver, ..Settings::default() });
        house.link_up(SERIAL, 10);
        house.link_up(FIRST, 10);
        let mut mo = message(BOB, vec![Leg::to(FIRST)]);
        (mo.origin, mo.receipts) = (SERIAL, ReceiptRequest::FINAL);
        mo.source = Address::international(ANNE);
        let id = house.submit(mo).unwrap();
        house.answer(id, ACCEPTED);
        if resolver {
            house.answer_all(&model::Subscriber::Unknown { valid: None });
        } else {
            assert_eq!(house.outcome_of_all(&ACCEPTED).len(), 1);
        }
        assert_eq!((house.engine.live(), house.sent.len(), house.questions.len()), (0, 0, 0));
    }
}

#[test]
fn a_receipt_that_is_never_taken_ends_with_its_own_validity() {
    let own_receipt_validity = Duration::from_secs(3600);
    let mut house = House::new(Settings { own_receipt_validity, ..Settings::default() });
    house.link_up(SERIAL, 10);
    house.link_up(FIRST, 10);
    let mut mo = message(BOB, vec![Leg::to(FIRST)]);
    (mo.origin, mo.receipts) = (SERIAL, ReceiptRequest::FINAL);
    mo.source = Address::international(ANNE);
    let id = house.submit(mo).unwrap();
    house.answer(id, ACCEPTED);
    let end = house.now.mono + own_receipt_validity + Duration::from_secs(61);
    while house.now.mono < end {
        house.outcome_of_all(&refused(ErrorClass::Absent));
        house.pass(Duration::from_secs(5));
    }
    assert_eq!((house.engine.live(), house.status(SERIAL).parked), (0, 0));
    assert!(own_receipt_validity < VALIDITY);
}

#[test]
fn the_trace_of_one_that_waited_behind_others_is_that_of_any_message() {
    let mut house = house();
    let first = house.submit(to(ANNE)).unwrap();
    let second = house.submit(to(ANNE)).unwrap();
    assert!(house.progress_on_disk(second).is_none(), "waiting behind another costs no write");
    house.answer(first, ACCEPTED);
    house.answer(second, ACCEPTED);
    let steps = house.steps(second);
    assert!(matches!(steps[..], [StepKind::Submitted { .. }, StepKind::Responded { .. }]), "{steps:?}");
}
