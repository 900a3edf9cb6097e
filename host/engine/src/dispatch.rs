//! Dispatch: sends messages from the queues on links.

use crate::counts::CountedEvent;
use crate::engine::Engine;
use crate::peer::{BlockedBy, InFlight, Peer};
use crate::queue_actions::batch::{FULL_TARGET_RETRY, SHORT_DELAY};
use crate::queue_actions::matching::RerouteResult;
use crate::queue_actions::rules::HoldDecision;
use crate::resolver::SubscriberLookup;
use crate::serial_delivery::SUBSCRIBER_WAIT_RUN;
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use crate::{EngineCommand, Output};
use model::{
    AdminActionKind, FinalState, Moment, Now, PeerId, Priority, Step, StepKind, SubmitAttempt, SubmitTicket,
    Verdict,
};
use std::sync::Arc;

/// Messages loaded from the store at a time, and the low-water mark at the front of a queue that triggers loading.
const LOAD_RUN: usize = 1024;
const LOAD_LOW: usize = 512;

impl Engine {
    /// Sends what the peer's queue, links and limits allow.
    pub(crate) fn dispatch(&mut self, now: Now, peer: u32, out: &mut Output) {
        let index = peer as usize;
        let serial = self.peers[index].settings.serial;
        let mut set_aside = 0;
        let blocked_by = loop {
            if let Some(queue_action) = self.queue_actions.suspension_of(PeerId(peer)) {
                break BlockedBy::Suspended { queue_action };
            }
            if self.peers[index].queued == 0 {
                break match &self.peers[index] {
                    Peer { subscriber_locked: 1.., .. } => BlockedBy::SubscriberLocked,
                    Peer { paced: 1.., .. } => BlockedBy::Paced,
                    Peer { suspended: 1.., .. } => BlockedBy::QueueAction,
                    _ => BlockedBy::Idle,
                };
            }
            if self.draining {
                break BlockedBy::Shutdown;
            }
            if !self.peers[index].configured {
                break BlockedBy::NotConfigured;
            }
            let Some(link) = self.free_link(index) else {
                break match &self.peers[index] {
                    peer if !peer.links.is_empty() => BlockedBy::Window,
                    peer if peer.settings.remote => BlockedBy::NoHome,
                    _ => BlockedBy::NoLink,
                };
            };
            if now.mono < self.peers[index].paused_until {
                break BlockedBy::PolicyPause { until: self.peers[index].paused_until };
            }
            if let Some(pace) = &mut self.peers[index].pace
                && let Err(until) = pace.ready(now.mono)
            {
                let rate = pace.rate();
                break if pace.is_slow_start() {
                    BlockedBy::SlowStart { until, rate }
                } else {
                    BlockedBy::Throttled { until, rate }
                };
            }
            let in_flight = self.peers[index].in_flight;
            if self.peers[index].advised_window.is_some_and(|window| in_flight >= u64::from(window)) {
                break BlockedBy::Window;
            }
            let Some((slot, priority)) = self.head(index) else { break BlockedBy::Idle };
            if self.slab[slot].expires <= now.mono {
                self.end(now, slot, FinalState::Expired, None, out);
                continue;
            }
            if self.queue_actions.any_hold()
                && let HoldDecision::By(queue_action) = self.hold_status(now, slot)
            {
                if set_aside == SUBSCRIBER_WAIT_RUN {
                    self.wake_peer(peer, now.mono);
                    break BlockedBy::QueueAction;
                }
                set_aside += 1;
                if self.slab[slot].message.is_none() {
                    self.peers[index].evicted = self.peers[index].evicted.saturating_sub(1);
                }
                self.take_head(index, priority, slot);
                self.hold_message(slot, queue_action);
                continue;
            }
            if serial && self.must_wait_for_subscriber(slot) {
                if set_aside == SUBSCRIBER_WAIT_RUN {
                    self.wake_peer(peer, now.mono);
                    break BlockedBy::SubscriberLocked;
                }
                set_aside += 1;
                self.take_head(index, priority, slot);
                self.wait_behind_holder(slot, out);
                continue;
            }
            if self.may_be_paced(slot)
                && let Some(limit) = self.exhausted_limit(now, slot)
            {
                if set_aside == SUBSCRIBER_WAIT_RUN {
                    self.wake_peer(peer, now.mono);
                    break BlockedBy::Paced;
                }
                set_aside += 1;
                if self.slab[slot].message.is_none() {
                    self.peers[index].evicted = self.peers[index].evicted.saturating_sub(1);
                }
                self.take_head(index, priority, slot);
                self.wait_for_limit(slot, limit);
                continue;
            }
            let Some(message) = &self.slab[slot].message else {
                self.load_head(index, priority, slot, out);
                break BlockedBy::Loading;
            };
            if message.sealed.is_some() {
                self.end_without_content(now, slot, out);
                continue;
            }
            if serial && self.slab[slot].subscriber == 0 {
                // The peer was not serial when the message arrived.
                let message = message.clone();
                self.set_subscriber_key(slot, &message);
                if self.slab[slot].subscriber != 0 {
                    continue;
                }
            }
            if self.queue_actions.reroutes_from(PeerId(peer)) {
                if out.batch.replaced.len() >= LOAD_RUN {
                    self.wake_peer(peer, now.mono + SHORT_DELAY);
                    break BlockedBy::RerouteTargetFull;
                }
                match self.reroute_message(now, slot, out) {
                    RerouteResult::Rerouted => continue,
                    RerouteResult::TargetFull => {
                        self.wake_peer(peer, now.mono + FULL_TARGET_RETRY);
                        break BlockedBy::RerouteTargetFull;
                    }
                    RerouteResult::NotApplicable => {}
                }
            }
            if let Some(bucket) = &mut self.peers[index].bucket
                && let Err(until) = bucket.take(now.mono)
            {
                break BlockedBy::Rate { until };
            }
            self.spend_limits(slot);
            self.take_head(index, priority, slot);
            self.send(now, link, slot, out);
        };
        self.peers[index].blocked_by = blocked_by;
        if self.peers[index].evicted > 0 && !self.peers[index].links.is_empty() {
            self.load_candidates.push(peer);
        }
        if let BlockedBy::Rate { until }
        | BlockedBy::Throttled { until, .. }
        | BlockedBy::SlowStart { until, .. }
        | BlockedBy::PolicyPause { until } = blocked_by
        {
            self.wake_peer(peer, until);
        }
    }

