//! Requests about accepted messages: query, cancel, replace; and an admin's settling of uncertain ones.

use crate::accept::service_hash;
use crate::engine::Engine;
use crate::slab::{Slot, State, flag};
use crate::{EngineAnswer, EngineCommand, Event, Output, QueriedState, ReplyTo};
use model::{Address, DlrState, FinalState, Message, MessageId, Now, PeerId, Refusal, StepKind};

/// A request for a message, with its origin and the address of the answer.
struct MessageClaim<'a> {
    origin: PeerId,
    /// The submitter's id: of a message, or of a submission to several destinations.
    id: MessageId,
    source: Option<&'a Address>,
    reply: ReplyTo,
}

impl Engine {
    /// The live messages of a submission, by ascending id; empty for any other id.
    pub(crate) fn live_of_submission(&self, submission: MessageId) -> Vec<Slot> {
        let Some(last) = self.submissions.last(submission) else { return Vec::new() };
        (submission.0..=last.0)
            .filter_map(|id| self.ids.get(&self.slab, MessageId(id)))
            .filter(|slot| !self.slab[*slot].has(flag::OWN_DLR))
            .collect()
    }

    pub(crate) fn request(&mut self, now: Now, event: Event, out: &mut Output) {
        let (reply, answer) = match &event {
            Event::Query { origin, id, source, reply } => {
                let claim = MessageClaim { origin: *origin, id: *id, source: source.as_ref(), reply: *reply };
                let slot = match self.find_claimed(&claim, None, source.is_some(), out) {
                    ClaimResult::Found(slot) => slot,
                    ClaimResult::Wait(id) => return self.wait_for_content(id, event),
                    ClaimResult::Answered => return,
                };
                (*reply, EngineAnswer::State(self.queried(slot, *id)))
            }
            Event::Cancel { origin, id, source, destination, reply } => {
                let claim = MessageClaim { origin: *origin, id: *id, source: source.as_ref(), reply: *reply };
                let slot = match self.find_claimed(&claim, Some(Refusal::WrongState), true, out) {
                    ClaimResult::Found(slot) => slot,
                    ClaimResult::Wait(id) => return self.wait_for_content(id, event),
                    ClaimResult::Answered => return,
                };
                let all = self.live_of_submission(*id);
                if !all.is_empty() {
                    let reply = *reply;
                    match self.cancel_submission(now, (slot, all), destination.as_ref(), out) {
                        Ok(answer) => (reply, answer),
                        Err(id) => return self.wait_for_content(id, event),
                    }
                } else if self.is_waiting(slot) {
                    self.end(now, slot, FinalState::Cancelled, None, out);
                    (*reply, EngineAnswer::Done)
                } else {
                    (*reply, EngineAnswer::Refused(Refusal::WrongState))
                }
            }
            Event::CancelMatching { origin, source, destination, service_type, reply } => {
                let pair = self.pairs.key(*origin, &source.value, &destination.value);
                let service = service_hash(service_type);
                let mut found = self.pairs.all(&self.slab, pair);
                found.retain(|slot| {
                    let entry = &self.slab[*slot];
                    entry.origin == *origin
                        && (service == 0 || entry.service == service)
                        && self.is_waiting(*slot)
                });
                // `Done` is only answered for durable ends, and an end may need the content for its DLR.
                if let Some(slot) = found.iter().copied().find(|slot| self.slab[*slot].message.is_none()) {
                    let id = self.slab[slot].id;
                    self.load_if_missing(slot, out);
                    return self.wait_for_content(id, event);
                }
                let answer = if found.is_empty() {
                    EngineAnswer::Refused(Refusal::WrongState)
                } else {
                    EngineAnswer::Done
                };
                for slot in found {
                    self.end(now, slot, FinalState::Cancelled, None, out);
                }
                (*reply, answer)
            }
            Event::Replace { origin, id, source, reply, .. } => {
                let claim = MessageClaim { origin: *origin, id: *id, source: Some(source), reply: *reply };
                let slot = match self.find_claimed(&claim, Some(Refusal::WrongState), true, out) {
                    ClaimResult::Found(slot) => slot,
                    ClaimResult::Wait(id) => return self.wait_for_content(id, event),
                    ClaimResult::Answered => return,
                };
                let (id, reply) = (*id, *reply);
                // replace_sm names one message (SMPP 3.4 §4.10), and this id names several.
                if self.live_of_submission(id).is_empty() {
                    (reply, self.replace(now, slot, event, out))
                } else {
                    (reply, EngineAnswer::Refused(Refusal::WrongState))
                }
            }
            Event::SettleUncertain { id, again, reply } => {
                let answer = match self.ids.get(&self.slab, *id) {
                    Some(slot) if self.slab[slot].state == State::Uncertain => {
                        if self.slab[slot].message.is_none() {
                            self.load_if_missing(slot, out);
                            return self.wait_for_content(*id, event);
                        }
                        self.settle_uncertain(now, slot, *again, out);
                        EngineAnswer::Done
                    }
                    Some(_) => EngineAnswer::Refused(Refusal::WrongState),
                    None => EngineAnswer::Refused(Refusal::UnknownMessage),
                };
                (*reply, answer)
            }
            _ => return,
        };
        out.commands.push(EngineCommand::Answer { to: reply, answer });
    }

