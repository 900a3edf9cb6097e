//! Recovery: restores the engine from the tables at start.

use crate::Output;
use crate::dlrs::OrphanDlr;
use crate::engine::Engine;
use crate::slab::{MessageHistory, State};
use model::{
    MessageId, MessageProgress, Now, RecoveredMessage, RecoveredRecord, Step, StepKind, Verdict, WaitState,
};
use std::sync::Arc;

impl Engine {
    /// Recovers one message from disk. Peers must be configured and other records ([`Engine::recover_record`])
    /// recovered before; messages must come by ascending id. A message that was on a link when the daemon ended is
    /// uncertain; its peer's policy applies.
    pub fn recover(&mut self, now: Now, recovered: RecoveredMessage, out: &mut Output) {
        self.recovering = true;
        self.pools.recovered();
        let RecoveredMessage { message, progress, attempt, .. } = recovered;
        let message = Arc::new(message);
        let leg = match (&attempt, &progress) {
            (Some(attempt), Some(progress)) if attempt.attempt <= progress.attempts => progress.leg,
            (Some(attempt), _) => attempt.leg,
            (None, Some(progress)) => progress.leg,
            (None, None) => 0,
        };
        let slot = self.create_entry(now, &message, leg);
        self.cache(slot, message.clone());
        let waiting = progress.as_ref().map(|progress| progress.waiting);
        if let Some(progress) = progress {
            let entry = &mut self.slab[slot];
            entry.attempts = progress.attempts;
            let MessageProgress { steps, segments, earlier, .. } = progress;
            if !steps.is_empty() || !segments.is_empty() || !earlier.is_empty() {
                entry.history = Some(Box::new(MessageHistory { steps, segments, earlier }));
                self.recover_earlier_legs(slot);
            }
        }
        if let Some(attempt) = attempt.filter(|attempt| attempt.attempt > self.slab[slot].attempts) {
            let entry = &mut self.slab[slot];
            entry.attempts = attempt.attempt;
            entry.state = State::Submitted;
            let peer = entry.peer;
            let kind = StepKind::Submitted { peer, attempt: attempt.attempt };
            entry.history_mut().steps.push(Step { at: attempt.at, kind });
            self.add_step(now, slot, StepKind::Recovered);
            self.mark_uncertain(now, slot, out);
        } else {
            match waiting {
                None => match (&message.routed.verdict, message.scheduled) {
                    (Verdict::Hold(until), _) => self.hold(slot, now.moment_of(*until)),
                    (Verdict::Quarantine, _) => self.enter_quarantine(slot),
                    // Routing looks its number up again.
                    (Verdict::AwaitLookup, _) => self.hold(slot, now.mono),
                    (_, Some(scheduled)) if scheduled > now.wall => {
                        self.defer(slot, now.moment_of(scheduled));
                    }
                    _ => self.enqueue_new(now, slot, &message, out),
                },
                Some(WaitState::Queued) => self.enqueue_new(now, slot, &message, out),
                Some(WaitState::Deferred { until }) => {
                    let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
                    let last = steps
                        .iter()
                        .rev()
                        .find(|step| step.kind != StepKind::Replaced && !step.kind.is_record());
                    let scheduled = message.scheduled.is_some_and(|at| at > now.wall);
                    let is = |kind: fn(&StepKind) -> bool| last.is_some_and(|step| kind(&step.kind));
                    let awaits_alert = is(|kind| matches!(kind, StepKind::AwaitingAlert { .. }));
                    let others_first = is(|kind| matches!(kind, StepKind::MovedBehindOthers { .. }));
                    if awaits_alert && !scheduled {
                        self.await_subscriber_alert(slot, &message);
                    }
                    if self.slab[slot].attempts > 0 && !scheduled && !others_first {
                        self.hold_lock_for_retry(slot);
                    }
                    // `until` comes from the clock of another machine, and may be the end of such a wait.
                    let earliest = now.mono + self.settings.previous_leader_sends;
                    self.defer(slot, now.moment_of(until).max(earliest));
                }
                Some(WaitState::Quarantined) => self.enter_quarantine(slot),
                Some(WaitState::Held { until }) => self.hold(slot, now.moment_of(until)),
                Some(WaitState::Uncertain { since }) => {
                    let settings = &self.peer_of(slot).settings;
                    let (group, limit) = (settings.group, settings.uncertain_limit);
                    let id = message.id;
                    let entry = &mut self.slab[slot];
                    entry.state = State::Uncertain;
                    entry.due = now.moment_of(since + limit);
                    self.hold_lock_for_retry(slot);
                    self.uncertain_ids.insert(id);
                    self.peer_of(slot).uncertain += 1;
                    if let Some(key) = self.uncertain_key(group, slot) {
                        self.uncertain_by_pair.entry(key).or_default().push(id);
                    }
                }
                Some(WaitState::Dlr { peer, since }) => {
                    self.peer_mut(peer);
                    let settings = &self.peers[peer.0 as usize].settings;
                    let (group, limit) = (settings.group, settings.dlr_timeout);
                    let entry = &mut self.slab[slot];
                    entry.peer = peer;
                    entry.state = State::AwaitingDlr;
                    entry.due = now.moment_of(since + limit);
                    self.peers[peer.0 as usize].awaiting += 1;
                    self.index_segments(slot, group);
                    self.recover_receipt(now, slot);
                }
            }
        }
        self.recover_sender(now, slot, &message);
        if message.sealed.is_some() {
            self.end_recovered_without_content(now, slot, out);
            return;
        }
        // No link is up yet: everything waits.
        if self.may_evict(slot) {
            self.evict_one(slot);
        }
    }