    fn take_head(&mut self, peer: usize, priority: usize, slot: Slot) {
        self.peers[peer].lanes[priority].pop(&mut self.slab, slot);
        self.peers[peer].queued -= 1;
    }

    /// Loads the content of a queue's head and of the returned messages that follow it; [`Engine::load_ahead`] loads new
    /// arrivals.
    fn load_head(&mut self, peer: usize, priority: usize, slot: Slot, out: &mut Output) {
        if self.slab[slot].has(flag::IN_FIFO) {
            self.load_if_missing(slot, out);
        } else if !self.slab[slot].has(flag::LOADING) {
            let mut ids = Vec::new();
            self.peers[peer].lanes[priority].returned_to_load(&mut self.slab, LOAD_LOW, &mut ids);
            out.commands.push(EngineCommand::Load { ids });
        }
    }

    fn wake_peer(&mut self, peer: u32, at: Moment) {
        let state = &mut self.peers[peer as usize];
        if state.wake.is_none_or(|earlier| earlier > at) {
            state.wake = Some(at);
            self.timers.set(at, Timer::Peer(peer));
        }
    }

    /// The peer's link with the most room in its window.
    fn free_link(&self, peer: usize) -> Option<u32> {
        self.peers[peer]
            .links
            .iter()
            .filter_map(|index| {
                let link = self.links.get(*index as usize)?.as_ref()?;
                let free = (link.window as usize).saturating_sub(link.in_flight.len());
                (free > 0 && !link.paused).then_some((free, *index))
            })
            .max_by_key(|(free, index)| (*free, u32::MAX - *index))
            .map(|(_, index)| index)
    }

