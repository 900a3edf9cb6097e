//! Work of queue actions on many messages, in steps: bounded per batch, so that no commit takes long, and per run of
//! events, so that no event waits long.

use crate::Output;
use crate::engine::Engine;
use crate::queue_actions::matching::RerouteResult;
use crate::queue_actions::rules::{PendingWork, matches_entry};
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use model::{
    AdminActionKind, FinalState, MessageId, Moment, Now, QueueAction, QueueActionId, QueueActionKind,
    QueueActionState, StepKind,
};
use std::time::Duration;

/// Messages that queue actions end, move or release in one batch.
const BATCH_LIMIT: usize = 1024;
/// Slab entries scanned in one run of events.
const SCAN_LIMIT: usize = 65_536;
/// Contents loaded at a time.
const LOAD_LIMIT: usize = 1024;
/// Delay before a full reroute target is tried again.
pub(crate) const FULL_TARGET_RETRY: Duration = Duration::from_secs(1);
/// Delay while a batch is full or contents are loading.
pub(crate) const SHORT_DELAY: Duration = Duration::from_millis(1);

/// The result of one entry of a scan.
enum ScanOutcome {
    /// It does not match, or is done.
    Done,
    /// Its content must be loaded first.
    NeedsContent,
    /// The scan stops and continues after this delay.
    Stop(Duration),
}

impl Engine {
    /// Reroutes messages that entered queues since the last run.
    pub(crate) fn reroute_arrived(&mut self, now: Now, out: &mut Output) {
        for id in std::mem::take(&mut self.queue_actions.arrived) {
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if !matches!(self.slab[slot].state, State::Queued | State::SubscriberLocked | State::Paced) {
                continue;
            }
            if self.slab[slot].message.is_none() {
                self.load_for_queue_action(slot, out);
            } else if self.reroute_message(now, slot, out) == RerouteResult::TargetFull {
                self.retry_reroute_later(now, slot);
            }
        }
    }

    /// The target was full: the scan is repeated later.
    fn retry_reroute_later(&mut self, now: Now, slot: Slot) {
        let Some(id) = self.queue_actions.rerouting_action(&self.slab[slot], now).map(|action| action.id)
        else {
            return;
        };
        let after = now.mono + FULL_TARGET_RETRY;
        self.queue_actions.pending_work.entry(id).or_insert(PendingWork::RescanAfter { after });
        // A running scan may have passed this entry.
        self.queue_actions.moved.push(self.slab[slot].id);
        self.schedule_queue_action_work(after);
    }

    pub(crate) fn schedule_queue_action_work(&mut self, at: Moment) {
        if self.queue_actions.wake.is_none_or(|earlier| earlier > at) {
            self.queue_actions.wake = Some(at);
            self.timers.set(at, Timer::QueueActions);
        }
    }

    fn load_for_queue_action(&mut self, slot: Slot, out: &mut Output) {
        let id = self.slab[slot].id;
        if self.queue_actions.loading.insert(id) {
            self.load_if_missing(slot, out);
        }
    }

    /// The content of a message was loaded: applies the actions that waited for it.
    pub(crate) fn content_loaded_for_queue_action(&mut self, now: Now, id: MessageId, out: &mut Output) {
        if !self.queue_actions.loading.remove(&id) {
            return;
        }
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        if self.queue_actions.reroutes_from(self.slab[slot].peer) {
            self.queue_actions.arrived.push(id);
        }
        let looking: Vec<QueueActionId> = self.queue_actions.pending_work.keys().copied().collect();
        for action in looking {
            if let Some(action) = self.queue_actions.get(action).cloned()
                && action.state == QueueActionState::Running
                && let Some(slot) = self.ids.get(&self.slab, id)
            {
                self.cancel_by_queue_action(now, slot, &action, out);
            }
        }
        if let Some(slot) = self.ids.get(&self.slab, id) {
            self.newly_cached.push(slot);
        }
    }

    /// Does a part of the pending work.
    pub(crate) fn run_queue_actions(&mut self, now: Now, out: &mut Output) {
        if self.queue_actions.pending_work.is_empty() || self.recovering {
            return;
        }
        if self.queue_actions.wake.is_some_and(|at| at > now.mono) {
            return;
        }
        self.queue_actions.wake = None;
        let moved = std::mem::take(&mut self.queue_actions.moved);
        let pending_work: Vec<(QueueActionId, PendingWork)> =
            self.queue_actions.pending_work.iter().map(|(id, work)| (*id, *work)).collect();
        for (id, work) in pending_work {
            let Some(action) = self.queue_actions.get(id).cloned() else {
                self.queue_actions.pending_work.remove(&id);
                continue;
            };
            match work {
                PendingWork::Release => self.release_batch(now, &action, out),
                PendingWork::RescanAfter { after } if after > now.mono => {
                    self.schedule_queue_action_work(after);
                }
                PendingWork::RescanAfter { .. } => self.process_batch(now, &action, 0, &moved, out),
                PendingWork::Scan { at } => self.process_batch(now, &action, at, &moved, out),
            }
        }
    }

