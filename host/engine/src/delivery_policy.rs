//! Delivery policy: the plugin's decision on a failed attempt. Without a decision the built-in schedule applies;
//! after a restart, pending decisions are deferred by that schedule.

use crate::delivery_policy_state::FailedAttempt;
use crate::engine::Engine;
use crate::leg_subscriber::imsi_on_leg;
use crate::leg_subscriber::number_on_leg;
use crate::slab::{Slot, State, flag};
use crate::{EngineCommand, Output};
use model::{
    Attempt, DeliveryDecision, ErrorClass, FinalState, Hook, Message, MessageId, Moment, NextStep, Now,
    PeerMessageId, StepKind, Verdict,
};
use std::time::Duration;

/// From this many attempts on, at least [`MIN_RETRY_DELAY`] passes between attempts, even if the policy asks for less.
/// Otherwise immediate retries of messages that a peer refuses immediately would keep the disk busy.
pub(crate) const MANY_ATTEMPTS: u16 = 100;
pub(crate) const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);

impl Engine {
    /// Decides on a failed attempt: asks the policy, or applies the built-in schedule.
    pub(crate) fn decide_next(
        &mut self,
        now: Now,
        slot: Slot,
        class: ErrorClass,
        code: u32,
        out: &mut Output,
    ) {
        let entry = &self.slab[slot];
        let asks = self.settings.delivery_policy && !entry.has(flag::OWN_DLR);
        let Some(message) = entry.message.clone().filter(|_| asks) else {
            self.apply_built_in_schedule(now, slot, class, code, out);
            return;
        };
        let legs = match &message.routed.verdict {
            Verdict::Forward(legs) => u8::try_from(legs.len()).unwrap_or(u8::MAX),
            Verdict::Hold(_)
            | Verdict::Reject(_)
            | Verdict::Quarantine
            | Verdict::AwaitLookup
            | Verdict::Drop(_) => 0,
        };
        let attempt = Attempt {
            number: entry.attempts,
            leg: (entry.leg, legs),
            peer: entry.peer,
            class,
            code,
            age: now.wall - message.accepted_at,
            left: entry.expires - now.mono,
        };
        let wait = match class {
            ErrorClass::Throttled | ErrorClass::QueueFull => Duration::ZERO,
            _ => self.built_in_delay(slot),
        };
        let entry = &mut self.slab[slot];
        entry.state = State::Deciding;
        entry.due = now.mono + wait;
        let failed = FailedAttempt { attempt: entry.attempts, class, code };
        self.policy.pending.insert(entry.id, failed);
        self.write_progress(now, slot, out);
        out.commands.push(EngineCommand::Decide { message, attempt });
    }

    /// Ends a pending decision; the message is then in the state after the end of an attempt.
    pub(crate) fn cancel_decision(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Submitted;
        self.policy.pending.remove(&entry.id);
    }

    /// Applies a decision. A decision for a finished message or an earlier attempt is ignored.
    pub(crate) fn policy_decided(
        &mut self,
        now: Now,
        id: MessageId,
        attempt: u16,
        next: Option<DeliveryDecision>,
        out: &mut Output,
    ) {
        let failed = self.policy.pending.get(&id).copied();
        let Some(FailedAttempt { class, code, .. }) = failed.filter(|failed| failed.attempt == attempt)
        else {
            return;
        };
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        self.cancel_decision(slot);
        let Some(DeliveryDecision { step, advice, by, note }) = next else {
            self.apply_built_in_schedule(now, slot, class, code, out);
            return;
        };
        let peer = self.slab[slot].peer;
        self.peer_mut(peer).apply_advice(now.mono, advice);
        self.mark_dirty(peer.0);
        self.add_step(now, slot, StepKind::Decided { hook: Hook::DeliveryPolicy, by, note });
        match step {
            NextStep::RetryAfter(after) | NextStep::AwaitAlert(after) if class == ErrorClass::ThisMessage => {
                self.move_behind_others(now, slot, after, out);
            }
            NextStep::RetryAfter(after) => {
                let many = self.slab[slot].attempts >= MANY_ATTEMPTS;
                let after = if many { after.max(MIN_RETRY_DELAY) } else { after };
                if after.is_zero() {
                    self.put_back(now, slot, out);
                    return;
                }
                let until = self.bounded_by_validity(now, slot, after);
                self.add_step(now, slot, StepKind::Deferred { until: now.wall_of(until) });
                self.retry_at(now, slot, until, out);
            }
            NextStep::NextLeg => self.leg_failed(now, slot, code, out),
            NextStep::AwaitAlert(most) => {
                let until = self.bounded_by_validity(now, slot, most.max(MIN_RETRY_DELAY));
                self.add_step(now, slot, StepKind::AwaitingAlert { until: now.wall_of(until) });
                if let Some(message) = self.slab[slot].message.clone() {
                    self.await_subscriber_alert(slot, &message);
                }
                self.retry_at(now, slot, until, out);
            }
            NextStep::Fail => {
                self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
            }
        }
    }

    /// `after` from now, but not beyond the end of validity.
    fn bounded_by_validity(&self, now: Now, slot: Slot, after: Duration) -> Moment {
        (now.mono + after).min(self.slab[slot].expires)
    }

    /// Lets a message wait for a subscriber alert.
    pub(crate) fn await_subscriber_alert(&mut self, slot: Slot, message: &Message) {
        let (id, leg) = (self.slab[slot].id, self.slab[slot].leg);
        self.policy.await_alert(number_on_leg(message, leg), imsi_on_leg(message, leg).cloned(), id);
    }

    /// The policy was unbound: the built-in schedule applies to pending decisions.
    pub(crate) fn policy_unbound(&mut self, now: Now, out: &mut Output) {
        let mut pending: Vec<_> =
            self.policy.pending.iter().map(|(id, failed)| (*id, failed.attempt)).collect();
        pending.sort_unstable();
        for (id, attempt) in pending {
            self.policy_decided(now, id, attempt, None, out);
        }
    }

    /// The number of pending decisions.
    #[must_use]
    pub fn pending_decisions(&self) -> usize {
        self.policy.pending.len()
    }
}
