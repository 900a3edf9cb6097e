//! Matching of queue actions: their effect on a message at the head of a queue or at its acceptance.

use crate::engine::Engine;
use crate::leg_subscriber::needs_subscriber;
use crate::queue_actions::rules::{HoldDecision, MAX_ACTIVE, PendingWork, initial_state};
use crate::resolver::SubscriberLookup;
use crate::slab::{Slot, State};
use crate::timer::Timer;
use crate::{EngineAnswer, NewQueueAction, Output, QueueActionRefusal, ReplyTo};
use model::{
    AdminActionKind, Message, MessageId, Moment, Now, PeerId, QueueAction, QueueActionId, QueueActionKind,
    QueueActionState, Step, StepKind, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// The longest undo window.
const MAX_UNDO: Duration = Duration::from_secs(86_400);

/// The result of rerouting one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RerouteResult {
    /// Rerouted.
    Rerouted,
    /// The target is full: the message stays for now.
    TargetFull,
    /// No rule applies, or the target cannot take it: the message stays.
    NotApplicable,
}

impl Engine {
    /// Creates a queue action, or refuses it.
    pub(crate) fn create_queue_action(
        &mut self,
        now: Now,
        request: NewQueueAction,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let answer = match self.validate_queue_action(&request) {
            Err(why) => EngineAnswer::QueueActionRefused(why),
            Ok(()) => {
                let NewQueueAction { kind, mut scope, to, by, reason, undo_within } = request;
                // Whole seconds, as acceptance times are; rounded up.
                scope.older_than = scope
                    .older_than
                    .map(|age| Duration::from_secs(age.as_secs() + u64::from(age.subsec_nanos() > 0)));
                let undo_until = kind.cancels().then(|| now.wall + undo_within.min(MAX_UNDO));
                let action = QueueAction {
                    id: self.queue_actions.next_id(),
                    kind,
                    scope,
                    to,
                    by,
                    reason,
                    at: now.wall,
                    before_id: self.next_id,
                    undo_until,
                    state: initial_state(kind),
                    affected: 0,
                };
                self.store_queue_action(action.clone(), out);
                self.start_queue_action(now, &action);
                EngineAnswer::QueueAction(Box::new(action))
            }
        };
        out.commands.push(crate::EngineCommand::Answer { to: reply, answer });
    }