    fn release_batch(&mut self, now: Now, action: &QueueAction, out: &mut Output) {
        let by =
            self.queue_actions.withdrawn_by.get(&action.id).cloned().unwrap_or_else(|| action.by.clone());
        for _ in 0..BATCH_LIMIT {
            let Some(slot) = self.queue_actions.first_held(action.id) else {
                self.queue_actions.pending_work.remove(&action.id);
                self.queue_actions.withdrawn_by.remove(&action.id);
                return;
            };
            let kind = StepKind::AdminAction {
                action: AdminActionKind::Resumed,
                by: by.clone(),
                queue_action: Some(action.id),
                peer: None,
            };
            self.release_held(now, slot, Some(kind), out);
        }
        self.schedule_queue_action_work(now.mono);
    }

    fn process_batch(
        &mut self,
        now: Now,
        action: &QueueAction,
        at: Slot,
        moved: &[MessageId],
        out: &mut Output,
    ) {
        // A scan may have missed moved entries.
        for id in moved {
            let Some(slot) = self.ids.get(&self.slab, *id) else { continue };
            match self.process_message(now, slot, action, out) {
                ScanOutcome::Done => {}
                ScanOutcome::NeedsContent => self.load_for_queue_action(slot, out),
                ScanOutcome::Stop(_) => self.queue_actions.moved.push(*id),
            }
        }
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let mut slot = at;
        for _ in 0..SCAN_LIMIT {
            if slot >= capacity {
                if self.queue_actions.loading.is_empty() && self.ending.is_empty() {
                    self.finish_scan(action, out);
                } else {
                    self.continue_scan(action.id, slot, now.mono + SHORT_DELAY);
                }
                return;
            }
            match self.process_message(now, slot, action, out) {
                ScanOutcome::Done => slot += 1,
                ScanOutcome::NeedsContent if self.queue_actions.loading.len() < LOAD_LIMIT => {
                    self.load_for_queue_action(slot, out);
                    slot += 1;
                }
                ScanOutcome::NeedsContent => {
                    return self.continue_scan(action.id, slot, now.mono + SHORT_DELAY);
                }
                ScanOutcome::Stop(after) => return self.continue_scan(action.id, slot, now.mono + after),
            }
        }
        self.continue_scan(action.id, slot, now.mono);
    }

    fn continue_scan(&mut self, id: QueueActionId, at: Slot, when: Moment) {
        self.queue_actions.pending_work.insert(id, PendingWork::Scan { at });
        self.schedule_queue_action_work(when);
    }

    /// The scan of an action is complete.
    fn finish_scan(&mut self, action: &QueueAction, out: &mut Output) {
        self.queue_actions.pending_work.remove(&action.id);
        if let Some(mut action) = self.queue_actions.get(action.id).cloned()
            && action.state == QueueActionState::Running
        {
            action.state = QueueActionState::Done;
            self.store_queue_action(action, out);
        }
    }

    fn process_message(
        &mut self,
        now: Now,
        slot: Slot,
        action: &QueueAction,
        out: &mut Output,
    ) -> ScanOutcome {
        let entry = &self.slab[slot];
        let concerned = match action.kind {
            QueueActionKind::Reroute => {
                matches!(entry.state, State::Queued | State::SubscriberLocked | State::Paced)
            }
            _ => entry.state.waits(),
        };
        if !concerned || !matches_entry(action, entry, now.wall) {
            return ScanOutcome::Done;
        }
        let changed = out.batch.finished.len() + out.batch.dropped.len() + out.batch.replaced.len();
        if changed >= BATCH_LIMIT || self.ending.len() >= LOAD_LIMIT {
            return ScanOutcome::Stop(SHORT_DELAY);
        }
        let missing = entry.message.is_none();
        match action.kind {
            QueueActionKind::Reroute if missing => return ScanOutcome::NeedsContent,
            QueueActionKind::Reroute => {
                if self.reroute_message(now, slot, out) == RerouteResult::TargetFull {
                    return ScanOutcome::Stop(FULL_TARGET_RETRY);
                }
            }
            _ if missing && action.scope.prefix.is_some() => return ScanOutcome::NeedsContent,
            _ => self.cancel_by_queue_action(now, slot, action, out),
        }
        ScanOutcome::Done
    }

    /// Cancels a message if it still waits and matches the action.
    fn cancel_by_queue_action(&mut self, now: Now, slot: Slot, action: &QueueAction, out: &mut Output) {
        let entry = &self.slab[slot];
        let theirs = entry.state.waits() && matches_entry(action, entry, now.wall);
        let content = entry.message.as_ref();
        let theirs = theirs && content.is_none_or(|message| action.scope.matches_destination(message));
        if !theirs || content.is_none() && action.scope.prefix.is_some() {
            return;
        }
        if entry.has(flag::OWN_DLR) {
            self.count_affected(action.id, out);
        } else {
            let kind = StepKind::AdminAction {
                action: AdminActionKind::Cancelled,
                by: action.by.clone(),
                queue_action: Some(action.id),
                peer: None,
            };
            self.add_step(now, slot, kind);
        }
        self.end(now, slot, FinalState::Cancelled, None, out);
    }
}
