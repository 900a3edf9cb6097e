//! Queue actions, beyond what the simulation checks.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, SERIAL, VALIDITY, message};
use engine::{
    BlockedBy, EngineAnswer, Event, MessageState, NewQueueAction, PeerSettings, QueueActionRefusal, Settings,
};
use model::{
    AddressBytes, AdminActionKind, ErrorClass, FinalState, Leg, MessageId, Outcome, PeerId, QueueAction,
    QueueActionId, QueueActionKind, QueueActionScope, QueueActionState, Refusal, RejectReason, StepKind,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
/// Many more messages than the limit of a batch.
const MANY: usize = 5_000;
/// The limit of a batch.
const BATCH_LIMIT: usize = 1024;

fn of_peer(peer: PeerId) -> QueueActionScope {
    QueueActionScope { peer: Some(peer), ..QueueActionScope::default() }
}

fn to(prefix: &str) -> QueueActionScope {
    QueueActionScope {
        prefix: Some(AddressBytes::from_slice(prefix.as_bytes())),
        ..QueueActionScope::default()
    }
}

fn new_action(kind: QueueActionKind, scope: QueueActionScope) -> NewQueueAction {
    NewQueueAction {
        kind,
        scope,
        to: None,
        by: "ada".into(),
        reason: "because".into(),
        undo_within: Duration::ZERO,
    }
}

fn ask(fixture: &mut EngineFixture, request: NewQueueAction) -> Result<QueueAction, QueueActionRefusal> {
    fixture.run([Event::QueueAction { request: Box::new(request), reply: REPLY }]);
    match fixture.answers.pop() {
        Some(EngineAnswer::QueueAction(action)) => Ok(*action),
        Some(EngineAnswer::QueueActionRefused(why)) => Err(why),
        other => panic!("{other:?}"),
    }
}

fn undo(fixture: &mut EngineFixture, id: QueueActionId) -> Result<QueueAction, QueueActionRefusal> {
    fixture.run([Event::UndoQueueAction { id, by: "grace".into(), reply: REPLY }]);
    match fixture.answers.pop() {
        Some(EngineAnswer::QueueAction(action)) => Ok(*action),
        Some(EngineAnswer::QueueActionRefused(why)) => Err(why),
        other => panic!("{other:?}"),
    }
}

fn submit(fixture: &mut EngineFixture, number: &str, peers: &[PeerId]) -> MessageId {
    fixture.submit(message(number, peers.iter().map(|peer| Leg::to(*peer)).collect())).unwrap()
}

fn fill(fixture: &mut EngineFixture, count: usize) {
    for index in 0..count {
        let number = if index % 2 == 0 { format!("49171{index:04}") } else { format!("41791{index:04}") };
        submit(fixture, &number, &[FIRST]);
    }
}

fn state_of(fixture: &EngineFixture, id: MessageId) -> MessageState {
    fixture.engine.message(id).unwrap().state
}

#[test]
fn cancel_works_in_bounded_batches_also_with_evicted_content() {
    for body_cache in [0, 64 << 20] {
        let mut fixture = EngineFixture::new(Settings { body_cache, ..Settings::default() });
        fill(&mut fixture, MANY);
        fixture.most = (0, 0);
        let action = ask(&mut fixture, new_action(QueueActionKind::Cancel, to("+49"))).unwrap();
        fixture.pass(Duration::from_secs(2));
        let done = fixture.engine.queue_action(action.id).unwrap();
        assert_eq!((done.state, done.affected), (QueueActionState::Done, MANY as u64 / 2));
        assert_eq!((fixture.finished.len(), fixture.engine.live()), (MANY / 2, MANY / 2));
        assert!(fixture.finished.values().all(|ended| ended.state == FinalState::Cancelled));
        assert!(fixture.most.0 <= 2 * BATCH_LIMIT, "{} ended in one batch", fixture.most.0);
        assert_eq!(fixture.queue_actions[&action.id], done);
    }
}

#[test]
fn reroute_works_in_bounded_batches_and_keeps_the_order() {
    for body_cache in [0, 64 << 20] {
        let mut fixture = EngineFixture::new(Settings { body_cache, ..Settings::default() });
        fill(&mut fixture, MANY);
        fixture.most = (0, 0);
        let action =
            NewQueueAction { to: Some(SECOND), ..new_action(QueueActionKind::Reroute, of_peer(FIRST)) };
        let action = ask(&mut fixture, action).unwrap();
        fixture.pass(Duration::from_secs(2));
        assert_eq!((fixture.status(FIRST).queued, fixture.status(SECOND).queued), (0, MANY as u64));
        assert!(fixture.most.1 <= 2 * BATCH_LIMIT, "{} were written in one batch", fixture.most.1);
        assert_eq!(fixture.engine.queue_action(action.id).unwrap().affected, MANY as u64);
        // Moved messages stay with their new peer, even if the action is undone.
        undo(&mut fixture, action.id).unwrap();
        fixture.crash();
        assert_eq!((fixture.status(FIRST).queued, fixture.status(SECOND).queued), (0, MANY as u64));
        fixture.link_up(SECOND, 10_000);
        fixture.pass(Duration::from_secs(1));
        let left = fixture.on_links();
        assert_eq!(left.len(), MANY);
        assert!(left.is_sorted(), "not by age");
    }
}

#[test]
fn held_messages_are_matched_once_and_still_expire() {
    let mut fixture = EngineFixture::new(Settings::default());
    let action = ask(&mut fixture, new_action(QueueActionKind::Suspend, to("49"))).unwrap();
    fixture.link_up(FIRST, 10);
    let held = submit(&mut fixture, "+4917100001", &[FIRST]);
    let passes = submit(&mut fixture, "4179100001", &[FIRST]);
    assert_eq!((fixture.on_links(), state_of(&fixture, held)), (vec![passes], MessageState::Suspended));
    assert_eq!(fixture.engine.message(held).unwrap().held_by, Some(action.id));
    let status = fixture.status(FIRST);
    assert_eq!((status.queued, status.suspended, status.blocked_by), (0, 1, BlockedBy::QueueAction));
    fixture.pass(VALIDITY + Duration::from_secs(60));
    assert_eq!(fixture.finished[&held].state, FinalState::Expired);
    assert_eq!((fixture.status(FIRST).suspended, fixture.engine.queue_actions()[0].1), (0, 0));
}

#[test]
fn longest_wait_moves_to_the_next_leg_unless_a_cancel_is_pending() {
    for (kind, state) in [
        (QueueActionKind::Suspend, MessageState::Submitted),
        (QueueActionKind::Cancel, MessageState::Suspended),
    ] {
        let mut fixture = EngineFixture::new(Settings::default());
        fixture.link_up(FIRST, 10);
        fixture.link_up(SECOND, 10);
        // In the same run, so that it has not left when the action comes.
        let mut legs = vec![Leg::to(FIRST), Leg::to(SECOND)];
        legs[0].longest_wait = Some(Duration::from_secs(5));
        let scope =
            QueueActionScope { account: Some(ACCOUNT), peer: Some(FIRST), ..QueueActionScope::default() };
        let request = NewQueueAction { undo_within: Duration::from_secs(60), ..new_action(kind, scope) };
        fixture.run([
            Event::Accept { message: Box::new(message("49171", legs)), reply: REPLY },
            Event::QueueAction { request: Box::new(request), reply: REPLY },
        ]);
        assert_eq!(state_of(&fixture, MessageId::FIRST), MessageState::Suspended);
        fixture.pass(Duration::from_secs(8));
        assert_eq!(state_of(&fixture, MessageId::FIRST), state, "{kind:?}");
        fixture.pass(Duration::from_secs(60));
        assert_eq!(fixture.engine.live(), usize::from(kind == QueueActionKind::Suspend), "{kind:?}");
    }
}

#[test]
fn a_drained_peer_gets_neither_new_nor_rerouted_messages() {
    let mut fixture = EngineFixture::new(Settings::default());
    let waits = submit(&mut fixture, "49171", &[FIRST]);
    let action = ask(&mut fixture, new_action(QueueActionKind::Drain, of_peer(FIRST))).unwrap();
    let alone = fixture.submit(message("49171", vec![Leg::to(FIRST)]));
    assert_eq!(alone, Err(Refusal::Rejected(RejectReason::TryLater)));
    let other = submit(&mut fixture, "49171", &[FIRST, SECOND]);
    assert_eq!(fixture.engine.message(other).unwrap().peer, SECOND);
    fixture.link_up(FIRST, 10);
    assert_eq!(fixture.on_links(), [waits], "waiting messages are sent");
    fixture.crash();
    assert_eq!(fixture.submit(message("49171", vec![Leg::to(FIRST)])), alone, "and after a start");
    undo(&mut fixture, action.id).unwrap();
    submit(&mut fixture, "49171", &[FIRST]);
}

#[test]
fn reroute_waits_for_room_at_the_target() {
    let mut fixture = EngineFixture::new(Settings::default());
    let mut full = PeerSettings::new(SECOND);
    (full.sends_dlrs, full.queue_limit) = (false, 2);
    fixture.run([Event::Peer(full)]);
    fill(&mut fixture, 5);
    fixture.link_up(FIRST, 1);
    let sent = fixture.on_links();
    let action = NewQueueAction { to: Some(SECOND), ..new_action(QueueActionKind::Reroute, of_peer(FIRST)) };
    ask(&mut fixture, action).unwrap();
    fixture.answer(sent[0], ACCEPTED);
    assert_eq!((fixture.status(FIRST).queued, fixture.status(SECOND).queued), (2, 2));
    assert_eq!(
        (fixture.status(FIRST).blocked_by, fixture.on_links()),
        (BlockedBy::RerouteTargetFull, Vec::new())
    );
    fixture.link_up(SECOND, 2);
    fixture.outcome_of_all(&ACCEPTED);
    fixture.pass(Duration::from_secs(3));
    fixture.outcome_of_all(&ACCEPTED);
    fixture.pass(Duration::from_secs(3));
    assert_eq!((fixture.engine.live(), fixture.finished.len()), (0, 5));
    let ways: Vec<_> = fixture.finished.values().map(|ended| ended.peer).collect();
    assert_eq!(ways, [Some(FIRST), Some(SECOND), Some(SECOND), Some(SECOND), Some(SECOND)]);
}

#[test]
fn deferred_messages_are_rerouted_at_their_next_attempt() {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(FIRST, 10);
    let id = submit(&mut fixture, "49171", &[FIRST]);
    fixture.answer(id, Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() });
    let action = NewQueueAction { to: Some(SECOND), ..new_action(QueueActionKind::Reroute, of_peer(FIRST)) };
    let action = ask(&mut fixture, action).unwrap();
    assert_eq!(state_of(&fixture, id), MessageState::Deferred);
    fixture.link_up(SECOND, 10);
    fixture.pass(Duration::from_secs(20));
    assert_eq!(fixture.sent.iter().map(|(peer, ..)| *peer).collect::<Vec<_>>(), [SECOND]);
    fixture.answer(id, ACCEPTED);
    let kind = StepKind::AdminAction {
        action: AdminActionKind::Rerouted,
        by: "ada".into(),
        queue_action: Some(action.id),
        peer: Some(SECOND),
    };
    assert!(fixture.steps(id).contains(&kind), "{:?}", fixture.steps(id));
}

