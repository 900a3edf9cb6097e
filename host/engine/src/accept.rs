//! Admission: checks a submission, and puts it into a queue.

use crate::engine::Engine;
use crate::idempotency_keys::KeyLookup;
use crate::opt_out::normalised_pair;
use crate::resolver::SubscriberLookup;
use crate::sender_numbers::SenderResult;
use crate::slab::{Entry, NONE, Slot, State, flag};
use crate::timer::Timer;
use crate::{EngineAnswer, EngineCommand, Output, RefusedSubmission, ReplyTo};
use model::{
    FinalState, IdempotencyKey, Leg, Message, MessageId, MessageKind, Moment, Now, PeerId, Refusal,
    RejectReason, RoutingDecision, SUBMISSION_IDS, StepKind, Text, Timestamp, Verdict,
};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

fn report_refusal(message: &Message, refusal: Refusal, reply: ReplyTo, out: &mut Output) {
    out.commands.push(EngineCommand::Refused(Box::new(RefusedSubmission {
        link: reply.link,
        origin: message.origin,
        source: message.source.clone(),
        destination: message.destination.clone(),
        refusal,
    })));
}

impl Engine {
    pub(crate) fn accept_one(&mut self, now: Now, message: Message, reply: ReplyTo, out: &mut Output) {
        let Some(message) = self.load_before_replacing(message, reply, out) else { return };
        let answer = match self.accept(now, message, reply, out) {
            Ok(id) => EngineAnswer::Accepted(id),
            Err(refusal) => EngineAnswer::Refused(refusal),
        };
        out.commands.push(EngineCommand::Answer { to: reply, answer });
    }

