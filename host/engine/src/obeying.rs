//! What follows from [`crate::orders`] for a message whose turn has come, that is accepted, or that an admin points at.

use crate::engine::Engine;
use crate::orders::{Held, MOST_ACTIVE, Work, first_state};
use crate::resolving::{Subscription, needs_subscriber};
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use crate::{Answer, Event, OrderRefusal, Output, ReplyTo};
use model::{
    Deed, FinalState, Message, MessageId, Moment, Now, Order, OrderId, OrderKind, OrderState, PeerId,
    Refusal, Scope, Step, StepKind, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// The longest time within which an order may be undone.
const LONGEST_UNDO: Duration = Duration::from_secs(86_400);

/// An order as it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderWish {
    /// What is to be done.
    pub kind: OrderKind,
    /// With which messages.
    pub scope: Scope,
    /// Where they go, for [`OrderKind::Rebind`].
    pub to: Option<PeerId>,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why; may be empty.
    pub why: Arc<str>,
    /// How long it can be undone, for kinds that end messages; at most a day.
    pub undo_within: Duration,
}

/// What is to be done with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    /// An uncertain one is sent again.
    SendAgain,
    /// An uncertain one ends as unknown.
    GiveUp,
    /// One that waits ends as cancelled.
    Cancel,
    /// One that waits for its next attempt, or to be routed again, is tried now.
    Retry,
}

/// What becomes of a message for which a way was found that it is to go instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebound {
    /// It goes there.
    Gone,
    /// It cannot go there now: it waits where it is.
    Full,
    /// It can never go there: it stays on its way.
    Not,
}

impl Engine {
    /// A new order, or why there cannot be one.
    pub(crate) fn give_order(&mut self, now: Now, wish: OrderWish, reply: ReplyTo, out: &mut Output) {
        let answer = match self.judge_order(&wish) {
            Err(why) => Answer::OrderRefused(why),
            Ok(()) => {
                let OrderWish { kind, mut scope, to, by, why, undo_within } = wish;
                // Whole seconds, since messages are known by whole seconds; rather too old than too young.
                scope.older_than = scope
                    .older_than
                    .map(|age| Duration::from_secs(age.as_secs() + u64::from(age.subsec_nanos() > 0)));
                let undo_until = kind.ends().then(|| now.wall + undo_within.min(LONGEST_UNDO));
                let order = Order {
                    id: self.orders.next_id(),
                    kind,
                    scope,
                    to,
                    by,
                    why,
                    at: now.wall,
                    upto: self.next_id,
                    undo_until,
                    state: first_state(kind),
                    touched: 0,
                };
                self.set_order(order.clone(), out);
                self.begin_order(now, &order);
                Answer::Order(Box::new(order))
            }
        };
        out.commands.push(crate::Command::Answer { to: reply, answer });
    }

    /// Whether an order could be given. Reading changes nothing.
    ///
    /// # Errors
    /// Why not.
    pub fn judge_order(&self, wish: &OrderWish) -> Result<(), OrderRefusal> {
        let OrderWish { kind, scope, to, .. } = wish;
        if self.orders.active() >= MOST_ACTIVE {
            return Err(OrderRefusal::TooMany { most: MOST_ACTIVE });
        }
        if scope.is_empty() {
            return Err(OrderRefusal::NoScope);
        }
        match kind {
            OrderKind::Drain if !scope.is_whole_peer() => Err(OrderRefusal::OnlyWholePeers),
            OrderKind::Rebind => {
                let (Some(from), Some(to)) = (scope.peer, *to) else { return Err(OrderRefusal::NoWay) };
                let (Some(one), Some(other)) =
                    (self.peers.get(from.0 as usize), self.peers.get(to.0 as usize))
                else {
                    return Err(OrderRefusal::UnknownPeer);
                };
                if from == to || self.orders.is_rebound(to) || self.orders.is_target(from) {
                    return Err(OrderRefusal::Circle);
                }
                if !other.configured {
                    return Err(OrderRefusal::UnknownPeer);
                }
                let kind = |peer: &crate::peer::Peer| (peer.settings.serial, peer.settings.addressee);
                if one.configured && kind(one) != kind(other) {
                    return Err(OrderRefusal::OtherKind);
                }
                Ok(())
            }
            _ if to.is_some() => Err(OrderRefusal::NoWay),
            _ => Ok(()),
        }
    }