    /// The peer's most urgent, then oldest message.
    fn head(&mut self, peer: usize) -> Option<(Slot, usize)> {
        (0..Priority::LEVELS)
            .rev()
            .find_map(|priority| Some((self.peers[peer].lanes[priority].peek(&mut self.slab)?, priority)))
    }

    /// Loads the content of messages near the front of moving queues.
    pub(crate) fn load_ahead(&mut self, out: &mut Output) {
        if !self.content_requests.is_empty() {
            out.commands.push(EngineCommand::Load { ids: std::mem::take(&mut self.content_requests) });
        }
        while let Some(peer) = self.load_candidates.pop() {
            let mut ids = Vec::new();
            for lane in &mut self.peers[peer as usize].lanes {
                lane.next_to_load(&mut self.slab, LOAD_LOW, LOAD_RUN, &mut ids);
            }
            if !ids.is_empty() {
                out.commands.push(EngineCommand::Load { ids });
            }
        }
    }

    /// Whether a newly queued message may lose its cached content when memory is short. Without a link it waits for
    /// long: such queues may fill half of the cache, so that moving queues keep the rest. Near the front of a moving
    /// queue, its content would be loaded again at once.
    pub(crate) fn may_evict(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let peer = &self.peers[entry.peer.0 as usize];
        let limit = self.settings.body_cache;
        match entry.state {
            State::Queued if peer.links.is_empty() => self.cached > limit / 2,
            State::Queued => self.cached > limit && peer.queued as usize > 2 * LOAD_RUN,
            State::SubscriberLocked
            | State::Suspended
            | State::Paced
            | State::Deferred
            | State::Held
            | State::Quarantined
            | State::Resolving
            | State::AwaitingDlr => self.cached > limit / 2,
            _ => false,
        }
    }

    fn send(&mut self, now: Now, link_index: u32, slot: Slot, out: &mut Output) {
        self.trace_resumed(slot);
        let more = self.acquire_subscriber_lock(slot, out);
        let Some(link) = self.links.get_mut(link_index as usize).and_then(Option::as_mut) else { return };
        let entry = &mut self.slab[slot];
        let Some(message) = entry.message.clone() else { return };
        entry.state = State::Submitted;
        entry.link = link_index;
        entry.position = u32::try_from(link.in_flight.len()).unwrap_or(u32::MAX);
        entry.attempts = entry.attempts.saturating_add(1);
        entry.due = Moment(u64::MAX);
        entry.set(flag::QUERIED, false);
        let peer = &mut self.peers[entry.peer.0 as usize];
        peer.in_flight += 1;
        peer.sent += 1;
        if let Some(pace) = &mut peer.pace {
            pace.sent(now.mono);
        }
        let number = peer.sent;
        link.in_flight.push(InFlight {
            slot,
            seq: self.submit_row,
            at: now.wall,
            number,
            since: Some(now.mono),
        });
        let link = link.id;
        *self.submit_row_live.entry(self.submit_row).or_insert(0) += 1;
        let want_dlr = peer.settings.sends_dlrs && entry.dlr_request().any();
        let remote = peer.settings.remote;
        let taken = entry.history.as_ref().map_or(0, |history| history.segments.len());
        let steps = entry.history.as_ref().map_or(&[][..], |history| &history.steps);
        let ticket = ticket(steps, SubmitTicket { at: now.wall, attempt: entry.attempts }, remote);
        let taken = taken + self.segments_before(&message);
        let entry = &self.slab[slot];
        out.batch.submit_attempts.push(SubmitAttempt {
            id: entry.id,
            attempt: entry.attempts,
            leg: entry.leg,
            at: now.wall,
        });
        out.commands.push(EngineCommand::Send {
            link,
            message,
            leg: entry.leg,
            taken: u16::try_from(taken).unwrap_or(u16::MAX),
            want_dlr,
            more,
            ticket,
        });
        self.totals.submitted += 1;
        self.count(slot, CountedEvent::Submitted);
        if self.slab[slot].history.is_some() {
            let (peer, attempt) = (self.slab[slot].peer, self.slab[slot].attempts);
            self.add_step(now, slot, StepKind::Submitted { peer, attempt });
        }
    }

