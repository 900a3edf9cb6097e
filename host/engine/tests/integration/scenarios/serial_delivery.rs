//! Serial delivery: one message at a time per subscriber.

use crate::scenarios::fixture::{
    ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, SERIAL, VALIDITY, found, message, subscriber_leg,
};
use engine::{BlockedBy, Event, LockHolder, MessageState, Output, PeerSettings, Settings, UncertainPolicy};
use model::{
    Address, DlrRequest, ErrorClass, FinalState, Leg, LinkId, Message, MessageId, MessageKind, Outcome,
    Priority, Refusal, StepKind, Text, Timestamp,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";

pub(crate) fn fixture() -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(SERIAL, 10);
    fixture
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

fn state_of(fixture: &EngineFixture, id: MessageId) -> MessageState {
    fixture.engine.message(id).unwrap().state
}

#[test]
fn one_at_a_time_for_a_subscriber_and_many_subscribers_at_once() {
    let mut fixture = fixture();
    fixture.run([event(to(ANNE)), event(to(ANNE)), event(to(BOB)), event(to(ANNE)), event(to(BOB))]);
    let id = |n: u64| MessageId(MessageId::FIRST.0 + n);
    assert_eq!(fixture.on_links(), [id(0), id(2)]);
    // The next message is known, because it came in the same run.
    assert_eq!(fixture.left.iter().map(|(_, more, _)| *more).collect::<Vec<_>>(), [true, true]);
    let status = fixture.status(SERIAL);
    assert_eq!(
        (status.queued, status.subscriber_locked, status.blocked_subscribers, status.in_flight),
        (3, 3, 0, 2)
    );
    assert_eq!((status.blocked_by, status.oldest.is_some()), (BlockedBy::SubscriberLocked, true));
    let behind = fixture.engine.message(id(3)).unwrap();
    let before = Some(LockHolder { id: id(0), retry_at: None });
    assert_eq!(
        (behind.state, behind.lock_holder, behind.until, behind.queue_length),
        (MessageState::SubscriberLocked, before, None, 3)
    );
    fixture.answer(id(0), ACCEPTED);
    assert_eq!(fixture.on_links(), [id(2), id(1)]);
    assert_eq!(fixture.left.last().map(|(id, more, _)| (*id, *more)), Some((id(1), true)));
    fixture.answer(id(2), refused(ErrorClass::Permanent));
    fixture.answer(id(1), ACCEPTED);
    assert_eq!(fixture.on_links(), [id(4), id(3)], "a permanent failure releases the next one");
    assert!(fixture.left[3..].iter().all(|(_, more, _)| !more), "nothing follows");
    fixture.outcome_of_all(&ACCEPTED);
    assert_eq!((fixture.engine.live(), fixture.status(SERIAL).blocked_by), (0, BlockedBy::Idle));
    assert_eq!(fixture.finished[&id(0)].state, FinalState::Delivered, "the handset has it");
    assert_eq!(fixture.finished[&id(2)].state, FinalState::Failed);
}

#[test]
fn a_message_refused_by_the_handset_moves_behind_others_and_has_three_attempts() {
    for crash in [false, true] {
        let mut fixture = fixture();
        let ids: Vec<MessageId> = (0..4).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
        fixture.answer(ids[0], refused(ErrorClass::ThisMessage));
        assert_eq!((state_of(&fixture, ids[0]), fixture.on_links()), (MessageState::Deferred, vec![ids[1]]));
        assert_eq!(fixture.status(SERIAL).blocked_subscribers, 0);
        if crash {
            fixture.crash();
            fixture.link_up(SERIAL, 10);
        }
        // The message on a link at the crash is uncertain, and is sent again.
        let mut taken = Vec::new();
        while let Some(id) = fixture.on_links().first().copied() {
            fixture.answer(id, ACCEPTED);
            taken.push(id);
        }
        assert_eq!(taken, ids[1..]);
        for attempt in 2..=3 {
            assert_eq!(state_of(&fixture, ids[0]), MessageState::Deferred);
            fixture.pass(Duration::from_secs(60));
            assert_eq!(fixture.on_links(), [ids[0]], "attempt {attempt}");
            fixture.answer(ids[0], refused(ErrorClass::ThisMessage));
        }
        assert_eq!((fixture.engine.live(), fixture.finished[&ids[0]].state), (0, FinalState::Failed));
        assert_eq!(fixture.finished[&ids[0]].error, 8);
    }
}

#[test]
fn links_and_windows_of_any_number_change_nothing() {
    let mut fixture = EngineFixture::new(Settings::default());
    for link in 1..=4 {
        fixture.run([Event::LinkUp { link: LinkId(link * 100 + 3), peer: SERIAL, window: 5 }]);
    }
    fixture.run((0..40).map(|n| event(to(if n % 2 == 0 { ANNE } else { BOB }))));
    assert_eq!((fixture.sent.len(), fixture.status(SERIAL).subscriber_locked), (2, 38));
}

#[test]
fn the_subscriber_is_known_by_imsi_whatever_the_number() {
    let mut fixture = EngineFixture::new(Settings { resolver: true, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    let legs = || vec![subscriber_leg(SERIAL)];
    fixture.run([event(message(ANNE, legs())), event(message(BOB, legs())), event(message("1", legs()))]);
    fixture.run([
        crate::scenarios::fixture::resolved(ANNE.as_bytes(), found("262011")),
        crate::scenarios::fixture::resolved(BOB.as_bytes(), found("262011")),
        crate::scenarios::fixture::resolved(b"1", found("262012")),
    ]);
    assert_eq!(
        (fixture.sent.len(), fixture.status(SERIAL).subscriber_locked),
        (2, 1),
        "two numbers of one subscriber"
    );
    // Messages of other peers to the subscriber do not count.
    let other = fixture.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap();
    fixture.link_up(FIRST, 1);
    assert!(fixture.on_links().contains(&other));
    assert_eq!(fixture.deliver_all().len(), 4);
}

#[test]
fn the_more_urgent_goes_first_and_otherwise_the_older() {
    let mut fixture = fixture();
    let ids: Vec<MessageId> = [0, 0, 2, 1, 2, 0, 3]
        .into_iter()
        .map(|priority| fixture.submit(urgent(ANNE, priority)).unwrap())
        .collect();
    assert_eq!(fixture.on_links(), ids[..1]);
    let order: Vec<MessageId> =
        fixture.deliver_all().iter().map(|id| MessageId(id.0 - MessageId::FIRST.0)).collect();
    assert_eq!(order, [0, 6, 2, 4, 3, 1, 5].map(MessageId));
}

#[test]
fn unsent_and_throttled_messages_return_to_their_place() {
    for outcome in [Outcome::NotSent, refused(ErrorClass::Throttled), refused(ErrorClass::QueueFull)] {
        let mut fixture = fixture();
        let ids: Vec<MessageId> = (0..4).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
        fixture.answer(ids[0], outcome);
        fixture.pass(Duration::from_secs(3));
        assert_eq!(fixture.on_links(), [ids[0]]);
        assert_eq!(fixture.deliver_all(), ids);
        assert_eq!(fixture.status(SERIAL).blocked_subscribers, 0);
    }
}

#[test]
fn after_a_dropped_link_the_uncertain_message_goes_first() {
    let mut fixture = fixture();
    let ids: Vec<MessageId> = (0..4).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    let bob = fixture.submit(to(BOB)).unwrap();
    let ticket = fixture.left[0].2;
    fixture.run([Event::LinkDown { link: LinkId(SERIAL.0.into()) }]);
    assert_eq!((fixture.status(SERIAL).queued, fixture.status(SERIAL).subscriber_locked), (5, 3));
    fixture.sent.clear();
    fixture.link_up(SERIAL, 10);
    assert_eq!(fixture.on_links(), [ids[0], bob]);
    assert_eq!(fixture.left[2].2, ticket, "a repeated attempt keeps its ticket");
    assert_eq!(fixture.deliver_all(), [ids[0], bob, ids[1], ids[2], ids[3]]);
}

#[test]
fn after_a_crash_the_uncertain_message_goes_first() {
    let mut fixture = fixture();
    let ids: Vec<MessageId> = (0..4).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    fixture.answer(ids[0], ACCEPTED);
    let ticket = fixture.left[1].2;
    fixture.crash();
    fixture.link_up(SERIAL, 10);
    assert_eq!((fixture.on_links(), fixture.left[0].2), (vec![ids[1]], ticket));
    assert_eq!(fixture.deliver_all(), ids[1..]);
}

#[test]
fn a_message_behind_a_lock_can_end_or_leave_in_every_way() {
    let mut fixture = fixture();
    let legs = |wait| {
        let leg = Leg { longest_wait: wait, ..Leg::to(SERIAL) };
        vec![leg, Leg::to(SECOND)]
    };
    let wait = Some(Duration::from_secs(30));
    let first = fixture.submit(to(ANNE)).unwrap();
    let cancelled = fixture.submit(to(ANNE)).unwrap();
    let moved = fixture.submit(message(ANNE, legs(wait))).unwrap();
    let short = Message { expires_at: Timestamp(fixture.now.wall.0 + 20_000), ..to(ANNE) };
    let expired = fixture.submit(short).unwrap();
    let replaced = fixture.submit(to(ANNE)).unwrap();
    let rescheduled = fixture.submit(to(ANNE)).unwrap();
    let last = fixture.submit(to(ANNE)).unwrap();
    assert_eq!(
        fixture.engine.message(moved).unwrap().until,
        Some(fixture.now.mono + Duration::from_secs(30))
    );
    let replace = |id, scheduled, text: &'static str| Event::Replace {
        origin: ACCOUNT,
        id,
        source: Address::new(0, 1, b"10655"),
        text: Text { octets: text.into(), ..Text::default() },
        scheduled,
        expires_at: None,
        dlr_request: DlrRequest::NONE,
        reply: REPLY,
    };
    let later = Timestamp(fixture.now.wall.0 + 60_000);
    fixture.run([
        Event::Cancel { origin: ACCOUNT, id: cancelled, source: None, destination: None, reply: REPLY },
        replace(replaced, None, "new text"),
        replace(rescheduled, Some(later), "later"),
    ]);
    assert_eq!(fixture.finished[&cancelled].state, FinalState::Cancelled);
    assert_eq!(&fixture.message_on_disk(replaced).text.octets[..], b"new text");
    assert_eq!(
        (state_of(&fixture, replaced), state_of(&fixture, rescheduled)),
        (MessageState::SubscriberLocked, MessageState::Deferred)
    );
    fixture.pass(Duration::from_secs(31));
    assert_eq!(fixture.finished[&expired].state, FinalState::Expired);
    assert_eq!(fixture.engine.message(moved).unwrap().peer, SECOND);
    assert_eq!(fixture.status(SERIAL).subscriber_locked, 2);
    fixture.pass(Duration::from_secs(30));
    assert_eq!(
        state_of(&fixture, rescheduled),
        MessageState::SubscriberLocked,
        "its time has come, but it is behind the lock"
    );
    fixture.answer(first, ACCEPTED);
    assert_eq!(fixture.on_links(), [replaced]);
    fixture.answer(replaced, ACCEPTED);
    assert_eq!(fixture.on_links(), [rescheduled]);
    fixture.answer(rescheduled, ACCEPTED);
    assert_eq!(fixture.on_links(), [last]);
    fixture.answer(last, ACCEPTED);
    fixture.link_up(SECOND, 1);
    assert_eq!(fixture.deliver_all(), [moved]);
    assert_eq!((fixture.status(SERIAL).subscriber_locked, fixture.status(SERIAL).queued), (0, 0));
}

#[test]
fn the_next_lock_holder_can_leave_before_its_attempt() {
    // The first is answered, the second is back in the queue, and no link is up.
    let mut fixture = fixture();
    let ids: Vec<MessageId> = (0..4).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    fixture.run([
        Event::LinkPaused { link: LinkId(SERIAL.0.into()) },
        Event::Outcome { link: LinkId(SERIAL.0.into()), id: ids[0], outcome: ACCEPTED },
    ]);
    fixture.sent.clear();
    fixture.run([Event::LinkDown { link: LinkId(SERIAL.0.into()) }]);
    assert_eq!(
        (state_of(&fixture, ids[1]), state_of(&fixture, ids[2])),
        (MessageState::Queued, MessageState::SubscriberLocked)
    );
    fixture.run([Event::Cancel {
        origin: ACCOUNT,
        id: ids[1],
        source: None,
        destination: None,
        reply: REPLY,
    }]);
    assert_eq!(
        (state_of(&fixture, ids[2]), state_of(&fixture, ids[3])),
        (MessageState::Queued, MessageState::SubscriberLocked)
    );
    let urgent = fixture.submit(urgent(ANNE, 3)).unwrap();
    fixture.link_up(SERIAL, 10);
    assert_eq!(fixture.on_links(), [urgent]);
    assert_eq!(fixture.deliver_all(), [urgent, ids[2], ids[3]]);
}

#[test]
fn the_longest_wait_for_a_leg_holds_for_the_next_lock_holder() {
    let mut fixture = fixture();
    let first = fixture.submit(to(ANNE)).unwrap();
    let leg = Leg { longest_wait: Some(Duration::from_secs(30)), ..Leg::to(SERIAL) };
    let second = fixture.submit(message(ANNE, vec![leg, Leg::to(SECOND)])).unwrap();
    fixture.run([Event::LinkPaused { link: LinkId(SERIAL.0.into()) }]);
    fixture.answer(first, ACCEPTED);
    assert_eq!(state_of(&fixture, second), MessageState::Queued);
    fixture.pass(Duration::from_secs(30));
    assert_eq!(fixture.engine.message(second).unwrap().peer, SECOND);
}

#[test]
fn waiters_count_for_the_queue_limit() {
    let mut fixture = fixture();
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.queue_limit, settings.sends_dlrs) = (true, 3, false);
    fixture.run([Event::Peer(settings)]);
    for _ in 0..4 {
        fixture.submit(to(ANNE)).unwrap();
    }
    assert_eq!(fixture.submit(to(ANNE)), Err(Refusal::QueueFull));
}

#[test]
fn content_is_loaded_for_the_next_lock_holder() {
    let mut fixture = EngineFixture::new(Settings { body_cache: 0, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    let ids: Vec<MessageId> = (0..5).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    assert_eq!(fixture.loads.len(), 0);
    fixture.held = Some(Vec::new());
    fixture.answer(ids[0], ACCEPTED);
    assert_eq!((fixture.on_links(), fixture.loads.len()), (vec![], 1));
    // Only messages whose content is not in memory wait for the disk.
    let bob = fixture.submit(to(BOB)).unwrap();
    assert_eq!(fixture.on_links(), [bob]);
    // Nor does one with cached content overtake it.
    let late = fixture.submit(to(ANNE)).unwrap();
    assert_eq!((fixture.on_links(), state_of(&fixture, late)), (vec![bob], MessageState::SubscriberLocked));
    let loaded = fixture.held.take().unwrap();
    fixture.run(loaded);
    assert_eq!(fixture.on_links(), [bob, ids[1]]);
    let expected = [vec![bob], ids[1..].to_vec(), vec![late]].concat();
    assert_eq!(fixture.deliver_all(), expected);
}

#[test]
fn a_hundred_thousand_for_one_subscriber_are_each_queued_behind_the_lock_once() {
    const MANY: u64 = 100_000;
    for link_first in [true, false] {
        let mut fixture = EngineFixture::new(Settings::default());
        if link_first {
            fixture.link_up(SERIAL, 50);
        }
        for _ in 0..MANY / 1000 {
            fixture.run((0..1000).map(|_| event(to(ANNE))));
        }
        fixture.run((0..20).map(|n| event(to(&format!("49172{n}")))));
        if !link_first {
            // The others are behind them in the queue: they take several runs, with other peers' messages in between.
            let mut out = Output::default();
            let up = Event::LinkUp { link: LinkId(SERIAL.0.into()), peer: SERIAL, window: 50 };
            fixture.engine.apply(fixture.now, up, &mut out);
            fixture.engine.advance(fixture.now, &mut out);
            assert!(
                (1000..5000).contains(&fixture.engine.totals().subscriber_locked),
                "one run scans a limited number of messages"
            );
            assert_eq!(fixture.engine.deadline(), Some(fixture.now.mono), "the next run follows at once");
            fixture.apply_output(out);
        }
        assert_eq!(fixture.sent.len(), 21, "the others do not wait");
        assert_eq!(fixture.engine.totals().subscriber_locked, MANY - 1);
        fixture.outcome_of_all(&ACCEPTED);
        for _ in 0..1000 {
            fixture.outcome_of_all(&ACCEPTED);
        }
        assert_eq!(fixture.engine.totals().subscriber_locked, MANY - 1, "none is scanned again");
        assert_eq!(fixture.status(SERIAL).subscriber_locked, MANY - 1002);
    }
}

#[test]
fn any_of_many_waiters_leaves_in_constant_time() {
    let mut fixture = fixture();
    for _ in 0..10 {
        fixture.run((0..1000).map(|_| event(to(ANNE))));
    }
    let id = |n: u64| MessageId(MessageId::FIRST.0 + n);
    for n in [9_999, 5_000, 1] {
        fixture.run([Event::Cancel {
            origin: ACCOUNT,
            id: id(n),
            source: None,
            destination: None,
            reply: REPLY,
        }]);
        assert_eq!(fixture.finished[&id(n)].state, FinalState::Cancelled);
    }
    assert_eq!(fixture.status(SERIAL).subscriber_locked, 9_996);
    fixture.answer(id(0), ACCEPTED);
    assert_eq!(fixture.on_links(), [id(2)]);
}

#[test]
fn a_peer_can_become_serial_and_stop_being_serial() {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(FIRST, 10);
    let ids: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap()).collect();
    assert_eq!(fixture.sent.len(), 3);
    let settings = |serial| {
        let mut settings = PeerSettings::new(FIRST);
        settings.uncertainty = UncertainPolicy::SendAgain;
        settings.sends_dlrs = false;
        settings.serial = serial;
        Event::Peer(settings)
    };
    fixture.run([settings(true)]);
    let next: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message(ANNE, vec![Leg::to(FIRST)])).unwrap()).collect();
    assert_eq!(
        (fixture.sent.len(), fixture.status(FIRST).subscriber_locked),
        (3, 3),
        "those on their way count"
    );
    fixture.answer(ids[0], ACCEPTED);
    assert_eq!(fixture.on_links(), [ids[1], ids[2], next[0]]);
    fixture.run([settings(false)]);
    assert_eq!(fixture.on_links(), [ids[1], ids[2], next[0], next[1], next[2]]);
    assert_eq!((fixture.status(FIRST).subscriber_locked, fixture.status(FIRST).blocked_subscribers), (0, 0));
    assert_eq!(fixture.deliver_all().len(), 5);
}