    /// Writes an order down as it stands now.
    pub(crate) fn set_order(&mut self, order: Order, out: &mut Output) {
        let forgotten = self.orders.put(order.clone());
        out.batch.orders.retain(|earlier| earlier.id != order.id && !forgotten.contains(&earlier.id));
        out.batch.orders.push(order);
        out.batch.orders_done.extend(forgotten);
        for peer in 0..self.peers.len() {
            self.mark(u32::try_from(peer).unwrap_or(u32::MAX));
        }
    }

    /// What an order that stands wants done beside looking at messages as they come: with it, and after a start.
    pub(crate) fn begin_order(&mut self, now: Now, order: &Order) {
        match (order.kind, order.state) {
            (OrderKind::Rebind, OrderState::Standing) | (_, OrderState::UnderWay) => {
                self.orders.works.insert(order.id, Work::Look { at: 0 });
                self.wake_work(now.mono);
            }
            (_, OrderState::UndoWindow) => {
                let until = order.undo_until.map_or(now.mono, |until| now.moment_of(until));
                self.timers.set(until, Timer::Order(order.id));
            }
            _ => {}
        }
    }

    /// The time to undo an order may be over.
    pub(crate) fn order_due(&mut self, now: Now, id: OrderId, out: &mut Output) {
        let Some(mut order) = self.orders.get(id).cloned() else { return };
        if order.state == OrderState::UndoWindow {
            order.state = OrderState::UnderWay;
            self.set_order(order.clone(), out);
            self.begin_order(now, &order);
        }
    }

    /// Withdraws an order: what it holds back goes on.
    pub(crate) fn undo_order(
        &mut self,
        now: Now,
        id: OrderId,
        by: &Arc<str>,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let answer = match self.orders.get(id).cloned() {
            None => Answer::OrderRefused(OrderRefusal::Unknown),
            Some(order) if !matches!(order.state, OrderState::Standing | OrderState::UndoWindow) => {
                Answer::OrderRefused(OrderRefusal::TooLate)
            }
            Some(mut order) => {
                order.state = OrderState::Undone;
                self.orders.works.remove(&id);
                self.set_order(order.clone(), out);
                self.resumed_peer(now, &order, by);
                if self.orders.first_held(id).is_some() {
                    self.orders.works.insert(id, Work::Release);
                    self.wake_work(now.mono);
                    self.orders.withdrawn.insert(id, by.clone());
                }
                Answer::Order(Box::new(order))
            }
        };
        out.commands.push(crate::Command::Answer { to: reply, answer });
    }

    /// A peer that stood still as a whole goes on: what waited then is told so as it leaves.
    fn resumed_peer(&mut self, now: Now, order: &Order, by: &Arc<str>) {
        if order.kind == OrderKind::Suspend
            && order.scope.is_whole_peer()
            && let Some(peer) = order.scope.peer
        {
            self.peer_mut(peer).resumed =
                Some(crate::peer::Resumed { order: order.id, by: by.clone(), at: now.wall });
        }
    }

    /// Holds a message back that has come to its turn and stands in no queue any more.
    pub(crate) fn hold_back(&mut self, slot: Slot, order: OrderId) {
        self.slab[slot].state = State::Suspended;
        self.peer_of(slot).suspended += 1;
        self.orders.set_down(&mut self.slab, slot, order);
        self.end_turn(slot);
        self.fresh.push(slot);
    }

    /// Takes a message away from the order that holds it back; it is then where one is whose attempt has just ended.
    pub(crate) fn leave_order(&mut self, slot: Slot) {
        self.slab[slot].state = State::Submitted;
        self.peer_of(slot).suspended -= 1;
        self.orders.take_up(&mut self.slab, slot);
    }

    /// Lets a message go on that was held back.
    pub(crate) fn let_go(&mut self, now: Now, slot: Slot, told: Option<StepKind>, out: &mut Output) {
        let longest_wait = self.slab[slot].due;
        self.leave_order(slot);
        if let Some(kind) = told {
            self.step(now, slot, kind);
        }
        if let Some(message) = self.slab[slot].message.clone()
            && needs_subscriber(&message, self.slab[slot].leg)
            && self.resolve_first(now, slot, &message, out) != Subscription::NotNeeded
        {
            return;
        }
        self.requeue(slot);
        if longest_wait != Moment(u64::MAX) {
            // Its timer may have fired meanwhile.
            self.slab[slot].due = longest_wait;
            self.timers.set(longest_wait, Timer::Message(slot, self.slab[slot].id));
        }
        self.fresh.push(slot);
    }