    /// Whether a queue action is valid. Read-only.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn validate_queue_action(&self, request: &NewQueueAction) -> Result<(), QueueActionRefusal> {
        let NewQueueAction { kind, scope, to, .. } = request;
        if self.queue_actions.active() >= MAX_ACTIVE {
            return Err(QueueActionRefusal::TooMany { most: MAX_ACTIVE });
        }
        if scope.is_empty() {
            return Err(QueueActionRefusal::NoScope);
        }
        match kind {
            QueueActionKind::Drain if !scope.is_whole_peer() => Err(QueueActionRefusal::NeedsWholePeer),
            QueueActionKind::Reroute => {
                let (Some(from), Some(to)) = (scope.peer, *to) else {
                    return Err(QueueActionRefusal::BadTarget);
                };
                let (Some(one), Some(other)) =
                    (self.peers.get(from.0 as usize), self.peers.get(to.0 as usize))
                else {
                    return Err(QueueActionRefusal::UnknownPeer);
                };
                if from == to
                    || self.queue_actions.is_reroute_source(to)
                    || self.queue_actions.is_reroute_target(from)
                {
                    return Err(QueueActionRefusal::Cycle);
                }
                if !other.configured {
                    return Err(QueueActionRefusal::UnknownPeer);
                }
                let kind = |peer: &crate::peer::Peer| (peer.settings.serial, peer.settings.addressee);
                if one.configured && kind(one) != kind(other) {
                    return Err(QueueActionRefusal::DifferentKinds);
                }
                Ok(())
            }
            _ if to.is_some() => Err(QueueActionRefusal::BadTarget),
            _ => Ok(()),
        }
    }

    /// Stores a new or changed queue action.
    pub(crate) fn store_queue_action(&mut self, action: QueueAction, out: &mut Output) {
        let forgotten = self.queue_actions.put(action.clone());
        out.batch.queue_actions.retain(|earlier| earlier.id != action.id && !forgotten.contains(&earlier.id));
        out.batch.queue_actions.push(action);
        out.batch.queue_actions_done.extend(forgotten);
        for peer in 0..self.peers.len() {
            self.mark_dirty(u32::try_from(peer).unwrap_or(u32::MAX));
        }
    }

    /// Starts the work of an action, beyond matching at the head of a queue; also after a restart.
    pub(crate) fn start_queue_action(&mut self, now: Now, action: &QueueAction) {
        match (action.kind, action.state) {
            (QueueActionKind::Reroute, QueueActionState::Standing) | (_, QueueActionState::Running) => {
                self.queue_actions.pending_work.insert(action.id, PendingWork::Scan { at: 0 });
                self.schedule_queue_action_work(now.mono);
            }
            (_, QueueActionState::UndoWindow) => {
                let until = action.undo_until.map_or(now.mono, |until| now.moment_of(until));
                self.timers.set(until, Timer::UndoWindow(action.id));
            }
            _ => {}
        }
    }

    /// The timer of an undo window fired.
    pub(crate) fn undo_window_over(&mut self, now: Now, id: QueueActionId, out: &mut Output) {
        let Some(mut action) = self.queue_actions.get(id).cloned() else { return };
        if action.state == QueueActionState::UndoWindow {
            action.state = QueueActionState::Running;
            self.store_queue_action(action.clone(), out);
            self.start_queue_action(now, &action);
        }
    }

    /// Withdraws a queue action and releases what it holds.
    pub(crate) fn undo_queue_action(
        &mut self,
        now: Now,
        id: QueueActionId,
        by: &Arc<str>,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let answer = match self.queue_actions.get(id).cloned() {
            None => EngineAnswer::QueueActionRefused(QueueActionRefusal::Unknown),
            Some(action)
                if !matches!(action.state, QueueActionState::Standing | QueueActionState::UndoWindow) =>
            {
                EngineAnswer::QueueActionRefused(QueueActionRefusal::TooLate)
            }
            Some(mut action) => {
                action.state = QueueActionState::Undone;
                self.queue_actions.pending_work.remove(&id);
                self.store_queue_action(action.clone(), out);
                self.note_peer_resumed(now, &action, by);
                if self.queue_actions.first_held(id).is_some() {
                    self.queue_actions.pending_work.insert(id, PendingWork::Release);
                    self.schedule_queue_action_work(now.mono);
                    self.queue_actions.withdrawn_by.insert(id, by.clone());
                }
                EngineAnswer::QueueAction(Box::new(action))
            }
        };
        out.commands.push(crate::EngineCommand::Answer { to: reply, answer });
    }

    /// Records that a suspended peer resumes: messages that waited get a step in their trace when they are sent.
    fn note_peer_resumed(&mut self, now: Now, action: &QueueAction, by: &Arc<str>) {
        if action.kind == QueueActionKind::Suspend
            && action.scope.is_whole_peer()
            && let Some(peer) = action.scope.peer
        {
            self.peer_mut(peer).resumed =
                Some(crate::peer::PeerResumed { queue_action: action.id, by: by.clone(), at: now.wall });
        }
    }

    /// Holds a message that has left the head of its queue.
    pub(crate) fn hold_message(&mut self, slot: Slot, action: QueueActionId) {
        self.slab[slot].state = State::Suspended;
        self.peer_of(slot).suspended += 1;
        self.queue_actions.hold(&mut self.slab, slot, action);
        self.release_subscriber_lock(slot);
        self.newly_cached.push(slot);
    }

    /// Ends the hold of a message; it is then in the state after the end of an attempt.
    pub(crate) fn leave_hold(&mut self, slot: Slot) {
        self.slab[slot].state = State::Submitted;
        self.peer_of(slot).suspended -= 1;
        self.queue_actions.remove_held(&mut self.slab, slot);
    }

    /// Releases a held message.
    pub(crate) fn release_held(&mut self, now: Now, slot: Slot, step: Option<StepKind>, out: &mut Output) {
        let longest_wait = self.slab[slot].due;
        self.leave_hold(slot);
        if let Some(kind) = step {
            self.add_step(now, slot, kind);
        }
        if let Some(message) = self.slab[slot].message.clone()
            && needs_subscriber(&message, self.slab[slot].leg)
            && self.resolve_leg(now, slot, &message, out) != SubscriberLookup::NotNeeded
        {
            return;
        }
        self.requeue(slot);
        if longest_wait != Moment(u64::MAX) {
            // Its timer may have fired meanwhile.
            self.slab[slot].due = longest_wait;
            self.timers.set(longest_wait, Timer::Message(slot, self.slab[slot].id));
        }
        self.newly_cached.push(slot);
    }

    /// The action that holds the head of a queue; its content may be needed.
    pub(crate) fn hold_status(&self, now: Now, slot: Slot) -> HoldDecision {
        self.queue_actions.holding_action(&self.slab[slot], now)
    }

    /// Reroutes a message that is in no queue, if an action matches and the target can take it.
    pub(crate) fn reroute_message(&mut self, now: Now, slot: Slot, out: &mut Output) -> RerouteResult {
        let Some((action, to, by)) = self
            .queue_actions
            .rerouting_action(&self.slab[slot], now)
            .and_then(|action| Some((action.id, action.to?, action.by.clone())))
        else {
            return RerouteResult::NotApplicable;
        };
        let Some(old) = self.slab[slot].message.clone() else { return RerouteResult::NotApplicable };
        let (leg, origin) = (self.slab[slot].leg, self.slab[slot].origin);
        // Never back to its origin.
        if to == origin {
            return RerouteResult::NotApplicable;
        }
        let room = self
            .peers
            .get(to.0 as usize)
            .is_some_and(|peer| peer.configured && peer.waiting() < peer.settings.queue_limit);
        if !room {
            return RerouteResult::TargetFull;
        }
        let mut message = Message::clone(&old);
        let Verdict::Forward(legs) = &mut message.routed.verdict else { return RerouteResult::NotApplicable };
        let Some(leg) = legs.get_mut(usize::from(leg)) else { return RerouteResult::NotApplicable };
        leg.peer = to;
        let longest_wait = self.slab[slot].due;
        let slot = self.remove_from_wait(slot, out);
        self.release_subscriber_lock(slot);
        // If one peer has segments of the message, another peer cannot complete it.
        if let Some(history) = &mut self.slab[slot].history {
            history.segments.clear();
        }
        let kind = StepKind::AdminAction {
            action: AdminActionKind::Rerouted,
            by,
            queue_action: Some(action),
            peer: Some(to),
        };
        self.add_step(now, slot, kind);
        self.slab[slot].peer = to;
        let message = self.replace_content(slot, message, out);
        self.set_subscriber_key(slot, &message);
        self.requeue(slot);
        self.slab[slot].due = longest_wait;
        self.write_progress(now, slot, out);
        self.newly_cached.push(slot);
        self.count_affected(action, out);
        RerouteResult::Rerouted
    }

    /// Counts a message that an action moved or cancelled.
    pub(crate) fn count_affected(&mut self, id: QueueActionId, out: &mut Output) {
        let Some(action) = self.queue_actions.count_affected(id) else { return };
        match out.batch.queue_actions.iter_mut().find(|earlier| earlier.id == id) {
            Some(earlier) => earlier.affected = action.affected,
            None => out.batch.queue_actions.push(action.clone()),
        }
    }

    /// Reroutes the legs of a new or re-routed message; returns the steps for its trace.
    pub(crate) fn reroute_legs(
        &self,
        now: Now,
        message: &Message,
        verdict: &mut Verdict,
    ) -> Vec<(QueueActionId, StepKind)> {
        let mut steps = Vec::new();
        let Verdict::Forward(legs) = verdict else { return steps };
        for leg in legs.iter_mut().filter(|_| self.queue_actions.any_reroute()) {
            let Some(action) = self.queue_actions.rerouting_action_for(message, leg.peer, now) else {
                continue;
            };
            let Some(to) = action.to.filter(|to| *to != message.origin && self.is_configured(*to)) else {
                continue;
            };
            leg.peer = to;
            let (by, id) = (action.by.clone(), action.id);
            let kind = StepKind::AdminAction {
                action: AdminActionKind::Rerouted,
                by,
                queue_action: Some(id),
                peer: Some(to),
            };
            if steps.iter().all(|(earlier, _)| *earlier != id) {
                steps.push((id, kind));
            }
        }
        steps
    }

    /// Adds the steps of [`Engine::reroute_legs`] and counts them.
    pub(crate) fn trace_reroutes(
        &mut self,
        now: Now,
        slot: Slot,
        steps: Vec<(QueueActionId, StepKind)>,
        out: &mut Output,
    ) {
        for (action, kind) in steps {
            self.add_step(now, slot, kind);
            self.count_affected(action, out);
        }
    }

    /// Adds the step of a message that waited while its peer was suspended.
    pub(crate) fn trace_resumed(&mut self, slot: Slot) {
        let entry = &self.slab[slot];
        let Some(resumed) = &self.peers[entry.peer.0 as usize].resumed else { return };
        if u64::from(entry.accepted) * 1000 > resumed.at.0 {
            return;
        }
        let kind = StepKind::AdminAction {
            action: AdminActionKind::Resumed,
            by: resumed.by.clone(),
            queue_action: Some(resumed.queue_action),
            peer: None,
        };
        let at = resumed.at;
        let steps = &mut self.slab[slot].history_mut().steps;
        if steps.iter().all(|step| step.kind != kind) && steps.len() < model::FinalRecord::MAX_STEPS {
            let place = steps.partition_point(|step| step.at <= at);
            steps.insert(place, Step { at, kind });
        }
    }
}

