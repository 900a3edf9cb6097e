//! Outcomes: the next step after a peer's answer.

use crate::counts::CountedEvent;
use crate::engine::Engine;
use crate::peer::InFlight;
use crate::slab::{NONE, Slot, State, flag};
use crate::{Output, UncertainPolicy};
use model::{
    ErrorClass, FinalState, LinkId, MessageId, MessageProgress, Now, Outcome, PeerMessageId, Step, StepKind,
    SubmittedSegment, WaitState,
};

impl Engine {
    pub(crate) fn outcome(
        &mut self,
        now: Now,
        link: LinkId,
        id: MessageId,
        outcome: Outcome,
        out: &mut Output,
    ) {
        let record = self.take_submit_record(id);
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        match self.slab[slot].state {
            State::Submitted => {
                let Some(index) = self.link_index.get(&link).copied() else { return };
                if self.slab[slot].link != index {
                    return;
                }
                let Some(flight) = self.remove_from_link(index, slot) else { return };
                self.complete_submit(slot, flight.seq, out);
                let peer = self.slab[slot].peer;
                self.mark_dirty(peer.0);
                if let Some(record) = record {
                    self.keep_submit_record(now, slot, flight, record);
                }
                self.apply_outcome(now, slot, flight, outcome, out);
            }
            // A late answer: the message is no longer uncertain.
            State::Uncertain => match outcome {
                Outcome::Accepted { .. } | Outcome::Refused { .. } => {
                    self.leave_uncertain(slot);
                    self.slab[slot].state = State::Submitted;
                    let flight = InFlight { slot, seq: 0, at: now.wall, number: 0, since: None };
                    self.apply_outcome(now, slot, flight, outcome, out);
                }
                Outcome::NotSent | Outcome::Unanswered { .. } => {}
            },
            // A late answer of a serial peer; meanwhile the message waits for its next attempt.
            State::Deferred
            | State::Deciding
            | State::Queued
            | State::SubscriberLocked
            | State::Suspended
            | State::Paced => {
                let same =
                    self.link_index.get(&link).and_then(|index| self.links.get(*index as usize)?.as_ref());
                let same = same.is_some_and(|link| link.peer == self.slab[slot].peer);
                if same && matches!(outcome, Outcome::Accepted { .. }) && self.last_attempt_unanswered(slot) {
                    let slot = self.remove_from_wait(slot, out);
                    (self.slab[slot].state, self.slab[slot].link) = (State::Submitted, NONE);
                    let flight = InFlight { slot, seq: 0, at: now.wall, number: 0, since: None };
                    self.apply_outcome(now, slot, flight, outcome, out);
                }
            }
            _ => {}
        }
    }

