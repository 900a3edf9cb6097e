//! From a submission to a place in a queue.

use crate::consent::comparable;
use crate::engine::Engine;
use crate::keys::Known;
use crate::resolving::Subscription;
use crate::senders::Found;
use crate::slab::{Entry, NONE, Slot, State, flag};
use crate::timer::Timer;
use crate::{Answer, Command, Output, RefusedSubmission, ReplyTo};
use model::{
    FinalState, Kind, Leg, Message, MessageId, Moment, Now, PeerId, Refusal, RejectReason, Routed,
    SUBMISSION_IDS, StepKind, SubmissionKey, Timestamp, Verdict,
};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

fn tell_refused(message: &Message, refusal: Refusal, reply: ReplyTo, out: &mut Output) {
    out.commands.push(Command::Refused(Box::new(RefusedSubmission {
        link: reply.link,
        origin: message.origin,
        source: message.source.clone(),
        destination: message.destination.clone(),
        refusal,
    })));
}

impl Engine {
    pub(crate) fn accept_one(&mut self, now: Now, message: Message, reply: ReplyTo, out: &mut Output) {
        let Some(message) = self.awaits_content_to_replace(message, reply, out) else { return };
        let answer = match self.accept(now, message, reply, out) {
            Ok(id) => Answer::Accepted(id),
            Err(refusal) => Answer::Refused(refusal),
        };
        out.commands.push(Command::Answer { to: reply, answer });
    }

