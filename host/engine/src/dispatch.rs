//! From a place in a queue to a link.

use crate::custody::ASIDE_RUN;
use crate::engine::Engine;
use crate::obeying::Rebound;
use crate::order_work::{ROOM_AGAIN, SOON};
use crate::orders::Held;
use crate::peer::{Brake, InFlight, Peer};
use crate::resolving::Subscription;
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use crate::{Command, Handed, Output};
use model::{Deed, FinalState, Moment, Now, PeerId, Priority, Step, StepKind, Ticket, Verdict};
use std::sync::Arc;

/// How many messages are read back from the store at a time, and how few may be left at the front before more are.
const LOAD_RUN: usize = 1024;
const LOAD_LOW: usize = 512;

impl Engine {
    /// Sends what the peer's queue, links and pace allow.
    pub(crate) fn dispatch(&mut self, now: Now, peer: u32, out: &mut Output) {
        let index = peer as usize;
        let serial = self.peers[index].settings.serial;
        let mut set_aside = 0;
        let brake = loop {
            if let Some(order) = self.orders.suspends(PeerId(peer)) {
                break Brake::Suspended { order };
            }
            if self.peers[index].queued == 0 {
                break match &self.peers[index] {
                    Peer { aside: 1.., .. } => Brake::Subscribers,
                    Peer { suspended: 1.., .. } => Brake::Held,
                    _ => Brake::Idle,
                };
            }
            if self.draining {
                break Brake::Draining;
            }
            if !self.peers[index].configured {
                break Brake::NotConfigured;
            }
            let Some(link) = self.free_link(index) else {
                break if self.peers[index].links.is_empty() { Brake::NoLink } else { Brake::Window };
            };
            if now.mono < self.peers[index].paused_until {
                break Brake::Advised { until: self.peers[index].paused_until };
            }
            if let Some(pace) = &mut self.peers[index].pace
                && let Err(until) = pace.ready(now.mono)
            {
                let rate = pace.rate();
                break if pace.is_slow_start() {
                    Brake::SlowStart { until, rate }
                } else {
                    Brake::Throttled { until, rate }
                };
            }
            let in_flight = self.peers[index].in_flight;
            if self.peers[index].advised_window.is_some_and(|window| in_flight >= u64::from(window)) {
                break Brake::Window;
            }
            let Some((slot, priority)) = self.head(index) else { break Brake::Idle };
            if self.slab[slot].expires <= now.mono {
                self.end(now, slot, FinalState::Expired, None, out);
                continue;
            }
            if self.orders.holds_any()
                && let Held::By(order) = self.held_back(now, slot)
            {
                if set_aside == ASIDE_RUN {
                    self.wake_peer(peer, now.mono);
                    break Brake::Held;
                }
                set_aside += 1;
                if self.slab[slot].message.is_none() {
                    self.peers[index].evicted = self.peers[index].evicted.saturating_sub(1);
                }
                self.take_head(index, priority, slot);
                self.hold_back(slot, order);
                continue;
            }
            if serial && self.must_wait(slot) {
                if set_aside == ASIDE_RUN {
                    self.wake_peer(peer, now.mono);
                    break Brake::Subscribers;
                }
                set_aside += 1;
                self.take_head(index, priority, slot);
                self.let_pass(slot, out);
                continue;
            }
            let Some(message) = &self.slab[slot].message else {
                self.load_head(index, priority, slot, out);
                break Brake::Loading;
            };
            if serial && self.slab[slot].subscriber == 0 {
                // The peer was not serial yet when the message came.
                let message = message.clone();
                self.name_subscriber(slot, &message);
                if self.slab[slot].subscriber != 0 {
                    continue;
                }
            }
            if self.orders.rebinds_from(PeerId(peer)) {
                if out.batch.replaced.len() >= LOAD_RUN {
                    self.wake_peer(peer, now.mono + SOON);
                    break Brake::Rebound;
                }
                match self.rebind(now, slot, out) {
                    Rebound::Gone => continue,
                    Rebound::Full => {
                        self.wake_peer(peer, now.mono + ROOM_AGAIN);
                        break Brake::Rebound;
                    }
                    Rebound::Not => {}
                }
            }
            if let Some(bucket) = &mut self.peers[index].bucket
                && let Err(until) = bucket.take(now.mono)
            {
                break Brake::Rate { until };
            }
            self.take_head(index, priority, slot);
            self.send(now, link, slot, out);
        };
        self.peers[index].brake = brake;
        if self.peers[index].evicted > 0 && !self.peers[index].links.is_empty() {
            self.to_load.push(peer);
        }
        if let Brake::Rate { until }
        | Brake::Throttled { until, .. }
        | Brake::SlowStart { until, .. }
        | Brake::Advised { until } = brake
        {
            self.wake_peer(peer, until);
        }
    }