    pub(crate) fn settle_uncertain(&mut self, now: Now, slot: Slot, again: bool, out: &mut Output) {
        if again {
            self.leave_uncertain(slot);
            self.totals.sent_again += 1;
            self.add_step(now, slot, StepKind::SentAgain);
            self.requeue(slot);
            self.write_progress(now, slot, out);
        } else {
            self.end(now, slot, FinalState::Unknown, None, out);
        }
    }

    fn wait_for_content(&mut self, id: MessageId, event: Event) {
        self.waiting_for_content.entry(id).or_default().push(event);
    }

    /// Cancels the waiting messages of a submission: all, or only those to one destination. `claimed` is a message of the
    /// submission, with its content. The error is a message whose content must be loaded first.
    fn cancel_submission(
        &mut self,
        now: Now,
        (claimed, mut all): (Slot, Vec<Slot>),
        destination: Option<&Address>,
        out: &mut Output,
    ) -> Result<EngineAnswer, MessageId> {
        all.retain(|slot| self.is_waiting(*slot));
        if let (Some(destination), Some(message)) = (destination, &self.slab[claimed].message) {
            let pair = self.pairs.key(message.origin, &message.source.value, &destination.value);
            all.retain(|slot| self.slab[*slot].pair == pair);
        }
        // `Done` is only answered for durable ends, and an end may need the content for its DLR.
        let missing: Vec<Slot> =
            all.iter().copied().filter(|slot| self.slab[*slot].message.is_none()).collect();
        if let Some(first) = missing.first() {
            let id = self.slab[*first].id;
            missing.iter().for_each(|slot| self.load_if_missing(*slot, out));
            return Err(id);
        }
        let ids: Vec<MessageId> = all.iter().map(|slot| self.slab[*slot].id).collect();
        for id in &ids {
            // The end of one message may move the slot of another.
            if let Some(slot) = self.ids.get(&self.slab, *id) {
                self.end(now, slot, FinalState::Cancelled, None, out);
            }
        }
        Ok(if ids.is_empty() { EngineAnswer::Refused(Refusal::WrongState) } else { EngineAnswer::Done })
    }

    /// Finds a requested message; of a submission to several destinations, the first live one.
    fn find_claimed(
        &mut self,
        claim: &MessageClaim<'_>,
        too_late: Option<Refusal>,
        needs_content: bool,
        out: &mut Output,
    ) -> ClaimResult {
        let all = self.live_of_submission(claim.id);
        let ending = |slot: &&Slot| self.slab[**slot].state == State::Ending;
        let of_submission = all.iter().find(|slot| !ending(slot)).or(all.first());
        let Some(slot) = of_submission.copied().or_else(|| self.ids.get(&self.slab, claim.id)) else {
            out.commands.push(EngineCommand::LookUp {
                origin: claim.origin,
                id: claim.id,
                source: claim.source.cloned(),
                too_late,
                to: claim.reply,
            });
            return ClaimResult::Answered;
        };
        let entry = &self.slab[slot];
        let mine = entry.origin == claim.origin && !entry.has(flag::OWN_DLR);
        let content = entry.message.clone();
        if mine && needs_content && content.is_none() {
            if entry.state == State::Ending {
                // The end of the message is being written.
                let answer = too_late
                    .map_or_else(|| EngineAnswer::State(self.queried(slot, claim.id)), EngineAnswer::Refused);
                out.commands.push(EngineCommand::Answer { to: claim.reply, answer });
                return ClaimResult::Answered;
            }
            let id = entry.id;
            self.load_if_missing(slot, out);
            return ClaimResult::Wait(id);
        }
        let same_source = match (claim.source, &content) {
            (Some(source), Some(message)) => source.value == message.source.value,
            _ => true,
        };
        if mine && same_source {
            return ClaimResult::Found(slot);
        }
        let answer = EngineAnswer::Refused(Refusal::UnknownMessage);
        out.commands.push(EngineCommand::Answer { to: claim.reply, answer });
        ClaimResult::Answered
    }

