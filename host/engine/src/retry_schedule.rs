//! The built-in retry schedule: the time of the next attempt of a refused message, and the failure of its leg.

use crate::Output;
use crate::delivery_policy::{MANY_ATTEMPTS, MIN_RETRY_DELAY};
use crate::engine::Engine;
use crate::slab::Slot;
use model::{ErrorClass, FinalState, Moment, Now, PeerMessageId, StepKind};
use std::time::Duration;

/// Number of refusals of a particular message by a handset after which the leg fails.
const MAX_MESSAGE_REFUSALS: usize = 3;

impl Engine {
    /// Applies the built-in schedule to a refusal.
    pub(crate) fn apply_built_in_schedule(
        &mut self,
        now: Now,
        slot: Slot,
        class: ErrorClass,
        code: u32,
        out: &mut Output,
    ) {
        match class {
            ErrorClass::Throttled | ErrorClass::QueueFull => self.put_back(now, slot, out),
            ErrorClass::Temporary => self.try_later(now, slot, code, false, out),
            ErrorClass::ThisMessage if self.attempts_exhausted(slot) => {
                self.leg_failed(now, slot, code, out);
            }
            ErrorClass::ThisMessage => {
                let wait = self.built_in_delay(slot);
                self.move_behind_others(now, slot, wait, out);
            }
            ErrorClass::Absent | ErrorClass::MemoryFull => {
                let serial = self.peer_of(slot).settings.serial;
                self.try_later(now, slot, code, serial, out);
            }
            ErrorClass::Permanent | ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => {
                self.leg_failed(now, slot, code, out);
            }
        }
    }

    /// Returns a message to its place in the queue without a delay.
    pub(crate) fn put_back(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.requeue(slot);
        self.write_progress(now, slot, out);
    }

    /// Schedules the next attempt by the number of attempts so far, within the validity. With `alert`, an alert ends
    /// the wait.
    pub(crate) fn try_later(&mut self, now: Now, slot: Slot, code: u32, alert: bool, out: &mut Output) {
        if self.attempts_exhausted(slot) {
            self.leg_failed(now, slot, code, out);
            return;
        }
        let until = now.mono + self.built_in_delay(slot);
        let wall = now.wall_of(until);
        let wait =
            if alert { StepKind::AwaitingAlert { until: wall } } else { StepKind::Deferred { until: wall } };
        self.add_step(now, slot, wait);
        if alert && let Some(message) = self.slab[slot].message.clone() {
            self.await_subscriber_alert(slot, &message);
        }
        self.retry_at(now, slot, until, out);
    }

    fn attempts_exhausted(&self, slot: Slot) -> bool {
        let most = self.peers[self.slab[slot].peer.0 as usize].settings.max_attempts;
        most != 0 && self.slab[slot].attempts >= most
    }

    /// The delay of the built-in schedule after the attempts so far.
    pub(crate) fn built_in_delay(&mut self, slot: Slot) -> Duration {
        let entry = &self.slab[slot];
        let retry = &self.peers[entry.peer.0 as usize].settings.retry;
        let step = usize::from(entry.attempts.saturating_sub(1)).min(retry.len().saturating_sub(1));
        self.random.jitter(retry.get(step).copied().unwrap_or(Duration::from_secs(60)))
    }

    /// Schedules the next attempt on this leg; at once if the subscriber was alerted during the last attempt.
    pub(crate) fn retry_at(&mut self, now: Now, slot: Slot, until: Moment, out: &mut Output) {
        let mut until = until;
        if self.take_alerted(slot) {
            if self.slab[slot].attempts < MANY_ATTEMPTS {
                let id = self.slab[slot].id;
                self.policy.forget_alert(id);
                self.put_back(now, slot, out);
                return;
            }
            until = until.min(now.mono + MIN_RETRY_DELAY);
        }
        self.hold_lock_for_retry(slot);
        self.wait_until(now, slot, until, out);
    }

    /// Schedules the next attempt after a refusal of this particular message, and releases the subscriber lock until
    /// then.
    pub(crate) fn move_behind_others(&mut self, now: Now, slot: Slot, wait: Duration, out: &mut Output) {
        let until = (now.mono + wait.max(MIN_RETRY_DELAY)).min(self.slab[slot].expires);
        self.add_step(now, slot, StepKind::MovedBehindOthers { until: now.wall_of(until) });
        self.release_subscriber_lock(slot);
        self.wait_until(now, slot, until, out);
    }

    /// Whether the handset has refused this particular message too often on this leg.
    pub(crate) fn refused_too_often(&self, slot: Slot) -> bool {
        let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
        let of_leg = steps.iter().rev().take_while(|step| {
            !matches!(
                step.kind,
                StepKind::NextLeg { .. } | StepKind::Rerouted { .. } | StepKind::SubscriberRequeried { .. }
            )
        });
        of_leg.filter(|step| matches!(step.kind, StepKind::MovedBehindOthers { .. })).count() + 1
            >= MAX_MESSAGE_REFUSALS
    }

    pub(crate) fn wait_until(&mut self, now: Now, slot: Slot, until: Moment, out: &mut Output) {
        self.defer(slot, until);
        self.write_progress(now, slot, out);
        if self.cached > self.settings.body_cache {
            self.uncache(slot);
        }
    }

    /// The leg has failed: moves to the next one, or finishes the message.
    pub(crate) fn leg_failed(&mut self, now: Now, slot: Slot, code: u32, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone()
            && self.next_leg(now, slot, &message, out)
        {
            return;
        }
        self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
    }
}