    /// What the head of a queue is held back by; it may have to be looked at with its content.
    pub(crate) fn held_back(&self, now: Now, slot: Slot) -> Held {
        self.orders.holder(&self.slab[slot], now)
    }

    /// Sends a message another way that stands in no queue, where an order says so and the other peer can take it.
    pub(crate) fn rebind(&mut self, now: Now, slot: Slot, out: &mut Output) -> Rebound {
        let Some((order, to, by)) = self
            .orders
            .rebinder(&self.slab[slot], now)
            .and_then(|order| Some((order.id, order.to?, order.by.clone())))
        else {
            return Rebound::Not;
        };
        let Some(old) = self.slab[slot].message.clone() else { return Rebound::Not };
        let (leg, origin) = (self.slab[slot].leg, self.slab[slot].origin);
        // Never back to where it came from.
        if to == origin {
            return Rebound::Not;
        }
        let room = self
            .peers
            .get(to.0 as usize)
            .is_some_and(|peer| peer.configured && peer.waiting() < peer.settings.queue_limit);
        if !room {
            return Rebound::Full;
        }
        let mut message = Message::clone(&old);
        let Verdict::Forward(legs) = &mut message.routed.verdict else { return Rebound::Not };
        let Some(leg) = legs.get_mut(usize::from(leg)) else { return Rebound::Not };
        leg.peer = to;
        let longest_wait = self.slab[slot].due;
        let slot = self.leave_wait(slot, out);
        self.end_turn(slot);
        // Parts that one peer has cannot be completed by another.
        if let Some(side) = &mut self.slab[slot].side {
            side.parts.clear();
        }
        let kind = StepKind::ByHand { deed: Deed::Rebound, by, order: Some(order), peer: Some(to) };
        self.step(now, slot, kind);
        self.slab[slot].peer = to;
        let message = self.replace_content(slot, message, out);
        self.name_subscriber(slot, &message);
        self.requeue(slot);
        self.slab[slot].due = longest_wait;
        self.record(now, slot, out);
        self.fresh.push(slot);
        self.count_touched(order, out);
        Rebound::Gone
    }

    /// An order has moved or ended one more message.
    pub(crate) fn count_touched(&mut self, id: OrderId, out: &mut Output) {
        let Some(order) = self.orders.touched(id) else { return };
        match out.batch.orders.iter_mut().find(|earlier| earlier.id == id) {
            Some(earlier) => earlier.touched = order.touched,
            None => out.batch.orders.push(order.clone()),
        }
    }

    /// Legs of a submission, or of a message that is routed again, lead where orders say. Gives back what its trace is to
    /// tell.
    pub(crate) fn redirect(
        &self,
        now: Now,
        message: &Message,
        verdict: &mut Verdict,
    ) -> Vec<(OrderId, StepKind)> {
        let mut steps = Vec::new();
        let Verdict::Forward(legs) = verdict else { return steps };
        for leg in legs.iter_mut().filter(|_| self.orders.rebinds_any()) {
            let Some(order) = self.orders.rebinder_of(message, leg.peer, now) else { continue };
            let Some(to) = order.to.filter(|to| *to != message.origin && self.is_configured(*to)) else {
                continue;
            };
            leg.peer = to;
            let (by, id) = (order.by.clone(), order.id);
            let kind = StepKind::ByHand { deed: Deed::Rebound, by, order: Some(id), peer: Some(to) };
            if steps.iter().all(|(earlier, _)| *earlier != id) {
                steps.push((id, kind));
            }
        }
        steps
    }

    /// Tells a message's trace, and the orders, where its legs were led.
    pub(crate) fn tell_redirected(
        &mut self,
        now: Now,
        slot: Slot,
        steps: Vec<(OrderId, StepKind)>,
        out: &mut Output,
    ) {
        for (order, kind) in steps {
            self.step(now, slot, kind);
            self.count_touched(order, out);
        }
    }

