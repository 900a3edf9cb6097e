//! One message at a time for a subscriber: what follows from [`crate::turns`] for messages and their queues.
//!
//! At a serial peer a message has its subscriber's turn from its hand-over until it has ended, goes elsewhere or is back in its
//! queue. While it waits after a failure it keeps the turn: the subscriber is parked, and the others burn no attempts.

use crate::deciding::{BREATH, MANY_ATTEMPTS};
use crate::engine::Engine;
use crate::resolving::{needs_subscriber, number_on_leg};
use crate::slab::{NONE, Slot, State};
use crate::timer::Timer;
use crate::turns::{Name, rank};
use crate::{Command, Output};
use model::{AddressBytes, Imsi, Message, MessageId, Moment, Now, StepKind, Verdict};

/// How many messages one look at a queue sets aside; the rest follow in the next run, so that other peers' come between.
pub(crate) const ASIDE_RUN: usize = 4096;

impl Engine {
    /// Sets by which name a message stands in its subscriber's turn, where its peer is serial. To be called with each leg.
    pub(crate) fn name_subscriber(&mut self, slot: Slot, message: &Message) {
        let entry = &self.slab[slot];
        let (peer, leg) = (entry.peer.0, entry.leg);
        let serial = self.peers.get(peer as usize).is_some_and(|peer| peer.settings.serial);
        // Who is still to be found has no turn yet.
        let key = if serial && !needs_subscriber(message, leg) {
            match imsi_on_leg(message, leg) {
                Some(imsi) => self.turns.key(peer, Name::Imsi(&imsi.0)),
                None => self.turns.key(peer, Name::Number(&number_on_leg(message, leg))),
            }
        } else {
            0
        };
        self.slab[slot].subscriber = key;
    }

    fn is_serial(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        entry.subscriber != 0
            && self.peers.get(entry.peer.0 as usize).is_some_and(|peer| peer.settings.serial)
    }

    /// Whether a message whose turn has come in its queue must let others to its subscriber go first.
    pub(crate) fn must_wait(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let Some(turn) = self.turns.get(entry.subscriber) else { return false };
        match (turn.holder, turn.called) {
            (Some(holder), _) => holder != entry.id,
            (None, Some(called)) if called != entry.id => {
                self.ids.get(&self.slab, called).is_some_and(|slot| rank(&self.slab[slot]) < rank(entry))
            }
            (None, _) => false,
        }
    }

    /// Puts a message that stands in no queue behind its subscriber's turn. When its leg's longest wait ends stays as it is.
    fn set_aside(&mut self, slot: Slot) {
        let (key, id, peer) = {
            let entry = &mut self.slab[slot];
            entry.state = State::Aside;
            (entry.subscriber, entry.id, entry.peer)
        };
        self.peer_mut(peer).aside += 1;
        let turn = self.turns.make(key);
        if turn.called == Some(id) {
            turn.called = None;
        }
        let behind = turn.behind.get_or_insert_default();
        let before = behind.oldest(&self.slab);
        behind.insert(&mut self.slab, slot);
        let after = behind.oldest(&self.slab);
        self.oldest_aside(peer.0, key, before, after);
        self.fresh.push(slot);
    }

    /// The same for one that has just come, or whose turn in its queue has come. The one before it, if it leaves in this run,
    /// is told that another waits.
    pub(crate) fn let_pass(&mut self, slot: Slot, out: &mut Output) {
        self.totals.set_aside += 1;
        self.set_aside(slot);
        let Some(turn) = self.turns.get(self.slab[slot].subscriber) else { return };
        if let Some(Command::Send { message, more, .. }) = out.commands.get_mut(turn.command as usize)
            && turn.holder == Some(message.id)
        {
            *more = true;
        }
    }

    /// Takes a message out from behind its subscriber's turn; it is then where one is whose attempt has just ended.
    pub(crate) fn leave_aside(&mut self, slot: Slot) {
        let (key, peer) = {
            let entry = &mut self.slab[slot];
            entry.state = State::Submitted;
            (entry.subscriber, entry.peer)
        };
        self.peer_mut(peer).aside -= 1;
        let Some(turn) = self.turns.get_mut(key) else { return };
        let Some(behind) = &mut turn.behind else { return };
        let before = behind.oldest(&self.slab);
        behind.remove(&mut self.slab, slot);
        let after = behind.oldest(&self.slab);
        if behind.is_empty() {
            turn.behind = None;
        }
        self.oldest_aside(peer.0, key, before, after);
    }

