//! Serial delivery: one message at a time per subscriber, by [`crate::subscriber_lock`].
//!
//! At a serial peer a message holds its subscriber's lock from its submit attempt until it ends, moves to another
//! peer or returns to its queue. In back-off after a failure it keeps the lock, so that other messages to the
//! subscriber use no attempts.

use crate::delivery_policy::{MANY_ATTEMPTS, MIN_RETRY_DELAY};
use crate::engine::Engine;
use crate::leg_subscriber::{imsi_on_leg, needs_subscriber, number_on_leg};
use crate::slab::{NONE, Slot, State};
use crate::subscriber_lock::{SubscriberKey, rank};
use crate::timer::Timer;
use crate::{EngineCommand, Output};
use model::{AddressBytes, Imsi, Message, MessageId, Moment, Now, StepKind};

/// Maximum number of messages that one dispatch moves behind locks; the rest follow in the next run, so that other
/// peers get their turn.
pub(crate) const SUBSCRIBER_WAIT_RUN: usize = 4096;

impl Engine {
    /// Sets the lock key of a message if its peer is serial. Must be called for each leg.
    pub(crate) fn set_subscriber_key(&mut self, slot: Slot, message: &Message) {
        let entry = &self.slab[slot];
        let (peer, leg) = (entry.peer.0, entry.leg);
        let serial = self.peers.get(peer as usize).is_some_and(|peer| peer.settings.serial);
        // A message whose subscriber is unresolved has no key yet.
        let key = if serial && !needs_subscriber(message, leg) {
            match imsi_on_leg(message, leg) {
                Some(imsi) => self.subscriber_locks.key(peer, SubscriberKey::Imsi(&imsi.0)),
                None => self.subscriber_locks.key(peer, SubscriberKey::Number(&number_on_leg(message, leg))),
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

    /// Whether a message at the head of its queue must wait for another message to its subscriber.
    pub(crate) fn must_wait_for_subscriber(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let Some(lock) = self.subscriber_locks.get(entry.subscriber) else { return false };
        match (lock.holder, lock.next_up) {
            (Some(holder), _) => holder != entry.id,
            (None, Some(next_up)) if next_up != entry.id => {
                self.ids.get(&self.slab, next_up).is_some_and(|slot| rank(&self.slab[slot]) < rank(entry))
            }
            (None, _) => false,
        }
    }

    /// Puts a message that is in no queue behind its subscriber's lock. The end of its leg's longest wait does not
    /// change.
    fn wait_for_subscriber(&mut self, slot: Slot) {
        let (key, id, peer) = {
            let entry = &mut self.slab[slot];
            entry.state = State::SubscriberLocked;
            (entry.subscriber, entry.id, entry.peer)
        };
        self.peer_mut(peer).subscriber_locked += 1;
        let lock = self.subscriber_locks.make(key);
        if lock.next_up == Some(id) {
            lock.next_up = None;
        }
        let waiters = lock.waiters.get_or_insert_default();
        let before = waiters.oldest(&self.slab);
        waiters.insert(&mut self.slab, slot);
        let after = waiters.oldest(&self.slab);
        self.update_oldest_waiting(peer.0, key, before, after);
        self.newly_cached.push(slot);
    }

    /// As [`Engine::wait_for_subscriber`], for a new message or one at the head of its queue. If the holder is sent
    /// in this run, its command is told that another message waits.
    pub(crate) fn wait_behind_holder(&mut self, slot: Slot, out: &mut Output) {
        self.totals.subscriber_locked += 1;
        self.wait_for_subscriber(slot);
        let Some(lock) = self.subscriber_locks.get(self.slab[slot].subscriber) else { return };
        if let Some(EngineCommand::Send { message, more, .. }) = out.commands.get_mut(lock.command as usize)
            && lock.holder == Some(message.id)
        {
            *more = true;
        }
    }

    /// Removes a message from the waiters of its subscriber's lock; it is then in the state after the end of an attempt.
    pub(crate) fn stop_waiting_for_subscriber(&mut self, slot: Slot) {
        let (key, peer) = {
            let entry = &mut self.slab[slot];
            entry.state = State::Submitted;
            (entry.subscriber, entry.peer)
        };
        self.peer_mut(peer).subscriber_locked -= 1;
        let Some(lock) = self.subscriber_locks.get_mut(key) else { return };
        let Some(waiters) = &mut lock.waiters else { return };
        let before = waiters.oldest(&self.slab);
        waiters.remove(&mut self.slab, slot);
        let after = waiters.oldest(&self.slab);
        if waiters.is_empty() {
            lock.waiters = None;
        }
        self.update_oldest_waiting(peer.0, key, before, after);
    }

    fn update_oldest_waiting(
        &mut self,
        peer: u32,
        key: u64,
        before: Option<MessageId>,
        after: Option<MessageId>,
    ) {
        if before != after {
            let oldest = &mut self.peers[peer as usize].oldest_waiting;
            before.map(|id| oldest.remove(&(id, key)));
            after.map(|id| oldest.insert((id, key)));
        }
    }

    /// Acquires the subscriber lock for a message that is being sent. Returns whether another message waits.
    pub(crate) fn acquire_subscriber_lock(&mut self, slot: Slot, out: &Output) -> bool {
        if !self.is_serial(slot) {
            return false;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let lock = self.subscriber_locks.make(key);
        lock.holder = Some(id);
        if lock.next_up == Some(id) {
            lock.next_up = None;
        }
        lock.alerted = false;
        lock.command = u32::try_from(out.commands.len()).unwrap_or(u32::MAX);
        let first = lock.waiters.as_ref().and_then(|waiters| waiters.first(&self.slab));
        if let Some(next) = first
            && self.cached < self.settings.body_cache
        {
            self.request_content(next);
        }
        first.is_some()
    }

    /// Keeps the lock for a message in back-off; acquires it if it is free (after a start).
    fn keep_subscriber_lock(&mut self, slot: Slot) {
        if !self.is_serial(slot) {
            return;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let lock = self.subscriber_locks.make(key);
        if lock.holder.is_none() {
            lock.holder = Some(id);
            if lock.next_up == Some(id) {
                lock.next_up = None;
            }
        }
    }

    /// As [`Engine::keep_subscriber_lock`], and blocks the subscriber until the next attempt.
    pub(crate) fn hold_lock_for_retry(&mut self, slot: Slot) {
        if !self.is_serial(slot) {
            return;
        }
        self.keep_subscriber_lock(slot);
        let (key, id, peer) = (self.slab[slot].subscriber, self.slab[slot].id, self.slab[slot].peer.0);
        let Some(lock) = self.subscriber_locks.get_mut(key).filter(|lock| lock.holder == Some(id)) else {
            return;
        };
        if !lock.backing_off {
            lock.backing_off = true;
            self.peers[peer as usize].blocked_subscribers += 1;
        }
        // The content of the next waiter was loaded ahead; memory may be short.
        let first = lock.waiters.as_ref().and_then(|waiters| waiters.first(&self.slab));
        self.newly_cached.extend(first);
    }

    /// Releases the subscriber lock of a message that ended, moved or waits for something else, and wakes the next
    /// waiter.
    pub(crate) fn release_subscriber_lock(&mut self, slot: Slot) {
        let key = self.slab[slot].subscriber;
        if key != 0 && self.drop_lock(slot) {
            self.wake_next_waiter(key);
        }
    }

    fn drop_lock(&mut self, slot: Slot) -> bool {
        let (key, id, peer) = (self.slab[slot].subscriber, self.slab[slot].id, self.slab[slot].peer.0);
        let Some(lock) = self.subscriber_locks.get_mut(key) else { return false };
        if lock.holder == Some(id) {
            lock.holder = None;
            lock.alerted = false;
            if std::mem::take(&mut lock.backing_off) {
                self.peers[peer as usize].blocked_subscribers -= 1;
            }
            return true;
        }
        if lock.next_up == Some(id) {
            lock.next_up = None;
            return true;
        }
        false
    }

    /// Requeues a message of a serial peer: releases its lock, adds it to the waiters, and wakes the first waiter. Returns
    /// false if the message may join its queue at once.
    pub(crate) fn requeue_behind_lock(&mut self, slot: Slot) -> bool {
        if !self.is_serial(slot) {
            return false;
        }
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        if self.subscriber_locks.get(key).is_some_and(|lock| lock.holder == Some(id)) {
            self.drop_lock(slot);
            self.wait_for_subscriber(slot);
            self.wake_next_waiter(key);
            return true;
        }
        let waits = self.must_wait_for_subscriber(slot);
        if waits {
            self.wait_for_subscriber(slot);
        }
        waits
    }

    /// If a lock is free, moves its first waiter to its place in the queue, once its content is loaded.
    fn wake_next_waiter(&mut self, key: u64) {
        let Some(lock) = self.subscriber_locks.get(key).filter(|lock| lock.holder.is_none()) else { return };
        let Some(first) = lock.waiters.as_ref().and_then(|waiters| waiters.first(&self.slab)) else {
            self.subscriber_locks.forget_idle(key);
            return;
        };
        let next_up = lock.next_up.and_then(|next_up| self.ids.get(&self.slab, next_up));
        if next_up.is_some_and(|next_up| rank(&self.slab[next_up]) < rank(&self.slab[first])) {
            return;
        }
        let id = self.slab[first].id;
        self.subscriber_locks.make(key).next_up = Some(id);
        if self.slab[first].message.is_none() {
            self.request_content(first);
        } else {
            self.rejoin_queue(first);
        }
    }

    /// Moves a waiter to its place in the queue.
    fn rejoin_queue(&mut self, slot: Slot) {
        let longest_wait = self.slab[slot].due;
        self.stop_waiting_for_subscriber(slot);
        self.requeue(slot);
        self.slab[slot].due = longest_wait;
    }

    /// The content of a waiter was loaded.
    pub(crate) fn waiter_content_loaded(&mut self, slot: Slot) {
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let Some(lock) = self.subscriber_locks.get_mut(key).filter(|lock| lock.next_up == Some(id)) else {
            return;
        };
        if lock.holder.is_some() {
            lock.next_up = None;
        } else if self.slab[slot].message.is_some() {
            self.rejoin_queue(slot);
        }
    }

    fn request_content(&mut self, slot: Slot) {
        use crate::slab::flag::LOADING;
        let entry = &mut self.slab[slot];
        if entry.message.is_none() && !entry.has(LOADING) {
            entry.set(LOADING, true);
            let id = entry.id;
            self.content_requests.push(id);
        }
    }

    /// Whether the subscriber was alerted during the attempt that has just failed; resets the flag.
    pub(crate) fn take_alerted(&mut self, slot: Slot) -> bool {
        let (key, id) = (self.slab[slot].subscriber, self.slab[slot].id);
        let lock = if key == 0 { None } else { self.subscriber_locks.get_mut(key) };
        lock.filter(|lock| lock.holder == Some(id)).is_some_and(|lock| std::mem::take(&mut lock.alerted))
    }

    /// An alert by MSISDN: retries the messages that wait for it or are in back-off.
    pub(crate) fn subscriber_alert(&mut self, now: Now, msisdn: &AddressBytes, out: &mut Output) {
        let number = crate::leg_subscriber::without_plus(msisdn);
        let mut ids = self.policy.waiting_for_number(&number);
        self.alert_locks(SubscriberKey::Number(&number), &mut ids);
        if let Some(imsi) = self.resolver_state.cached_imsi(&number, now.mono) {
            ids.extend(self.policy.waiting_for_imsi(&imsi));
            self.alert_locks(SubscriberKey::Imsi(&imsi.0), &mut ids);
        }
        self.retry_all_now(now, ids, out);
    }

    /// An alert by IMSI.
    pub(crate) fn subscriber_reachable(&mut self, now: Now, imsi: &Imsi, out: &mut Output) {
        let mut ids = self.policy.waiting_for_imsi(imsi);
        self.alert_locks(SubscriberKey::Imsi(&imsi.0), &mut ids);
        self.retry_all_now(now, ids, out);
    }

    /// A number belongs to this subscriber now, and perhaps belonged to another. Drops other cached answers and
    /// retries the messages that wait for the other subscriber; their peer then reports that the number has moved.
    pub(crate) fn subscriber_learned(
        &mut self,
        now: Now,
        msisdn: &AddressBytes,
        imsi: &Imsi,
        before: Option<Imsi>,
        out: &mut Output,
    ) {
        let number = crate::leg_subscriber::without_plus(msisdn);
        let remembered = self.resolver_state.learn(&number, imsi);
        let mut ids = self.policy.waiting_for_other_imsi(&number, imsi);
        for other in [remembered, before].into_iter().flatten().filter(|other| other != imsi) {
            self.alert_locks(SubscriberKey::Imsi(&other.0), &mut ids);
        }
        self.retry_all_now(now, ids, out);
    }

    fn alert_locks(&mut self, name: SubscriberKey<'_>, ids: &mut Vec<MessageId>) {
        if self.subscriber_locks.is_empty() {
            return;
        }
        for peer in 0..self.peers.len() {
            if !self.peers[peer].settings.serial {
                continue;
            }
            let key = self.subscriber_locks.key(u32::try_from(peer).unwrap_or(NONE), name);
            let Some(holder) = self.subscriber_locks.get(key).and_then(|lock| lock.holder) else { continue };
            let Some(slot) = self.ids.get(&self.slab, holder) else { continue };
            match self.slab[slot].state {
                State::Deferred => ids.push(holder),
                State::Submitted | State::Deciding => self.subscriber_locks.make(key).alerted = true,
                // Its peer's policy settles the uncertain message; the waiters need not wait for that.
                State::Uncertain => self.release_subscriber_lock(slot),
                _ => {}
            }
        }
    }

    fn retry_all_now(&mut self, now: Now, mut ids: Vec<MessageId>, out: &mut Output) {
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && self.slab[slot].state == State::Deferred
            {
                self.retry_now(now, slot, out);
            }
        }
    }

    /// Ends the wait of a message after an alert.
    fn retry_now(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let soon = now.mono + MIN_RETRY_DELAY;
        let entry = &mut self.slab[slot];
        let id = entry.id;
        if entry.attempts < MANY_ATTEMPTS {
            self.policy.forget_alert(id);
            self.peer_of(slot).deferred -= 1;
            self.put_back(now, slot, out);
        } else if entry.due > soon {
            // The attempts themselves may cause the alerts.
            entry.due = soon;
            self.timers.set(soon, Timer::Message(slot, id));
            self.write_progress(now, slot, out);
        }
    }

    /// Whether the last attempt of a message at a serial peer was never answered.
    pub(crate) fn last_attempt_unanswered(&self, slot: Slot) -> bool {
        let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
        let last = steps.iter().rev().find_map(|step| match step.kind {
            StepKind::Unanswered | StepKind::Recovered => Some(true),
            StepKind::Submitted { .. }
            | StepKind::Refused { .. }
            | StepKind::NotSent
            | StepKind::NextLeg { .. }
            | StepKind::Replaced => Some(false),
            _ => None,
        });
        (self.is_serial(slot) || self.is_remote(self.slab[slot].peer)) && last == Some(true)
    }

    /// A peer became serial, or stopped being serial.
    pub(crate) fn serial_changed(&mut self, peer: u32, serial: bool) {
        let index = peer as usize;
        if serial {
            let flights = self.peers[index].links.iter();
            let flights = flights.filter_map(|link| self.links.get(*link as usize)?.as_ref());
            let slots: Vec<Slot> =
                flights.flat_map(|link| &link.in_flight).map(|flight| flight.slot).collect();
            for slot in slots {
                if let Some(message) = self.slab[slot].message.clone() {
                    self.set_subscriber_key(slot, &message);
                    self.keep_subscriber_lock(slot);
                }
            }
            return;
        }
        let of_peer = |lock: &crate::subscriber_lock::SubscriberLock| {
            let first = lock.waiters.as_ref().and_then(|waiters| waiters.first(&self.slab));
            let ids = [lock.holder, lock.next_up].into_iter().flatten();
            let slot = ids.filter_map(|id| self.ids.get(&self.slab, id)).next().or(first);
            slot.is_none_or(|slot| self.slab[slot].peer.0 == peer)
        };
        let keys = self.subscriber_locks.iter().filter(|(_, lock)| of_peer(lock)).map(|(key, _)| key);
        for key in keys.collect::<Vec<_>>() {
            while let Some(slot) = self.first_waiter(key) {
                self.rejoin_queue(slot);
            }
            self.subscriber_locks.remove(key);
        }
        self.peers[index].blocked_subscribers = 0;
    }

    fn first_waiter(&self, key: u64) -> Option<Slot> {
        self.subscriber_locks.get(key)?.waiters.as_ref().and_then(|waiters| waiters.first(&self.slab))
    }

    /// The message that goes before a waiter, and the end of its back-off.
    pub(crate) fn lock_holder(&self, slot: Slot) -> Option<(MessageId, Option<Moment>)> {
        let lock = self.subscriber_locks.get(self.slab[slot].subscriber)?;
        let first = lock.holder.or(lock.next_up)?;
        let until = self
            .ids
            .get(&self.slab, first)
            .filter(|first| lock.backing_off && self.slab[*first].state == State::Deferred)
            .map(|first| self.slab[first].due);
        Some((first, until))
    }
}