#[test]
fn a_dlr_for_a_subscriber_is_resolved_and_waits_for_the_handset() {
    let mut fixture = EngineFixture::new(Settings { resolver: true, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    fixture.link_up(FIRST, 10);
    let mut mo = message(BOB, vec![Leg::to(FIRST)]);
    mo.origin = SERIAL;
    mo.source = Address::international(ANNE);
    mo.dlr_request = DlrRequest::FINAL;
    (mo.tlvs, mo.protocol_fields) = (vec![0x02, 0x04, 0, 1, 7].into(), vec![0x15, 0x01, 0, 1, 42].into());
    let id = fixture.submit(mo).unwrap();
    fixture.answer(id, ACCEPTED);
    assert_eq!(fixture.questions.len(), 1);
    fixture.answer_all(&found("262011"));
    let (peer, dlr, leg) = fixture.sent[0].clone();
    assert!(matches!(&dlr.kind, MessageKind::Dlr(text) if text.of == id));
    assert_eq!((peer, &dlr.protocol_fields[..]), (SERIAL, &[0x15, 0x01, 0, 1, 42][..]));
    let model::Verdict::Forward(legs) = &dlr.routed.verdict else { panic!() };
    assert_eq!(legs[usize::from(leg)].imsi, Some(crate::scenarios::fixture::imsi("262011")));
    fixture.answer(dlr.id, refused(ErrorClass::Absent));
    assert_eq!((fixture.status(SERIAL).blocked_subscribers, fixture.sent.len()), (1, 0));
    // It survives a restart like any message, and is sent on an alert.
    fixture.crash();
    fixture.link_up(SERIAL, 10);
    fixture.run([Event::SubscriberReachable {
        network: SERIAL,
        imsi: crate::scenarios::fixture::imsi("262011"),
    }]);
    assert_eq!(fixture.on_links(), [dlr.id]);
    fixture.answer(dlr.id, ACCEPTED);
    assert_eq!(fixture.engine.live(), 0);
}

#[test]
fn a_dlr_for_an_unknown_subscriber_is_dropped() {
    for resolver in [true, false] {
        let mut fixture = EngineFixture::new(Settings { resolver, ..Settings::default() });
        fixture.link_up(SERIAL, 10);
        fixture.link_up(FIRST, 10);
        let mut mo = message(BOB, vec![Leg::to(FIRST)]);
        (mo.origin, mo.dlr_request) = (SERIAL, DlrRequest::FINAL);
        mo.source = Address::international(ANNE);
        let id = fixture.submit(mo).unwrap();
        fixture.answer(id, ACCEPTED);
        if resolver {
            fixture.answer_all(&model::Subscriber::Unknown { valid: None });
        } else {
            assert_eq!(fixture.outcome_of_all(&ACCEPTED).len(), 1);
        }
        assert_eq!((fixture.engine.live(), fixture.sent.len(), fixture.questions.len()), (0, 0, 0));
    }
}

#[test]
fn an_undelivered_dlr_expires() {
    let own_dlr_validity = Duration::from_secs(3600);
    let mut fixture = EngineFixture::new(Settings { own_dlr_validity, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    fixture.link_up(FIRST, 10);
    let mut mo = message(BOB, vec![Leg::to(FIRST)]);
    (mo.origin, mo.dlr_request) = (SERIAL, DlrRequest::FINAL);
    mo.source = Address::international(ANNE);
    let id = fixture.submit(mo).unwrap();
    fixture.answer(id, ACCEPTED);
    let end = fixture.now.mono + own_dlr_validity + Duration::from_secs(61);
    while fixture.now.mono < end {
        fixture.outcome_of_all(&refused(ErrorClass::Absent));
        fixture.pass(Duration::from_secs(5));
    }
    assert_eq!((fixture.engine.live(), fixture.status(SERIAL).blocked_subscribers), (0, 0));
    assert!(own_dlr_validity < VALIDITY);
}

#[test]
fn waiting_behind_a_lock_leaves_no_step() {
    let mut fixture = fixture();
    let first = fixture.submit(to(ANNE)).unwrap();
    let second = fixture.submit(to(ANNE)).unwrap();
    assert!(fixture.progress_on_disk(second).is_none(), "waiting behind another costs no write");
    fixture.answer(first, ACCEPTED);
    fixture.answer(second, ACCEPTED);
    let steps = fixture.steps(second);
    assert!(matches!(steps[..], [StepKind::Submitted { .. }, StepKind::Responded { .. }]), "{steps:?}");
}