    fn oldest_aside(&mut self, peer: u32, key: u64, before: Option<MessageId>, after: Option<MessageId>) {
        if before != after {
            let oldest = &mut self.peers[peer as usize].oldest_aside;
            before.map(|id| oldest.remove(&(id, key)));
            after.map(|id| oldest.insert((id, key)));
        }
    }

    /// A message leaves for its subscriber; says whether another is known to wait.
    pub(crate) fn take_turn(&mut self, slot: Slot, out: &Output) -> bool {
        if !self.is_serial(slot) {
            return false;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let turn = self.turns.make(key);
        turn.holder = Some(id);
        if turn.called == Some(id) {
            turn.called = None;
        }
        turn.heard = false;
        turn.command = u32::try_from(out.commands.len()).unwrap_or(u32::MAX);
        let first = turn.behind.as_ref().and_then(|behind| behind.first(&self.slab));
        if let Some(next) = first
            && self.cached < self.settings.body_cache
        {
            self.fetch(next);
        }
        first.is_some()
    }

    /// A message that waits after a failure keeps its subscriber's turn; where nobody has it (after a start), it takes it.
    fn keep_turn(&mut self, slot: Slot) {
        if !self.is_serial(slot) {
            return;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let turn = self.turns.make(key);
        if turn.holder.is_none() {
            turn.holder = Some(id);
            if turn.called == Some(id) {
                turn.called = None;
            }
        }
    }

    /// As [`Engine::keep_turn`], and the subscriber is parked.
    pub(crate) fn park(&mut self, slot: Slot) {
        if !self.is_serial(slot) {
            return;
        }
        self.keep_turn(slot);
        let (key, id, peer) = (self.slab[slot].subscriber, self.slab[slot].id, self.slab[slot].peer.0);
        let Some(turn) = self.turns.get_mut(key).filter(|turn| turn.holder == Some(id)) else { return };
        if !turn.parked {
            turn.parked = true;
            self.peers[peer as usize].parked += 1;
        }
        // The content of who comes next was read ahead; memory may be short.
        let first = turn.behind.as_ref().and_then(|behind| behind.first(&self.slab));
        self.fresh.extend(first);
    }

    /// A message has its subscriber's turn no longer, be it that it has ended, goes elsewhere or waits for something else: the
    /// next one is called.
    pub(crate) fn end_turn(&mut self, slot: Slot) {
        let key = self.slab[slot].subscriber;
        if key != 0 && self.give_up_turn(slot) {
            self.call_next(key);
        }
    }

    fn give_up_turn(&mut self, slot: Slot) -> bool {
        let (key, id, peer) = (self.slab[slot].subscriber, self.slab[slot].id, self.slab[slot].peer.0);
        let Some(turn) = self.turns.get_mut(key) else { return false };
        if turn.holder == Some(id) {
            turn.holder = None;
            turn.heard = false;
            if std::mem::take(&mut turn.parked) {
                self.peers[peer as usize].parked -= 1;
            }
            return true;
        }
        if turn.called == Some(id) {
            turn.called = None;
            return true;
        }
        false
    }

    /// A message on its way back into its queue, where its peer is serial: it gives up its subscriber's turn and stands among
    /// those behind, of whom the first is called. False where it may join its queue right away.
    pub(crate) fn back_behind_turn(&mut self, slot: Slot) -> bool {
        if !self.is_serial(slot) {
            return false;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        if self.turns.get(key).is_some_and(|turn| turn.holder == Some(id)) {
            self.give_up_turn(slot);
            self.set_aside(slot);
            self.call_next(key);
            return true;
        }
        let waits = self.must_wait(slot);
        if waits {
            self.set_aside(slot);
        }
        waits
    }

    /// Where nobody has a subscriber's turn, the first of those behind goes back to its place in its queue; if its content must
    /// be read first, then with it, so that nobody waits for that.
    fn call_next(&mut self, key: u64) {
        let Some(turn) = self.turns.get(key).filter(|turn| turn.holder.is_none()) else { return };
        let Some(first) = turn.behind.as_ref().and_then(|behind| behind.first(&self.slab)) else {
            self.turns.forget_idle(key);
            return;
        };
        let called = turn.called.and_then(|called| self.ids.get(&self.slab, called));
        if called.is_some_and(|called| rank(&self.slab[called]) < rank(&self.slab[first])) {
            return;
        }
        let id = self.slab[first].id;
        self.turns.make(key).called = Some(id);
        if self.slab[first].message.is_none() {
            self.fetch(first);
        } else {
            self.rejoin(first);
        }
    }

    /// From behind the turn to its place in the queue.
    fn rejoin(&mut self, slot: Slot) {
        let longest_wait = self.slab[slot].due;
        self.leave_aside(slot);
        self.requeue(slot);
        self.slab[slot].due = longest_wait;
    }

    /// The content of a message was read back that stands behind its subscriber's turn.
    pub(crate) fn loaded_aside(&mut self, slot: Slot) {
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let Some(turn) = self.turns.get_mut(key).filter(|turn| turn.called == Some(id)) else { return };
        if turn.holder.is_some() {
            turn.called = None;
        } else if self.slab[slot].message.is_some() {
            self.rejoin(slot);
        }
    }

    fn fetch(&mut self, slot: Slot) {
        use crate::slab::flag::LOADING;
        let entry = &mut self.slab[slot];
        if entry.message.is_none() && !entry.has(LOADING) {
            entry.set(LOADING, true);
            let id = entry.id;
            self.to_fetch.push(id);
        }
    }

    /// Whether the subscriber was heard of while the attempt was under way that has just failed; that is then forgotten.
    pub(crate) fn was_heard(&mut self, slot: Slot) -> bool {
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let turn = if key == 0 { None } else { self.turns.get_mut(key) };
        turn.filter(|turn| turn.holder == Some(id)).is_some_and(|turn| std::mem::take(&mut turn.heard))
    }

    /// A subscriber was heard of, by number: what waits for that, or is parked, is tried at once.
    pub(crate) fn alert(&mut self, now: Now, msisdn: &AddressBytes, out: &mut Output) {
        let number = crate::resolving::without_plus(msisdn);
        let mut ids = self.deciding.heard_of_number(&number);
        self.heard_at_turns(Name::Number(&number), &mut ids);
        if let Some(imsi) = self.resolving.remembered_imsi(&number, now.mono) {
            ids.extend(self.deciding.heard_of_imsi(&imsi));
            self.heard_at_turns(Name::Imsi(&imsi.0), &mut ids);
        }
        self.wake_all(now, ids, out);
    }

    /// A subscriber was heard of, by IMSI.
    pub(crate) fn reachable(&mut self, now: Now, imsi: &Imsi, out: &mut Output) {
        let mut ids = self.deciding.heard_of_imsi(imsi);
        self.heard_at_turns(Name::Imsi(&imsi.0), &mut ids);
        self.wake_all(now, ids, out);
    }

    /// A number was seen to be this subscriber's, and perhaps another's before. What is remembered of it otherwise is
    /// forgotten; what waits for another subscriber under it is tried, and its peer then says that the number has moved.
    pub(crate) fn numbered(
        &mut self,
        now: Now,
        msisdn: &AddressBytes,
        imsi: &Imsi,
        before: Option<Imsi>,
        out: &mut Output,
    ) {
        let number = crate::resolving::without_plus(msisdn);
        let remembered = self.resolving.learn(&number, imsi);
        let mut ids = self.deciding.of_number_and_not(&number, imsi);
        for other in [remembered, before].into_iter().flatten().filter(|other| other != imsi) {
            self.heard_at_turns(Name::Imsi(&other.0), &mut ids);
        }
        self.wake_all(now, ids, out);
    }

    fn heard_at_turns(&mut self, name: Name<'_>, ids: &mut Vec<MessageId>) {
        if self.turns.is_empty() {
            return;
        }
        for peer in 0..self.peers.len() {
            if !self.peers[peer].settings.serial {
                continue;
            }
            let key = self.turns.key(u32::try_from(peer).unwrap_or(NONE), name);
            let Some(holder) = self.turns.get(key).and_then(|turn| turn.holder) else { continue };
            let Some(slot) = self.ids.get(&self.slab, holder) else { continue };
            match self.slab[slot].state {
                State::Deferred => ids.push(holder),
                State::Submitted | State::Deciding => self.turns.make(key).heard = true,
                // Its doubt is settled as its peer's remedy says; the others need not wait for that any longer.
                State::Uncertain => self.end_turn(slot),
                _ => {}
            }
        }
    }

    fn wake_all(&mut self, now: Now, mut ids: Vec<MessageId>, out: &mut Output) {
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && self.slab[slot].state == State::Deferred
            {
                self.wake(now, slot, out);
            }
        }
    }

    /// Ends the wait of a message whose subscriber was heard of.
    fn wake(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let soon = now.mono + BREATH;
        let entry = &mut self.slab[slot];
        let id = entry.id;
        if entry.attempts < MANY_ATTEMPTS {
            self.deciding.forget_alert(id);
            self.peer_of(slot).deferred -= 1;
            self.put_back(now, slot, out);
        } else if entry.due > soon {
            // It may be the attempts themselves by which the network hears of the subscriber.
            entry.due = soon;
            self.timers.set(soon, Timer::Message(slot, id));
            self.record(now, slot, out);
        }
    }

    /// Whether the last attempt of a message that waits at a serial peer was never answered.
    pub(crate) fn is_unanswered(&self, slot: Slot) -> bool {
        let steps = self.slab[slot].side.as_ref().map_or(&[][..], |side| &side.steps);
        let last = steps.iter().rev().find_map(|step| match step.kind {
            StepKind::Unanswered => Some(true),
            StepKind::Submitted { .. }
            | StepKind::Refused { .. }
            | StepKind::NotSent
            | StepKind::NextLeg { .. }
            | StepKind::Replaced => Some(false),
            _ => None,
        });
        self.is_serial(slot) && last == Some(true)
    }

    /// A peer has become serial, or is so no longer.
    pub(crate) fn turns_changed(&mut self, peer: u32, serial: bool) {
        let index = peer as usize;
        if serial {
            let flights = self.peers[index].links.iter();
            let flights = flights.filter_map(|link| self.links.get(*link as usize)?.as_ref());
            let slots: Vec<Slot> =
                flights.flat_map(|link| &link.in_flight).map(|flight| flight.slot).collect();
            for slot in slots {
                if let Some(message) = self.slab[slot].message.clone() {
                    self.name_subscriber(slot, &message);
                    self.keep_turn(slot);
                }
            }
            return;
        }
        let of_peer = |turn: &crate::turns::Turn| {
            let first = turn.behind.as_ref().and_then(|behind| behind.first(&self.slab));
            let ids = [turn.holder, turn.called].into_iter().flatten();
            let slot = ids.filter_map(|id| self.ids.get(&self.slab, id)).next().or(first);
            slot.is_none_or(|slot| self.slab[slot].peer.0 == peer)
        };
        let keys = self.turns.iter().filter(|(_, turn)| of_peer(turn)).map(|(key, _)| key);
        for key in keys.collect::<Vec<_>>() {
            while let Some(slot) = self.first_behind(key) {
                self.rejoin(slot);
            }
            self.turns.remove(key);
        }
        self.peers[index].parked = 0;
    }

    fn first_behind(&self, key: u64) -> Option<Slot> {
        self.turns.get(key)?.behind.as_ref().and_then(|behind| behind.first(&self.slab))
    }

    /// The message that stands before one that is aside, and until when its subscriber is parked.
    pub(crate) fn before(&self, slot: Slot) -> Option<(MessageId, Option<Moment>)> {
        let turn = self.turns.get(self.slab[slot].subscriber)?;
        let first = turn.holder.or(turn.called)?;
        let until = self
            .ids
            .get(&self.slab, first)
            .filter(|first| turn.parked && self.slab[*first].state == State::Deferred)
            .map(|first| self.slab[first].due);
        Some((first, until))
    }
}

/// The subscriber of a leg, where known.
pub(crate) fn imsi_on_leg(message: &Message, leg: u8) -> Option<&Imsi> {
    match &message.routed.verdict {
        Verdict::Forward(legs) => legs.get(usize::from(leg))?.imsi.as_ref(),
        Verdict::Hold(_) | Verdict::Reject(_) => None,
    }
}