#[test]
fn invalid_queue_actions_are_refused() {
    let mut fixture = EngineFixture::new(Settings::default());
    let reroute = |from: PeerId, to: PeerId| NewQueueAction {
        to: Some(to),
        ..new_action(QueueActionKind::Reroute, of_peer(from))
    };
    for (request, why) in [
        (new_action(QueueActionKind::Suspend, QueueActionScope::default()), QueueActionRefusal::NoScope),
        (
            new_action(QueueActionKind::Drain, QueueActionScope { peer: Some(FIRST), ..to("49") }),
            QueueActionRefusal::NeedsWholePeer,
        ),
        (new_action(QueueActionKind::Reroute, of_peer(FIRST)), QueueActionRefusal::BadTarget),
        (
            NewQueueAction { to: Some(SECOND), ..new_action(QueueActionKind::Suspend, of_peer(FIRST)) },
            QueueActionRefusal::BadTarget,
        ),
        (reroute(FIRST, FIRST), QueueActionRefusal::Cycle),
        (reroute(FIRST, PeerId(77)), QueueActionRefusal::UnknownPeer),
        (reroute(FIRST, SERIAL), QueueActionRefusal::DifferentKinds),
        (reroute(FIRST, ACCOUNT), QueueActionRefusal::DifferentKinds),
    ] {
        assert_eq!(ask(&mut fixture, request.clone()), Err(why), "{request:?}");
    }
    let first = ask(&mut fixture, reroute(FIRST, SECOND)).unwrap();
    assert_eq!(ask(&mut fixture, reroute(SECOND, FIRST)), Err(QueueActionRefusal::Cycle));
    assert_eq!(undo(&mut fixture, QueueActionId(7)), Err(QueueActionRefusal::Unknown));
    undo(&mut fixture, first.id).unwrap();
    assert_eq!(undo(&mut fixture, first.id), Err(QueueActionRefusal::TooLate));
    for _ in 0..64 {
        ask(&mut fixture, new_action(QueueActionKind::Suspend, to("49"))).unwrap();
    }
    assert_eq!(
        ask(&mut fixture, new_action(QueueActionKind::Suspend, to("49"))),
        Err(QueueActionRefusal::TooMany { most: 64 })
    );
}

#[test]
fn the_last_thousand_queue_actions_are_kept_and_ids_are_unique() {
    let mut fixture = EngineFixture::new(Settings::default());
    for id in 1..=1_100 {
        let action = ask(&mut fixture, new_action(QueueActionKind::Suspend, of_peer(FIRST))).unwrap();
        assert_eq!(action.id, QueueActionId(id));
        undo(&mut fixture, action.id).unwrap();
    }
    assert_eq!((fixture.queue_actions.len(), fixture.engine.queue_actions().len()), (1_000, 1_000));
    fixture.crash();
    let action = ask(&mut fixture, new_action(QueueActionKind::Suspend, of_peer(FIRST))).unwrap();
    assert_eq!((action.id, fixture.engine.queue_actions().len()), (QueueActionId(1_101), 1_001));
}