    /// Recovers a record other than a message; before the messages, each kind by ascending number.
    pub fn recover_record(&mut self, now: Now, found: RecoveredRecord) {
        match found {
            RecoveredRecord::Group(peer, group) => self.recover_group(peer, group),
            RecoveredRecord::IdempotencyKey(record) => {
                self.idempotency_keys.recover(record, now, self.settings.idempotency_key_retention);
            }
            RecoveredRecord::OptOut(opt_out) => {
                self.opt_outs.set(opt_out, true);
            }
            RecoveredRecord::QueueAction(action) => {
                self.queue_actions.put(action.clone());
                self.start_queue_action(now, &action);
            }
            RecoveredRecord::PaceDay(record) => {
                if !self.day_quotas.recover(&record) {
                    self.pace_limits.recover(now, &record);
                }
            }
            RecoveredRecord::Balance(name, balance) => self.ledger.recover_balance(name, balance),
            RecoveredRecord::Operation(record) => self.ledger.recover_operation(&record),
            RecoveredRecord::BillerNotified(upto) => self.ledger.recover_settled(upto),
            RecoveredRecord::Settlement(settlement) => self.ledger.recover_settlement(settlement),
            RecoveredRecord::Pool(record) => self.pools.recover(record),
            RecoveredRecord::PoolRemoved(id, rows) => self.pools.recover_removed(id, rows),
            RecoveredRecord::Number(id, number, row) => self.pools.recover_number(now, id, number, row),
            RecoveredRecord::Journal(part) => self.pools.recover_journal(now, part),
            RecoveredRecord::OrphanDlr(record) => {
                let group = self.peer_mut(record.peer).settings.group;
                let key = self.dlr_index.key(group, &record.dlr.id);
                let orphan = OrphanDlr {
                    peer: record.peer,
                    group,
                    dlr: record.dlr,
                    at: record.at,
                    until: now.moment_of(record.at + self.settings.orphan_dlr_retention),
                    written: true,
                    reply: None,
                };
                self.orphan_dlrs.insert_numbered(record.number, key, orphan);
                self.schedule_orphan_sweep(now);
            }
        }
    }

    /// Ends recovery: sets the next ids and row numbers after those on disk, and removes the recovered rows of table
    /// `handed`.
    pub fn finish_recovery(
        &mut self,
        next_id: MessageId,
        next_submit_row: u64,
        rows: &[u64],
        out: &mut Output,
    ) {
        self.recovering = false;
        self.pools.recovered();
        let (ids, slab) = (&self.ids, &self.slab);
        self.pools.find_orphans(|id| ids.get(slab, id).is_some());
        self.next_id = next_id.max(MessageId::first_of(self.settings.partition));
        self.submit_row = next_submit_row.max(1);
        out.batch.submit_rows_done.extend_from_slice(rows);
    }
}