    pub(crate) fn accept_many(
        &mut self,
        now: Now,
        (messages, shared_id): (Vec<Message>, bool),
        key: Option<SubmissionKey>,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let origin = messages.first().map(|message| message.origin);
        let known = match (origin, &key) {
            (Some(origin), Some(key)) => self.keys.find(origin, key, (now.mono, self.settings.key_retention)),
            _ => Known::No,
        };
        let room = match (origin, &key) {
            (Some(origin), Some(key)) if known == Known::No => {
                let limit = self.peer_mut(origin).settings.key_memory;
                self.keys.room(origin, key, messages.len(), limit)
            }
            _ => true,
        };
        let answer = match known {
            Known::Same(results) => {
                self.totals.repeated += 1;
                Answer::AcceptedMany(results)
            }
            Known::Other => {
                for message in &messages {
                    tell_refused(message, Refusal::KeyReused, reply, out);
                }
                Answer::Refused(Refusal::KeyReused)
            }
            Known::No if !room && key.as_ref().is_some_and(|key| key.required) => {
                self.totals.refused += messages.len() as u64;
                let oldest = origin.and_then(|origin| self.keys.oldest(origin));
                let wait = oldest.map_or(Duration::ZERO, |until| until - now.mono);
                let retry_after = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1);
                for message in &messages {
                    tell_refused(message, Refusal::KeysFull { retry_after }, reply, out);
                }
                Answer::Refused(Refusal::KeysFull { retry_after })
            }
            Known::No => {
                // What is replaced may make a receipt, whose id would stand between those of the messages.
                let shared_id = shared_id
                    && (2..=SUBMISSION_IDS).contains(&(messages.len() as u64))
                    && !messages.iter().any(|message| message.replace_if_present);
                // A refused message takes no id: this is the first accepted one's.
                let submission = shared_id.then_some(self.next_id);
                let results: Vec<_> = messages
                    .into_iter()
                    .map(|message| self.accept(now, Message { submission, ..message }, reply, out))
                    .collect();
                // Where nothing was accepted there is nothing to protect, and the next try may fare better.
                if let (Some(origin), Some(key)) = (origin, key)
                    && room
                    && results.iter().any(Result::is_ok)
                {
                    let record =
                        self.keys.remember(origin, key, (now, self.settings.key_retention), results.clone());
                    out.batch.keys.push(record);
                }
                Answer::AcceptedMany(results)
            }
        };
        out.commands.push(Command::Answer { to: reply, answer });
    }

    /// Counts a refusal, and tells of it.
    fn refuse(&mut self, message: &Message, refusal: Refusal, reply: ReplyTo, out: &mut Output) -> Refusal {
        self.totals.refused += 1;
        tell_refused(message, refusal, reply, out);
        refusal
    }

    fn accept(
        &mut self,
        now: Now,
        mut message: Message,
        reply: ReplyTo,
        out: &mut Output,
    ) -> Result<MessageId, Refusal> {
        let mut verdict = std::mem::replace(&mut message.routed.verdict, Verdict::Hold(Timestamp(0)));
        let redirected = self.redirect(now, &message, &mut verdict);
        message.routed.verdict = verdict;
        let judged = self.judge(now, &mut message);
        let leg = judged.map_err(|refusal| self.refuse(&message, refusal, reply, out))?;
        let reserved = self.reserve(&message.routed);
        reserved.map_err(|refusal| self.refuse(&message, refusal, reply, out))?;
        let sender = self.find_sender(now, self.next_id, &mut message, out);
        if let Some(reason) = sender.refused {
            self.unreserve(&message.routed);
            self.totals.opted_out += u64::from(reason == RejectReason::OptedOut);
            return Err(self.refuse(&message, Refusal::Rejected(reason), reply, out));
        }
        let replaced = self.replaced_by(&message);
        self.totals.accepted += 1;
        let id = self.admit(now, message, leg, sender, out);
        if let Some(slot) = self.ids.get(&self.slab, id) {
            self.tell_redirected(now, slot, redirected, out);
        }
        // Afterwards: their ends make receipts, and these have ids.
        for old in replaced {
            if let Some(slot) = self.ids.get(&self.slab, old) {
                self.step(now, slot, StepKind::Replaced);
                self.end(now, slot, FinalState::Cancelled, None, out);
            }
        }
        Ok(id)
    }

    /// Whether a submission may come in; the index of its first leg.
    fn judge(&mut self, now: Now, message: &mut Message) -> Result<u8, Refusal> {
        if let Err(refusal) = self.admits(now, message) {
            self.totals.opted_out += u64::from(refusal == Refusal::Rejected(RejectReason::OptedOut));
            return Err(refusal);
        }
        message.expires_at = message.expires_at.min(now.wall + self.settings.longest_validity);
        message.scheduled = message.scheduled.filter(|scheduled| *scheduled > now.wall);
        match &mut message.routed.verdict {
            Verdict::Forward(legs) => {
                self.settle_legs(legs);
                self.first_leg_with_room(legs).ok_or(Refusal::QueueFull)
            }
            Verdict::Hold(_) | Verdict::Reject(_) => Ok(0),
        }
    }

    /// What a submission is looked at for, and nothing of it changes anything.
    fn admits(&self, now: Now, message: &Message) -> Result<(), Refusal> {
        if self.draining {
            return Err(Refusal::ShuttingDown);
        }
        if self.has_opted_out(message) {
            return Err(Refusal::Rejected(RejectReason::OptedOut));
        }
        if message.expires_at <= now.wall {
            return Err(Refusal::Expired);
        }
        let expires_at = message.expires_at.min(now.wall + self.settings.longest_validity);
        if let Some(scheduled) = message.scheduled
            && (scheduled > now.wall + self.settings.longest_schedule || scheduled >= expires_at)
        {
            return Err(Refusal::BadSchedule);
        }
        match &message.routed.verdict {
            Verdict::Reject(reason) => return Err(Refusal::Rejected(*reason)),
            Verdict::Hold(_) => {}
            Verdict::Forward(legs) => {
                if !legs.iter().any(|leg| self.takes_new(leg.peer)) {
                    // A peer that is drained will be back, or routed around.
                    let any = legs.iter().any(|leg| self.is_configured(leg.peer));
                    let reason = if any { RejectReason::TryLater } else { RejectReason::NoRoute };
                    return Err(Refusal::Rejected(reason));
                }
                if !legs.iter().any(|leg| self.takes_new(leg.peer) && self.has_room(leg.peer)) {
                    return Err(Refusal::QueueFull);
                }
            }
        }
        if self.disk_low || self.closed || self.live() as u64 >= self.settings.waiting_limit {
            return Err(Refusal::QueueFull);
        }
        Ok(())
    }

    /// Whether a routed and priced submission would be accepted now. Nothing is reserved, taken or counted.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn would_accept(&self, now: Now, message: &Message) -> Result<(), Refusal> {
        let mut redirected = message.clone();
        self.redirect(now, message, &mut redirected.routed.verdict);
        self.admits(now, &redirected)?;
        if let Some(charge) = message.routed.quote.as_ref().and_then(|quote| quote.charge.as_ref())
            && !self.money.can_reserve(charge)
        {
            return Err(Refusal::Rejected(RejectReason::NoCredit));
        }
        match &redirected.routed.sender {
            Some(wish) if self.has_stopped_pool(message, wish) => {
                Err(Refusal::Rejected(RejectReason::OptedOut))
            }
            _ => Ok(()),
        }
    }

    /// Whether the addressee has told this sender to stop.
    fn has_opted_out(&self, message: &Message) -> bool {
        let asked = !self.consents.is_empty()
            && self.peers.get(message.origin.0 as usize).is_some_and(|peer| peer.settings.opt_out);
        asked
            && self.consents.is_stopped(&comparable(
                &message.source.value,
                &message.destination.value,
                &self.settings.country,
            ))
    }

    /// Puts legs into the order in which they are tried: by rank, and within a rank by lot, so that each is first as
    /// often as its weight says. Legs to peers that are not configured, or take nothing new, are left out.
    pub(crate) fn settle_legs(&mut self, legs: &mut Vec<Leg>) {
        if legs.len() > 1 || legs.iter().any(|leg| !self.takes_new(leg.peer)) {
            legs.retain(|leg| self.takes_new(leg.peer));
            legs.truncate(usize::from(u8::MAX));
            legs.sort_by_key(|leg| leg.rank);
            let mut start = 0;
            while start < legs.len() {
                let rank = legs[start].rank;
                let end = start + legs[start..].iter().take_while(|leg| leg.rank == rank).count();
                for first in start..end {
                    let total: u64 = legs[first..end].iter().map(|leg| u64::from(leg.weight.max(1))).sum();
                    let mut lot = self.random.below(total);
                    let chosen = legs[first..end].iter().position(|leg| {
                        let weight = u64::from(leg.weight.max(1));
                        let hit = lot < weight;
                        lot = lot.saturating_sub(weight);
                        hit
                    });
                    legs.swap(first, first + chosen.unwrap_or(0));
                }
                start = end;
            }
        }
    }

    pub(crate) fn is_configured(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| peer.configured)
    }

    fn takes_new(&self, peer: PeerId) -> bool {
        self.is_configured(peer) && self.orders.drains(peer).is_none()
    }

    fn has_room(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| peer.waiting() < peer.settings.queue_limit)
    }

    fn first_leg_with_room(&self, legs: &[Leg]) -> Option<u8> {
        legs.iter().position(|leg| self.has_room(leg.peer)).and_then(|index| u8::try_from(index).ok())
    }

    /// Gives a message its id and its place. What it takes to refuse it has been looked at before.
    pub(crate) fn admit(
        &mut self,
        now: Now,
        mut message: Message,
        leg: u8,
        sender: Found,
        out: &mut Output,
    ) -> MessageId {
        let id = self.next_id;
        self.next_id = MessageId(id.0 + 1);
        message.id = id;
        if let Some(faulted) = message.routed.faulted.take() {
            // Whoever repeats a message may have it accepted once more; the first one is the example.
            let _ = faulted.set(id);
        }
        message.accepted_at = now.wall;
        let resolved = match sender.hold {
            Some(_) => Vec::new(),
            None => self.resolve_at_once(now, &mut message, leg),
        };
        let message = Arc::new(message);
        out.batch.accepted.push(message.clone());
        let slot = self.enter(now, &message, leg);
        self.cache(slot, message.clone());
        self.fresh.push(slot);
        sender.step.into_iter().for_each(|kind| self.step(now, slot, kind));
        if let Some(until) = sender.hold {
            self.step(now, slot, StepKind::Held { until });
            self.hold(slot, now.moment_of(until));
            self.record(now, slot, out);
            return id;
        }
        match (&message.routed.verdict, message.scheduled) {
            (Verdict::Hold(until), _) => self.hold(slot, now.moment_of(*until)),
            (_, Some(scheduled)) => self.defer(slot, now.moment_of(scheduled)),
            (_, None) => {
                resolved.into_iter().for_each(|kind| self.step(now, slot, kind));
                self.arrive(now, slot, &message, out);
            }
        }
        id
    }

    /// Makes the entry of a message and puts it into the indexes, but in no queue yet.
    pub(crate) fn enter(&mut self, now: Now, message: &Arc<Message>, leg: u8) -> Slot {
        let own_receipt = matches!(message.kind, Kind::Receipt(_));
        let peer = match &message.routed.verdict {
            Verdict::Forward(legs) => legs.get(usize::from(leg)).map_or(message.origin, |leg| leg.peer),
            Verdict::Hold(_) | Verdict::Reject(_) => message.origin,
        };
        self.peer_mut(peer);
        let mut entry = Entry {
            id: message.id,
            expires: now.moment_of(message.expires_at),
            origin: message.origin,
            peer,
            accepted: u32::try_from(message.accepted_at.0 / 1000).unwrap_or(u32::MAX),
            leg,
            priority: message.priority.level(),
            service: service_hash(&message.service_type),
            link: NONE,
            ..Entry::blank()
        };
        entry.set(flag::OWN_RECEIPT, own_receipt);
        entry.set(flag::PRICED, is_priced(&message.routed));
        entry.set_receipts(message.receipts);
        if !own_receipt {
            entry.pair = self.pairs.key(message.origin, &message.source.value, &message.destination.value);
        }
        let slot = self.slab.insert(entry);
        self.ids.insert(&self.slab, slot);
        if !own_receipt && let Some(submission) = message.submission {
            self.submissions.join(submission, message.id);
        }
        self.name_subscriber(slot, message);
        if !own_receipt {
            self.pairs.insert(&mut self.slab, slot);
        }
        slot
    }

    /// Puts a new arrival into its peer's queue, or lets it wait for its subscriber first.
    pub(crate) fn arrive(&mut self, now: Now, slot: Slot, message: &Arc<Message>, out: &mut Output) {
        if self.resolve_first(now, slot, message, out) == Subscription::NotNeeded {
            self.arrived(slot);
            if self.must_wait(slot) {
                self.let_pass(slot, out);
            } else {
                self.join_queue(slot);
            }
            self.watch_longest_wait(now, slot, message);
        }
    }

    /// Puts a new arrival at the tail of its peer's queue.
    fn join_queue(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Queued;
        let (peer, priority) = (entry.peer, usize::from(entry.priority));
        let state = &mut self.peers[peer.0 as usize];
        state.queued += 1;
        state.lanes[priority].push(&mut self.slab, slot);
        self.mark(peer.0);
    }

    /// Sets the timer for a leg that may only wait so long.
    pub(crate) fn watch_longest_wait(&mut self, now: Now, slot: Slot, message: &Message) {
        let Verdict::Forward(legs) = &message.routed.verdict else { return };
        let leg = usize::from(self.slab[slot].leg);
        if let Some(wait) = legs.get(leg).and_then(|leg| leg.longest_wait)
            && leg + 1 < legs.len()
        {
            let due = now.mono + wait;
            self.slab[slot].due = due;
            self.timers.set(due, Timer::Message(slot, self.slab[slot].id));
        }
    }

    /// Keeps a message until `until`, when it goes to its queue.
    pub(crate) fn defer(&mut self, slot: Slot, until: Moment) {
        let entry = &mut self.slab[slot];
        entry.state = State::Deferred;
        entry.due = until;
        let id = entry.id;
        self.timers.set(until, Timer::Message(slot, id));
        self.peer_of(slot).deferred += 1;
    }

    /// Keeps a message until `until`, when it is routed again.
    pub(crate) fn hold(&mut self, slot: Slot, until: Moment) {
        let entry = &mut self.slab[slot];
        entry.state = State::Held;
        entry.due = until;
        let id = entry.id;
        self.timers.set(until, Timer::Message(slot, id));
    }

    /// Asks the routing chain about a message whose hold is over.
    pub(crate) fn ask_route(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone() {
            self.slab[slot].state = State::Routing;
            out.commands.push(Command::Reroute { message });
        } else {
            // Its timer is set once more; the answer comes long before.
            self.load_if_missing(slot, out);
            self.hold(slot, now.mono + std::time::Duration::from_secs(1));
        }
    }

    /// The routing chain has decided anew.
    pub(crate) fn rerouted(&mut self, now: Now, id: MessageId, mut routed: Routed, out: &mut Output) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        let (State::Routing, Some(old)) = (self.slab[slot].state, self.slab[slot].message.clone()) else {
            return;
        };
        let redirected = self.redirect(now, &old, &mut routed.verdict);
        if let Verdict::Forward(legs) = &mut routed.verdict {
            let any = legs.iter().any(|leg| self.is_configured(leg.peer));
            self.settle_legs(legs);
            if legs.is_empty() {
                routed.verdict = if any {
                    // All that is left is drained: what was accepted waits for the end of that.
                    Verdict::Hold(now.wall + self.settings.reroute_after)
                } else {
                    Verdict::Reject(RejectReason::NoRoute)
                };
            }
        }
        // What it costs was said once; a message that was held before that was known is priced now.
        if old.routed.quote.is_some() {
            routed.quote.clone_from(&old.routed.quote);
        } else if !matches!(routed.verdict, Verdict::Reject(_)) {
            match self.reserve(&routed) {
                Ok(()) => self.slab[slot].set(flag::PRICED, is_priced(&routed)),
                Err(_) => routed.verdict = Verdict::Reject(RejectReason::NoCredit),
            }
        }
        let mut message = Message::clone(&old);
        message.routed = routed;
        self.pools.leave_line(id);
        let sender = self.find_sender(now, id, &mut message, out);
        sender.step.into_iter().for_each(|kind| self.step(now, slot, kind));
        if let Some(reason) = sender.refused {
            message.routed.verdict = Verdict::Reject(reason);
            message.routed.sender = None;
        }
        if let Some(until) = sender.hold {
            self.hold_again(now, slot, until, message, out);
            return;
        }
        match &message.routed.verdict {
            Verdict::Reject(_) => {
                self.replace_content(slot, message, out);
                self.end(now, slot, FinalState::Rejected, None, out);
            }
            Verdict::Hold(until) => {
                let until = (*until).max(now.wall + std::time::Duration::from_secs(1));
                self.hold_again(now, slot, until, message, out);
            }
            Verdict::Forward(legs) => {
                let leg = self.first_leg_with_room(legs).unwrap_or(0);
                let peer = legs[usize::from(leg)].peer;
                self.step(now, slot, StepKind::Rerouted { peer });
                self.tell_redirected(now, slot, redirected, out);
                let entry = &mut self.slab[slot];
                entry.leg = leg;
                entry.peer = peer;
                self.peer_mut(peer);
                self.name_subscriber(slot, &message);
                let message = self.replace_content(slot, message, out);
                if let Some(scheduled) = message.scheduled.filter(|at| *at > now.wall) {
                    self.defer(slot, now.moment_of(scheduled));
                    self.record(now, slot, out);
                } else {
                    self.begin_leg(now, slot, &message, out);
                }
            }
        }
    }

    /// Keeps a message that was routed again for another while.
    fn hold_again(&mut self, now: Now, slot: Slot, until: Timestamp, message: Message, out: &mut Output) {
        self.step(now, slot, StepKind::Held { until });
        self.replace_content(slot, message, out);
        self.hold(slot, now.moment_of(until));
        self.record(now, slot, out);
    }

    /// Writes a message's content anew.
    pub(crate) fn replace_content(&mut self, slot: Slot, message: Message, out: &mut Output) -> Arc<Message> {
        let message = Arc::new(message);
        out.batch.replaced.push(message.clone());
        self.cache(slot, message.clone());
        message
    }
}

/// Whether money is to be reserved for it.
fn is_priced(routed: &Routed) -> bool {
    routed.quote.as_ref().is_some_and(|quote| quote.charge.is_some())
}

/// The service type in two octets; 0 only for the empty one.
pub(crate) fn service_hash(service_type: &[u8]) -> u16 {
    if service_type.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(service_type);
    (hasher.finish() as u16).max(1)
}
