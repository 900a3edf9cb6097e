//! Resolver: finds the subscriber behind a destination for legs that need it.
//!
//! Each number has one entry with its waiting messages in order, and at most one pending query. The answer moves all
//! these messages; messages whose content is not cached are loaded in runs.

use crate::engine::Engine;
use crate::leg_subscriber::{needs_subscriber, number_on_leg, without_plus};
use crate::resolver_queue::{PendingNumber, ResolverStatus};
use crate::slab::{Slot, State, flag};
use crate::subscriber_cache::ResolverAnswer;
use crate::timer::Timer;
use crate::{EngineCommand, Output};
use model::{
    AddressBytes, Hook, Imsi, Message, MessageId, MessageKind, Moment, Now, PeerId, PluginVersion,
    Resolution, StepKind, Subscriber, Verdict,
};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Maximum number of contents loaded at a time for resolved messages.
const LOAD_RUN: usize = 1024;

/// The longest cache time of an answer, and the bounds of the delay of a deferred query.
const MAX_CACHE_TIME: Duration = Duration::from_secs(7 * 86_400);
const MIN_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(3600);

/// 3GPP TS 24.011 §8.2.5.4, RP-cause 1: unassigned number.
const UNASSIGNED_NUMBER: u32 = 1;

/// The answer if no resolver is bound.
static NO_RESOLVER: LazyLock<Arc<ResolverAnswer>> = LazyLock::new(|| {
    let by = Arc::new(PluginVersion { plugin: "resolver".to_owned(), version: String::new() });
    Arc::new(ResolverAnswer { subscriber: None, by, note: Some("no resolver is bound".into()) })
});

/// The result of a lookup for a message that begins a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriberLookup {
    /// The leg needs no subscriber, or knows it: the message may be queued.
    NotNeeded,
    /// The message waits for the subscriber.
    Waits,
    /// The answer was available: the message is queued, waits on another leg, or has ended, and this is recorded.
    Settled,
}

impl Engine {
    /// Sets the subscriber of a submission's leg from the cache, before the message is first written. The caller adds
    /// the returned steps.
    pub(crate) fn resolve_from_cache(&mut self, now: Now, message: &mut Message, leg: u8) -> Vec<StepKind> {
        if !self.settings.resolver || message.scheduled.is_some() || !needs_subscriber(message, leg) {
            return Vec::new();
        }
        let number = number_on_leg(message, leg);
        // Other messages wait for the same number: it waits behind them.
        if self.resolver_state.numbers.contains_key(&number) {
            return Vec::new();
        }
        let Some(answer) = self.resolver_state.cache.get(&number, now.mono) else { return Vec::new() };
        let Some((imsi, serving)) = &answer.subscriber else { return Vec::new() };
        self.resolver_state.hits += 1;
        let peer = self.set_leg_subscriber(message, leg, imsi, *serving);
        vec![decided_step(&answer), StepKind::Resolved { peer, cached: true }]
    }

    /// Sets the subscriber of a leg; returns the peer of the leg.
    fn set_leg_subscriber(
        &self,
        message: &mut Message,
        leg: u8,
        imsi: &Imsi,
        serving: Option<PeerId>,
    ) -> PeerId {
        // Never back to the origin, and never to an unconfigured peer.
        let serving = serving.filter(|peer| *peer != message.origin && self.is_configured(*peer));
        // A DLR to a subscriber goes to a handset.
        let dlr = matches!(message.kind, MessageKind::Dlr(_));
        let serving = serving.filter(|peer| !dlr || self.peers[peer.0 as usize].settings.serial);
        let Verdict::Forward(legs) = &mut message.routed.verdict else { return message.origin };
        let Some(leg) = legs.get_mut(usize::from(leg)) else { return message.origin };
        leg.imsi = Some(imsi.clone());
        leg.peer = serving.unwrap_or(leg.peer);
        leg.peer
    }

    /// Finds the subscriber of a message's leg before it is queued. The message is in no queue.
    pub(crate) fn resolve_leg(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<Message>,
        out: &mut Output,
    ) -> SubscriberLookup {
        let (id, leg) = (self.slab[slot].id, self.slab[slot].leg);
        if !needs_subscriber(message, leg) {
            return SubscriberLookup::NotNeeded;
        }
        self.begin_resolving(slot);
        self.set_leg_timeout(now, slot, message);
        if !self.settings.resolver {
            self.apply_answer(now, slot, message, &NO_RESOLVER, false, out);
            return SubscriberLookup::Settled;
        }
        let number = number_on_leg(message, leg);
        if !self.resolver_state.numbers.contains_key(&number)
            && let Some(answer) = self.resolver_state.cache.get(&number, now.mono)
        {
            self.resolver_state.hits += 1;
            self.apply_answer(now, slot, message, &answer, true, out);
            return SubscriberLookup::Settled;
        }
        self.resolver_state.wait(number, id);
        self.newly_cached.push(slot);
        let last = self.slab[slot].history_mut().steps.last();
        if last.is_none_or(|step| step.kind != StepKind::Resolving) {
            self.add_step(now, slot, StepKind::Resolving);
        }
        SubscriberLookup::Waits
    }

