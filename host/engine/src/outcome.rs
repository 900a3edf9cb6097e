//! From a peer's answer to what comes next.

use crate::counts::Counted;
use crate::deciding::{BREATH, MANY_ATTEMPTS};
use crate::engine::Engine;
use crate::ledger::verdict_of_parts;
use crate::peer::InFlight;
use crate::slab::{NONE, Slot, State, flag};
use crate::{Command, Output, Part, Progress, Uncertainty, Waiting};
use model::{
    ErrorClass, FinalState, LinkId, MessageId, Moment, Now, Outcome, PeerMessageId, ReceiptState, Step,
    StepKind,
};
use std::time::Duration;

/// How often a handset may refuse one message, and nothing but it, on one leg before the leg has failed.
const REFUSALS: usize = 3;

impl Engine {
    pub(crate) fn outcome(
        &mut self,
        now: Now,
        link: LinkId,
        id: MessageId,
        outcome: Outcome,
        out: &mut Output,
    ) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        match self.slab[slot].state {
            State::Submitted => {
                let Some(index) = self.link_index.get(&link).copied() else { return };
                if self.slab[slot].link != index {
                    return;
                }
                let Some(flight) = self.take_off(index, slot) else { return };
                self.moved_on(slot, flight.seq, out);
                let peer = self.slab[slot].peer;
                self.mark(peer.0);
                self.settle_outcome(now, slot, flight, outcome, out);
            }
            // The answer that was given up comes after all: doubt is over.
            State::Uncertain => match outcome {
                Outcome::Accepted { .. } | Outcome::Refused { .. } => {
                    self.leave_doubt(slot);
                    self.slab[slot].state = State::Submitted;
                    let flight = InFlight { slot, seq: 0, at: now.wall, number: 0, since: None };
                    self.settle_outcome(now, slot, flight, outcome, out);
                }
                Outcome::NotSent | Outcome::Unanswered { .. } => {}
            },
            // The answer of a serial peer that was given up; meanwhile the message waits for its next attempt.
            State::Deferred | State::Deciding | State::Queued | State::Aside | State::Suspended => {
                let same =
                    self.link_index.get(&link).and_then(|index| self.links.get(*index as usize)?.as_ref());
                let same = same.is_some_and(|link| link.peer == self.slab[slot].peer);
                if same && matches!(outcome, Outcome::Accepted { .. }) && self.is_unanswered(slot) {
                    let slot = self.leave_wait(slot, out);
                    (self.slab[slot].state, self.slab[slot].link) = (State::Submitted, NONE);
                    let flight = InFlight { slot, seq: 0, at: now.wall, number: 0, since: None };
                    self.settle_outcome(now, slot, flight, outcome, out);
                }
            }
            _ => {}
        }
    }

    /// Takes a message off its link's list.
    pub(crate) fn take_off(&mut self, link: u32, slot: Slot) -> Option<InFlight> {
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

    fn settle_outcome(&mut self, now: Now, slot: Slot, flight: InFlight, outcome: Outcome, out: &mut Output) {
        if matches!(outcome, Outcome::Accepted { .. } | Outcome::Refused { .. }) {
            self.count_answer(now, slot, flight.since);
        }
        match outcome {
            Outcome::Accepted { ids } => self.taken(now, slot, flight, ids, out),
            Outcome::Refused { class, code, taken } => {
                self.history(slot, flight);
                self.keep_parts(slot, taken);
                self.step(now, slot, StepKind::Refused { code });
                self.totals.attempts_refused += 1;
                self.count(slot, Counted::Refused { code });
                self.refused(now, slot, flight.number, class, code, out);
            }
            Outcome::NotSent => {
                self.history(slot, flight);
                self.step(now, slot, StepKind::NotSent);
                self.put_back(now, slot, out);
            }
            Outcome::Unanswered { taken, known } => {
                self.history(slot, flight);
                self.keep_parts(slot, taken);
                self.step(now, slot, StepKind::Unanswered);
                let settings = &self.peer_of(slot).settings;
                let again = settings.uncertainty == Uncertainty::SendAgain;
                if settings.serial && (again || self.slab[slot].has(flag::OWN_RECEIPT)) {
                    // Most likely the handset is out of reach. It may have the message all the same: what is tried next
                    // repeats this hand-over.
                    self.totals.uncertain += 1;
                    self.totals.sent_again += 1;
                    self.what_follows(now, slot, ErrorClass::Absent, 0, out);
                    return;
                }
                self.in_doubt(now, slot, out);
                self.expect(now, slot, known, out);
            }
        }
    }

    /// A first attempt keeps its stamp on the link's list only; from here on the message has a history of its own.
    pub(crate) fn history(&mut self, slot: Slot, flight: InFlight) {
        let entry = &mut self.slab[slot];
        if entry.side.is_none() {
            let kind = StepKind::Submitted { peer: entry.peer, attempt: entry.attempts };
            entry.side().steps.push(Step { at: flight.at, kind });
        }
    }

    fn keep_parts(&mut self, slot: Slot, taken: Vec<PeerMessageId>) {
        if !taken.is_empty() {
            self.slab[slot].side().parts.extend(taken.into_iter().map(|id| Part { id, state: None }));
        }
    }

    fn taken(&mut self, now: Now, slot: Slot, flight: InFlight, ids: Vec<PeerMessageId>, out: &mut Output) {
        let peer = self.slab[slot].peer;
        let state = &mut self.peers[peer.0 as usize];
        state.taken(now.mono);
        let (expects, addressee) = (state.settings.receipts, state.settings.is_addressee());
        let first = ids.first().cloned().unwrap_or_default();
        if self.slab[slot].has(flag::OWN_RECEIPT) {
            self.totals.receipts_delivered += 1;
            self.drop_own_receipt(slot, out);
            return;
        }
        if expects && !addressee && self.slab[slot].receipts().any() {
            self.history(slot, flight);
            self.step(now, slot, StepKind::Responded { id: first });
            self.keep_parts(slot, ids);
            self.await_receipt(now, slot, out);
            return;
        }
        let end = if addressee { FinalState::Delivered } else { FinalState::Relayed };
        if self.slab[slot].side.is_some() {
            self.step(now, slot, StepKind::Responded { id: first.clone() });
            self.keep_parts(slot, ids);
        } else {
            let attempt = self.slab[slot].attempts;
            self.slab[slot].side().steps = vec![
                Step { at: flight.at, kind: StepKind::Submitted { peer, attempt } },
                Step { at: now.wall, kind: StepKind::Responded { id: first.clone() } },
            ];
        }
        self.end_with(now, slot, end, 0, first, None, out);
    }

    fn refused(&mut self, now: Now, slot: Slot, number: u64, class: ErrorClass, code: u32, out: &mut Output) {
        let class = match class {
            ErrorClass::UnknownSubscriber if self.ask_anew(now, slot, false, out) => return,
            ErrorClass::NumberMoved if self.ask_anew(now, slot, true, out) => return,
            // Nobody knows better: that is the end of it on this leg.
            ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => ErrorClass::Permanent,
            ErrorClass::ThisMessage if self.was_refused_often(slot) => ErrorClass::Permanent,
            class => class,
        };
        // The peer's pace changes at once: nothing overtakes the message while the policy is asked about it.
        if matches!(class, ErrorClass::Throttled | ErrorClass::QueueFull) {
            self.totals.throttled += 1;
            self.count(slot, Counted::Throttled);
            let peer = self.slab[slot].peer.0 as usize;
            self.peers[peer].throttled(now.mono, number, &mut self.random);
        }
        self.what_follows(now, slot, class, code, out);
    }

    /// What follows a refusal where nobody is asked.
    pub(crate) fn built_in(&mut self, now: Now, slot: Slot, class: ErrorClass, code: u32, out: &mut Output) {
        match class {
            ErrorClass::Throttled | ErrorClass::QueueFull => self.put_back(now, slot, out),
            ErrorClass::Temporary => self.try_later(now, slot, code, false, out),
            ErrorClass::ThisMessage if self.has_had_all_attempts(slot) => {
                self.leg_failed(now, slot, code, out);
            }
            ErrorClass::ThisMessage => {
                let wait = self.built_in_wait(slot);
                self.let_others_go_first(now, slot, wait, out);
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

    /// Back to its place in the queue, with nothing held against it.
    pub(crate) fn put_back(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.requeue(slot);
        self.record(now, slot, out);
    }

    /// The built-in schedule: a step by the number of attempts, up to the end of validity. Where an alert is hoped for, it
    /// ends the wait.
    fn try_later(&mut self, now: Now, slot: Slot, code: u32, alert: bool, out: &mut Output) {
        if self.has_had_all_attempts(slot) {
            self.leg_failed(now, slot, code, out);
            return;
        }
        let until = now.mono + self.built_in_wait(slot);
        let wall = now.wall_of(until);
        let wait =
            if alert { StepKind::AwaitingAlert { until: wall } } else { StepKind::Deferred { until: wall } };
        self.step(now, slot, wait);
        if alert && let Some(message) = self.slab[slot].message.clone() {
            self.index_alert(slot, &message);
        }
        self.try_again(now, slot, until, out);
    }

    fn has_had_all_attempts(&self, slot: Slot) -> bool {
        let most = self.peers[self.slab[slot].peer.0 as usize].settings.max_attempts;
        most != 0 && self.slab[slot].attempts >= most
    }

    /// The step of the built-in schedule for the attempts so far.
    pub(crate) fn built_in_wait(&mut self, slot: Slot) -> Duration {
        let entry = &self.slab[slot];
        let retry = &self.peers[entry.peer.0 as usize].settings.retry;
        let step = usize::from(entry.attempts.saturating_sub(1)).min(retry.len().saturating_sub(1));
        self.random.jitter(retry.get(step).copied().unwrap_or(Duration::from_secs(60)))
    }

    /// Another attempt on this leg, at its time; where the subscriber was heard of since the last one began, at once.
    pub(crate) fn try_again(&mut self, now: Now, slot: Slot, until: Moment, out: &mut Output) {
        let mut until = until;
        if self.was_heard(slot) {
            if self.slab[slot].attempts < MANY_ATTEMPTS {
                let id = self.slab[slot].id;
                self.deciding.forget_alert(id);
                self.put_back(now, slot, out);
                return;
            }
            until = until.min(now.mono + BREATH);
        }
        self.park(slot);
        self.wait_until(now, slot, until, out);
    }

    /// Another attempt on this leg after a refusal that says nothing about the subscriber: the message gives up the
    /// subscriber's turn until then.
    pub(crate) fn let_others_go_first(&mut self, now: Now, slot: Slot, wait: Duration, out: &mut Output) {
        let until = (now.mono + wait.max(BREATH)).min(self.slab[slot].expires);
        self.step(now, slot, StepKind::OthersFirst { until: now.wall_of(until) });
        self.end_turn(slot);
        self.wait_until(now, slot, until, out);
    }

    /// Whether the handset has refused this message, and nothing but it, so often on this leg that the present refusal is
    /// the last.
    fn was_refused_often(&self, slot: Slot) -> bool {
        let steps = self.slab[slot].side.as_ref().map_or(&[][..], |side| &side.steps);
        let of_leg = steps.iter().rev().take_while(|step| {
            !matches!(
                step.kind,
                StepKind::NextLeg { .. } | StepKind::Rerouted { .. } | StepKind::AskedAnew { .. }
            )
        });
        of_leg.filter(|step| matches!(step.kind, StepKind::OthersFirst { .. })).count() + 1 >= REFUSALS
    }

    fn wait_until(&mut self, now: Now, slot: Slot, until: Moment, out: &mut Output) {
        self.defer(slot, until);
        self.record(now, slot, out);
        if self.cached > self.settings.body_cache {
            self.uncache(slot);
        }
    }

    /// This leg will not do it: the next one, or the end.
    pub(crate) fn leg_failed(&mut self, now: Now, slot: Slot, code: u32, out: &mut Output) {
        if let Some(message) = self.slab[slot].message.clone()
            && self.next_leg(now, slot, &message, out)
        {
            return;
        }
        self.end_with(now, slot, FinalState::Failed, code, PeerMessageId::default(), None, out);
    }

    /// It was written, and nobody knows whether it was taken.
    pub(crate) fn in_doubt(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.totals.uncertain += 1;
        let entry = &self.slab[slot];
        let settings = &self.peers[entry.peer.0 as usize].settings;
        let (remedy, limit, group) = (settings.uncertainty, settings.uncertain_limit, settings.group);
        if remedy == Uncertainty::SendAgain || entry.has(flag::OWN_RECEIPT) {
            self.totals.sent_again += 1;
            self.step(now, slot, StepKind::SentAgain);
            if self.slab[slot].attempts > 1 && !self.recovering {
                // A peer that never answers would get the same message as fast as its timer runs. At recovery the daemon
                // ended, and nothing is said against the peer.
                self.try_later(now, slot, 0, false, out);
            } else {
                self.put_back(now, slot, out);
            }
            return;
        }
        let entry = &mut self.slab[slot];
        entry.state = State::Uncertain;
        entry.due = now.mono + limit;
        let id = entry.id;
        self.park(slot);
        self.doubtful.insert(id);
        self.peer_of(slot).uncertain += 1;
        if let Some(key) = self.doubt_key(group, slot) {
            self.in_doubt.entry(key).or_default().push(id);
        }
        self.record(now, slot, out);
        if remedy == Uncertainty::Ask {
            self.ask(now, slot, out);
        }
    }

    /// An uncertain message whose receipts can be told though its answer never came: it waits for them like one that was
    /// answered, and its doubt's limit still holds.
    fn expect(&mut self, now: Now, slot: Slot, known: Vec<PeerMessageId>, out: &mut Output) {
        let expects = self.peer_of(slot).settings.receipts && self.slab[slot].receipts().any();
        if self.slab[slot].state != State::Uncertain || known.is_empty() || !expects {
            return;
        }
        self.leave_doubt(slot);
        self.end_turn(slot);
        self.keep_parts(slot, known);
        let peer = self.slab[slot].peer.0 as usize;
        let settings = &self.peers[peer].settings;
        let (group, limit) = (settings.group, settings.uncertain_limit);
        let entry = &mut self.slab[slot];
        entry.state = State::Receipt;
        entry.due = now.mono + limit;
        self.peers[peer].awaiting += 1;
        self.index_parts(slot, group);
        self.record(now, slot, out);
        self.match_parked(now, slot, group, out);
    }

    /// The key under which an uncertain message can be found by a receipt that names both addresses.
    pub(crate) fn doubt_key(&self, group: u32, slot: Slot) -> Option<u64> {
        let message = self.slab[slot].message.as_ref()?;
        let (source, destination) = message.addresses_on(self.slab[slot].leg);
        Some(self.pairs.key(model::PeerId(group), &source.value, &destination.value))
    }

    /// Takes a message out of doubt; its state is then the caller's to set.
    pub(crate) fn leave_doubt(&mut self, slot: Slot) {
        let group = self.peer_of(slot).settings.group;
        self.peer_of(slot).uncertain -= 1;
        let id = self.slab[slot].id;
        self.doubtful.remove(&id);
        if let Some(key) = self.doubt_key(group, slot) {
            self.forget_doubt(key, id);
        }
    }

    pub(crate) fn forget_doubt(&mut self, key: u64, id: MessageId) {
        if let Some(ids) = self.in_doubt.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.in_doubt.remove(&key);
            }
        }
    }

    /// Asks the peer, if its id of the message is known and a link is up.
    fn ask(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &self.slab[slot];
        let Some(message) = entry.message.clone() else { return };
        let Some(peer_id) =
            entry.side.as_ref().and_then(|side| side.parts.last()).map(|part| part.id.clone())
        else {
            return;
        };
        let link = self.peers[entry.peer.0 as usize]
            .links
            .iter()
            .find_map(|index| self.links.get(*index as usize)?.as_ref().map(|link| link.id));
        if let Some(link) = link
            && !peer_id.0.is_empty()
        {
            out.commands.push(Command::Ask { link, id: entry.id, peer_id, message, leg: entry.leg });
            self.slab[slot].set(flag::ASKED, true);
            self.step(now, slot, StepKind::Asked);
        }
    }

    /// The limit of an uncertain message, or of one that waits for a receipt, has come.
    pub(crate) fn gave_no_sign(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let remedy = self.peer_of(slot).settings.uncertainty;
        if remedy == Uncertainty::Ask && !self.slab[slot].has(flag::ASKED) {
            if self.slab[slot].message.is_none() {
                self.load_if_missing(slot, out);
            } else {
                self.ask(now, slot, out);
            }
            if self.slab[slot].has(flag::ASKED) || self.slab[slot].message.is_none() {
                self.slab[slot].due = now.mono + Duration::from_secs(60);
                return;
            }
        }
        let accepted = self.slab[slot]
            .side
            .as_ref()
            .is_some_and(|side| side.parts.iter().any(|part| part.state == Some(ReceiptState::Accepted)));
        let end = if accepted { FinalState::Relayed } else { FinalState::Unknown };
        self.end(now, slot, end, None, out);
    }

    /// The present state of a waiting message, as it is to be found after a crash.
    pub(crate) fn record(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &self.slab[slot];
        let since = now.wall;
        let waiting = match entry.state {
            State::Deferred | State::Deciding => Waiting::Deferred { until: now.wall_of(entry.due) },
            State::Held => Waiting::Held { until: now.wall_of(entry.due) },
            // Its hold is over: after a crash it is asked about at once.
            State::Routing => Waiting::Held { until: now.wall_of(entry.due.min(now.mono)) },
            State::Uncertain => Waiting::Uncertain { since },
            State::Receipt => Waiting::Receipt { peer: entry.peer, since },
            State::Queued
            | State::Aside
            | State::Suspended
            | State::Resolving
            | State::Submitted
            | State::Free
            | State::Ghost
            | State::Ending => Waiting::Queued,
        };
        let (parts, steps) = entry
            .side
            .as_ref()
            .map_or_else(Default::default, |side| (side.parts.clone(), side.steps.clone()));
        out.batch
            .progress
            .push((entry.id, Progress { waiting, attempts: entry.attempts, leg: entry.leg, parts, steps }));
    }

    fn await_receipt(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &mut self.slab[slot];
        entry.state = State::Receipt;
        let peer = entry.peer.0 as usize;
        let settings = &self.peers[peer].settings;
        let (group, limit) = (settings.group, settings.receipt_limit);
        self.slab[slot].due = now.mono + limit;
        self.peers[peer].awaiting += 1;
        self.index_parts(slot, group);
        self.record(now, slot, out);
        self.match_parked(now, slot, group, out);
        let still = self.slab[slot].state == State::Receipt;
        if still && self.cached > self.settings.body_cache {
            self.uncache(slot);
        }
    }

    pub(crate) fn index_parts(&mut self, slot: Slot, group: u32) {
        for key in self.part_keys(slot, group) {
            self.receipts.insert(key, slot);
        }
    }

    pub(crate) fn part_keys(&self, slot: Slot, group: u32) -> Vec<u64> {
        let parts = self.slab[slot].side.as_ref().map_or(&[][..], |side| &side.parts);
        parts
            .iter()
            .filter(|part| !part.id.0.is_empty())
            .map(|part| self.receipts.key(group, &part.id))
            .collect()
    }

    /// What the parts' receipts together say, as a final state.
    pub(crate) fn state_of_parts(parts: &[Part]) -> Option<FinalState> {
        Some(match verdict_of_parts(parts)? {
            ReceiptState::Delivered => FinalState::Delivered,
            ReceiptState::Expired => FinalState::Expired,
            ReceiptState::Deleted => FinalState::Cancelled,
            ReceiptState::Rejected => FinalState::Rejected,
            ReceiptState::Unknown => FinalState::Unknown,
            ReceiptState::Scheduled
            | ReceiptState::Enroute
            | ReceiptState::Accepted
            | ReceiptState::Undeliverable
            | ReceiptState::Skipped => FinalState::Failed,
        })
    }
}