    /// An admin does something with one message.
    pub(crate) fn by_hand(&mut self, now: Now, event: Event, out: &mut Output) {
        let Event::ByHand { id, hand, by, reply } = &event else { return };
        let (id, hand, reply) = (*id, *hand, *reply);
        let Some(slot) = self.ids.get(&self.slab, id) else {
            let answer = Answer::Refused(Refusal::UnknownMessage);
            out.commands.push(crate::Command::Answer { to: reply, answer });
            return;
        };
        let state = self.slab[slot].state;
        let fits = match hand {
            Hand::SendAgain | Hand::GiveUp => state == State::Uncertain,
            Hand::Cancel => state.waits() && !self.slab[slot].has(flag::OWN_RECEIPT),
            Hand::Retry => matches!(state, State::Deferred | State::Held),
        };
        // Done is only said of what is durable, and an end may need the content for its receipt.
        if fits && self.slab[slot].message.is_none() {
            self.load_if_missing(slot, out);
            self.waiting_for_content.entry(id).or_default().push(event);
            return;
        }
        if fits {
            let by = by.clone();
            self.do_by_hand(now, slot, hand, by, out);
        }
        let answer = if fits { Answer::Done } else { Answer::Refused(Refusal::WrongState) };
        out.commands.push(crate::Command::Answer { to: reply, answer });
    }

    fn do_by_hand(&mut self, now: Now, slot: Slot, hand: Hand, by: Arc<str>, out: &mut Output) {
        let deed = match hand {
            Hand::SendAgain => Deed::SentAgain,
            Hand::GiveUp => Deed::GivenUp,
            Hand::Cancel => Deed::Cancelled,
            Hand::Retry => Deed::Retried,
        };
        self.step(now, slot, StepKind::ByHand { deed, by, order: None, peer: None });
        match hand {
            Hand::SendAgain => self.settle_doubt(now, slot, true, out),
            Hand::GiveUp => self.settle_doubt(now, slot, false, out),
            Hand::Cancel => self.end(now, slot, FinalState::Cancelled, None, out),
            Hand::Retry if self.slab[slot].state == State::Held => {
                self.record(now, slot, out);
                self.ask_route(now, slot, out);
            }
            Hand::Retry => {
                let slot = self.leave_wait(slot, out);
                let message = self.slab[slot].message.clone();
                if let Some(message) =
                    message.filter(|message| needs_subscriber(message, self.slab[slot].leg))
                {
                    self.begin_leg(now, slot, &message, out);
                } else {
                    self.put_back(now, slot, out);
                }
            }
        }
    }

    /// The step of a message that leaves after its peer stood still while it waited.
    pub(crate) fn tell_resumed(&mut self, slot: Slot) {
        let entry = &self.slab[slot];
        let Some(resumed) = &self.peers[entry.peer.0 as usize].resumed else { return };
        if u64::from(entry.accepted) * 1000 > resumed.at.0 {
            return;
        }
        let kind = StepKind::ByHand {
            deed: Deed::Resumed,
            by: resumed.by.clone(),
            order: Some(resumed.order),
            peer: None,
        };
        let at = resumed.at;
        let steps = &mut self.slab[slot].side().steps;
        if steps.iter().all(|step| step.kind != kind) && steps.len() < model::Final::MAX_STEPS {
            let place = steps.partition_point(|step| step.at <= at);
            steps.insert(place, Step { at, kind });
        }
    }
}

impl Engine {
    /// Orders, newest first, each with the number of messages that it holds back now. Reading changes nothing.
    #[must_use]
    pub fn orders(&self) -> Vec<(Order, u64)> {
        let held = |order: &Order| match order.scope.peer {
            Some(peer) if order.state.is_active() && self.orders.suspends(peer) == Some(order.id) => {
                self.peers.get(peer.0 as usize).map_or(0, |peer| peer.queued + peer.aside)
            }
            _ => self.orders.held(order.id),
        };
        self.orders.iter().rev().map(|order| (order.clone(), held(order))).collect()
    }

    /// One order.
    #[must_use]
    pub fn order(&self, id: OrderId) -> Option<Order> {
        self.orders.get(id).cloned()
    }

    /// The order by which a peer takes nothing new.
    #[must_use]
    pub fn drained(&self, peer: PeerId) -> Option<OrderId> {
        self.orders.drains(peer)
    }

    /// Uncertain messages with greater ids than `after`, by id, at most `most`, of all peers or of one.
    #[must_use]
    pub fn uncertain(&self, peer: Option<PeerId>, after: MessageId, most: usize) -> Vec<MessageId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let of = |id: &&MessageId| {
            peer.is_none_or(|peer| {
                self.ids.get(&self.slab, **id).is_some_and(|slot| self.slab[slot].peer == peer)
            })
        };
        self.doubtful.range((Excluded(after), Unbounded)).filter(of).take(most).copied().collect()
    }
}