    fn begin_resolving(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Resolving;
        entry.due = Moment(u64::MAX);
        self.peer_of(slot).resolving += 1;
        self.resolver_state.messages += 1;
    }

    /// Ends the wait of a message for its subscriber; it is then in the state after the end of an attempt.
    pub(crate) fn stop_resolving(&mut self, slot: Slot) {
        self.slab[slot].state = State::Submitted;
        self.peer_of(slot).resolving -= 1;
        self.resolver_state.messages -= 1;
    }

    /// Applies the answer to a waiting message.
    fn apply_answer(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<Message>,
        answer: &ResolverAnswer,
        cached: bool,
        out: &mut Output,
    ) {
        self.stop_resolving(slot);
        self.add_step(now, slot, decided_step(answer));
        let Some((imsi, serving)) = &answer.subscriber else {
            self.add_step(now, slot, StepKind::UnknownSubscriber { cached });
            self.leg_failed(now, slot, UNASSIGNED_NUMBER, out);
            return;
        };
        let (leg, longest_wait) = (self.slab[slot].leg, self.slab[slot].due);
        let mut message = Message::clone(message);
        let peer = self.set_leg_subscriber(&mut message, leg, imsi, *serving);
        self.add_step(now, slot, StepKind::Resolved { peer, cached });
        self.slab[slot].peer = peer;
        let message = self.replace_content(slot, message, out);
        self.set_subscriber_key(slot, &message);
        self.requeue(slot);
        // Waiting for the resolver counts as waiting for the leg.
        self.slab[slot].due = longest_wait;
        self.write_progress(now, slot, out);
        self.newly_cached.push(slot);
    }

    /// Applies a resolver's answer.
    pub(crate) fn resolved(&mut self, now: Now, msisdn: &AddressBytes, resolution: Resolution) {
        let number = without_plus(msisdn);
        // There was no query, or the resolver is no longer bound.
        if !self.resolver_state.in_flight.remove(&number) {
            return;
        }
        let Resolution { subscriber, by, note } = resolution;
        let (subscriber, holds) = match subscriber {
            Subscriber::Found { imsi, peer, valid } => {
                (Some((imsi, peer)), valid.unwrap_or(self.settings.resolve_found_for))
            }
            Subscriber::Unknown { valid } => (None, valid.unwrap_or(self.settings.resolve_unknown_for)),
            Subscriber::TryLater { after } => {
                if let Some(waiting) = self.resolver_state.numbers.get_mut(&number) {
                    let after = after.unwrap_or(self.settings.resolve_retry_after);
                    let at = now.mono + after.clamp(MIN_RETRY, MAX_RETRY);
                    waiting.retry_at = Some(at);
                    waiting.deferred_by = Some(Arc::new(ResolverAnswer { subscriber: None, by, note }));
                    self.resolver_state.retry_times.insert((at, number));
                    self.timers.set(at, Timer::Resolve);
                }
                return;
            }
        };
        let answer = Arc::new(ResolverAnswer { subscriber, by, note });
        if !holds.is_zero() {
            let (until, limit) = (now.mono + holds.min(MAX_CACHE_TIME), self.settings.resolve_cache_limit);
            self.resolver_state.cache.insert(number.clone(), until, answer.clone(), limit);
        }
        if let Some(waiting) = self.resolver_state.numbers.get_mut(&number) {
            waiting.answer = Some(answer);
            self.resolver_state.make_ready(&number);
        }
    }

    /// A resolver was bound or unbound. Pending numbers are handled at the end of the run, because the next resolver
    /// may be bound in it.
    pub(crate) fn resolver_changed(&mut self) {
        let resolving = &mut self.resolver_state;
        resolving.in_flight.clear();
        resolving.queue.clear();
        resolving.retry_times.clear();
        resolving.cache.clear();
        resolving.orphaned = true;
    }

    fn reassign_pending(&mut self) {
        if !std::mem::take(&mut self.resolver_state.orphaned) {
            return;
        }
        let resolving = &mut self.resolver_state;
        let open = |number: &PendingNumber| {
            number.answer.as_ref().is_none_or(|answer| Arc::ptr_eq(answer, &NO_RESOLVER))
        };
        let orphans = resolving.numbers.iter().filter(|(_, number)| open(number));
        let mut orphans: Vec<_> =
            orphans.map(|(key, number)| (number.remaining().first().copied(), key.clone())).collect();
        orphans.sort_unstable();
        // Numbers added since the change are among the pending ones.
        resolving.queue.clear();
        for (_, number) in orphans {
            let Some(waiting) = resolving.numbers.get_mut(&number) else { continue };
            (waiting.retry_at, waiting.deferred_by) = (None, None);
            if self.settings.resolver {
                waiting.answer = None;
                resolving.queue.push_back(number);
            } else {
                waiting.answer = Some(NO_RESOLVER.clone());
                resolving.make_ready(&number);
            }
        }
    }