    fn take_head(&mut self, peer: usize, priority: usize, slot: Slot) {
        self.peers[peer].lanes[priority].pop(&mut self.slab, slot);
        self.peers[peer].queued -= 1;
    }

    /// Asks for the content of a queue's head, and of those behind it that have come back to their places; new arrivals
    /// are seen to by [`Engine::load_ahead`].
    fn load_head(&mut self, peer: usize, priority: usize, slot: Slot, out: &mut Output) {
        if self.slab[slot].has(flag::IN_FIFO) {
            self.load_if_missing(slot, out);
        } else if !self.slab[slot].has(flag::LOADING) {
            let mut ids = Vec::new();
            self.peers[peer].lanes[priority].returned_to_load(&mut self.slab, LOAD_LOW, &mut ids);
            out.commands.push(Command::Load { ids });
        }
    }

    fn wake_peer(&mut self, peer: u32, at: Moment) {
        let state = &mut self.peers[peer as usize];
        if state.wake.is_none_or(|earlier| earlier > at) {
            state.wake = Some(at);
            self.timers.set(at, Timer::Peer(peer));
        }
    }

    /// The link of the peer's with the most room in its window.
    fn free_link(&self, peer: usize) -> Option<u32> {
        self.peers[peer]
            .links
            .iter()
            .filter_map(|index| {
                let link = self.links.get(*index as usize)?.as_ref()?;
                let free = (link.window as usize).saturating_sub(link.in_flight.len());
                (free > 0 && !link.paused).then_some((free, *index))
            })
            .max_by_key(|(free, index)| (*free, u32::MAX - *index))
            .map(|(_, index)| index)
    }

    /// The most urgent, then oldest message of the peer's.
    fn head(&mut self, peer: usize) -> Option<(Slot, usize)> {
        (0..Priority::LEVELS)
            .rev()
            .find_map(|priority| Some((self.peers[peer].lanes[priority].peek(&mut self.slab)?, priority)))
    }

    /// Asks for the content of messages that near the front of queues that move.
    pub(crate) fn load_ahead(&mut self, out: &mut Output) {
        if !self.to_fetch.is_empty() {
            out.commands.push(Command::Load { ids: std::mem::take(&mut self.to_fetch) });
        }
        while let Some(peer) = self.to_load.pop() {
            let mut ids = Vec::new();
            for lane in &mut self.peers[peer as usize].lanes {
                lane.next_to_load(&mut self.slab, LOAD_LOW, LOAD_RUN, &mut ids);
            }
            if !ids.is_empty() {
                out.commands.push(Command::Load { ids });
            }
        }
    }

    /// Whether a message that has just joined a queue may lose its content, memory being short. Where no link is up it
    /// waits for long: such queues may fill half of the cache and no more, so that they take no room from those that
    /// move. Near the front of a queue that moves it would be read back at once.
    pub(crate) fn may_evict(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let peer = &self.peers[entry.peer.0 as usize];
        let limit = self.settings.body_cache;
        match entry.state {
            State::Queued if peer.links.is_empty() => self.cached > limit / 2,
            State::Queued => self.cached > limit && peer.queued as usize > 2 * LOAD_RUN,
            State::Aside
            | State::Suspended
            | State::Deferred
            | State::Held
            | State::Resolving
            | State::Receipt => self.cached > limit / 2,
            _ => false,
        }
    }

