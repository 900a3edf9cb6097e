//! Admins' orders about what waits: what the simulation does not look at.

use crate::house::{ACCOUNT, FIRST, House, REPLY, SECOND, SERIAL, VALIDITY, message};
use engine::{Answer, Brake, Doing, Event, OrderRefusal, OrderWish, PeerSettings, Settings};
use model::{
    AddressBytes, Deed, ErrorClass, FinalState, Leg, MessageId, Order, OrderId, OrderKind, OrderState,
    Outcome, PeerId, Refusal, RejectReason, Scope, StepKind,
};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
/// As many as a batch may hold, and a good many more.
const MANY: usize = 5_000;
/// How many an order does in one batch.
const IN_A_BATCH: usize = 1024;

fn of_peer(peer: PeerId) -> Scope {
    Scope { peer: Some(peer), ..Scope::default() }
}

fn to(prefix: &str) -> Scope {
    Scope { prefix: Some(AddressBytes::from_slice(prefix.as_bytes())), ..Scope::default() }
}

fn wish(kind: OrderKind, scope: Scope) -> OrderWish {
    OrderWish { kind, scope, to: None, by: "ada".into(), why: "because".into(), undo_within: Duration::ZERO }
}

fn ask(house: &mut House, wish: OrderWish) -> Result<Order, OrderRefusal> {
    house.run([Event::Order { wish: Box::new(wish), reply: REPLY }]);
    match house.answers.pop() {
        Some(Answer::Order(order)) => Ok(*order),
        Some(Answer::OrderRefused(why)) => Err(why),
        other => panic!("{other:?}"),
    }
}

fn undo(house: &mut House, id: OrderId) -> Result<Order, OrderRefusal> {
    house.run([Event::UndoOrder { id, by: "grace".into(), reply: REPLY }]);
    match house.answers.pop() {
        Some(Answer::Order(order)) => Ok(*order),
        Some(Answer::OrderRefused(why)) => Err(why),
        other => panic!("{other:?}"),
    }
}

fn submit(house: &mut House, number: &str, peers: &[PeerId]) -> MessageId {
    house.submit(message(number, peers.iter().map(|peer| Leg::to(*peer)).collect())).unwrap()
}

fn fill(house: &mut House, count: usize) {
    for index in 0..count {
        let number = if index % 2 == 0 { format!("49171{index:04}") } else { format!("41791{index:04}") };
        submit(house, &number, &[FIRST]);
    }
}

fn doing(house: &House, id: MessageId) -> Doing {
    house.engine.message(id).unwrap().doing
}

#[test]
fn many_messages_end_in_batches_of_bounded_size_also_where_their_contents_must_be_read() {
    for body_cache in [0, 64 << 20] {
        let mut house = House::new(Settings { body_cache, ..Settings::default() });
        fill(&mut house, MANY);
        house.most = (0, 0);
        let order = ask(&mut house, wish(OrderKind::Cancel, to("+49"))).unwrap();
        house.pass(Duration::from_secs(2));
        let done = house.engine.order(order.id).unwrap();
        assert_eq!((done.state, done.touched), (OrderState::Done, MANY as u64 / 2));
        assert_eq!((house.finished.len(), house.engine.live()), (MANY / 2, MANY / 2));
        assert!(house.finished.values().all(|ended| ended.state == FinalState::Cancelled));
        assert!(house.most.0 <= 2 * IN_A_BATCH, "{} ended in one batch", house.most.0);
        assert_eq!(house.orders[&order.id], done);
    }
}

#[test]
fn many_messages_change_their_way_in_batches_of_bounded_size_and_keep_their_order() {
    for body_cache in [0, 64 << 20] {
        let mut house = House::new(Settings { body_cache, ..Settings::default() });
        fill(&mut house, MANY);
        house.most = (0, 0);
        let order = OrderWish { to: Some(SECOND), ..wish(OrderKind::Rebind, of_peer(FIRST)) };
        let order = ask(&mut house, order).unwrap();
        house.pass(Duration::from_secs(2));
        assert_eq!((house.status(FIRST).queued, house.status(SECOND).queued), (0, MANY as u64));
        assert!(house.most.1 <= 2 * IN_A_BATCH, "{} were written in one batch", house.most.1);
        assert_eq!(house.engine.order(order.id).unwrap().touched, MANY as u64);
        // What has moved stays, whatever becomes of the order, and whatever happens.
        undo(&mut house, order.id).unwrap();
        house.crash();
        assert_eq!((house.status(FIRST).queued, house.status(SECOND).queued), (0, MANY as u64));
        house.link_up(SECOND, 10_000);
        house.pass(Duration::from_secs(1));
        let left = house.on_links();
        assert_eq!(left.len(), MANY);
        assert!(left.is_sorted(), "not by age");
    }
}