    /// Moves the messages of answered numbers.
    pub(crate) fn move_resolved(&mut self, now: Now, out: &mut Output) {
        self.reassign_pending();
        while let Some(number) = self.resolver_state.ready.pop_front() {
            if let Some(waiting) = self.resolver_state.numbers.get_mut(&number) {
                waiting.ready = false;
            }
            if !self.move_waiting_for(now, &number, out) {
                break;
            }
        }
    }

    /// Moves the messages of a number, up to the first one whose content must be loaded. Returns false if no more may
    /// be loaded now; the number is then ready again.
    fn move_waiting_for(&mut self, now: Now, number: &AddressBytes, out: &mut Output) -> bool {
        while let Some(waiting) = self.resolver_state.numbers.get_mut(number) {
            let Some(answer) = waiting.answer.clone() else { break };
            let Some(id) = waiting.remaining().first().copied() else {
                self.resolver_state.numbers.remove(number);
                break;
            };
            waiting.done += 1;
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if self.slab[slot].state != State::Resolving {
                continue;
            }
            let Some(message) = self.slab[slot].message.clone() else {
                waiting.done -= 1;
                return self.slab[slot].has(flag::LOADING) || self.load_waiting_for(number, out);
            };
            // Otherwise it waits for another number by now.
            if number_on_leg(&message, self.slab[slot].leg) == *number {
                self.apply_answer(now, slot, &message, &answer, false, out);
            }
        }
        true
    }

    /// Loads the content of the first messages that wait for a number.
    fn load_waiting_for(&mut self, number: &AddressBytes, out: &mut Output) -> bool {
        let room = LOAD_RUN.saturating_sub(self.resolver_state.loading.len());
        let Some(waiting) = self.resolver_state.numbers.get_mut(number) else { return true };
        if room == 0 {
            waiting.ready = true;
            self.resolver_state.ready.push_front(number.clone());
            return false;
        }
        let mut ids = Vec::new();
        for id in waiting.remaining().iter().take(room) {
            let Some(slot) = self.ids.get(&self.slab, *id) else { continue };
            let entry = &mut self.slab[slot];
            if entry.state == State::Resolving && entry.message.is_none() && !entry.has(flag::LOADING) {
                entry.set(flag::LOADING, true);
                ids.push(*id);
            }
        }
        self.resolver_state.loading.extend(&ids);
        out.commands.push(EngineCommand::Load { ids });
        true
    }

    /// The content of a message was loaded.
    pub(crate) fn content_loaded_for_resolver(&mut self, id: MessageId) {
        self.resolver_state.loading.remove(&id);
        if let Some(slot) = self.ids.get(&self.slab, id)
            && self.slab[slot].state == State::Resolving
            && let Some(message) = &self.slab[slot].message
        {
            let number = number_on_leg(message, self.slab[slot].leg);
            self.resolver_state.make_ready(&number);
        }
    }

    /// Sends queries, up to the limit of pending queries.
    pub(crate) fn ask_resolver(&mut self, out: &mut Output) {
        if !self.settings.resolver || self.draining {
            return;
        }
        while self.resolver_state.in_flight.len() < self.settings.resolve_in_flight
            && let Some(number) = self.resolver_state.queue.pop_front()
        {
            let Some(waiting) = self.resolver_state.numbers.get_mut(&number) else { continue };
            let (ids, slab) = (&self.ids, &self.slab);
            let waits =
                |id: &MessageId| ids.get(slab, *id).is_some_and(|slot| slab[slot].state == State::Resolving);
            waiting.waiting.retain(|id| waits(id));
            if waiting.waiting.is_empty() {
                self.resolver_state.numbers.remove(&number);
                continue;
            }
            self.resolver_state.questions += 1;
            self.resolver_state.in_flight.insert(number.clone());
            out.commands.push(EngineCommand::Resolve { msisdn: number });
        }
    }

    /// Counters of the resolver queue.
    #[must_use]
    pub fn resolver_status(&self) -> ResolverStatus {
        ResolverStatus {
            numbers: self.resolver_state.numbers.len() as u64,
            messages: self.resolver_state.messages,
            cached: self.resolver_state.cache.len() as u64,
            hits: self.resolver_state.hits,
            questions: self.resolver_state.questions,
            in_flight: self.resolver_state.in_flight.len() as u64,
        }
    }
}

fn decided_step(answer: &ResolverAnswer) -> StepKind {
    StepKind::Decided { hook: Hook::Resolver, by: answer.by.clone(), note: answer.note.clone() }
}