    fn is_waiting(&self, slot: Slot) -> bool {
        self.slab[slot].state.waits()
    }

    fn queried(&self, slot: Slot, id: MessageId) -> QueriedState {
        let entry = &self.slab[slot];
        let error = entry.history.as_ref().and_then(|history| {
            history.steps.iter().rev().find_map(|step| match step.kind {
                StepKind::Refused { code } => Some(u8::try_from(code).unwrap_or(u8::MAX)),
                _ => None,
            })
        });
        QueriedState { id, state: DlrState::Enroute, final_at: None, error: error.unwrap_or(0) }
    }

    fn replace(&mut self, now: Now, slot: Slot, event: Event, out: &mut Output) -> EngineAnswer {
        let Event::Replace { text, scheduled, expires_at, dlr_request, .. } = event else {
            return EngineAnswer::Refused(Refusal::Internal);
        };
        let state = self.slab[slot].state;
        let waits = state.waits() && state != State::Routing;
        let Some(old) = self.slab[slot].message.clone().filter(|_| waits) else {
            return EngineAnswer::Refused(Refusal::WrongState);
        };
        let expires_at = expires_at.unwrap_or(old.expires_at).min(now.wall + self.settings.longest_validity);
        if expires_at <= now.wall {
            return EngineAnswer::Refused(Refusal::Expired);
        }
        if scheduled.is_some_and(|at| at > now.wall + self.settings.longest_schedule || at >= expires_at) {
            return EngineAnswer::Refused(Refusal::BadSchedule);
        }
        let mut message = Message::clone(&old);
        message.text.octets = text.octets;
        message.text.payload = text.payload;
        message.expires_at = expires_at;
        message.dlr_request = dlr_request;
        message.scheduled = scheduled.filter(|at| *at > now.wall).or(message.scheduled);
        // The screens have seen another text. In quarantine, an admin decides about this one.
        let screen_again = message.routed.screening.is_some() && state != State::Quarantined;
        if screen_again {
            message.routed.screening = None;
            if let Some(sender) = &mut message.routed.sender {
                sender.leased = None;
            }
        }
        let schedule = scheduled.filter(|at| *at > now.wall);
        self.add_step(now, slot, StepKind::Replaced);
        let entry = &mut self.slab[slot];
        entry.expires = now.moment_of(expires_at);
        entry.set_dlr_request(dlr_request);
        self.replace_content(slot, message, out);
        let mut slot = slot;
        if screen_again || schedule.is_some() {
            match self.slab[slot].state {
                State::Queued => slot = self.leave_queue(slot),
                State::Deferred => {
                    self.peer_of(slot).deferred -= 1;
                    let id = self.slab[slot].id;
                    self.policy.forget_alert(id);
                }
                State::Deciding => self.cancel_decision(slot),
                State::Resolving => self.stop_resolving(slot),
                State::SubscriberLocked => self.stop_waiting_for_subscriber(slot),
                State::Suspended => self.leave_hold(slot),
                State::AwaitingLookup if screen_again => self.stop_awaiting_lookup(slot),
                State::Paced => self.stop_pacing(slot),
                _ => {}
            }
            if screen_again {
                self.release_subscriber_lock(slot);
                let id = self.slab[slot].id;
                self.pools.release(now, id, &mut out.batch.pools);
                // After a crash the message is screened and routed too.
                self.hold(slot, now.mono);
            } else if let Some(at) = schedule
                && !matches!(self.slab[slot].state, State::Held | State::Quarantined | State::AwaitingLookup)
            {
                self.release_subscriber_lock(slot);
                self.defer(slot, now.moment_of(at));
            }
        }
        self.write_progress(now, slot, out);
        if screen_again {
            self.request_routing(now, slot, out);
        }
        EngineAnswer::Done
    }
}

enum ClaimResult {
    Found(Slot),
    /// The content is loading; the request is repeated with it.
    Wait(MessageId),
    /// The answer, or the lookup in the store, is among the commands.
    Answered,
}
