//! What follows a failed attempt, where a delivery policy is asked. Without its word the built-in schedule decides, and a
//! message that is being decided when the daemon ends is found deferred by that schedule.

use crate::custody::imsi_on_leg;
use crate::engine::Engine;
use crate::resolving::number_on_leg;
use crate::slab::{Slot, State, flag};
use crate::{Command, Output};
use model::{
    AddressBytes, Attempt, ErrorClass, FinalState, Hook, Imsi, Message, MessageId, Moment, Next, NextStep,
    Now, PeerMessageId, StepKind, Verdict,
};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// From so many attempts on, at least [`BREATH`] passes before the next, whatever the policy says: a policy that repeats at
/// once what a peer refuses at once would keep the disk busy and nothing else.
pub(crate) const MANY_ATTEMPTS: u16 = 100;
pub(crate) const BREATH: Duration = Duration::from_secs(1);

/// A failed attempt that the policy has been asked about.
#[derive(Debug, Clone, Copy)]
struct Failed {
    attempt: u16,
    class: ErrorClass,
    code: u32,
}

/// What the policy has been asked, and who waits for a subscriber to be heard of.
#[derive(Debug, Default)]
pub(crate) struct Deciding {
    asked: HashMap<MessageId, Failed>,
    by_number: HashMap<AddressBytes, BTreeSet<MessageId>>,
    by_imsi: HashMap<Imsi, BTreeSet<MessageId>>,
    names: HashMap<MessageId, (AddressBytes, Option<Imsi>)>,
}

impl Deciding {
    fn await_alert(&mut self, number: AddressBytes, imsi: Option<Imsi>, id: MessageId) {
        self.by_number.entry(number.clone()).or_default().insert(id);
        if let Some(imsi) = &imsi {
            self.by_imsi.entry(imsi.clone()).or_default().insert(id);
        }
        self.names.insert(id, (number, imsi));
    }

    /// A message waits no longer for its subscriber to be heard of, if it did.
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

    /// All that wait for a subscriber to be heard of, oldest first.
    pub(crate) fn heard_of_number(&self, number: &AddressBytes) -> Vec<MessageId> {
        self.by_number.get(number).into_iter().flatten().copied().collect()
    }

    /// All under a number that wait for another subscriber than this one, oldest first.
    pub(crate) fn of_number_and_not(&self, number: &AddressBytes, imsi: &Imsi) -> Vec<MessageId> {
        let other = |id: &MessageId| {
            let named = self.names.get(id).and_then(|(_, named)| named.as_ref());
            named.is_some_and(|named| named != imsi)
        };
        self.by_number.get(number).into_iter().flatten().copied().filter(other).collect()
    }

    /// The same by IMSI.
    pub(crate) fn heard_of_imsi(&self, imsi: &Imsi) -> Vec<MessageId> {
        self.by_imsi.get(imsi).into_iter().flatten().copied().collect()
    }
}

impl Engine {
    /// A peer has refused a message: the policy is asked what follows, or the built-in schedule knows.
    pub(crate) fn what_follows(
        &mut self,
        now: Now,
        slot: Slot,
        class: ErrorClass,
        code: u32,
        out: &mut Output,
    ) {
        let entry = &self.slab[slot];
        let asks = self.settings.delivery_policy && !entry.has(flag::OWN_RECEIPT);
        let Some(message) = entry.message.clone().filter(|_| asks) else {
            self.built_in(now, slot, class, code, out);
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
            _ => self.built_in_wait(slot),
        };
        let entry = &mut self.slab[slot];
        entry.state = State::Deciding;
        entry.due = now.mono + wait;
        let failed = Failed { attempt: entry.attempts, class, code };
        self.deciding.asked.insert(entry.id, failed);
        self.record(now, slot, out);
        out.commands.push(Command::Decide { message, attempt });
    }

    /// Takes a message out of being decided; it is then where one is whose attempt has just ended.
    pub(crate) fn leave_deciding(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Submitted;
        self.deciding.asked.remove(&entry.id);
    }

    /// The policy's word. One that comes after the message has ended, or for an attempt of before, is for nobody.
    pub(crate) fn decided(
        &mut self,
        now: Now,
        id: MessageId,
        attempt: u16,
        next: Option<Next>,
        out: &mut Output,
    ) {
        let asked = self.deciding.asked.get(&id).copied();
        let Some(Failed { class, code, .. }) = asked.filter(|failed| failed.attempt == attempt) else {
            return;
        };
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        self.leave_deciding(slot);
        let Some(Next { step, advice, by, note }) = next else {
            self.built_in(now, slot, class, code, out);
            return;
        };
        let peer = self.slab[slot].peer;
        self.peer_mut(peer).heed(now.mono, advice);
        self.mark(peer.0);
        self.step(now, slot, StepKind::Decided { hook: Hook::DeliveryPolicy, by, note });
        match step {
            NextStep::RetryAfter(after) | NextStep::AwaitAlert(after) if class == ErrorClass::ThisMessage => {
                self.let_others_go_first(now, slot, after, out);
            }
            NextStep::RetryAfter(after) => {
                let many = self.slab[slot].attempts >= MANY_ATTEMPTS;
                let after = if many { after.max(BREATH) } else { after };
                if after.is_zero() {
                    self.put_back(now, slot, out);
                    return;
                }
                let until = self.until(now, slot, after);
                self.step(now, slot, StepKind::Deferred { until: now.wall_of(until) });
                self.try_again(now, slot, until, out);
            }
            NextStep::NextLeg => self.leg_failed(now, slot, code, out),
            NextStep::AwaitAlert(most) => {
                let until = self.until(now, slot, most.max(BREATH));
                self.step(now, slot, StepKind::AwaitingAlert { until: now.wall_of(until) });
                if let Some(message) = self.slab[slot].message.clone() {
                    self.index_alert(slot, &message);
                }
                self.try_again(now, slot, until, out);
            }
            NextStep::Fail => {
                self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
            }
        }
    }

    /// So long from now, but not beyond the end of validity.
    fn until(&self, now: Now, slot: Slot, after: Duration) -> Moment {
        (now.mono + after).min(self.slab[slot].expires)
    }

    /// A message waits until its subscriber is heard of.
    pub(crate) fn index_alert(&mut self, slot: Slot, message: &Message) {
        let (id, leg) = (self.slab[slot].id, self.slab[slot].leg);
        self.deciding.await_alert(number_on_leg(message, leg), imsi_on_leg(message, leg).cloned(), id);
    }

    /// The policy has gone: what it was asked is decided without it.
    pub(crate) fn policy_gone(&mut self, now: Now, out: &mut Output) {
        let mut asked: Vec<_> =
            self.deciding.asked.iter().map(|(id, failed)| (*id, failed.attempt)).collect();
        asked.sort_unstable();
        for (id, attempt) in asked {
            self.decided(now, id, attempt, None, out);
        }
    }

    /// Messages about which the delivery policy has been asked.
    #[must_use]
    pub fn deciding(&self) -> usize {
        self.deciding.asked.len()
    }
}
