//! The end of a message: one final state, one record, the receipt that its submitter asked for, and what it costs.

use crate::Output;
use crate::counts::Counted;
use crate::engine::Engine;
use crate::resolving::needs_subscriber;
use crate::slab::{NONE, Slot, State, flag};
use model::{
    Deed, Final, FinalState, Message, MessageId, Moment, Now, PeerMessageId, ReceiptState, StepKind,
};

/// An end that waits for the content of its message.
#[derive(Debug)]
pub(crate) struct Ending {
    ended: Final,
    wants_receipt: bool,
}

impl Engine {
    /// Ends a message: one final state, one record, and the receipt that its submitter asked for.
    pub(crate) fn end(
        &mut self,
        now: Now,
        slot: Slot,
        state: FinalState,
        receipt: Option<&model::Receipt>,
        out: &mut Output,
    ) {
        let error = receipt.map_or(0, |receipt| u32::from(receipt.error));
        let id =
            self.slab[slot].side.as_ref().and_then(|side| side.parts.first()).map(|part| part.id.clone());
        self.end_with(now, slot, state, error, id.unwrap_or_default(), receipt, out);
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of an end, each used once")]
    pub(crate) fn end_with(
        &mut self,
        now: Now,
        slot: Slot,
        state: FinalState,
        error: u32,
        peer_id: PeerMessageId,
        receipt: Option<&model::Receipt>,
        out: &mut Output,
    ) {
        if self.slab[slot].has(flag::OWN_RECEIPT) {
            let slot = self.leave_wait(slot, out);
            self.drop_own_receipt(slot, out);
            return;
        }
        let slot = self.leave_wait(slot, out);
        self.end_turn(slot);
        let entry = &mut self.slab[slot];
        let steps = entry.side.as_mut().map(|side| std::mem::take(&mut side.steps)).unwrap_or_default();
        let took_it = !matches!(state, FinalState::Cancelled | FinalState::Expired | FinalState::Rejected);
        let ended = Final {
            state,
            at: now.wall,
            error,
            peer: (took_it && entry.attempts > 0).then_some(entry.peer),
            peer_id,
            steps,
        };
        let wanted = entry.receipts();
        let good = matches!(state, FinalState::Delivered | FinalState::Relayed);
        let wants = if good { wanted.on_success } else { wanted.on_failure };
        let missing = entry.message.is_none() && (wants || entry.has(flag::PRICED));
        if missing || self.recovering {
            // The receipt and the ledger need what only the content knows; the end becomes durable together with them.
            entry.state = State::Ending;
            entry.due = Moment(u64::MAX);
            self.ending.insert(entry.id, Ending { ended, wants_receipt: wants });
            if missing {
                self.load_if_missing(slot, out);
            } else {
                let id = self.slab[slot].id;
                self.ended_meanwhile.push(id);
            }
            return;
        }
        self.finish(now, slot, ended, wants, receipt, out);
    }

    /// Messages that ended while the others were still being found can be finished now.
    pub(crate) fn finish_recovered(&mut self, now: Now, out: &mut Output) {
        for id in std::mem::take(&mut self.ended_meanwhile) {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && let Some(Ending { ended, wants_receipt }) = self.ending.remove(&id)
            {
                self.finish(now, slot, ended, wants_receipt, None, out);
            }
        }
    }

    /// Takes a message out of whatever it waits in. Its slot may change.
    pub(crate) fn leave_wait(&mut self, slot: Slot, out: &mut Output) -> Slot {
        match self.slab[slot].state {
            State::Queued => self.leave_queue(slot),
            State::Aside => {
                self.leave_aside(slot);
                slot
            }
            State::Suspended => {
                self.leave_order(slot);
                slot
            }
            State::Deferred => {
                self.peer_of(slot).deferred -= 1;
                let id = self.slab[slot].id;
                self.deciding.forget_alert(id);
                slot
            }
            State::Uncertain => {
                self.leave_doubt(slot);
                slot
            }
            State::Receipt => {
                let group = self.peer_of(slot).settings.group;
                self.peer_of(slot).awaiting -= 1;
                for key in self.part_keys(slot, group) {
                    self.receipts.remove(key, slot);
                }
                slot
            }
            State::Submitted => {
                // The entry has just been taken off its link, or its link still holds it and must not.
                let link = self.slab[slot].link;
                if link != NONE
                    && let Some(flight) = self.take_off(link, slot)
                {
                    self.moved_on(slot, flight.seq, out);
                }
                slot
            }
            State::Resolving => {
                self.leave_resolving(slot);
                slot
            }
            State::Deciding => {
                self.leave_deciding(slot);
                slot
            }
            State::Held | State::Routing => {
                self.pools.leave_line(self.slab[slot].id);
                slot
            }
            State::Free | State::Ghost | State::Ending => slot,
        }
    }

    /// Writes the final record and the receipt, and lets the entry go.
    pub(crate) fn finish(
        &mut self,
        now: Now,
        slot: Slot,
        mut ended: Final,
        wants_receipt: bool,
        receipt: Option<&model::Receipt>,
        out: &mut Output,
    ) {
        self.totals.ended[ended.state as usize] += 1;
        self.count(slot, Counted::Ended(ended.state));
        let id = self.slab[slot].id;
        // Where parts are reported singly and all of them were, there is nothing left to say.
        let told = self.reports_parts(slot)
            && self.slab[slot]
                .side
                .as_ref()
                .is_some_and(|side| side.parts.len() > 1 && Self::state_of_parts(&side.parts).is_some());
        if wants_receipt
            && !told
            && let Some(message) = self.slab[slot].message.clone()
        {
            let parts = self.slab[slot].side.as_ref().map_or(&[][..], |side| &side.parts);
            let all = u16::try_from(parts.len().max(1)).unwrap_or(u16::MAX);
            let good = parts.iter().filter(|part| part.state == Some(ReceiptState::Delivered)).count();
            let delivered = match ended.state {
                FinalState::Delivered => all,
                _ => u16::try_from(good).unwrap_or(u16::MAX),
            };
            self.make_receipt(now, &message, &ended, receipt, (all, delivered), out);
        }
        // Here, so that a crash between an end and its record counts nothing twice.
        if ended.state == FinalState::Cancelled {
            let by_order = ended.steps.iter().rev().find_map(|step| match &step.kind {
                StepKind::ByHand { deed: Deed::Cancelled, order, .. } => *order,
                _ => None,
            });
            by_order.into_iter().for_each(|order| self.count_touched(order, out));
        }
        self.settle_charge(slot, &mut ended, out);
        self.pools.give_back(now, id, &mut out.batch.pools);
        out.batch.finished.push((id, ended));
        self.release(slot);
    }

    pub(crate) fn drop_own_receipt(&mut self, slot: Slot, out: &mut Output) {
        self.end_turn(slot);
        out.batch.dropped.push(self.slab[slot].id);
        self.release(slot);
    }

    /// The content of a message has been read back.
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
            self.mark(peer);
            // At its time it came into its queue unseen.
            if queued
                && let Some(message) = &self.slab[slot].message
                && needs_subscriber(message, self.slab[slot].leg)
            {
                let message = message.clone();
                let slot = self.leave_queue(slot);
                self.end_turn(slot);
                self.resolve_first(now, slot, &message, out);
            }
            if self.slab[slot].state == State::Aside {
                self.loaded_aside(slot);
            }
            if self.slab[slot].state == State::Held {
                self.pools.remind(id);
            }
            if self.slab[slot].state == State::Receipt && self.slab[slot].message.is_some() {
                let group = self.peers[peer as usize].settings.group;
                self.match_parked(now, slot, group, out);
            }
            if self.slab[slot].state == State::Ending
                && let Some(Ending { ended, wants_receipt }) = self.ending.remove(&id)
            {
                self.finish(now, slot, ended, wants_receipt, None, out);
            }
        }
        self.loaded_for_answer(id);
        self.loaded_for_order(now, id, out);
        for event in waiting.into_iter().flatten() {
            self.apply(now, event, out);
        }
    }
}