    /// The number of the last attempt's ticket; 0 without an attempt.
    pub(crate) fn last_ticket(&self, slot: Slot) -> u16 {
        let entry = &self.slab[slot];
        let steps = entry.history.as_ref().map_or(&[][..], |history| &history.steps);
        let last = steps.iter().enumerate().rev().find_map(|(at, step)| match step.kind {
            StepKind::Submitted { attempt, .. } => Some((at, attempt)),
            _ => None,
        });
        let Some((at, attempt)) = last else { return entry.attempts };
        let own = SubmitTicket { at: steps[at].at, attempt };
        ticket(&steps[..at], own, self.is_remote(entry.peer)).attempt
    }

    /// The leg's longest wait is over: moves the message to its next leg.
    pub(crate) fn leg_wait_expired(&mut self, now: Now, slot: Slot, out: &mut Output) {
        // A message that a queue action is about to cancel stays.
        if self.queue_actions.any_hold() && self.queue_actions.may_be_cancelled(&self.slab[slot], now) {
            let (id, later) = (self.slab[slot].id, now.mono + FULL_TARGET_RETRY);
            self.slab[slot].due = later;
            self.timers.set(later, Timer::Message(slot, id));
            return;
        }
        let Some(message) = self.slab[slot].message.clone() else {
            self.load_if_missing(slot, out);
            let (id, soon) = (self.slab[slot].id, now.mono + std::time::Duration::from_secs(1));
            self.slab[slot].due = soon;
            self.timers.set(soon, Timer::Message(slot, id));
            return;
        };
        let mut slot = slot;
        match self.slab[slot].state {
            State::Queued => slot = self.leave_queue(slot),
            State::SubscriberLocked => self.stop_waiting_for_subscriber(slot),
            State::Suspended => self.leave_hold(slot),
            State::Paced => self.stop_pacing(slot),
            _ => self.stop_resolving(slot),
        }
        if !self.next_leg(now, slot, &message, out) {
            self.requeue(slot);
        }
    }

    /// Moves a message that is in no queue to its next leg, if there is one.
    pub(crate) fn next_leg(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<model::Message>,
        out: &mut Output,
    ) -> bool {
        let Verdict::Forward(legs) = &message.routed.verdict else { return false };
        let next = usize::from(self.slab[slot].leg) + 1;
        // Prefers peers that are not drained.
        let open = (next..legs.len()).find(|index| self.queue_actions.drain_of(legs[*index].peer).is_none());
        let next = open.unwrap_or(next);
        let Some(leg) = legs.get(next) else { return false };
        // If one peer has segments of the message, another peer cannot complete it: the next leg sends the whole message.
        self.slab[slot].history_mut().segments.clear();
        self.add_step(now, slot, StepKind::NextLeg { peer: leg.peer });
        self.release_subscriber_lock(slot);
        let entry = &mut self.slab[slot];
        entry.leg = u8::try_from(next).unwrap_or(u8::MAX);
        entry.peer = leg.peer;
        self.peer_mut(leg.peer);
        self.set_subscriber_key(slot, message);
        self.begin_leg(now, slot, message, out);
        true
    }

