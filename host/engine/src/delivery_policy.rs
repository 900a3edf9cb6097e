//! Delivery policy: the plugin's decision on a failed attempt. Without a decision the built-in schedule applies;
//! after a restart, pending decisions are deferred by that schedule.

use crate::engine::Engine;
use crate::resolver::number_on_leg;
use crate::serial_delivery::imsi_on_leg;
use crate::slab::{Slot, State, flag};
use crate::{EngineCommand, Output};
use model::{
    AddressBytes, Attempt, DeliveryDecision, ErrorClass, FinalState, Hook, Imsi, Message, MessageId, Moment,
    NextStep, Now, PeerMessageId, StepKind, Verdict,
};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// From this many attempts on, at least [`MIN_RETRY_DELAY`] passes between attempts, whatever the policy says.
/// Otherwise a policy that retries at once what a peer refuses at once would keep the disk busy.
pub(crate) const MANY_ATTEMPTS: u16 = 100;
pub(crate) const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A failed attempt with a pending decision.
#[derive(Debug, Clone, Copy)]
struct FailedAttempt {
    attempt: u16,
    class: ErrorClass,
    code: u32,
}

/// Pending decisions, and messages that wait for a subscriber alert.
#[derive(Debug, Default)]
pub(crate) struct DeliveryPolicyState {
    pending: HashMap<MessageId, FailedAttempt>,
    by_number: HashMap<AddressBytes, BTreeSet<MessageId>>,
    by_imsi: HashMap<Imsi, BTreeSet<MessageId>>,
    names: HashMap<MessageId, (AddressBytes, Option<Imsi>)>,
}

impl DeliveryPolicyState {
    fn await_alert(&mut self, number: AddressBytes, imsi: Option<Imsi>, id: MessageId) {
        self.by_number.entry(number.clone()).or_default().insert(id);
        if let Some(imsi) = &imsi {
            self.by_imsi.entry(imsi.clone()).or_default().insert(id);
        }
        self.names.insert(id, (number, imsi));
    }

    /// Ends the wait of a message for an alert, if it has one.
    pub(crate) fn forget_alert(&mut self, id: MessageId) {
        let Some((number, imsi)) = self.names.remove(&id) else { return };
        if let Some(ids) = self.by_number.get_mut(&number) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_number.remove(&number);
            }
        }
        if let Some(imsi) = imsi
            && let Some(ids) = self.by_imsi.get_mut(&imsi)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_imsi.remove(&imsi);
            }
        }
    }

    /// The messages that wait for an alert under a number, oldest first.
    pub(crate) fn waiting_for_number(&self, number: &AddressBytes) -> Vec<MessageId> {
        self.by_number.get(number).into_iter().flatten().copied().collect()
    }

    /// The messages under a number that wait for another subscriber than this one, oldest first.
    pub(crate) fn waiting_for_other_imsi(&self, number: &AddressBytes, imsi: &Imsi) -> Vec<MessageId> {
        let other = |id: &MessageId| {
            let named = self.names.get(id).and_then(|(_, named)| named.as_ref());
            named.is_some_and(|named| named != imsi)
        };
        self.by_number.get(number).into_iter().flatten().copied().filter(other).collect()
    }

    /// The messages that wait for an alert under an IMSI, oldest first.
    pub(crate) fn waiting_for_imsi(&self, imsi: &Imsi) -> Vec<MessageId> {
        self.by_imsi.get(imsi).into_iter().flatten().copied().collect()
    }
}

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
            Verdict::Hold(_) | Verdict::Reject(_) => 0,
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

    /// Ends a pending decision; the message is then in the state of one whose attempt has just ended.
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
