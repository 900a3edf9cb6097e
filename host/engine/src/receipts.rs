//! The receipt policy: the plugin's decision on a DLR, or on its absence. Without a decision the DLR counts as it is.
//!
//! A peer is answered once the decision on its DLR is in a batch, so a crash loses no DLR: the peer repeats it. A wait that
//! the policy has set is a step of the trace, and is recovered from it.

use crate::EngineCommand;
use crate::Output;
use crate::counts::CountedEvent;
use crate::delivery_policy::MIN_RETRY_DELAY;
use crate::dlrs::{is_final_state, state_of_segments};
use crate::engine::Engine;
use crate::receipt_state::{DlrSource, LateDlr, PendingReceipt, ReceiptSubject};
use crate::slab::{NONE, Slot, State, flag};
use crate::timer::Timer;
use model::{
    AcceptedSubmission, Dlr, DlrFacts, DlrState, EarlierLeg, FinalState, Hook, Message, MessageId, Now,
    ObservationKind, PeerId, ReceiptDecision, ReceiptEvent, ReceiptVerdict, Step, StepKind, SubmittedSegment,
    Verdict,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The shortest wait. It limits the commits that a policy with very short waits causes.
const MIN_WAIT: Duration = Duration::from_millis(100);

/// Number of recovered messages for which the policy is called at a time.
const RECOVERY_BATCH: usize = 1_000;

impl Engine {
    /// Whether the receipt policy is called for a message: for an attempt of another partition, that partition calls it.
    pub(crate) fn asks_receipt(&self, slot: Slot) -> bool {
        self.settings.receipt && !self.is_partition_account(self.slab[slot].origin)
    }

    /// The peer has accepted a message, and a DLR is expected: asks the policy for the wait.
    pub(crate) fn receipt_expected(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if self.asks_receipt(slot) {
            self.ask_receipt(now, slot, ReceiptSubject::Accepted { recovered: false }, out);
        }
    }

    /// A DLR matches a message that waits for one or is uncertain: asks the policy, or applies the DLR.
    pub(crate) fn dlr_matched(
        &mut self,
        now: Now,
        slot: Slot,
        dlr: Dlr,
        source: DlrSource,
        out: &mut Output,
    ) {
        if self.slab[slot].state == State::Uncertain {
            self.accepted_by_dlr(now, slot, &dlr, out);
        }
        let entry = &self.slab[slot];
        if let Some(pending) = self.receipts.pending.get_mut(&entry.id) {
            pending.behind.push_back((dlr, source));
            return;
        }
        let segments = entry.history.as_ref().map_or(&[][..], |history| &history.segments);
        let changes = segments.iter().any(|segment| segment.id == dlr.id && changes_state(segment, &dlr));
        if changes && self.asks_receipt(slot) && entry.message.is_some() {
            self.ask_receipt(now, slot, ReceiptSubject::Dlr(dlr, source), out);
        } else {
            self.apply_dlr(now, slot, &dlr, None, out);
            source.done(out);
        }
    }

    /// Asks the policy. The message waits for a DLR; without its content, it is loaded first.
    fn ask_receipt(&mut self, now: Now, slot: Slot, subject: ReceiptSubject, out: &mut Output) {
        let entry = &self.slab[slot];
        let id = entry.id;
        let Some(message) = entry.message.clone() else {
            self.receipts.without_content.insert(id, subject);
            self.load_if_missing(slot, out);
            return;
        };
        let submission = AcceptedSubmission {
            attempts: entry.attempts,
            leg: (entry.leg, leg_count(&message)),
            peer: entry.peer,
            age: now.wall - message.accepted_at,
            left: entry.expires - now.mono,
        };
        let event = match &subject {
            ReceiptSubject::Accepted { .. } => ReceiptEvent::Accepted,
            ReceiptSubject::Timeout => ReceiptEvent::Timeout,
            ReceiptSubject::Dlr(dlr, _) => ReceiptEvent::Dlr(DlrFacts {
                is_final: !dlr.intermediate && is_final_state(dlr.state),
                state: dlr.state,
                error: dlr.error,
                network_error: dlr.network_error,
                latency: self.since_submission(now, slot, entry.peer),
            }),
        };
        let question = self.receipts.next_question();
        let behind = VecDeque::new();
        let pending = PendingReceipt { question, message: message.clone(), subject, behind };
        self.receipts.pending.insert(id, pending);
        out.commands.push(EngineCommand::AskReceipt { message, question, submission, event });
    }

    /// The time since the last submit attempt to a peer.
    fn since_submission(&self, now: Now, slot: Slot, peer: PeerId) -> Duration {
        let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
        let submitted = steps
            .iter()
            .rev()
            .find(|step| matches!(step.kind, StepKind::Submitted { peer: to, .. } if to == peer));
        Duration::from_millis(submitted.map_or(0, |step| now.wall.0.saturating_sub(step.at.0)))
    }

    /// Applies a decision. The message may have ended since.
    pub(crate) fn receipt_decided(
        &mut self,
        now: Now,
        id: MessageId,
        question: u64,
        decision: Option<ReceiptDecision>,
        out: &mut Output,
    ) {
        let Some(pending) = self.receipts.take(id, question) else { return };
        let PendingReceipt { message, subject, behind, .. } = pending;
        let slot = self.slot_awaiting_dlr(id);
        if let Some(slot) = slot
            && self.slab[slot].message.is_none()
        {
            self.cache(slot, message);
        }
        match (slot, subject) {
            (Some(slot), ReceiptSubject::Accepted { recovered }) => {
                self.decided_on_acceptance(now, slot, decision, out);
                if recovered {
                    let group = self.peer_of(slot).settings.group;
                    self.match_orphan_dlrs(now, slot, group, out);
                }
            }
            (Some(slot), ReceiptSubject::Dlr(dlr, source)) => {
                self.decided_on_dlr(now, slot, &dlr, decision, out);
                source.done(out);
            }
            (Some(slot), ReceiptSubject::Timeout) => self.decided_on_timeout(now, slot, decision, out),
            (None, ReceiptSubject::Dlr(_, source)) => source.done(out),
            (None, ReceiptSubject::Accepted { .. } | ReceiptSubject::Timeout) => {}
        }
        for (dlr, source) in behind {
            self.apply_queued_dlr(now, id, dlr, source, out);
        }
        if self.cached > self.settings.body_cache
            && let Some(slot) = self.slot_awaiting_dlr(id)
        {
            self.uncache(slot);
        }
    }

    fn slot_awaiting_dlr(&self, id: MessageId) -> Option<Slot> {
        self.ids.get(&self.slab, id).filter(|slot| self.slab[*slot].state == State::AwaitingDlr)
    }

    /// Continues with a DLR that came while the policy was deciding on another one.
    fn apply_queued_dlr(&mut self, now: Now, id: MessageId, dlr: Dlr, source: DlrSource, out: &mut Output) {
        if let Some(slot) = self.slot_awaiting_dlr(id) {
            self.dlr_matched(now, slot, dlr, source, out);
            return;
        }
        let slot = self.ids.get(&self.slab, id);
        let earlier = slot.and_then(|slot| self.slab[slot].history.as_ref()).and_then(|history| {
            history.earlier.iter().rev().find(|leg| leg.segments.iter().any(|segment| segment.id == dlr.id))
        });
        match earlier.map(|leg| leg.peer) {
            Some(peer) => self.late_dlr(now, LateDlr { id, peer, dlr, source }, out),
            None => source.done(out),
        }
    }

    fn decided_on_acceptance(
        &mut self,
        now: Now,
        slot: Slot,
        decision: Option<ReceiptDecision>,
        out: &mut Output,
    ) {
        let Some(decision) = decision.filter(|decision| decision.wait.is_some() || decision.note.is_some())
        else {
            return;
        };
        self.add_decision(now, slot, &decision);
        self.set_receipt_wait(now, slot, decision.wait, MIN_WAIT);
        self.write_progress(now, slot, out);
    }

    fn decided_on_dlr(
        &mut self,
        now: Now,
        slot: Slot,
        dlr: &Dlr,
        decision: Option<ReceiptDecision>,
        out: &mut Output,
    ) {
        let verdict = decision.as_ref().map_or(ReceiptVerdict::Accept, |decision| decision.verdict);
        let wait = decision.as_ref().and_then(|decision| decision.wait);
        let received = StepKind::DlrReceived { state: dlr.state as u8, error: dlr.error };
        match (verdict, decision) {
            (ReceiptVerdict::NextLeg, Some(decision)) if self.has_next_leg(now, slot) => {
                self.add_step(now, slot, received);
                self.add_decision(now, slot, &decision);
                let history = self.slab[slot].history_mut();
                if let Some(segment) = history.segments.iter_mut().find(|segment| segment.id == dlr.id) {
                    segment.state = Some(dlr.state);
                }
                if is_final_state(dlr.state) && dlr.state != DlrState::Delivered {
                    self.observe_dlr(now, slot, FinalState::Failed, out);
                }
                self.leave_leg(now, slot, out);
            }
            (ReceiptVerdict::Suspect, Some(decision)) => {
                self.add_step(now, slot, received);
                self.add_decision(now, slot, &decision);
                self.add_step(now, slot, StepKind::DlrSuspected);
                self.count(slot, CountedEvent::Suspected);
                self.observe(now, slot, ObservationKind::Failed { after: None }, out);
                self.set_receipt_wait(now, slot, wait, MIN_WAIT);
                self.write_progress(now, slot, out);
            }
            (_, decision) => {
                let id = self.slab[slot].id;
                self.apply_dlr(now, slot, dlr, decision.as_ref(), out);
                if wait.is_some()
                    && let Some(slot) = self.slot_awaiting_dlr(id)
                {
                    self.set_receipt_wait(now, slot, wait, MIN_WAIT);
                    self.write_progress(now, slot, out);
                }
            }
        }
    }

    fn decided_on_timeout(
        &mut self,
        now: Now,
        slot: Slot,
        decision: Option<ReceiptDecision>,
        out: &mut Output,
    ) {
        self.add_step(now, slot, StepKind::DlrOverdue);
        let Some(decision) = decision else {
            self.write_progress(now, slot, out);
            return;
        };
        self.add_decision(now, slot, &decision);
        match decision.verdict {
            ReceiptVerdict::NextLeg if self.has_next_leg(now, slot) => {
                self.observe(now, slot, ObservationKind::Failed { after: None }, out);
                self.leave_leg(now, slot, out);
            }
            ReceiptVerdict::Remap { state, error } if is_final_state(state) => {
                self.observe(now, slot, ObservationKind::Failed { after: None }, out);
                self.add_step(now, slot, StepKind::DlrRemapped { state: state as u8, error });
                self.totals.dlrs_remapped += 1;
                let segments = [SubmittedSegment { id: Default::default(), state: Some(state) }];
                let Some(end) = Self::final_state_of_segments(&segments) else { return };
                let dlr = Dlr {
                    id: Default::default(),
                    state,
                    intermediate: false,
                    error,
                    network_error: None,
                    done_at: None,
                    from: Default::default(),
                    to: Default::default(),
                };
                self.end(now, slot, end, Some(&dlr), out);
            }
            ReceiptVerdict::Accept
            | ReceiptVerdict::Suspect
            | ReceiptVerdict::NextLeg
            | ReceiptVerdict::Remap { .. } => {
                self.set_receipt_wait(now, slot, decision.wait, MIN_RETRY_DELAY);
                self.write_progress(now, slot, out);
            }
        }
    }

    /// Adds a plugin's decision to the trace, unless it only accepted.
    pub(crate) fn add_decision(&mut self, now: Now, slot: Slot, decision: &ReceiptDecision) {
        let ReceiptDecision { verdict, wait, by, note } = decision;
        if *verdict != ReceiptVerdict::Accept || wait.is_some() || note.is_some() {
            let kind = StepKind::Decided { hook: Hook::Receipt, by: by.clone(), note: note.clone() };
            self.add_step(now, slot, kind);
        }
    }

    /// Schedules another call of the policy after `wait`, if the peer's DLR timeout does not end before.
    fn set_receipt_wait(&mut self, now: Now, slot: Slot, wait: Option<Duration>, least: Duration) {
        let Some(wait) = wait else { return };
        let entry = &self.slab[slot];
        let timeout = self.receipts.waits.get(&entry.id).copied().unwrap_or(entry.due);
        let until = now.mono + wait.max(least);
        if until < timeout {
            let id = entry.id;
            self.slab[slot].due = until;
            self.receipts.waits.insert(id, timeout);
            self.timers.set(until, Timer::Message(slot, id));
            self.add_step(now, slot, StepKind::AwaitingDlr { until: now.wall_of(until) });
        }
    }

    /// A wait is over: calls the policy.
    pub(crate) fn receipt_wait_expired(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let id = self.slab[slot].id;
        if self.receipts.pending.contains_key(&id) {
            // The policy is deciding on a DLR, which may be final.
            self.slab[slot].due = now.mono + MIN_WAIT;
            self.timers.set(now.mono + MIN_WAIT, Timer::Message(slot, id));
            return;
        }
        if let Some(timeout) = self.receipts.waits.remove(&id) {
            self.slab[slot].due = timeout;
        }
        self.ask_receipt(now, slot, ReceiptSubject::Timeout, out);
    }

    /// Whether a message has another leg, and time for it.
    fn has_next_leg(&self, now: Now, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let legs = entry.message.as_ref().map_or(0, leg_count);
        entry.leg.saturating_add(1) < legs && entry.expires > now.mono
    }

    /// Moves a message that waits for a DLR to its next leg. The ids of this leg stay known: see [`Engine::late_dlr`].
    fn leave_leg(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let Some(message) = self.slab[slot].message.clone() else { return };
        let slot = self.remove_from_wait(slot, out);
        let group = self.peer_of(slot).settings.group;
        let entry = &mut self.slab[slot];
        (entry.state, entry.link) = (State::Submitted, NONE);
        entry.set(flag::QUERIED, false);
        let (id, peer) = (entry.id, entry.peer);
        let history = entry.history_mut();
        let segments = std::mem::take(&mut history.segments);
        for segment in &segments {
            self.receipts.add_earlier(group, &segment.id, id, peer);
        }
        history.earlier.push(EarlierLeg { peer, segments });
        self.totals.second_legs += 1;
        self.next_leg(now, slot, &message, out);
    }

    /// Applies a DLR of an earlier leg. Delivery ends the message; any other state is only noted, because the message has
    /// another leg. While the message is on a link, the DLR waits for the outcome.
    pub(crate) fn late_dlr(&mut self, now: Now, late: LateDlr, out: &mut Output) {
        let Some(slot) = self.ids.get(&self.slab, late.id) else {
            late.source.done(out);
            return;
        };
        match self.slab[slot].state {
            State::Submitted => {
                self.receipts.late.push(late);
                return;
            }
            State::Ending => {
                late.source.done(out);
                return;
            }
            _ => {}
        }
        let LateDlr { peer, dlr, source, .. } = late;
        let history = self.slab[slot].history_mut();
        let leg = history
            .earlier
            .iter_mut()
            .rev()
            .find(|leg| leg.peer == peer && leg.segments.iter().any(|segment| segment.id == dlr.id));
        let segment = leg.and_then(|leg| leg.segments.iter_mut().find(|segment| segment.id == dlr.id));
        let Some(segment) = segment.filter(|segment| changes_state(segment, &dlr)) else {
            source.done(out);
            return;
        };
        segment.state = Some(dlr.state);
        let delivered = history
            .earlier
            .iter()
            .rev()
            .find(|leg| leg.peer == peer && leg.segments.iter().any(|segment| segment.id == dlr.id))
            .filter(|leg| !dlr.intermediate && state_of_segments(&leg.segments) == Some(DlrState::Delivered))
            .map(|leg| leg.segments.clone());
        self.totals.dlrs_matched += 1;
        self.totals.late_dlrs += 1;
        let kind = StepKind::LateDlrReceived { peer, state: dlr.state as u8, error: dlr.error };
        self.add_step(now, slot, kind);
        match delivered {
            None => self.write_progress(now, slot, out),
            Some(segments) => {
                let after = self.since_submission(now, slot, peer);
                let slot = self.remove_from_wait(slot, out);
                self.release_subscriber_lock(slot);
                let entry = &mut self.slab[slot];
                (entry.state, entry.link) = (State::Submitted, NONE);
                entry.history_mut().segments = segments;
                if !entry.has(flag::IN_FIFO) {
                    entry.peer = peer;
                }
                self.observe(now, slot, ObservationKind::Delivered { after }, out);
                self.end(now, slot, FinalState::Delivered, Some(&dlr), out);
            }
        }
        source.done(out);
    }

    /// Continues with DLRs that waited for an outcome, and calls the policy about recovered messages, some at a time.
    pub(crate) fn advance_receipts(&mut self, now: Now, out: &mut Output) {
        for late in std::mem::take(&mut self.receipts.late) {
            self.late_dlr(now, late, out);
        }
        while self.receipts.pending.len() + self.receipts.without_content.len() < RECOVERY_BATCH
            && let Some(id) = self.receipts.recovered.pop_front()
        {
            if let Some(slot) = self.slot_awaiting_dlr(id)
                && !self.receipts.precedes_dlr_timeout(id)
            {
                self.ask_receipt(now, slot, ReceiptSubject::Accepted { recovered: true }, out);
            }
        }
    }

    /// Makes the call that waited for the content of this message.
    pub(crate) fn receipt_content_loaded(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &self.slab[slot];
        if let Some(subject) = self.receipts.without_content.remove(&entry.id)
            && entry.state == State::AwaitingDlr
            && entry.message.is_some()
        {
            self.ask_receipt(now, slot, subject, out);
        }
    }

    /// Restores the wait of a recovered message that waits for a DLR, or calls the policy again.
    pub(crate) fn recover_receipt(&mut self, now: Now, slot: Slot) {
        if !self.asks_receipt(slot) {
            return;
        }
        let entry = &self.slab[slot];
        let (id, timeout) = (entry.id, entry.due);
        let steps = entry.history.as_ref().map_or(&[][..], |history| &history.steps);
        match recorded_wait(steps) {
            RecordedWait::None => self.receipts.recovered.push_back(id),
            RecordedWait::Over => {}
            RecordedWait::Until(until) => {
                // `until` comes from the clock of another machine, which may still send.
                let until = now.moment_of(until).max(now.mono + self.settings.previous_leader_sends);
                self.slab[slot].due = until.min(timeout);
                self.receipts.waits.insert(id, timeout);
                self.timers.set(until.min(timeout), Timer::Message(slot, id));
            }
        }
    }

    /// Restores the ids of earlier legs.
    pub(crate) fn recover_earlier_legs(&mut self, slot: Slot) {
        let id = self.slab[slot].id;
        let earlier = self.slab[slot].history.as_ref().map(|history| history.earlier.clone());
        for leg in earlier.into_iter().flatten() {
            let group = self.peer_mut(leg.peer).settings.group;
            for segment in &leg.segments {
                self.receipts.add_earlier(group, &segment.id, id, leg.peer);
            }
        }
    }

    /// Removes the ids of earlier legs of a message that leaves.
    pub(crate) fn forget_earlier_legs(&mut self, slot: Slot) {
        let Some(history) = &mut self.slab[slot].history else { return };
        let earlier = std::mem::take(&mut history.earlier);
        let id = self.slab[slot].id;
        for leg in earlier {
            let group = self.peer_mut(leg.peer).settings.group;
            for segment in &leg.segments {
                self.receipts.remove_earlier(group, &segment.id, id);
            }
        }
    }

    /// A receipt policy was bound, or the last one unbound. Without a policy, every event counts as accepted.
    pub(crate) fn receipt_policy_changed(&mut self, now: Now, bound: bool, out: &mut Output) {
        self.settings.receipt = bound;
        if bound {
            return;
        }
        let pending: Vec<_> =
            self.receipts.pending.iter().map(|(id, pending)| (*id, pending.question)).collect();
        for (id, question) in pending {
            self.receipt_decided(now, id, question, None, out);
        }
        for (id, timeout) in std::mem::take(&mut self.receipts.waits) {
            if let Some(slot) = self.slot_awaiting_dlr(id) {
                self.slab[slot].due = timeout;
            }
        }
        self.receipts.without_content.clear();
        self.receipts.recovered.clear();
    }

    /// The number of calls of the receipt policy that have no answer yet.
    #[must_use]
    pub fn pending_receipts(&self) -> usize {
        self.receipts.pending.len()
    }
}

fn leg_count(message: &Arc<Message>) -> u8 {
    match &message.routed.verdict {
        Verdict::Forward(legs) => u8::try_from(legs.len()).unwrap_or(u8::MAX),
        Verdict::Hold(_)
        | Verdict::Reject(_)
        | Verdict::Quarantine
        | Verdict::AwaitLookup
        | Verdict::Drop(_) => 0,
    }
}

/// Whether a DLR changes the state of its segment.
fn changes_state(segment: &SubmittedSegment, dlr: &Dlr) -> bool {
    segment.state != Some(dlr.state) && !segment.state.is_some_and(is_final_state)
}

/// The wait for the DLR of the last submission, as recorded in a trace.
#[derive(Debug, PartialEq, Eq)]
enum RecordedWait {
    /// No wait is recorded: the policy may not have been called.
    None,
    /// The wait is over: the policy has been called again since.
    Over,
    Until(model::Timestamp),
}

fn recorded_wait(steps: &[Step]) -> RecordedWait {
    for step in steps.iter().rev() {
        match step.kind {
            StepKind::AwaitingDlr { until } => return RecordedWait::Until(until),
            StepKind::DlrOverdue => return RecordedWait::Over,
            StepKind::Responded { .. } | StepKind::Submitted { .. } | StepKind::NextLeg { .. } => break,
            _ => {}
        }
    }
    RecordedWait::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PeerMessageId, Timestamp};

    #[test]
    fn the_wait_of_the_last_submission_counts() {
        let wait = |kinds: &[StepKind]| {
            let step = |kind: &StepKind| Step { at: Timestamp(1), kind: kind.clone() };
            recorded_wait(&kinds.iter().map(step).collect::<Vec<_>>())
        };
        let responded = StepKind::Responded { id: PeerMessageId::new(b"1") };
        let until = |at| StepKind::AwaitingDlr { until: Timestamp(at) };
        let dlr = StepKind::DlrReceived { state: 1, error: 0 };
        assert_eq!(wait(&[]), RecordedWait::None);
        assert_eq!(wait(&[responded.clone(), dlr.clone()]), RecordedWait::None);
        let waits = [responded.clone(), until(5), dlr];
        assert_eq!(wait(&waits), RecordedWait::Until(Timestamp(5)));
        let over = [&waits[..], &[StepKind::DlrOverdue]].concat();
        assert_eq!(wait(&over), RecordedWait::Over);
        assert_eq!(wait(&[&over[..], &[until(9)]].concat()), RecordedWait::Until(Timestamp(9)));
        let next = [StepKind::NextLeg { peer: PeerId(2) }, responded];
        assert_eq!(wait(&[&over[..], &next].concat()), RecordedWait::None);
    }
}
