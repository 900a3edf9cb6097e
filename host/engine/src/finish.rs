//! The end of a message: final state, final record, DLR and settlement.

use crate::Output;
use crate::counts::CountedEvent;
use crate::engine::Engine;
use crate::leg_subscriber::needs_subscriber;
use crate::slab::{NONE, PendingFinish, Slot, State, flag};
use model::{
    AdminActionKind, DlrState, FinalRecord, FinalState, Message, MessageId, Moment, Now, PeerMessageId,
    StepKind,
};

impl Engine {
    /// Ends a message: one final state, one record, and the requested DLR.
    pub(crate) fn end(
        &mut self,
        now: Now,
        slot: Slot,
        state: FinalState,
        dlr: Option<&model::Dlr>,
        out: &mut Output,
    ) {
        let error = dlr.map_or(0, |dlr| u32::from(dlr.error));
        let id = self.slab[slot]
            .history
            .as_ref()
            .and_then(|history| history.segments.first())
            .map(|segment| segment.id.clone());
        self.end_with(now, slot, state, error, id.unwrap_or_default(), dlr, out);
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of an end, each used once")]
    pub(crate) fn end_with(
        &mut self,
        now: Now,
        slot: Slot,
        state: FinalState,
        error: u32,
        peer_id: PeerMessageId,
        dlr: Option<&model::Dlr>,
        out: &mut Output,
    ) {
        if self.slab[slot].has(flag::OWN_DLR) {
            let slot = self.remove_from_wait(slot, out);
            self.drop_own_dlr(slot, out);
            return;
        }
        let attempt_end = self.attempt_end(slot, (self.slab[slot].state, state));
        let slot = self.remove_from_wait(slot, out);
        self.release_subscriber_lock(slot);
        let entry = &mut self.slab[slot];
        let steps =
            entry.history.as_mut().map(|history| std::mem::take(&mut history.steps)).unwrap_or_default();
        let took_it = !matches!(state, FinalState::Cancelled | FinalState::Expired | FinalState::Rejected);
        let ended = FinalRecord {
            state,
            at: now.wall,
            error,
            peer: (took_it && entry.attempts > 0).then_some(entry.peer),
            peer_id,
            steps,
        };
        let request = entry.dlr_request();
        let good = matches!(state, FinalState::Delivered | FinalState::Relayed);
        let has_dlr = attempt_end.as_ref().is_none_or(|end| end.has_dlr);
        let wants_dlr = has_dlr && if good { request.on_success } else { request.on_failure };
        let outcome = attempt_end.and_then(|end| end.outcome);
        let needed = wants_dlr || outcome.is_some() || entry.has(flag::PRICED);
        let missing = entry.message.is_none() && needed;
        let pending = PendingFinish { ended, wants_dlr, outcome };
        if missing || self.recovering {
            // The DLR and the ledger need the content; the end becomes durable together with them.
            entry.state = State::Ending;
            entry.due = Moment(u64::MAX);
            self.ending.insert(entry.id, pending);
            if missing {
                self.load_if_missing(slot, out);
            } else {
                let id = self.slab[slot].id;
                self.ended_during_recovery.push(id);
            }
            return;
        }
        self.finish(now, slot, pending, dlr, out);
    }

    /// Finishes messages that ended during recovery.
    pub(crate) fn finish_recovered(&mut self, now: Now, out: &mut Output) {
        for id in std::mem::take(&mut self.ended_during_recovery) {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && let Some(pending) = self.ending.remove(&id)
            {
                self.finish(now, slot, pending, None, out);
            }
        }
    }

    /// Removes a message from its queue, link or list of waiting messages. Its slot may change.
    pub(crate) fn remove_from_wait(&mut self, slot: Slot, out: &mut Output) -> Slot {
        match self.slab[slot].state {
            State::Queued => self.leave_queue(slot),
            State::SubscriberLocked => {
                self.stop_waiting_for_subscriber(slot);
                slot
            }
            State::Suspended => {
                self.leave_hold(slot);
                slot
            }
            State::Paced => {
                self.stop_pacing(slot);
                slot
            }
            State::Deferred => {
                self.peer_of(slot).deferred -= 1;
                let id = self.slab[slot].id;
                self.policy.forget_alert(id);
                slot
            }
            State::Uncertain => {
                self.leave_uncertain(slot);
                slot
            }
            State::AwaitingDlr => {
                let group = self.peer_of(slot).settings.group;
                self.peer_of(slot).awaiting -= 1;
                self.receipts.end_wait(self.slab[slot].id);
                for key in self.segment_keys(slot, group) {
                    self.dlr_index.remove(key, slot);
                }
                slot
            }
            State::Submitted => {
                // The entry was just removed from its link, or must be removed now.
                let link = self.slab[slot].link;
                if link != NONE
                    && let Some(flight) = self.remove_from_link(link, slot)
                {
                    self.complete_submit(slot, flight.seq, out);
                }
                slot
            }
            State::Resolving => {
                self.stop_resolving(slot);
                slot
            }
            State::Deciding => {
                self.cancel_decision(slot);
                slot
            }
            State::Quarantined => {
                let id = self.slab[slot].id;
                self.quarantined_ids.remove(&id);
                slot
            }
            State::AwaitingLookup => {
                self.stop_awaiting_lookup(slot);
                slot
            }
            State::Held | State::Routing => {
                self.pools.stop_waiting_for_number(self.slab[slot].id);
                slot
            }
            State::Free | State::Tombstone | State::Ending => slot,
        }
    }

    /// Writes the final record and the DLR, and frees the entry.
    pub(crate) fn finish(
        &mut self,
        now: Now,
        slot: Slot,
        pending: PendingFinish,
        dlr: Option<&model::Dlr>,
        out: &mut Output,
    ) {
        let PendingFinish { mut ended, wants_dlr, outcome } = pending;
        self.totals.ended[ended.state as usize] += 1;
        self.count(slot, CountedEvent::Ended(ended.state));
        let id = self.slab[slot].id;
        // With separate DLRs for all segments, nothing is left to report.
        let segments_reported = self.wants_segment_dlrs(slot)
            && self.slab[slot].history.as_ref().is_some_and(|history| {
                history.segments.len() > 1 && Self::final_state_of_segments(&history.segments).is_some()
            });
        if wants_dlr
            && !segments_reported
            && let Some(message) = self.slab[slot].message.clone()
        {
            let segments = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.segments);
            let all = u16::try_from(segments.len().max(1)).unwrap_or(u16::MAX);
            let good = segments.iter().filter(|segment| segment.state == Some(DlrState::Delivered)).count();
            let delivered = match ended.state {
                FinalState::Delivered => all,
                _ => u16::try_from(good).unwrap_or(u16::MAX),
            };
            self.make_dlr(now, &message, &ended, dlr, (all, delivered), out);
        }
        if let Some(outcome) = outcome
            && let Some(message) = self.slab[slot].message.clone()
        {
            self.report_outcome(now, &message, &outcome, out);
        }
        // Counted here, so that a crash between an end and its record counts nothing twice.
        if ended.state == FinalState::Cancelled {
            let by_queue_action = ended.steps.iter().rev().find_map(|step| match &step.kind {
                StepKind::AdminAction { action: AdminActionKind::Cancelled, queue_action, .. } => {
                    *queue_action
                }
                _ => None,
            });
            by_queue_action.into_iter().for_each(|id| self.count_affected(id, out));
        }
        self.close_reservation(slot, &mut ended, out);
        self.pools.release(now, id, &mut out.batch.pools);
        out.batch.finished.push((id, ended));
        self.release(slot);
    }