#[test]
fn what_is_held_back_is_looked_at_once_and_still_ends_with_its_validity() {
    let mut house = House::new(Settings::default());
    let order = ask(&mut house, wish(OrderKind::Suspend, to("49"))).unwrap();
    house.link_up(FIRST, 10);
    let held = submit(&mut house, "+4917100001", &[FIRST]);
    let passes = submit(&mut house, "4179100001", &[FIRST]);
    assert_eq!((house.on_links(), doing(&house, held)), (vec![passes], Doing::Suspended));
    assert_eq!(house.engine.message(held).unwrap().order, Some(order.id));
    let status = house.status(FIRST);
    assert_eq!((status.queued, status.suspended, status.brake), (0, 1, Brake::Held));
    house.pass(VALIDITY + Duration::from_secs(60));
    assert_eq!(house.finished[&held].state, FinalState::Expired);
    assert_eq!((house.status(FIRST).suspended, house.engine.orders()[0].1), (0, 0));
}

#[test]
fn who_has_waited_long_enough_takes_his_next_leg_unless_he_is_about_to_be_cancelled() {
    for (kind, state) in [(OrderKind::Suspend, Doing::Submitted), (OrderKind::Cancel, Doing::Suspended)] {
        let mut house = House::new(Settings::default());
        house.link_up(FIRST, 10);
        house.link_up(SECOND, 10);
        // In the same run, so that it has not left when the order comes.
        let mut legs = vec![Leg::to(FIRST), Leg::to(SECOND)];
        legs[0].longest_wait = Some(Duration::from_secs(5));
        let scope = Scope { account: Some(ACCOUNT), peer: Some(FIRST), ..Scope::default() };
        let wish = OrderWish { undo_within: Duration::from_secs(60), ..wish(kind, scope) };
        house.run([
            Event::Accept { message: Box::new(message("49171", legs)), reply: REPLY },
            Event::Order { wish: Box::new(wish), reply: REPLY },
        ]);
        assert_eq!(doing(&house, MessageId::FIRST), Doing::Suspended);
        house.pass(Duration::from_secs(8));
        assert_eq!(doing(&house, MessageId::FIRST), state, "{kind:?}");
        house.pass(Duration::from_secs(60));
        assert_eq!(house.engine.live(), usize::from(kind == OrderKind::Suspend), "{kind:?}");
    }
}

#[test]
fn a_drained_peer_is_passed_over_by_what_comes_and_by_what_fails_elsewhere() {
    let mut house = House::new(Settings::default());
    let waits = submit(&mut house, "49171", &[FIRST]);
    let order = ask(&mut house, wish(OrderKind::Drain, of_peer(FIRST))).unwrap();
    let alone = house.submit(message("49171", vec![Leg::to(FIRST)]));
    assert_eq!(alone, Err(Refusal::Rejected(RejectReason::TryLater)));
    let other = submit(&mut house, "49171", &[FIRST, SECOND]);
    assert_eq!(house.engine.message(other).unwrap().peer, SECOND);
    house.link_up(FIRST, 10);
    assert_eq!(house.on_links(), [waits], "what waits goes out");
    house.crash();
    assert_eq!(house.submit(message("49171", vec![Leg::to(FIRST)])), alone, "and after a start");
    undo(&mut house, order.id).unwrap();
    submit(&mut house, "49171", &[FIRST]);
}