    fn send(&mut self, now: Now, link_index: u32, slot: Slot, out: &mut Output) {
        self.tell_resumed(slot);
        let more = self.take_turn(slot, out);
        let Some(link) = self.links.get_mut(link_index as usize).and_then(Option::as_mut) else { return };
        let entry = &mut self.slab[slot];
        let Some(message) = entry.message.clone() else { return };
        entry.state = State::Submitted;
        entry.link = link_index;
        entry.position = u32::try_from(link.in_flight.len()).unwrap_or(u32::MAX);
        entry.attempts = entry.attempts.saturating_add(1);
        entry.due = Moment(u64::MAX);
        entry.set(flag::ASKED, false);
        let peer = &mut self.peers[entry.peer.0 as usize];
        peer.in_flight += 1;
        peer.sent += 1;
        if let Some(pace) = &mut peer.pace {
            pace.sent(now.mono);
        }
        let number = peer.sent;
        link.in_flight.push(InFlight { slot, seq: self.handed_seq, at: now.wall, number });
        *self.handed_live.entry(self.handed_seq).or_insert(0) += 1;
        let want_receipt = peer.settings.receipts && entry.receipts().any();
        let taken = entry.side.as_ref().map_or(0, |side| side.parts.len());
        let steps = entry.side.as_ref().map_or(&[][..], |side| &side.steps);
        let ticket = ticket(steps, Ticket { at: now.wall, attempt: entry.attempts });
        out.batch.handed.push(Handed { id: entry.id, attempt: entry.attempts, leg: entry.leg, at: now.wall });
        out.commands.push(Command::Send {
            link: link.id,
            message,
            leg: entry.leg,
            taken: u16::try_from(taken).unwrap_or(u16::MAX),
            want_receipt,
            more,
            ticket,
        });
        self.totals.submitted += 1;
        if self.slab[slot].side.is_some() {
            let (peer, attempt) = (self.slab[slot].peer, self.slab[slot].attempts);
            self.step(now, slot, StepKind::Submitted { peer, attempt });
        }
    }

    /// A message that is queued, or waits for its subscriber, has waited for its leg as long as the route allows: the next
    /// one takes it.
    pub(crate) fn waited_long_enough(&mut self, now: Now, slot: Slot, out: &mut Output) {
        // What is about to be ended by an order does not get away from it.
        if self.orders.holds_any() && self.orders.may_end(&self.slab[slot], now) {
            let (id, later) = (self.slab[slot].id, now.mono + ROOM_AGAIN);
            self.slab[slot].due = later;
            self.timers.set(later, Timer::Message(slot, id));
            return;
        }
        let Some(message) = self.slab[slot].message.clone() else {
            self.load_if_missing(slot, out);
            let (id, soon) = (self.slab[slot].id, now.mono + std::time::Duration::from_secs(1));
            self.slab[slot].due = soon;
            self.timers.set(soon, Timer::Message(slot, id));
            return;
        };
        let mut slot = slot;
        match self.slab[slot].state {
            State::Queued => slot = self.leave_queue(slot),
            State::Aside => self.leave_aside(slot),
            State::Suspended => self.leave_order(slot),
            _ => self.leave_resolving(slot),
        }
        if !self.next_leg(now, slot, &message, out) {
            self.requeue(slot);
        }
    }

