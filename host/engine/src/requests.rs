//! What a submitter, or an admin, asks about a message that was accepted.

use crate::accept::service_hash;
use crate::engine::Engine;
use crate::slab::{Slot, State, flag};
use crate::{Answer, Command, Event, Output, QueriedState, ReplyTo};
use model::{Address, FinalState, Message, MessageId, Now, PeerId, ReceiptState, Refusal, StepKind};

/// Whose message is asked for, and by which door.
struct Claim<'a> {
    origin: PeerId,
    /// The id as the submitter has it: of a message, or of a submission to several destinations.
    id: MessageId,
    source: Option<&'a Address>,
    reply: ReplyTo,
}

impl Engine {
    pub(crate) fn request(&mut self, now: Now, event: Event, out: &mut Output) {
        let (reply, answer) = match &event {
            Event::Query { origin, id, source, reply } => {
                let claim = Claim { origin: *origin, id: *id, source: source.as_ref(), reply: *reply };
                let slot = match self.find_claimed(&claim, None, source.is_some(), out) {
                    Found::Here(slot) => slot,
                    Found::Wait(id) => return self.wait_for_content(id, event),
                    Found::Answered => return,
                };
                (*reply, Answer::State(self.queried(slot, *id)))
            }
            Event::Cancel { origin, id, source, destination, reply } => {
                let claim = Claim { origin: *origin, id: *id, source: source.as_ref(), reply: *reply };
                let slot = match self.find_claimed(&claim, Some(Refusal::WrongState), true, out) {
                    Found::Here(slot) => slot,
                    Found::Wait(id) => return self.wait_for_content(id, event),
                    Found::Answered => return,
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
                    (*reply, Answer::Done)
                } else {
                    (*reply, Answer::Refused(Refusal::WrongState))
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
                // Done is only said of ends that are durable, and an end may need the content for its receipt.
                if let Some(slot) = found.iter().copied().find(|slot| self.slab[*slot].message.is_none()) {
                    let id = self.slab[slot].id;
                    self.load_if_missing(slot, out);
                    return self.wait_for_content(id, event);
                }
                let answer =
                    if found.is_empty() { Answer::Refused(Refusal::WrongState) } else { Answer::Done };
                for slot in found {
                    self.end(now, slot, FinalState::Cancelled, None, out);
                }
                (*reply, answer)
            }
            Event::Replace { origin, id, source, reply, .. } => {
                let claim = Claim { origin: *origin, id: *id, source: Some(source), reply: *reply };
                let slot = match self.find_claimed(&claim, Some(Refusal::WrongState), true, out) {
                    Found::Here(slot) => slot,
                    Found::Wait(id) => return self.wait_for_content(id, event),
                    Found::Answered => return,
                };
                let (id, reply) = (*id, *reply);
                // replace_sm names one message (SMPP 3.4 §4.10), and this id names several.
                if self.live_of_submission(id).is_empty() {
                    (reply, self.replace(now, slot, event, out))
                } else {
                    (reply, Answer::Refused(Refusal::WrongState))
                }
            }
            Event::Settle { id, again, reply } => {
                let answer = match self.ids.get(&self.slab, *id) {
                    Some(slot) if self.slab[slot].state == State::Uncertain => {
                        if self.slab[slot].message.is_none() {
                            self.load_if_missing(slot, out);
                            return self.wait_for_content(*id, event);
                        }
                        self.settle_doubt(now, slot, *again, out);
                        Answer::Done
                    }
                    Some(_) => Answer::Refused(Refusal::WrongState),
                    None => Answer::Refused(Refusal::UnknownMessage),
                };
                (*reply, answer)
            }
            _ => return,
        };
        out.commands.push(Command::Answer { to: reply, answer });
    }

    pub(crate) fn settle_doubt(&mut self, now: Now, slot: Slot, again: bool, out: &mut Output) {
        if again {
            self.leave_doubt(slot);
            self.totals.sent_again += 1;
            self.step(now, slot, StepKind::SentAgain);
            self.requeue(slot);
            self.record(now, slot, out);
        } else {
            self.end(now, slot, FinalState::Unknown, None, out);
        }
    }

    fn wait_for_content(&mut self, id: MessageId, event: Event) {
        self.waiting_for_content.entry(id).or_default().push(event);
    }

    /// Cancels the messages of a submission that wait, all of them or those to one destination; `claimed` is one of them, with
    /// its content. The error is a message whose content must be read first.
    fn cancel_submission(
        &mut self,
        now: Now,
        (claimed, mut all): (Slot, Vec<Slot>),
        destination: Option<&Address>,
        out: &mut Output,
    ) -> Result<Answer, MessageId> {
        all.retain(|slot| self.is_waiting(*slot));
        if let (Some(destination), Some(message)) = (destination, &self.slab[claimed].message) {
            let pair = self.pairs.key(message.origin, &message.source.value, &destination.value);
            all.retain(|slot| self.slab[*slot].pair == pair);
        }
        // Done is only said of ends that are durable, and an end may need the content for its receipt.
        let missing: Vec<Slot> =
            all.iter().copied().filter(|slot| self.slab[*slot].message.is_none()).collect();
        if let Some(first) = missing.first() {
            let id = self.slab[*first].id;
            missing.iter().for_each(|slot| self.load_if_missing(*slot, out));
            return Err(id);
        }
        let ids: Vec<MessageId> = all.iter().map(|slot| self.slab[*slot].id).collect();
        for id in &ids {
            // The end of one may move the slot of another.
            if let Some(slot) = self.ids.get(&self.slab, *id) {
                self.end(now, slot, FinalState::Cancelled, None, out);
            }
        }
        Ok(if ids.is_empty() { Answer::Refused(Refusal::WrongState) } else { Answer::Done })
    }

    /// Finds a message for one who claims to have submitted it; of a submission to several destinations, the first that has
    /// not ended.
    fn find_claimed(
        &mut self,
        claim: &Claim<'_>,
        too_late: Option<Refusal>,
        needs_content: bool,
        out: &mut Output,
    ) -> Found {
        let all = self.live_of_submission(claim.id);
        let ending = |slot: &&Slot| self.slab[**slot].state == State::Ending;
        let of_submission = all.iter().find(|slot| !ending(slot)).or(all.first());
        let Some(slot) = of_submission.copied().or_else(|| self.ids.get(&self.slab, claim.id)) else {
            out.commands.push(Command::LookUp {
                origin: claim.origin,
                id: claim.id,
                source: claim.source.cloned(),
                too_late,
                to: claim.reply,
            });
            return Found::Answered;
        };
        let entry = &self.slab[slot];
        let mine = entry.origin == claim.origin && !entry.has(flag::OWN_RECEIPT);
        let content = entry.message.clone();
        if mine && needs_content && content.is_none() {
            if entry.state == State::Ending {
                // Its end is on its way to the disk.
                let answer =
                    too_late.map_or_else(|| Answer::State(self.queried(slot, claim.id)), Answer::Refused);
                out.commands.push(Command::Answer { to: claim.reply, answer });
                return Found::Answered;
            }
            let id = entry.id;
            self.load_if_missing(slot, out);
            return Found::Wait(id);
        }
        let same_source = match (claim.source, &content) {
            (Some(source), Some(message)) => source.value == message.source.value,
            _ => true,
        };
        if mine && same_source {
            return Found::Here(slot);
        }
        let answer = Answer::Refused(Refusal::UnknownMessage);
        out.commands.push(Command::Answer { to: claim.reply, answer });
        Found::Answered
    }

    fn is_waiting(&self, slot: Slot) -> bool {
        self.slab[slot].state.waits()
    }

    fn queried(&self, slot: Slot, id: MessageId) -> QueriedState {
        let entry = &self.slab[slot];
        let error = entry.side.as_ref().and_then(|side| {
            side.steps.iter().rev().find_map(|step| match step.kind {
                StepKind::Refused { code } => Some(u8::try_from(code).unwrap_or(u8::MAX)),
                _ => None,
            })
        });
        QueriedState { id, state: ReceiptState::Enroute, final_at: None, error: error.unwrap_or(0) }
    }

    fn replace(&mut self, now: Now, slot: Slot, event: Event, out: &mut Output) -> Answer {
        let Event::Replace { text, scheduled, expires_at, receipts, .. } = event else {
            return Answer::Refused(Refusal::Internal);
        };
        let state = self.slab[slot].state;
        let waits = state.waits() && state != State::Routing;
        let Some(old) = self.slab[slot].message.clone().filter(|_| waits) else {
            return Answer::Refused(Refusal::WrongState);
        };
        let expires_at = expires_at.unwrap_or(old.expires_at).min(now.wall + self.settings.longest_validity);
        if expires_at <= now.wall {
            return Answer::Refused(Refusal::Expired);
        }
        if scheduled.is_some_and(|at| at > now.wall + self.settings.longest_schedule || at >= expires_at) {
            return Answer::Refused(Refusal::BadSchedule);
        }
        let mut message = Message::clone(&old);
        message.text.octets = text.octets;
        message.text.payload = text.payload;
        message.expires_at = expires_at;
        message.receipts = receipts;
        message.scheduled = scheduled.filter(|at| *at > now.wall).or(message.scheduled);
        let schedule = scheduled.filter(|at| *at > now.wall);
        self.step(now, slot, StepKind::Replaced);
        let entry = &mut self.slab[slot];
        entry.expires = now.moment_of(expires_at);
        entry.set_receipts(receipts);
        self.replace_content(slot, message, out);
        let mut slot = slot;
        if let Some(at) = schedule {
            match self.slab[slot].state {
                State::Queued => slot = self.leave_queue(slot),
                State::Deferred => {
                    self.peer_of(slot).deferred -= 1;
                    let id = self.slab[slot].id;
                    self.deciding.forget_alert(id);
                }
                State::Deciding => self.leave_deciding(slot),
                State::Resolving => self.leave_resolving(slot),
                State::Aside => self.leave_aside(slot),
                State::Suspended => self.leave_order(slot),
                _ => {}
            }
            if self.slab[slot].state != State::Held {
                self.end_turn(slot);
                self.defer(slot, now.moment_of(at));
            }
        }
        self.record(now, slot, out);
        Answer::Done
    }
}

enum Found {
    Here(Slot),
    /// The content of this message is being read; the request comes again with it.
    Wait(MessageId),
    /// The answer, or the question to the store, is among the commands.
    Answered,
}