impl Engine {
    /// All queue actions, newest first, with the number of messages that each holds. Read-only.
    #[must_use]
    pub fn queue_actions(&self) -> Vec<(QueueAction, u64)> {
        let held = |action: &QueueAction| match action.scope.peer {
            Some(peer)
                if action.state.is_active() && self.queue_actions.suspension_of(peer) == Some(action.id) =>
            {
                self.peers.get(peer.0 as usize).map_or(0, |peer| peer.queued + peer.subscriber_locked)
            }
            _ => self.queue_actions.held(action.id),
        };
        self.queue_actions.iter().rev().map(|action| (action.clone(), held(action))).collect()
    }

    /// One queue action.
    #[must_use]
    pub fn queue_action(&self, id: QueueActionId) -> Option<QueueAction> {
        self.queue_actions.get(id).cloned()
    }

    /// The action that drains a peer.
    #[must_use]
    pub fn drained(&self, peer: PeerId) -> Option<QueueActionId> {
        self.queue_actions.drain_of(peer)
    }

    /// Uncertain messages with ids greater than `after`, by id, at most `most`, of one peer or of all.
    #[must_use]
    pub fn uncertain(&self, peer: Option<PeerId>, after: MessageId, most: usize) -> Vec<MessageId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let of = |id: &&MessageId| {
            peer.is_none_or(|peer| {
                self.ids.get(&self.slab, **id).is_some_and(|slot| self.slab[slot].peer == peer)
            })
        };
        self.uncertain_ids.range((Excluded(after), Unbounded)).filter(of).take(most).copied().collect()
    }
}