    /// Applies the outcome of an attempt at a remote peer.
    pub(crate) fn attempt_outcome(
        &mut self,
        now: Now,
        id: MessageId,
        attempt: u16,
        outcome: Outcome,
        out: &mut Output,
    ) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        if !self.is_remote(self.slab[slot].peer) || self.last_ticket(slot) != attempt {
            return;
        }
        let late = InFlight { slot, seq: 0, at: now.wall, number: 0, since: None };
        match self.slab[slot].state {
            // The attempt may have left on an earlier link that is not down yet.
            State::Submitted => {
                let Some(flight) = self.remove_from_link(self.slab[slot].link, slot) else { return };
                self.complete_submit(slot, flight.seq, out);
                let peer = self.slab[slot].peer;
                self.mark_dirty(peer.0);
                self.apply_outcome(now, slot, flight, outcome, out);
            }
            State::Uncertain if matches!(outcome, Outcome::Accepted { .. } | Outcome::Refused { .. }) => {
                self.leave_uncertain(slot);
                self.slab[slot].state = State::Submitted;
                self.apply_outcome(now, slot, late, outcome, out);
            }
            // It waits for the repetition of the attempt.
            State::Deferred | State::Queued | State::Suspended | State::Paced
                if outcome != Outcome::NotSent && self.last_attempt_unanswered(slot) =>
            {
                let slot = self.remove_from_wait(slot, out);
                (self.slab[slot].state, self.slab[slot].link) = (State::Submitted, NONE);
                self.apply_outcome(now, slot, InFlight { slot, ..late }, outcome, out);
            }
            _ => {}
        }
    }

    /// Removes a message from its link's list.
    pub(crate) fn remove_from_link(&mut self, link: u32, slot: Slot) -> Option<InFlight> {
        let state = self.links.get_mut(link as usize)?.as_mut()?;
        let position = self.slab[slot].position as usize;
        if state.in_flight.get(position)?.slot != slot {
            return None;
        }
        let flight = state.in_flight.swap_remove(position);
        if let Some(moved) = state.in_flight.get(position) {
            self.slab[moved.slot].position = u32::try_from(position).unwrap_or(u32::MAX);
        }
        Some(flight)
    }

    fn apply_outcome(&mut self, now: Now, slot: Slot, flight: InFlight, outcome: Outcome, out: &mut Output) {
        if matches!(outcome, Outcome::Accepted { .. } | Outcome::Refused { .. }) {
            self.count_answer(now, slot, flight.since);
        }
        self.observe_outcome(now, slot, &outcome, out);
        match outcome {
            Outcome::Accepted { ids } => self.accepted_by_peer(now, slot, flight, ids, out),
            Outcome::Refused { class, code, taken } => {
                self.start_history(slot, flight);
                self.store_segments(slot, taken);
                self.add_step(now, slot, StepKind::Refused { code });
                self.totals.attempts_refused += 1;
                self.count(slot, CountedEvent::Refused { code });
                self.refused_by_peer(now, slot, flight.number, class, code, out);
            }
            Outcome::NotSent => {
                self.start_history(slot, flight);
                self.add_step(now, slot, StepKind::NotSent);
                self.put_back(now, slot, out);
            }
            Outcome::Unanswered { taken, known } => {
                self.start_history(slot, flight);
                self.store_segments(slot, taken);
                self.add_step(now, slot, StepKind::Unanswered);
                let settings = &self.peer_of(slot).settings;
                if settings.remote && !self.slab[slot].has(flag::OWN_DLR) {
                    self.totals.uncertain += 1;
                    self.await_settlement(now, slot, out);
                    return;
                }
                let settings = &self.peer_of(slot).settings;
                let again = settings.uncertainty == UncertainPolicy::SendAgain;
                if settings.serial && (again || self.slab[slot].has(flag::OWN_DLR)) {
                    // The handset is probably out of reach, but it may have the message: the next attempt repeats
                    // this one's ticket.
                    self.totals.uncertain += 1;
                    self.totals.sent_again += 1;
                    self.decide_next(now, slot, ErrorClass::Absent, 0, out);
                    return;
                }
                self.mark_uncertain(now, slot, out);
                self.await_dlr_by_known_ids(now, slot, known, out);
            }
        }
    }

    /// Starts a message's history. Until then, a first attempt has its time in the link's list only.
    pub(crate) fn start_history(&mut self, slot: Slot, flight: InFlight) {
        let entry = &mut self.slab[slot];
        if entry.history.is_none() {
            let kind = StepKind::Submitted { peer: entry.peer, attempt: entry.attempts };
            entry.history_mut().steps.push(Step { at: flight.at, kind });
        }
    }

    pub(crate) fn store_segments(&mut self, slot: Slot, taken: Vec<PeerMessageId>) {
        if !taken.is_empty() {
            self.slab[slot]
                .history_mut()
                .segments
                .extend(taken.into_iter().map(|id| SubmittedSegment { id, state: None }));
        }
    }

    fn accepted_by_peer(
        &mut self,
        now: Now,
        slot: Slot,
        flight: InFlight,
        ids: Vec<PeerMessageId>,
        out: &mut Output,
    ) {
        let peer = self.slab[slot].peer;
        let state = &mut self.peers[peer.0 as usize];
        state.accepted(now.mono);
        let (expects, addressee) = (state.settings.sends_dlrs, state.settings.is_addressee());
        let first = ids.first().cloned().unwrap_or_default();
        if self.slab[slot].has(flag::OWN_DLR) {
            self.totals.dlrs_delivered += 1;
            self.drop_own_dlr(slot, out);
            return;
        }
        self.report_accepted(now, slot, &ids, out);
        if expects && !addressee && self.slab[slot].dlr_request().any() {
            self.start_history(slot, flight);
            self.add_step(now, slot, StepKind::Responded { id: first });
            self.store_segments(slot, ids);
            self.await_dlr(now, slot, out);
            return;
        }
        let end = if addressee { FinalState::Delivered } else { FinalState::Relayed };
        if self.slab[slot].history.is_some() {
            self.add_step(now, slot, StepKind::Responded { id: first.clone() });
            self.store_segments(slot, ids);
        } else {
            let attempt = self.slab[slot].attempts;
            self.slab[slot].history_mut().steps = vec![
                Step { at: flight.at, kind: StepKind::Submitted { peer, attempt } },
                Step { at: now.wall, kind: StepKind::Responded { id: first.clone() } },
            ];
        }
        self.end_with(now, slot, end, 0, first, None, out);
    }

    fn refused_by_peer(
        &mut self,
        now: Now,
        slot: Slot,
        number: u64,
        class: ErrorClass,
        code: u32,
        out: &mut Output,
    ) {
        let reported = class;
        let class = match class {
            // The other partition has called the resolver, and calls it again if necessary.
            class if self.is_partition_account(self.slab[slot].origin) => class,
            ErrorClass::UnknownSubscriber if self.requery_subscriber(now, slot, false, out) => return,
            ErrorClass::NumberMoved if self.requery_subscriber(now, slot, true, out) => return,
            // No better answer exists: the leg has failed.
            ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => ErrorClass::Permanent,
            ErrorClass::ThisMessage if self.refused_too_often(slot) => ErrorClass::Permanent,
            class => class,
        };
        // The pace changes at once, so that no message overtakes this one while the policy is asked.
        if matches!(class, ErrorClass::Throttled | ErrorClass::QueueFull) {
            self.totals.throttled += 1;
            self.count(slot, CountedEvent::Throttled);
            let peer = self.slab[slot].peer.0 as usize;
            self.peers[peer].throttled(now.mono, number, &mut self.random);
        }
        if self.report_refused(now, slot, (reported, code), out) {
            return;
        }
        self.decide_next(now, slot, class, code, out);
    }

    /// Writes the wait state of a message, for recovery after a crash.
    pub(crate) fn write_progress(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &self.slab[slot];
        let since = now.wall;
        let waiting = match entry.state {
            State::Deferred | State::Deciding => WaitState::Deferred { until: now.wall_of(entry.due) },
            State::Held => WaitState::Held { until: now.wall_of(entry.due) },
            // After a crash it is routed at once.
            State::Routing | State::AwaitingLookup => {
                WaitState::Held { until: now.wall_of(entry.due.min(now.mono)) }
            }
            State::Quarantined => WaitState::Quarantined,
            State::Uncertain => WaitState::Uncertain { since },
            State::AwaitingDlr => WaitState::Dlr { peer: entry.peer, since },
            State::Queued
            | State::SubscriberLocked
            | State::Suspended
            | State::Paced
            | State::Resolving
            | State::Submitted
            | State::Free
            | State::Tombstone
            | State::Ending => WaitState::Queued,
        };
        let (segments, earlier, steps) = entry.history.as_ref().map_or_else(Default::default, |history| {
            (history.segments.clone(), history.earlier.clone(), history.steps.clone())
        });
        out.batch.progress.push((
            entry.id,
            MessageProgress { waiting, attempts: entry.attempts, leg: entry.leg, segments, earlier, steps },
        ));
    }
}
