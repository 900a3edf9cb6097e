//! Unreachable subscribers: other messages to them use no attempts, and an alert causes a retry.

use crate::scenarios::fixture::{
    EngineFixture, FIRST, SERIAL, VALIDITY, by, found, imsi, message, resolved, subscriber_leg,
};
use crate::scenarios::serial_delivery::{fixture, refused, to};
use engine::{Event, LockHolder, MessageState, PeerSettings, Settings, UncertainPolicy};
use model::WaitState;
use model::{
    AddressBytes, DeliveryDecision, ErrorClass, FinalState, Leg, LinkId, MessageId, NextStep, Outcome,
    PeerAdvice,
    StepKind::{self, AwaitingAlert, Decided, Deferred, Refused, Responded, Submitted, Unanswered},
    Subscriber,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const UNANSWERED: Outcome = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";
const IMSI: &str = "262011";

/// A fixture with a cached subscriber and a number of messages to it, the first on a link.
fn messages_to_anne(count: usize, policy: bool) -> (EngineFixture, Vec<MessageId>) {
    let mut fixture =
        EngineFixture::new(Settings { resolver: true, delivery_policy: policy, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    let ids: Vec<MessageId> =
        (0..count).map(|_| fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap()).collect();
    fixture.run([resolved(ANNE.as_bytes(), found(IMSI))]);
    assert_eq!(fixture.on_links(), [ids[0]]);
    (fixture, ids)
}

fn reachable() -> Event {
    Event::SubscriberReachable { network: SERIAL, imsi: imsi(IMSI) }
}

fn alert() -> Event {
    Event::Alert { msisdn: AddressBytes::from_slice(ANNE.as_bytes()) }
}

fn decide(fixture: &mut EngineFixture, step: Option<NextStep>) {
    let next =
        step.map(|step| DeliveryDecision { step, advice: PeerAdvice::default(), by: by(), note: None });
    let asked = std::mem::take(&mut fixture.decisions);
    assert_eq!(asked.len(), 1);
    let (id, attempt) = asked[0].clone();
    fixture.run([Event::Decided { id, attempt: attempt.number, next }]);
}

#[test]
fn a_failed_attempt_blocks_the_subscriber_and_its_message_goes_first() {
    for class in [ErrorClass::Absent, ErrorClass::MemoryFull, ErrorClass::Temporary] {
        let mut fixture = fixture();
        let ids: Vec<MessageId> = (0..3).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
        fixture.answer(ids[0], refused(class));
        let bob = fixture.submit(to(BOB)).unwrap();
        let late = fixture.submit(to(ANNE)).unwrap();
        assert_eq!(fixture.on_links(), [bob], "messages to this subscriber wait, messages to others do not");
        let status = fixture.status(SERIAL);
        assert_eq!(
            (status.queued, status.subscriber_locked, status.deferred, status.blocked_subscribers),
            (3, 3, 1, 1)
        );
        let due = fixture.engine.message(ids[0]).unwrap().until;
        let before = fixture.engine.message(late).unwrap().lock_holder;
        assert_eq!(before, Some(LockHolder { id: ids[0], retry_at: due }));
        assert!(due.is_some_and(|due| (8..=12).contains(&(due - fixture.now.mono).as_secs())));
        fixture.pass(Duration::from_secs(12));
        assert_eq!(fixture.on_links(), [bob, ids[0]]);
        assert_eq!(fixture.status(SERIAL).blocked_subscribers, 0);
        assert_eq!(fixture.deliver_all(), [bob, ids[0], ids[1], ids[2], late]);
        for id in &ids[1..] {
            assert_eq!(fixture.steps(*id).len(), 2, "no attempt was used");
        }
        let waited = &fixture.steps(ids[0])[2];
        let by_alert = matches!(waited, AwaitingAlert { .. });
        assert_eq!(by_alert, class != ErrorClass::Temporary, "{waited:?}");
        assert_ne!(fixture.left[0].2, fixture.left[2].2, "an answered attempt is not repeated");
    }
}

#[test]
fn an_alert_retries_at_once_one_at_a_time() {
    for heard in [reachable(), alert()] {
        let (mut fixture, ids) = messages_to_anne(4, false);
        fixture.answer(ids[0], refused(ErrorClass::Absent));
        fixture.run([Event::SubscriberReachable { network: SERIAL, imsi: imsi("262019") }]);
        assert!(fixture.sent.is_empty(), "another subscriber was alerted");
        fixture.run([heard]);
        assert_eq!((fixture.on_links(), fixture.status(SERIAL).blocked_subscribers), (vec![ids[0]], 0));
        fixture.answer(ids[0], refused(ErrorClass::MemoryFull));
        assert!(fixture.sent.is_empty(), "an alert covers one attempt");
        fixture.run([reachable(), reachable()]);
        assert_eq!(fixture.deliver_all(), ids);
    }
}

#[test]
fn an_alert_by_number_finds_messages_without_cached_answer() {
    let mut fixture = EngineFixture::new(Settings { resolver: true, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    let id = fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    let subscriber = Subscriber::Found { imsi: imsi(IMSI), peer: None, valid: Some(Duration::ZERO) };
    fixture.run([resolved(ANNE.as_bytes(), subscriber)]);
    fixture.answer(id, refused(ErrorClass::Absent));
    fixture.run([alert()]);
    assert_eq!(fixture.on_links(), [id]);
}

#[test]
fn an_alert_ends_a_retry_delay() {
    let (mut fixture, ids) = messages_to_anne(2, false);
    fixture.answer(ids[0], refused(ErrorClass::Temporary));
    fixture.run([reachable()]);
    assert_eq!(fixture.on_links(), [ids[0]]);
}

#[test]
fn an_alert_during_an_attempt_is_not_lost() {
    for (class, policy) in [
        (ErrorClass::MemoryFull, false),
        (ErrorClass::Absent, true),
        (ErrorClass::Temporary, false),
        (ErrorClass::MemoryFull, true),
    ] {
        for while_deciding in [false, true] {
            let (mut fixture, ids) = messages_to_anne(2, policy);
            if !while_deciding || !policy {
                fixture.run([reachable(), reachable()]);
            }
            fixture.answer(ids[0], refused(class));
            if policy {
                if while_deciding {
                    fixture.run([reachable()]);
                }
                decide(&mut fixture, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
            }
            assert_eq!(
                (fixture.on_links(), fixture.status(SERIAL).blocked_subscribers),
                (vec![ids[0]], 0),
                "at once"
            );
            fixture.answer(ids[0], refused(class));
            if policy {
                decide(&mut fixture, Some(NextStep::RetryAfter(Duration::from_secs(600))));
            }
            assert!(fixture.sent.is_empty(), "an early alert covers one attempt");
            assert_eq!(fixture.status(SERIAL).blocked_subscribers, 1);
            fixture.run([reachable()]);
            assert_eq!(fixture.deliver_all(), ids);
        }
    }
}

#[test]
fn an_early_alert_does_not_affect_a_finished_message() {
    for outcome in [ACCEPTED, refused(ErrorClass::Permanent)] {
        let (mut fixture, ids) = messages_to_anne(2, false);
        fixture.run([reachable()]);
        fixture.answer(ids[0], outcome);
        assert_eq!(fixture.on_links(), [ids[1]]);
        fixture.answer(ids[1], refused(ErrorClass::Absent));
        assert_eq!(
            (fixture.sent.len(), fixture.status(SERIAL).blocked_subscribers),
            (0, 1),
            "the alert applied to the previous attempt"
        );
    }
}

#[test]
fn alerts_caused_by_attempts_do_not_loop() {
    let (mut fixture, ids) = messages_to_anne(1, false);
    for early in [true, false] {
        for _ in 0..200 {
            if early {
                fixture.run([reachable()]);
            }
            fixture.answer(ids[0], refused(ErrorClass::Absent));
            if !early {
                fixture.run([reachable()]);
            }
            if fixture.sent.is_empty() {
                break;
            }
        }
        assert!(fixture.sent.is_empty(), "as fast as the network answers");
        fixture.pass(Duration::from_secs(1));
        assert_eq!(fixture.on_links(), ids, "but soon");
    }
    assert_eq!(fixture.engine.message(ids[0]).unwrap().attempts, 102);
}

#[test]
fn a_policy_sets_how_long_a_subscriber_is_blocked() {
    let (mut fixture, ids) = messages_to_anne(3, true);
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    assert_eq!(
        (fixture.engine.message(ids[0]).unwrap().state, fixture.sent.len()),
        (MessageState::Deciding, 0)
    );
    decide(&mut fixture, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
    fixture.pass(Duration::from_secs(599));
    assert!(fixture.sent.is_empty());
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.on_links(), [ids[0]]);
    // Giving up one message sends the next one, whose attempts count from 1.
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    decide(&mut fixture, Some(NextStep::Fail));
    assert_eq!(fixture.on_links(), [ids[1]]);
    assert_eq!(fixture.engine.message(ids[1]).unwrap().attempts, 1);
    // An immediate retry by the policy keeps it before the others.
    fixture.answer(ids[1], refused(ErrorClass::Temporary));
    decide(&mut fixture, Some(NextStep::RetryAfter(Duration::ZERO)));
    assert_eq!(fixture.on_links(), [ids[1]]);
}

#[test]
fn a_waiting_holder_that_leaves_releases_the_lock() {
    type Leave = fn(&mut EngineFixture, MessageId);
    let cancel: Leave = |fixture, id| {
        let (origin, reply) = (crate::scenarios::fixture::ACCOUNT, crate::scenarios::fixture::REPLY);
        fixture.run([Event::Cancel { origin, id, source: None, destination: None, reply }]);
    };
    let expire: Leave = |fixture, id| {
        // It is refused until its validity ends; the messages behind it have another validity.
        while !fixture.finished.contains_key(&id) {
            fixture.pass(Duration::from_secs(60));
            if fixture.on_links() == [id] {
                fixture.answer(id, refused(ErrorClass::Absent));
            }
        }
    };
    let reschedule: Leave = |fixture, id| {
        let replace = Event::Replace {
            origin: crate::scenarios::fixture::ACCOUNT,
            id,
            source: model::Address::new(0, 1, b"10655"),
            text: model::Text { octets: "new".into(), ..model::Text::default() },
            scheduled: Some(model::Timestamp(fixture.now.wall.0 + 600_000)),
            expires_at: None,
            dlr_request: model::DlrRequest::NONE,
            reply: crate::scenarios::fixture::REPLY,
        };
        fixture.run([replace]);
    };
    for leave in [cancel, expire, reschedule] {
        let mut fixture = fixture();
        let mut long = to(ANNE);
        long.expires_at.0 += 3_600_000;
        let first = fixture.submit(to(ANNE)).unwrap();
        let second = fixture.submit(long).unwrap();
        fixture.answer(first, refused(ErrorClass::Absent));
        leave(&mut fixture, first);
        assert_eq!((fixture.on_links(), fixture.status(SERIAL).blocked_subscribers), (vec![second], 0));
    }
}

#[test]
fn attempts_that_run_out_lead_to_the_next_leg_and_the_others_follow_in_order() {
    let mut fixture = fixture();
    fixture.link_up(FIRST, 10);
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.max_attempts, settings.sends_dlrs) = (true, 2, false);
    fixture.run([Event::Peer(settings)]);
    let legs = || vec![Leg::to(SERIAL), Leg::to(FIRST)];
    let ids: Vec<MessageId> = (0..2).map(|_| fixture.submit(message(ANNE, legs())).unwrap()).collect();
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    fixture.pass(Duration::from_secs(20));
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    let mut on_links: Vec<_> = fixture.sent.iter().map(|(peer, message, _)| (*peer, message.id)).collect();
    on_links.sort_unstable();
    assert_eq!(on_links, [(FIRST, ids[0]), (SERIAL, ids[1])]);
}

#[test]
fn an_unanswered_attempt_counts_as_absent_subscriber_and_keeps_its_ticket() {
    for policy in [false, true] {
        let (mut fixture, ids) = messages_to_anne(2, policy);
        let ticket = fixture.left[0].2;
        for _ in 0..2 {
            fixture.answer(ids[0], UNANSWERED);
            if policy {
                assert_eq!(fixture.decisions[0].1.class, ErrorClass::Absent);
                decide(&mut fixture, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
            }
            assert_eq!((fixture.sent.len(), fixture.status(SERIAL).blocked_subscribers), (0, 1));
            fixture.run([reachable()]);
            assert_eq!(fixture.on_links(), [ids[0]]);
            assert_eq!(
                fixture.left.last().unwrap().2,
                ticket,
                "it repeats an attempt that the peer may have accepted"
            );
        }
        fixture.answer(ids[0], refused(ErrorClass::Absent));
        if policy {
            decide(&mut fixture, Some(NextStep::AwaitAlert(Duration::from_secs(600))));
        }
        fixture.run([alert()]);
        assert_ne!(fixture.left.last().unwrap().2, ticket, "the last attempt was answered");
        assert_eq!(fixture.deliver_all(), ids);
        let steps: Vec<StepKind> =
            fixture.steps(ids[0]).into_iter().filter(|step| !matches!(step, Decided { .. })).collect();
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
fn a_late_answer_ends_the_message() {
    for (policy, called) in [(false, false), (true, false), (false, true)] {
        let (mut fixture, ids) = messages_to_anne(2, policy);
        let link = LinkId(SERIAL.0.into());
        fixture.answer(ids[0], UNANSWERED);
        if called {
            fixture.run([Event::LinkPaused { link }, reachable()]);
        }
        let doing = fixture.engine.message(ids[0]).unwrap().state;
        assert!(matches!(
            (policy, called, doing),
            (true, _, MessageState::Deciding)
                | (false, false, MessageState::Deferred)
                | (false, true, MessageState::Queued)
        ));
        let late = |link, outcome| Event::Outcome { link, id: ids[0], outcome };
        fixture.run([late(LinkId(77), ACCEPTED), late(link, Outcome::NotSent)]);
        assert!(
            fixture.finished.is_empty(),
            "late outcomes of another link, or without an answer, are ignored"
        );
        fixture.run([late(link, ACCEPTED)]);
        assert_eq!(fixture.finished[&ids[0]].state, FinalState::Delivered);
        assert!(matches!(fixture.steps(ids[0]).last(), Some(Responded { .. })));
        let status = fixture.status(SERIAL);
        assert_eq!(
            (fixture.engine.pending_decisions(), status.deferred, status.blocked_subscribers),
            (0, 0, 0)
        );
        if called {
            assert_eq!(status.queued, 1);
            fixture.run([Event::LinkDown { link }]);
            fixture.link_up(SERIAL, 1);
        }
        assert_eq!(fixture.on_links(), [ids[1]]);
        fixture.run([late(link, ACCEPTED)]);
        assert_eq!(fixture.deliver_all(), [ids[1]]);
    }
}

#[test]
fn a_late_answer_to_a_refused_attempt_is_ignored() {
    let (mut fixture, ids) = messages_to_anne(1, false);
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    let link = LinkId(SERIAL.0.into());
    fixture.run([Event::Outcome { link, id: ids[0], outcome: ACCEPTED }]);
    assert!(fixture.finished.is_empty());
}

#[test]
fn an_uncertain_message_blocks_the_subscriber_until_an_alert() {
    let mut fixture = fixture();
    let mut settings = PeerSettings::new(SERIAL);
    (settings.serial, settings.sends_dlrs) = (true, false);
    settings.uncertainty = UncertainPolicy::AwaitDlr;
    fixture.run([Event::Peer(settings)]);
    let ids: Vec<MessageId> = (0..2).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    fixture.answer(ids[0], UNANSWERED);
    assert_eq!((fixture.sent.len(), fixture.status(SERIAL).blocked_subscribers), (0, 1));
    fixture.run([alert()]);
    assert_eq!((fixture.on_links(), fixture.status(SERIAL).blocked_subscribers), (vec![ids[1]], 0));
    let (again, reply) = (true, crate::scenarios::fixture::REPLY);
    fixture.run([Event::SettleUncertain { id: ids[0], again, reply }]);
    assert_eq!(fixture.on_links(), [ids[1]], "it waits");
    assert_eq!(fixture.deliver_all(), [ids[1], ids[0]]);
}

#[test]
fn a_restart_keeps_subscribers_blocked() {
    for class in [ErrorClass::Absent, ErrorClass::Temporary] {
        for heard in [true, false] {
            let (mut fixture, ids) = messages_to_anne(3, false);
            fixture.answer(ids[0], ACCEPTED);
            fixture.answer(ids[1], refused(class));
            fixture.crash();
            fixture.link_up(SERIAL, 10);
            assert_eq!((fixture.sent.len(), fixture.status(SERIAL).blocked_subscribers), (0, 1));
            let late = fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
            fixture.answer_all(&found(IMSI));
            assert!(fixture.sent.is_empty(), "a new message waits too");
            if heard {
                fixture.run([reachable()]);
            } else {
                fixture.pass(Duration::from_secs(12));
            }
            assert_eq!(fixture.deliver_all(), [ids[1], ids[2], late]);
        }
    }
}

#[test]
fn after_a_crash_pending_decisions_follow_the_built_in_schedule() {
    let (mut fixture, ids) = messages_to_anne(2, true);
    fixture.answer(ids[0], refused(ErrorClass::MemoryFull));
    assert!(matches!(fixture.progress_on_disk(ids[0]).unwrap().waiting, WaitState::Deferred { .. }));
    fixture.crash();
    fixture.link_up(SERIAL, 10);
    assert_eq!((fixture.sent.len(), fixture.status(SERIAL).blocked_subscribers), (0, 1));
    fixture.run([reachable()]);
    assert_eq!(fixture.on_links(), [ids[0]]);
}

#[test]
fn alerts_by_imsi_retry_messages_at_all_peers() {
    let settings = Settings { resolver: true, delivery_policy: true, ..Settings::default() };
    let mut fixture = EngineFixture::new(settings);
    fixture.link_up(FIRST, 10);
    let ids: Vec<MessageId> =
        (0..3).map(|_| fixture.submit(message(ANNE, vec![subscriber_leg(FIRST)])).unwrap()).collect();
    fixture.run([resolved(ANNE.as_bytes(), found(IMSI))]);
    for id in ids.iter().rev() {
        fixture.answer(*id, refused(ErrorClass::Absent));
        decide(&mut fixture, Some(NextStep::AwaitAlert(VALIDITY)));
    }
    fixture.run([Event::SubscriberReachable { network: SERIAL, imsi: imsi("1") }]);
    assert!(fixture.sent.is_empty());
    fixture.run([reachable()]);
    assert_eq!(fixture.on_links(), ids, "oldest first");
}

#[test]
fn an_alert_wait_lasts_as_long_as_the_built_in_schedule() {
    let (mut fixture, ids) = messages_to_anne(1, false);
    fixture.answer(ids[0], refused(ErrorClass::Temporary));
    assert!(matches!(fixture.progress_on_disk(ids[0]).unwrap().steps.last().unwrap().kind, Deferred { .. }));
    let status = fixture.engine.message(ids[0]).unwrap();
    assert_eq!(status.state, MessageState::Deferred);
}
