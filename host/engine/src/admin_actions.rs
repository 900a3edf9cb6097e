//! Actions of an admin on one message: send again, give up, cancel, retry now.

use crate::engine::Engine;
use crate::leg_subscriber::needs_subscriber;
use crate::slab::{Slot, State, flag};
use crate::{AdminAction, EngineAnswer, Event, Output};
use model::{AdminActionKind, FinalState, Now, Refusal, StepKind};
use std::sync::Arc;

impl Engine {
    /// Applies an admin's action to one message.
    pub(crate) fn admin_action(&mut self, now: Now, event: Event, out: &mut Output) {
        let Event::AdminAction { id, action, by, reply } = &event else { return };
        let (id, action, reply) = (*id, *action, *reply);
        let Some(slot) = self.ids.get(&self.slab, id) else {
            let answer = EngineAnswer::Refused(Refusal::UnknownMessage);
            out.commands.push(crate::EngineCommand::Answer { to: reply, answer });
            return;
        };
        let state = self.slab[slot].state;
        let fits = match action {
            AdminAction::SendAgain | AdminAction::GiveUp => state == State::Uncertain,
            AdminAction::Cancel => state.waits() && !self.slab[slot].has(flag::OWN_DLR),
            AdminAction::Retry => matches!(state, State::Deferred | State::Held),
            AdminAction::Release | AdminAction::Purge => state == State::Quarantined,
        };
        // `Done` is only answered for durable ends, and an end may need the content for its DLR.
        if fits && self.slab[slot].message.is_none() {
            self.load_if_missing(slot, out);
            self.waiting_for_content.entry(id).or_default().push(event);
            return;
        }
        if fits {
            let by = by.clone();
            self.apply_admin_action(now, slot, action, by, out);
        }
        let answer = if fits { EngineAnswer::Done } else { EngineAnswer::Refused(Refusal::WrongState) };
        out.commands.push(crate::EngineCommand::Answer { to: reply, answer });
    }

    fn apply_admin_action(
        &mut self,
        now: Now,
        slot: Slot,
        action: AdminAction,
        by: Arc<str>,
        out: &mut Output,
    ) {
        let kind = match action {
            AdminAction::SendAgain => AdminActionKind::SentAgain,
            AdminAction::GiveUp => AdminActionKind::GivenUp,
            AdminAction::Cancel => AdminActionKind::Cancelled,
            AdminAction::Retry => AdminActionKind::Retried,
            AdminAction::Release => AdminActionKind::Released,
            AdminAction::Purge => AdminActionKind::Purged,
        };
        self.add_step(now, slot, StepKind::AdminAction { action: kind, by, queue_action: None, peer: None });
        match action {
            AdminAction::SendAgain => self.settle_uncertain(now, slot, true, out),
            AdminAction::GiveUp => self.settle_uncertain(now, slot, false, out),
            AdminAction::Cancel => self.end(now, slot, FinalState::Cancelled, None, out),
            AdminAction::Release => self.release_from_quarantine(now, slot, out),
            AdminAction::Purge => self.end(now, slot, FinalState::Rejected, None, out),
            AdminAction::Retry if self.slab[slot].state == State::Held => {
                self.write_progress(now, slot, out);
                self.request_routing(now, slot, out);
            }
            AdminAction::Retry => {
                let slot = self.remove_from_wait(slot, out);
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
}