#[test]
fn where_the_other_peer_is_full_messages_wait_for_room_there() {
    let mut house = House::new(Settings::default());
    let mut full = PeerSettings::new(SECOND);
    (full.receipts, full.queue_limit) = (false, 2);
    house.run([Event::Peer(full)]);
    fill(&mut house, 5);
    house.link_up(FIRST, 1);
    let sent = house.on_links();
    let order = OrderWish { to: Some(SECOND), ..wish(OrderKind::Rebind, of_peer(FIRST)) };
    ask(&mut house, order).unwrap();
    house.answer(sent[0], ACCEPTED);
    assert_eq!((house.status(FIRST).queued, house.status(SECOND).queued), (2, 2));
    assert_eq!((house.status(FIRST).brake, house.on_links()), (Brake::Rebound, Vec::new()));
    house.link_up(SECOND, 2);
    house.outcome_of_all(&ACCEPTED);
    house.pass(Duration::from_secs(3));
    house.outcome_of_all(&ACCEPTED);
    house.pass(Duration::from_secs(3));
    assert_eq!((house.engine.live(), house.finished.len()), (0, 5));
    let ways: Vec<_> = house.finished.values().map(|ended| ended.peer).collect();
    assert_eq!(ways, [Some(FIRST), Some(SECOND), Some(SECOND), Some(SECOND), Some(SECOND)]);
}

#[test]
fn what_failed_and_waits_goes_the_other_way_when_its_time_comes() {
    let mut house = House::new(Settings::default());
    house.link_up(FIRST, 10);
    let id = submit(&mut house, "49171", &[FIRST]);
    house.answer(id, Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() });
    let order = OrderWish { to: Some(SECOND), ..wish(OrderKind::Rebind, of_peer(FIRST)) };
    let order = ask(&mut house, order).unwrap();
    assert_eq!(doing(&house, id), Doing::Deferred);
    house.link_up(SECOND, 10);
    house.pass(Duration::from_secs(20));
    assert_eq!(house.sent.iter().map(|(peer, ..)| *peer).collect::<Vec<_>>(), [SECOND]);
    house.answer(id, ACCEPTED);
    let kind =
        StepKind::ByHand { deed: Deed::Rebound, by: "ada".into(), order: Some(order.id), peer: Some(SECOND) };
    assert!(house.steps(id).contains(&kind), "{:?}", house.steps(id));
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let mut house = House::new(Settings::default());
    let rebind =
        |from: PeerId, to: PeerId| OrderWish { to: Some(to), ..wish(OrderKind::Rebind, of_peer(from)) };
    for (wish, why) in [
        (wish(OrderKind::Suspend, Scope::default()), OrderRefusal::NoScope),
        (wish(OrderKind::Drain, Scope { peer: Some(FIRST), ..to("49") }), OrderRefusal::OnlyWholePeers),
        (wish(OrderKind::Rebind, of_peer(FIRST)), OrderRefusal::NoWay),
        (OrderWish { to: Some(SECOND), ..wish(OrderKind::Suspend, of_peer(FIRST)) }, OrderRefusal::NoWay),
        (rebind(FIRST, FIRST), OrderRefusal::Circle),
        (rebind(FIRST, PeerId(77)), OrderRefusal::UnknownPeer),
        (rebind(FIRST, SERIAL), OrderRefusal::OtherKind),
        (rebind(FIRST, ACCOUNT), OrderRefusal::OtherKind),
    ] {
        assert_eq!(ask(&mut house, wish.clone()), Err(why), "{wish:?}");
    }
    let first = ask(&mut house, rebind(FIRST, SECOND)).unwrap();
    assert_eq!(ask(&mut house, rebind(SECOND, FIRST)), Err(OrderRefusal::Circle));
    assert_eq!(undo(&mut house, OrderId(7)), Err(OrderRefusal::Unknown));
    undo(&mut house, first.id).unwrap();
    assert_eq!(undo(&mut house, first.id), Err(OrderRefusal::TooLate));
    for _ in 0..64 {
        ask(&mut house, wish(OrderKind::Suspend, to("49"))).unwrap();
    }
    assert_eq!(ask(&mut house, wish(OrderKind::Suspend, to("49"))), Err(OrderRefusal::TooMany { most: 64 }));
}

#[test]
fn the_last_thousand_orders_are_remembered_and_no_number_is_given_twice() {
    let mut house = House::new(Settings::default());
    for turn in 1..=1_100 {
        let order = ask(&mut house, wish(OrderKind::Suspend, of_peer(FIRST))).unwrap();
        assert_eq!(order.id, OrderId(turn));
        undo(&mut house, order.id).unwrap();
    }
    assert_eq!((house.orders.len(), house.engine.orders().len()), (1_000, 1_000));
    house.crash();
    let order = ask(&mut house, wish(OrderKind::Suspend, of_peer(FIRST))).unwrap();
    assert_eq!((order.id, house.engine.orders().len()), (OrderId(1_101), 1_001));
}