    pub(crate) fn drop_own_dlr(&mut self, slot: Slot, out: &mut Output) {
        self.release_subscriber_lock(slot);
        out.batch.dropped.push(self.slab[slot].id);
        self.release(slot);
    }

    /// Applies the loaded content of a message.
    pub(crate) fn loaded(
        &mut self,
        now: Now,
        id: MessageId,
        message: Option<std::sync::Arc<Message>>,
        out: &mut Output,
    ) {
        let waiting = self.waiting_for_content.remove(&id);
        if let Some(slot) = self.ids.get(&self.slab, id) {
            let entry = &mut self.slab[slot];
            entry.set(flag::LOADING, false);
            let missing = entry.message.is_none();
            let queued = entry.state == State::Queued;
            let peer = entry.peer.0;
            if let Some(message) = message
                && missing
            {
                self.cache(slot, message);
                if queued {
                    let state = &mut self.peers[peer as usize];
                    state.evicted = state.evicted.saturating_sub(1);
                }
            }
            self.mark_dirty(peer);
            // The message was queued without its content.
            if queued
                && let Some(message) = &self.slab[slot].message
                && needs_subscriber(message, self.slab[slot].leg)
            {
                let message = message.clone();
                let slot = self.leave_queue(slot);
                self.release_subscriber_lock(slot);
                self.resolve_leg(now, slot, &message, out);
            }
            if self.slab[slot].state == State::SubscriberLocked {
                self.waiter_content_loaded(slot);
            }
            if self.slab[slot].state == State::Held {
                self.pools.requeue_waiter(id);
            }
            self.receipt_content_loaded(now, slot, out);
            if self.slab[slot].state == State::AwaitingDlr && self.slab[slot].message.is_some() {
                let group = self.peers[peer as usize].settings.group;
                self.match_orphan_dlrs(now, slot, group, out);
            }
            if self.slab[slot].state == State::Ending
                && let Some(pending) = self.ending.remove(&id)
            {
                self.finish(now, slot, pending, None, out);
            }
        }
        self.content_loaded_for_resolver(id);
        self.content_loaded_for_queue_action(now, id, out);
        for event in waiting.into_iter().flatten() {
            self.apply(now, event, out);
        }
    }
}