    /// Puts a message that is in no queue into the queue of its leg, or lets it wait for its subscriber first.
    pub(crate) fn begin_leg(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<model::Message>,
        out: &mut Output,
    ) {
        match self.resolve_leg(now, slot, message, out) {
            SubscriberLookup::NotNeeded => {
                self.requeue(slot);
                self.set_leg_timeout(now, slot, message);
                self.write_progress(now, slot, out);
            }
            SubscriberLookup::Waits => self.write_progress(now, slot, out),
            SubscriberLookup::Settled => {}
        }
    }
}

/// The ticket of the attempt that follows these steps: `own`, unless it repeats an uncertain attempt, perhaps more
/// than once; in that case, the ticket of the uncertain attempt. `remote`: another partition has the links. It answers a
/// repetition as it has answered the attempt; an uncertain message that an admin sends again therefore gets a new ticket.
fn ticket(steps: &[Step], own: SubmitTicket, remote: bool) -> SubmitTicket {
    let mut ticket = own;
    let mut repeats = false;
    for step in steps.iter().rev() {
        match step.kind {
            StepKind::SentAgain | StepKind::Unanswered | StepKind::Recovered => repeats = true,
            StepKind::Submitted { attempt, .. } if repeats => {
                ticket = SubmitTicket { at: step.at, attempt };
                repeats = false;
            }
            StepKind::Deferred { .. }
            | StepKind::MovedBehindOthers { .. }
            | StepKind::AwaitingAlert { .. }
            | StepKind::Decided { .. }
            | StepKind::CallRecorded { .. }
            | StepKind::SealedCallRecorded { .. }
            | StepKind::StatusQueried
            | StepKind::NotSent => {}
            // The peer is not the peer of the uncertain attempt.
            StepKind::AdminAction { action: AdminActionKind::Rerouted, .. } => break,
            StepKind::AdminAction { action: AdminActionKind::SentAgain, .. } if remote => break,
            StepKind::AdminAction { .. } => {}
            _ => break,
        }
    }
    ticket
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PeerId, Timestamp};

    fn steps(kinds: &[StepKind]) -> Vec<Step> {
        let at = |index: usize| Timestamp(index as u64 + 1);
        kinds.iter().enumerate().map(|(index, kind)| Step { at: at(index), kind: kind.clone() }).collect()
    }

    fn submitted(attempt: u16) -> StepKind {
        StepKind::Submitted { peer: PeerId(1), attempt }
    }

    #[test]
    fn a_repeated_submit_keeps_its_ticket() {
        use StepKind::{Recovered, Refused, SentAgain, Unanswered};
        let own = SubmitTicket { at: Timestamp(100), attempt: 9 };
        assert_eq!(ticket(&[], own, false), own);
        let first = SubmitTicket { at: Timestamp(1), attempt: 1 };
        assert_eq!(ticket(&steps(&[submitted(1), Unanswered, SentAgain]), own, false), first);
        assert_eq!(ticket(&steps(&[submitted(1), Recovered, SentAgain]), own, false), first);
        let record = StepKind::CallRecorded { hook: model::Hook::Peer, record: Box::default() };
        assert_eq!(ticket(&steps(&[submitted(1), record, Unanswered, SentAgain]), own, false), first);
        let twice = [submitted(1), Unanswered, SentAgain, submitted(2), Unanswered, SentAgain];
        assert_eq!(ticket(&steps(&twice), own, false), first);
        assert_eq!(ticket(&steps(&[submitted(1), Refused { code: 88 }]), own, false), own);
        let refused = [submitted(1), Refused { code: 88 }, submitted(2), Unanswered, SentAgain];
        assert_eq!(ticket(&steps(&refused), own, false), SubmitTicket { at: Timestamp(3), attempt: 2 });
        let answered_since = [submitted(1), Unanswered, SentAgain, submitted(2), Refused { code: 88 }];
        assert_eq!(ticket(&steps(&answered_since), own, false), own);
    }
}