    /// Moves a message that stands in no queue to its next leg, if there is one.
    pub(crate) fn next_leg(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<model::Message>,
        out: &mut Output,
    ) -> bool {
        let Verdict::Forward(legs) = &message.routed.verdict else { return false };
        let next = usize::from(self.slab[slot].leg) + 1;
        // Peers that take nothing new are passed over, unless there is no other.
        let open = (next..legs.len()).find(|index| self.orders.drains(legs[*index].peer).is_none());
        let next = open.unwrap_or(next);
        let Some(leg) = legs.get(next) else { return false };
        // Parts that one peer has cannot be completed by another: the next leg sends the whole message.
        self.slab[slot].side().parts.clear();
        self.step(now, slot, StepKind::NextLeg { peer: leg.peer });
        self.end_turn(slot);
        let entry = &mut self.slab[slot];
        entry.leg = u8::try_from(next).unwrap_or(u8::MAX);
        entry.peer = leg.peer;
        self.peer_mut(leg.peer);
        self.name_subscriber(slot, message);
        self.begin_leg(now, slot, message, out);
        true
    }

    /// Puts a message that stands in no queue into the queue of its leg, or lets it wait for its subscriber first.
    pub(crate) fn begin_leg(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<model::Message>,
        out: &mut Output,
    ) {
        match self.resolve_first(now, slot, message, out) {
            Subscription::NotNeeded => {
                self.requeue(slot);
                self.watch_longest_wait(now, slot, message);
                self.record(now, slot, out);
            }
            Subscription::Waits => self.record(now, slot, out),
            Subscription::Settled => {}
        }
    }
}

/// The name of a hand-over that follows these steps: `own`, unless it repeats one that was left in doubt, perhaps more
/// than once; then that one's.
fn ticket(steps: &[Step], own: Ticket) -> Ticket {
    let mut ticket = own;
    let mut repeats = false;
    for step in steps.iter().rev() {
        match step.kind {
            StepKind::SentAgain | StepKind::Unanswered | StepKind::Recovered => repeats = true,
            StepKind::Submitted { attempt, .. } if repeats => {
                ticket = Ticket { at: step.at, attempt };
                repeats = false;
            }
            StepKind::Deferred { .. }
            | StepKind::OthersFirst { .. }
            | StepKind::AwaitingAlert { .. }
            | StepKind::Decided { .. }
            | StepKind::Asked
            | StepKind::NotSent => {}
            // Another peer than the one in doubt.
            StepKind::ByHand { deed: Deed::Rebound, .. } => break,
            StepKind::ByHand { .. } => {}
            _ => break,
        }
    }
    ticket
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PeerId, Timestamp};

    fn steps(kinds: &[StepKind]) -> Vec<Step> {
        let at = |index: usize| Timestamp(index as u64 + 1);
        kinds.iter().enumerate().map(|(index, kind)| Step { at: at(index), kind: kind.clone() }).collect()
    }

    fn submitted(attempt: u16) -> StepKind {
        StepKind::Submitted { peer: PeerId(1), attempt }
    }

    #[test]
    fn a_repetition_has_the_ticket_of_what_it_repeats() {
        use StepKind::{Recovered, Refused, SentAgain, Unanswered};
        let own = Ticket { at: Timestamp(100), attempt: 9 };
        assert_eq!(ticket(&[], own), own);
        let first = Ticket { at: Timestamp(1), attempt: 1 };
        assert_eq!(ticket(&steps(&[submitted(1), Unanswered, SentAgain]), own), first);
        assert_eq!(ticket(&steps(&[submitted(1), Recovered, SentAgain]), own), first);
        let twice = [submitted(1), Unanswered, SentAgain, submitted(2), Unanswered, SentAgain];
        assert_eq!(ticket(&steps(&twice), own), first);
        assert_eq!(ticket(&steps(&[submitted(1), Refused { code: 88 }]), own), own);
        let refused = [submitted(1), Refused { code: 88 }, submitted(2), Unanswered, SentAgain];
        assert_eq!(ticket(&steps(&refused), own), Ticket { at: Timestamp(3), attempt: 2 });
        let answered_since = [submitted(1), Unanswered, SentAgain, submitted(2), Refused { code: 88 }];
        assert_eq!(ticket(&steps(&answered_since), own), own);
    }
}
