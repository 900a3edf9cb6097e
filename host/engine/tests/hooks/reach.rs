//! A subscriber who cannot be reached: others to him burn no attempts, and he is tried when he is heard of.

use crate::house::{FIRST, House, SERIAL, VALIDITY, by, found, imsi, message, resolved, subscriber_leg};
use crate::serial::{house, refused, to};
use engine::{Before, Doing, Event, PeerSettings, Settings, Uncertainty, Waiting};
use model::{
    AddressBytes, ErrorClass, FinalState, Leg, LinkId, MessageId, Next, NextStep, Outcome, PeerAdvice,
    StepKind::{self, AwaitingAlert, Decided, Deferred, Refused, Responded, Submitted, Unanswered},
    Subscriber,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const UNANSWERED: Outcome = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";
const IMSI: &str = "262011";

/// A house whose resolver knows Anne, and so many messages to her, the first on its way.
fn messages_to_anne(count: usize, policy: bool) -> (House, Vec<MessageId>) {
    let mut house = House::new(Settings { resolver: true, delivery_policy: policy, ..Settings::default() });
    house.link_up(SERIAL, 10);
    let ids: Vec<MessageId> =
        (0..count).map(|_| house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap()).collect();
    house.run([resolved(ANNE.as_bytes(), found(IMSI))]);
    assert_eq!(house.on_links(), [ids[0]]);
    (house, ids)
}

fn reachable() -> Event {
    Event::Reachable { imsi: imsi(IMSI) }
}

fn alert() -> Event {
    Event::Alert { msisdn: AddressBytes::from_slice(ANNE.as_bytes()) }
}

fn decide(house: &mut House, step: Option<NextStep>) {
    let next = step.map(|step| Next { step, advice: PeerAdvice::default(), by: by(), note: None });
    let asked = std::mem::take(&mut house.decisions);
    assert_eq!(asked.len(), 1);
    let (id, attempt) = asked[0].clone();
    house.run([Event::Decided { id, attempt: attempt.number, next }]);
}

#[test]
fn a_failed_attempt_parks_the_subscriber_and_its_message_goes_first_again() {
    for class in [ErrorClass::Absent, ErrorClass::MemoryFull, ErrorClass::Temporary] {
        let mut house = house();
        let ids: Vec<MessageId> = (0..3).map(|_| house.submit(to(ANNE)).unwrap()).collect();
        house.answer(ids[0], refused(class));
        let bob = house.submit(to(BOB)).unwrap();
        let late = house.submit(to(ANNE)).unwrap();
        assert_eq!(house.on_links(), [bob], "the others of the subscriber wait, those of others do not");
        let status = house.status(SERIAL);
        assert_eq!((status.queued, status.aside, status.deferred, status.parked), (3, 3, 1, 1));
        let due = house.engine.message(ids[0]).unwrap().until;
        let before = house.engine.message(late).unwrap().before;
        assert_eq!(before, Some(Before { id: ids[0], parked_until: due }));
        assert!(due.is_some_and(|due| (8..=12).contains(&(due - house.now.mono).as_secs())));
        house.pass(Duration::from_secs(12));
        assert_eq!(house.on_links(), [bob, ids[0]]);
        assert_eq!(house.status(SERIAL).parked, 0);
        assert_eq!(house.deliver_all(), [bob, ids[0], ids[1], ids[2], late]);
        for id in &ids[1..] {
            assert_eq!(house.steps(*id).len(), 2, "no attempt was burnt");
        }
        let waited = &house.steps(ids[0])[2];
        let by_alert = matches!(waited, AwaitingAlert { .. });
        assert_eq!(by_alert, class != ErrorClass::Temporary, "{waited:?}");
        assert_ne!(house.left[0].2, house.left[2].2, "an answered attempt is not repeated");
    }
}

#[test]
fn who_is_heard_of_is_tried_at_once_and_one_at_a_time() {
    for heard in [reachable(), alert()] {
        let (mut house, ids) = messages_to_anne(4, false);
        house.answer(ids[0], refused(ErrorClass::Absent));
        house.run([Event::Reachable { imsi: imsi("262019") }]);
        assert!(house.sent.is_empty(), "another was heard of");
        house.run([heard]);
        assert_eq!((house.on_links(), house.status(SERIAL).parked), (vec![ids[0]], 0));
        house.answer(ids[0], refused(ErrorClass::MemoryFull));
        assert!(house.sent.is_empty(), "one alert is for one attempt");
        house.run([reachable(), reachable()]);
        assert_eq!(house.deliver_all(), ids);
    }
}

#[test]
fn an_alert_by_number_finds_whose_answer_is_not_remembered() {
    let mut house = House::new(Settings { resolver: true, ..Settings::default() });
    house.link_up(SERIAL, 10);
    let id = house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    let subscriber = Subscriber::Found { imsi: imsi(IMSI), peer: None, valid: Some(Duration::ZERO) };
    house.run([resolved(ANNE.as_bytes(), subscriber)]);
    house.answer(id, refused(ErrorClass::Absent));
    house.run([alert()]);
    assert_eq!(house.on_links(), [id]);
}

#[test]
fn what_waits_for_a_timer_is_tried_too_when_its_subscriber_is_heard_of() {
    let (mut house, ids) = messages_to_anne(2, false);
    house.answer(ids[0], refused(ErrorClass::Temporary));
    house.run([reachable()]);
    assert_eq!(house.on_links(), [ids[0]]);
}

#[test]
fn an_alert_that_comes_while_the_attempt_is_under_way_is_not_lost() {
    for (class, policy) in [
        (ErrorClass::MemoryFull, false),
        (ErrorClass::Absent, true),
        (ErrorClass::Temporary, false),
        (ErrorClass::MemoryFull, true),
    ] {
        for while_deciding in [false, true] {
            let (mut house, ids) = messages_to_anne(2, policy);
            if !while_deciding || !policy {
                house.run([reachable(), reachable()]);
            }
            house.answer(ids[0], refused(class));
            if policy {
                if while_deciding {
                    house.run([reachable()]);
                }
                decide(&mut house, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
            }
            assert_eq!((house.on_links(), house.status(SERIAL).parked), (vec![ids[0]], 0), "at once");
            house.answer(ids[0], refused(class));
            if policy {
                decide(&mut house, Some(NextStep::RetryAfter(Duration::from_secs(600))));
            }
            assert!(house.sent.is_empty(), "one early alert is for one attempt");
            assert_eq!(house.status(SERIAL).parked, 1);
            house.run([reachable()]);
            assert_eq!(house.deliver_all(), ids);
        }
    }
}

#[test]
fn an_early_alert_for_one_that_succeeds_or_fails_for_good_means_nothing() {
    for outcome in [ACCEPTED, refused(ErrorClass::Permanent)] {
        let (mut house, ids) = messages_to_anne(2, false);
        house.run([reachable()]);
        house.answer(ids[0], outcome);
        assert_eq!(house.on_links(), [ids[1]]);
        house.answer(ids[1], refused(ErrorClass::Absent));
        assert_eq!((house.sent.len(), house.status(SERIAL).parked), (0, 1), "it was for the one before");
    }
}

#[test]
fn alerts_that_every_attempt_brings_about_do_not_make_a_whirl_for_ever() {
    let (mut house, ids) = messages_to_anne(1, false);
    for early in [true, false] {
        for _ in 0..200 {
            if early {
                house.run([reachable()]);
            }
            house.answer(ids[0], refused(ErrorClass::Absent));
            if !early {
                house.run([reachable()]);
            }
            if house.sent.is_empty() {
                break;
            }
        }
        assert!(house.sent.is_empty(), "as fast as the network answers");
        house.pass(Duration::from_secs(1));
        assert_eq!(house.on_links(), ids, "but soon");
    }
    assert_eq!(house.engine.message(ids[0]).unwrap().attempts, 102);
}

#[test]
fn a_policy_decides_how_long_a_subscriber_is_parked() {
    let (mut house, ids) = messages_to_anne(3, true);
    house.answer(ids[0], refused(ErrorClass::Absent));
    assert_eq!((house.engine.message(ids[0]).unwrap().doing, house.sent.len()), (Doing::Deciding, 0));
    decide(&mut house, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
    house.pass(Duration::from_secs(599));
    assert!(house.sent.is_empty());
    house.pass(Duration::from_secs(1));
    assert_eq!(house.on_links(), [ids[0]]);
    // Giving up one message lets the next go, with a first attempt of its own.
    house.answer(ids[0], refused(ErrorClass::Absent));
    decide(&mut house, Some(NextStep::Fail));
    assert_eq!(house.on_links(), [ids[1]]);
    assert_eq!(house.engine.message(ids[1]).unwrap().attempts, 1);
    // And the policy's word that it is to be tried at once keeps it before the others.
    house.answer(ids[1], refused(ErrorClass::Temporary));
    decide(&mut house, Some(NextStep::RetryAfter(Duration::ZERO)));
    assert_eq!(house.on_links(), [ids[1]]);
}

#[test]
fn a_parked_message_that_leaves_lets_the_others_go() {
    type Leave = fn(&mut House, MessageId);
    let cancel: Leave = |house, id| {
        let (origin, reply) = (crate::house::ACCOUNT, crate::house::REPLY);
        house.run([Event::Cancel { origin, id, source: None, destination: None, reply }]);
    };
    let expire: Leave = |house, id| {
        // It is refused until its validity ends; those behind it have another.
        while !house.finished.contains_key(&id) {
            house.pass(Duration::from_secs(60));
            if house.on_links() == [id] {
                house.answer(id, refused(ErrorClass::Absent));
            }
        }
    };
    let reschedule: Leave = |house, id| {
        let replace = Event::Replace {
            origin: crate::house::ACCOUNT,
            id,
            source: model::Address::new(0, 1, b"10655"),
            text: model::Text { octets: "new".into(), ..model::Text::default() },
            scheduled: Some(model::Timestamp(house.now.wall.0 + 600_000)),
            expires_at: None,
            receipts: model::ReceiptRequest::NONE,
            reply: crate::house::REPLY,
        };
        house.run([replace]);
    };
    for leave in [cancel, expire, reschedule] {
        let mut house = house();
        let mut long = to(ANNE);
        long.expires_at.0 += 3_600_000;
        let first = house.submit(to(ANNE)).unwrap();
        let second = house.submit(long).unwrap();
        house.answer(first, refused(ErrorClass::Absent));
        leave(&mut house, first);
        assert_eq!((house.on_links(), house.status(SERIAL).parked), (vec![second], 0));
    }
}

#[test]
fn attempts_that_run_out_lead_to_the_next_leg_and_the_others_follow_in_order() {
    let mut house = house();
    house.link_up(FIRST, 10);
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.max_attempts, settings.receipts) = (true, 2, false);
    house.run([Event::Peer(settings)]);
    let legs = || vec![Leg::to(SERIAL), Leg::to(FIRST)];
    let ids: Vec<MessageId> = (0..2).map(|_| house.submit(message(ANNE, legs())).unwrap()).collect();
    house.answer(ids[0], refused(ErrorClass::Absent));
    house.pass(Duration::from_secs(20));
    house.answer(ids[0], refused(ErrorClass::Absent));
    let mut on_links: Vec<_> = house.sent.iter().map(|(peer, message, _)| (*peer, message.id)).collect();
    on_links.sort_unstable();
    assert_eq!(on_links, [(FIRST, ids[0]), (SERIAL, ids[1])]);
}

#[test]
fn what_is_never_answered_is_like_an_absent_subscriber_and_keeps_its_ticket() {
    for policy in [false, true] {
        let (mut house, ids) = messages_to_anne(2, policy);
        let ticket = house.left[0].2;
        for _ in 0..2 {
            house.answer(ids[0], UNANSWERED);
            if policy {
                assert_eq!(house.decisions[0].1.class, ErrorClass::Absent);
                decide(&mut house, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
            }
            assert_eq!((house.sent.len(), house.status(SERIAL).parked), (0, 1));
            house.run([reachable()]);
            assert_eq!(house.on_links(), [ids[0]]);
            assert_eq!(house.left.last().unwrap().2, ticket, "it repeats what may have been taken");
        }
        house.answer(ids[0], refused(ErrorClass::Absent));
        if policy {
            decide(&mut house, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
        }
        house.run([alert()]);
        assert_ne!(house.left.last().unwrap().2, ticket, "the last attempt was answered");
        assert_eq!(house.deliver_all(), ids);
        let steps: Vec<StepKind> =
            house.steps(ids[0]).into_iter().filter(|step| !matches!(step, Decided { .. })).collect();
        let resolved = steps.iter().position(|step| matches!(step, StepKind::Resolved { .. })).unwrap();
        let waited = |step: &StepKind| matches!(step, AwaitingAlert { .. });
        assert_eq!(steps.iter().filter(|step| waited(step)).count(), 3);
        let mut steps = steps.into_iter().skip(resolved + 1).filter(|step| !waited(step));
        for answered in [false, false, true] {
            assert!(matches!(steps.next(), Some(Submitted { .. })));
            assert_eq!(steps.next(), Some(if answered { Refused { code: 8 } } else { Unanswered }));
        }
        assert!(matches!(steps.next(), Some(Submitted { .. })));
        assert!(matches!(steps.next(), Some(Responded { .. })));
    }
}

#[test]
fn an_answer_that_comes_late_after_all_ends_it() {
    for (policy, called) in [(false, false), (true, false), (false, true)] {
        let (mut house, ids) = messages_to_anne(2, policy);
        let link = LinkId(SERIAL.0.into());
        house.answer(ids[0], UNANSWERED);
        if called {
            house.run([Event::LinkPaused { link }, reachable()]);
        }
        let doing = house.engine.message(ids[0]).unwrap().doing;
        assert!(matches!(
            (policy, called, doing),
            (true, _, Doing::Deciding) | (false, false, Doing::Deferred) | (false, true, Doing::Queued)
        ));
        let late = |link, outcome| Event::Outcome { link, id: ids[0], outcome };
        house.run([late(LinkId(77), ACCEPTED), late(link, Outcome::NotSent)]);
        assert!(house.finished.is_empty(), "nobody says so who knows");
        house.run([late(link, ACCEPTED)]);
        assert_eq!(house.finished[&ids[0]].state, FinalState::Delivered);
        assert!(matches!(house.steps(ids[0]).last(), Some(Responded { .. })));
        let status = house.status(SERIAL);
        assert_eq!((house.engine.deciding(), status.deferred, status.parked), (0, 0, 0));
        if called {
            assert_eq!(status.queued, 1);
            house.run([Event::LinkDown { link }]);
            house.link_up(SERIAL, 1);
        }
        assert_eq!(house.on_links(), [ids[1]]);
        house.run([late(link, ACCEPTED)]);
        assert_eq!(house.deliver_all(), [ids[1]]);
    }
}

#[test]
fn an_answer_to_what_was_refused_meanwhile_ends_nothing() {
    let (mut house, ids) = messages_to_anne(1, false);
    house.answer(ids[0], refused(ErrorClass::Absent));
    let link = LinkId(SERIAL.0.into());
    house.run([Event::Outcome { link, id: ids[0], outcome: ACCEPTED }]);
    assert!(house.finished.is_empty());
}

#[test]
fn doubt_that_waits_for_an_admin_parks_the_subscriber_until_he_is_heard_of() {
    let mut house = house();
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.receipts) = (true, false);
    settings.uncertainty = Uncertainty::AwaitReceipt;
    house.run([Event::Peer(settings)]);
    let ids: Vec<MessageId> = (0..2).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    house.answer(ids[0], UNANSWERED);
    assert_eq!((house.sent.len(), house.status(SERIAL).parked), (0, 1));
    house.run([alert()]);
    assert_eq!((house.on_links(), house.status(SERIAL).parked), (vec![ids[1]], 0));
    let (again, reply) = (true, crate::house::REPLY);
    house.run([Event::Settle { id: ids[0], again, reply }]);
    assert_eq!(house.on_links(), [ids[1]], "it waits its turn");
    assert_eq!(house.deliver_all(), [ids[1], ids[0]]);
}

#[test]
fn a_restart_keeps_subscribers_parked() {
    for class in [ErrorClass::Absent, ErrorClass::Temporary] {
        for heard in [true, false] {
            let (mut house, ids) = messages_to_anne(3, false);
            house.answer(ids[0], ACCEPTED);
            house.answer(ids[1], refused(class));
            house.crash();
            house.link_up(SERIAL, 10);
            assert_eq!((house.sent.len(), house.status(SERIAL).parked), (0, 1));
            let late = house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
            house.answer_all(&found(IMSI));
            assert!(house.sent.is_empty(), "who comes now waits too");
            if heard {
                house.run([reachable()]);
            } else {
                house.pass(Duration::from_secs(12));
            }
            assert_eq!(house.deliver_all(), [ids[1], ids[2], late]);
        }
    }
}

#[test]
fn what_was_being_decided_at_a_crash_is_parked_by_the_built_in_schedule() {
    let (mut house, ids) = messages_to_anne(2, true);
    house.answer(ids[0], refused(ErrorClass::MemoryFull));
    assert!(matches!(house.progress_on_disk(ids[0]).unwrap().waiting, Waiting::Deferred { .. }));
    house.crash();
    house.link_up(SERIAL, 10);
    assert_eq!((house.sent.len(), house.status(SERIAL).parked), (0, 1));
    house.run([reachable()]);
    assert_eq!(house.on_links(), [ids[0]]);
}

#[test]
fn alerts_by_imsi_wake_what_waits_at_other_peers() {
    let settings = Settings { resolver: true, delivery_policy: true, ..Settings::default() };
    let mut house = House::new(settings);
    house.link_up(FIRST, 10);
    let ids: Vec<MessageId> =
        (0..3).map(|_| house.submit(message(ANNE, vec![subscriber_leg(FIRST)])).unwrap()).collect();
    house.run([resolved(ANNE.as_bytes(), found(IMSI))]);
    for id in ids.iter().rev() {
        house.answer(*id, refused(ErrorClass::Absent));
        decide(&mut house, Some(NextStep::AwaitAlert(VALIDITY)));
    }
    house.run([Event::Reachable { imsi: imsi("1") }]);
    assert!(house.sent.is_empty());
    house.run([reachable()]);
    assert_eq!(house.on_links(), ids, "oldest first");
}

#[test]
fn the_wait_of_the_built_in_schedule_is_as_long_as_ever() {
    let (mut house, ids) = messages_to_anne(1, false);
    house.answer(ids[0], refused(ErrorClass::Temporary));
    assert!(matches!(house.progress_on_disk(ids[0]).unwrap().steps.last().unwrap().kind, Deferred { .. }));
    let status = house.engine.message(ids[0]).unwrap();
    assert_eq!(status.doing, Doing::Deferred);
}