    pub(crate) fn accept_many(
        &mut self,
        now: Now,
        (messages, shared_id): (Vec<Message>, bool),
        key: Option<IdempotencyKey>,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let origin = messages.first().map(|message| message.origin);
        let known = match (origin, &key) {
            (Some(origin), Some(key)) => {
                self.idempotency_keys.find(origin, key, (now.mono, self.settings.idempotency_key_retention))
            }
            _ => KeyLookup::Unknown,
        };
        let room = match (origin, &key) {
            (Some(origin), Some(key)) if known == KeyLookup::Unknown => {
                let limit = self.peer_mut(origin).settings.idempotency_key_memory;
                self.idempotency_keys.has_capacity(origin, key, messages.len(), limit)
            }
            _ => true,
        };
        let answer = match known {
            KeyLookup::Repeated(results) => {
                self.totals.repeated += 1;
                EngineAnswer::AcceptedMany(results)
            }
            KeyLookup::Conflict => {
                for message in &messages {
                    report_refusal(message, Refusal::KeyReused, reply, out);
                }
                EngineAnswer::Refused(Refusal::KeyReused)
            }
            KeyLookup::Unknown if !room && key.as_ref().is_some_and(|key| key.required) => {
                self.totals.refused += messages.len() as u64;
                let oldest = origin.and_then(|origin| self.idempotency_keys.oldest(origin));
                let wait = oldest.map_or(Duration::ZERO, |until| until - now.mono);
                let retry_after = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1);
                for message in &messages {
                    report_refusal(message, Refusal::KeysFull { retry_after }, reply, out);
                }
                EngineAnswer::Refused(Refusal::KeysFull { retry_after })
            }
            KeyLookup::Unknown => {
                // A replaced message may create a DLR, whose id would fall between the messages' ids.
                let shared_id = shared_id
                    && (2..=SUBMISSION_IDS).contains(&(messages.len() as u64))
                    && !messages.iter().any(|message| message.replace_if_present);
                // Refused messages take no id: this is the id of the first accepted one.
                let submission = shared_id.then_some(self.next_id);
                let results: Vec<_> = messages
                    .into_iter()
                    .map(|message| self.accept(now, Message { submission, ..message }, reply, out))
                    .collect();
                // If no message was accepted, a repetition does no harm and may succeed.
                if let (Some(origin), Some(key)) = (origin, key)
                    && room
                    && results.iter().any(Result::is_ok)
                {
                    let record = self.idempotency_keys.remember(
                        origin,
                        key,
                        (now, self.settings.idempotency_key_retention),
                        results.clone(),
                    );
                    out.batch.idempotency_keys.push(record);
                }
                EngineAnswer::AcceptedMany(results)
            }
        };
        out.commands.push(EngineCommand::Answer { to: reply, answer });
    }

    /// Counts and reports a refusal.
    fn refuse(&mut self, message: &Message, refusal: Refusal, reply: ReplyTo, out: &mut Output) -> Refusal {
        self.totals.refused += 1;
        report_refusal(message, refusal, reply, out);
        refusal
    }

    fn accept(
        &mut self,
        now: Now,
        mut message: Message,
        reply: ReplyTo,
        out: &mut Output,
    ) -> Result<MessageId, Refusal> {
        if let Some(id) = self.repeated_attempt(now, &message, out) {
            return Ok(id);
        }
        let mut verdict = std::mem::replace(&mut message.routed.verdict, Verdict::Hold(Timestamp(0)));
        let redirected = self.reroute_legs(now, &message, &mut verdict);
        message.routed.verdict = verdict;
        let validated = self.validate_submission(now, &mut message);
        let leg = validated.map_err(|refusal| self.refuse(&message, refusal, reply, out))?;
        let reserved = self.reserve(message.origin, &mut message.routed);
        reserved.map_err(|reason| self.refuse(&message, Refusal::Rejected(reason), reply, out))?;
        let sender = self.lease_sender(now, self.next_id, &mut message, out);
        if let Some(reason) = sender.refused {
            self.release_reservation(&message.routed);
            self.totals.opted_out += u64::from(reason == RejectReason::OptedOut);
            return Err(self.refuse(&message, Refusal::Rejected(reason), reply, out));
        }
        let replaced = self.replaced_by(&message);
        self.totals.accepted += 1;
        self.count_for_day_quotas(now, message.origin);
        let id = self.admit(now, message, leg, sender, out);
        if let Some(slot) = self.ids.get(&self.slab, id) {
            self.trace_reroutes(now, slot, redirected, out);
        }
        // Last, because the DLRs of the replaced messages take ids.
        for old in replaced {
            if let Some(slot) = self.ids.get(&self.slab, old) {
                self.add_step(now, slot, StepKind::Replaced);
                self.end(now, slot, FinalState::Cancelled, None, out);
            }
        }
        Ok(id)
    }

    /// Validates a submission; returns the index of its first leg.
    fn validate_submission(&mut self, now: Now, message: &mut Message) -> Result<u8, Refusal> {
        if let Err(refusal) = self.check_admission(now, message) {
            self.totals.opted_out += u64::from(refusal == Refusal::Rejected(RejectReason::OptedOut));
            return Err(refusal);
        }
        message.expires_at = message.expires_at.min(now.wall + self.settings.longest_validity);
        message.scheduled = message.scheduled.filter(|scheduled| *scheduled > now.wall);
        match &mut message.routed.verdict {
            Verdict::Forward(legs) => {
                self.order_legs(legs);
                self.first_leg_with_space(legs).ok_or(Refusal::QueueFull)
            }
            Verdict::Hold(_)
            | Verdict::Reject(_)
            | Verdict::Quarantine
            | Verdict::AwaitLookup
            | Verdict::Drop(_) => Ok(0),
        }
    }

    /// The checks of a submission that change nothing.
    fn check_admission(&self, now: Now, message: &Message) -> Result<(), Refusal> {
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
            Verdict::Hold(_) | Verdict::Quarantine | Verdict::AwaitLookup | Verdict::Drop(_) => {}
            Verdict::Forward(legs) => {
                if !legs.iter().any(|leg| self.accepts_new(leg.peer)) {
                    // A drained peer will return, or be routed around.
                    let any = legs.iter().any(|leg| self.is_configured(leg.peer));
                    let reason = if any { RejectReason::TryLater } else { RejectReason::NoRoute };
                    return Err(Refusal::Rejected(reason));
                }
                if !legs.iter().any(|leg| self.accepts_new(leg.peer) && self.has_queue_space(leg.peer)) {
                    return Err(Refusal::QueueFull);
                }
                let changes = message.routed.changes.as_deref();
                if changes.is_some_and(|changes| {
                    !self.pace_limits.has_capacity_for(changes, self.settings.pace_limits)
                }) {
                    return Err(Refusal::QueueFull);
                }
            }
        }
        if self.disk_low || self.admission_closed || self.live() as u64 >= self.settings.waiting_limit {
            return Err(Refusal::QueueFull);
        }
        if !self.is_within_day_quotas(now, message) {
            return Err(Refusal::QuotaExceeded);
        }
        Ok(())
    }

    /// Whether a routed and priced submission would be accepted now. Nothing is reserved, leased or counted.
    ///
    /// # Errors
    /// The refusal.
    pub fn would_accept(&self, now: Now, message: &Message) -> Result<(), Refusal> {
        let mut redirected = message.clone();
        self.reroute_legs(now, message, &mut redirected.routed.verdict);
        self.check_admission(now, &redirected)?;
        if let Some(mut charge) = redirected.routed.quote.as_ref().and_then(|quote| quote.charge.clone()) {
            self.charge_tenants(message.origin, &mut charge).map_err(Refusal::Rejected)?;
            if !self.ledger.can_reserve(&charge) {
                return Err(Refusal::Rejected(RejectReason::NoCredit));
            }
        }
        match &redirected.routed.sender {
            Some(request) if self.is_pool_opted_out(message, request) => {
                Err(Refusal::Rejected(RejectReason::OptedOut))
            }
            _ => Ok(()),
        }
    }

    /// Whether the addressee has opted out of this sender.
    fn has_opted_out(&self, message: &Message) -> bool {
        let is_checked = !self.opt_outs.is_empty()
            && self.peers.get(message.origin.0 as usize).is_some_and(|peer| peer.settings.opt_out);
        is_checked
            && self.opt_outs.is_opted_out(&normalised_pair(
                &message.source.value,
                &message.destination.value,
                &self.settings.country,
            ))
    }

    /// Orders the legs: by rank, and within a rank at random in proportion to the weights. Legs to unconfigured or
    /// drained peers are removed.
    pub(crate) fn order_legs(&mut self, legs: &mut Vec<Leg>) {
        if legs.len() > 1 || legs.iter().any(|leg| !self.accepts_new(leg.peer)) {
            legs.retain(|leg| self.accepts_new(leg.peer));
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

    fn accepts_new(&self, peer: PeerId) -> bool {
        self.is_configured(peer) && self.queue_actions.drain_of(peer).is_none()
    }

    fn has_queue_space(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0 as usize).is_some_and(|peer| peer.waiting() < peer.settings.queue_limit)
    }

    fn first_leg_with_space(&self, legs: &[Leg]) -> Option<u8> {
        legs.iter().position(|leg| self.has_queue_space(leg.peer)).and_then(|index| u8::try_from(index).ok())
    }

    /// Admits a message: assigns its id and queues it. All refusals have been checked before.
    pub(crate) fn admit(
        &mut self,
        now: Now,
        mut message: Message,
        leg: u8,
        sender: SenderResult,
        out: &mut Output,
    ) -> MessageId {
        let id = self.next_id;
        self.next_id = MessageId(id.0 + 1);
        message.id = id;
        if let Some(fault_message_id) = message.routed.fault_message_id.take() {
            // A repeated message may be accepted again; the first id counts.
            let _ = fault_message_id.set(id);
        }
        message.accepted_at = now.wall;
        let resolved = match sender.hold {
            Some(_) => Vec::new(),
            None => self.resolve_from_cache(now, &mut message, leg),
        };
        let message = Arc::new(message);
        out.batch.accepted.push(message.clone());
        let slot = self.create_entry(now, &message, leg);
        self.cache(slot, message.clone());
        self.newly_cached.push(slot);
        sender.step.into_iter().for_each(|kind| self.add_step(now, slot, kind));
        if let Some(until) = sender.hold {
            self.add_step(now, slot, StepKind::Held { until });
            self.hold(slot, now.moment_of(until));
            self.write_progress(now, slot, out);
            return id;
        }
        if self.stop_before_routing(now, slot, &message, out) {
            return id;
        }
        match (&message.routed.verdict, message.scheduled) {
            (Verdict::Hold(until), _) => self.hold(slot, now.moment_of(*until)),
            (_, Some(scheduled)) => self.defer(slot, now.moment_of(scheduled)),
            (_, None) => {
                resolved.into_iter().for_each(|kind| self.add_step(now, slot, kind));
                self.enqueue_new(now, slot, &message, out);
            }
        }
        id
    }

    /// Creates the entry of a message and adds it to the indexes, but to no queue.
    pub(crate) fn create_entry(&mut self, now: Now, message: &Arc<Message>, leg: u8) -> Slot {
        let is_own_dlr = matches!(message.kind, MessageKind::Dlr(_));
        let peer = message.routed.verdict.leg(leg).map_or(message.origin, |leg| leg.peer);
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
        entry.set(flag::OWN_DLR, is_own_dlr);
        entry.set(flag::PRICED, is_priced(&message.routed));
        entry.set_dlr_request(message.dlr_request);
        if !is_own_dlr {
            entry.pair = self.pairs.key(message.origin, &message.source.value, &message.destination.value);
        }
        let slot = self.slab.insert(entry);
        self.ids.insert(&self.slab, slot);
        if !is_own_dlr && let Some(submission) = message.submission {
            self.submissions.join(submission, message.id);
        }
        self.add_remote_attempt(message);
        self.set_subscriber_key(slot, message);
        if !is_own_dlr {
            self.note_decision_limits(now, message);
            self.pairs.insert(&mut self.slab, slot);
        }
        slot
    }

    /// Puts a new message into its peer's queue, or lets it wait for its subscriber first.
    pub(crate) fn enqueue_new(&mut self, now: Now, slot: Slot, message: &Arc<Message>, out: &mut Output) {
        if self.resolve_leg(now, slot, message, out) == SubscriberLookup::NotNeeded {
            self.note_arrival(slot);
            if self.must_wait_for_subscriber(slot) {
                self.wait_behind_holder(slot, out);
            } else {
                self.join_queue(slot);
            }
            self.set_leg_timeout(now, slot, message);
        }
    }

    /// Appends a new message to its peer's queue.
    fn join_queue(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Queued;
        let (peer, priority) = (entry.peer, usize::from(entry.priority));
        let state = &mut self.peers[peer.0 as usize];
        state.queued += 1;
        state.lanes[priority].push(&mut self.slab, slot);
        self.mark_dirty(peer.0);
    }

    /// Sets the timer for a leg with a longest wait.
    pub(crate) fn set_leg_timeout(&mut self, now: Now, slot: Slot, message: &Message) {
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

    /// Defers a message until `until`; then it is queued.
    pub(crate) fn defer(&mut self, slot: Slot, until: Moment) {
        let entry = &mut self.slab[slot];
        entry.state = State::Deferred;
        entry.due = until;
        let id = entry.id;
        self.timers.set(until, Timer::Message(slot, id));
        self.peer_of(slot).deferred += 1;
    }

    /// Holds a message until `until`; then it is routed again.
    pub(crate) fn hold(&mut self, slot: Slot, until: Moment) {
        let entry = &mut self.slab[slot];
        entry.state = State::Held;
        entry.due = until;
        let id = entry.id;
        self.timers.set(until, Timer::Message(slot, id));
    }

    /// Requests routing for a message whose hold is over.
    pub(crate) fn request_routing(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone() {
            self.slab[slot].state = State::Routing;
            out.commands.push(EngineCommand::Reroute { message });
        } else {
            // This is only a fallback timer; the content arrives long before.
            self.load_if_missing(slot, out);
            self.hold(slot, now.mono + std::time::Duration::from_secs(1));
        }
    }

    /// Applies the result of a repeated routing.
    pub(crate) fn rerouted(
        &mut self,
        now: Now,
        id: MessageId,
        (mut routed, text): (RoutingDecision, Option<Text>),
        out: &mut Output,
    ) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        let (State::Routing, Some(old)) = (self.slab[slot].state, self.slab[slot].message.clone()) else {
            return;
        };
        let redirected = self.reroute_legs(now, &old, &mut routed.verdict);
        if let Verdict::Forward(legs) = &mut routed.verdict {
            let any = legs.iter().any(|leg| self.is_configured(leg.peer));
            self.order_legs(legs);
            if legs.is_empty() {
                routed.verdict = if any {
                    // Only drained peers are left: the accepted message waits until one accepts messages again.
                    Verdict::Hold(now.wall + self.settings.reroute_after)
                } else {
                    Verdict::Reject(RejectReason::NoRoute)
                };
            }
        }
        // The price is fixed once. A message that was held before it had a price is priced now.
        if old.routed.quote.is_some() {
            routed.quote.clone_from(&old.routed.quote);
        } else if matches!(routed.verdict, Verdict::Forward(_) | Verdict::Hold(_)) {
            match self.reserve(old.origin, &mut routed) {
                Ok(()) => self.slab[slot].set(flag::PRICED, is_priced(&routed)),
                Err(reason) => routed.verdict = Verdict::Reject(reason),
            }
        }
        let mut message = Message::clone(&old);
        if let Some(text) = text {
            message.text = text;
        }
        message.routed = routed;
        self.pools.stop_waiting_for_number(id);
        let sender = self.lease_sender(now, id, &mut message, out);
        sender.step.into_iter().for_each(|kind| self.add_step(now, slot, kind));
        if let Some(reason) = sender.refused {
            message.routed.verdict = Verdict::Reject(reason);
            message.routed.sender = None;
        }
        if let Some(until) = sender.hold {
            self.extend_hold(now, slot, until, message, out);
            return;
        }
        self.note_decision_limits(now, &message);
        match &message.routed.verdict {
            Verdict::Reject(_) => {
                self.replace_content(slot, message, out);
                self.end(now, slot, FinalState::Rejected, None, out);
            }
            Verdict::Quarantine | Verdict::AwaitLookup | Verdict::Drop(_) => {
                let message = self.replace_content(slot, message, out);
                self.stop_before_routing(now, slot, &message, out);
            }
            Verdict::Hold(until) => {
                let until = (*until).max(now.wall + std::time::Duration::from_secs(1));
                self.extend_hold(now, slot, until, message, out);
            }
            Verdict::Forward(legs) => {
                let leg = self.first_leg_with_space(legs).unwrap_or(0);
                let peer = legs[usize::from(leg)].peer;
                self.add_step(now, slot, StepKind::Rerouted { peer });
                self.trace_reroutes(now, slot, redirected, out);
                let entry = &mut self.slab[slot];
                entry.leg = leg;
                entry.peer = peer;
                self.peer_mut(peer);
                self.set_subscriber_key(slot, &message);
                let message = self.replace_content(slot, message, out);
                if let Some(scheduled) = message.scheduled.filter(|at| *at > now.wall) {
                    self.defer(slot, now.moment_of(scheduled));
                    self.write_progress(now, slot, out);
                } else {
                    self.begin_leg(now, slot, &message, out);
                }
            }
        }
    }

    /// Holds a message that was routed again for another period.
    fn extend_hold(&mut self, now: Now, slot: Slot, until: Timestamp, message: Message, out: &mut Output) {
        self.add_step(now, slot, StepKind::Held { until });
        self.replace_content(slot, message, out);
        self.hold(slot, now.moment_of(until));
        self.write_progress(now, slot, out);
    }

    /// Replaces a message's content, also on disk.
    pub(crate) fn replace_content(&mut self, slot: Slot, message: Message, out: &mut Output) -> Arc<Message> {
        let message = Arc::new(message);
        out.batch.replaced.push(message.clone());
        self.cache(slot, message.clone());
        message
    }
}

/// Whether an amount must be reserved.
fn is_priced(routed: &RoutingDecision) -> bool {
    routed.quote.as_ref().is_some_and(|quote| quote.charge.is_some())
}

/// The service type as two octets; 0 only for the empty one.
pub(crate) fn service_hash(service_type: &[u8]) -> u16 {
    if service_type.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(service_type);
    (hasher.finish() as u16).max(1)
}
