//! From the tables back into memory, at start.

use crate::engine::Engine;
use crate::ledger::Parked;
use crate::slab::{Side, State};
use crate::{Output, Recovered, Remembered, Waiting};
use model::{MessageId, Now, Step, StepKind, Verdict};
use std::sync::Arc;

impl Engine {
    /// Takes one message as it was found on disk. Peers must have been configured and what is remembered beside messages
    /// ([`Engine::recover_remembered`]) taken before; messages must come by growing id. What was on its way when the daemon ended is treated as its peer's remedy for doubt says.
    pub fn recover(&mut self, now: Now, recovered: Recovered, out: &mut Output) {
        self.recovering = true;
        self.pools.recovered();
        let Recovered { message, progress, handed, .. } = recovered;
        let message = Arc::new(message);
        let leg = match (&handed, &progress) {
            (Some(handed), Some(progress)) if handed.attempt <= progress.attempts => progress.leg,
            (Some(handed), _) => handed.leg,
            (None, Some(progress)) => progress.leg,
            (None, None) => 0,
        };
        let slot = self.enter(now, &message, leg);
        self.cache(slot, message.clone());
        let waiting = progress.as_ref().map(|progress| progress.waiting);
        if let Some(progress) = progress {
            let entry = &mut self.slab[slot];
            entry.attempts = progress.attempts;
            if !progress.steps.is_empty() || !progress.parts.is_empty() {
                entry.side = Some(Box::new(Side { steps: progress.steps, parts: progress.parts }));
            }
        }
        if let Some(handed) = handed.filter(|handed| handed.attempt > self.slab[slot].attempts) {
            let entry = &mut self.slab[slot];
            entry.attempts = handed.attempt;
            entry.state = State::Submitted;
            let peer = entry.peer;
            let kind = StepKind::Submitted { peer, attempt: handed.attempt };
            entry.side().steps.push(Step { at: handed.at, kind });
            self.step(now, slot, StepKind::Recovered);
            self.in_doubt(now, slot, out);
        } else {
            match waiting {
                None => match (&message.routed.verdict, message.scheduled) {
                    (Verdict::Hold(until), _) => self.hold(slot, now.moment_of(*until)),
                    (_, Some(scheduled)) if scheduled > now.wall => {
                        self.defer(slot, now.moment_of(scheduled));
                    }
                    _ => self.arrive(now, slot, &message, out),
                },
                Some(Waiting::Queued) => self.arrive(now, slot, &message, out),
                Some(Waiting::Deferred { until }) => {
                    let steps = self.slab[slot].side.as_ref().map_or(&[][..], |side| &side.steps);
                    let last = steps.iter().rev().find(|step| step.kind != StepKind::Replaced);
                    let scheduled = message.scheduled.is_some_and(|at| at > now.wall);
                    let is = |kind: fn(&StepKind) -> bool| last.is_some_and(|step| kind(&step.kind));
                    let awaits_alert = is(|kind| matches!(kind, StepKind::AwaitingAlert { .. }));
                    let others_first = is(|kind| matches!(kind, StepKind::OthersFirst { .. }));
                    if awaits_alert && !scheduled {
                        self.index_alert(slot, &message);
                    }
                    if self.slab[slot].attempts > 0 && !scheduled && !others_first {
                        self.park(slot);
                    }
                    self.defer(slot, now.moment_of(until));
                }
                Some(Waiting::Held { until }) => self.hold(slot, now.moment_of(until)),
                Some(Waiting::Uncertain { since }) => {
                    let settings = &self.peer_of(slot).settings;
                    let (group, limit) = (settings.group, settings.uncertain_limit);
                    let id = message.id;
                    let entry = &mut self.slab[slot];
                    entry.state = State::Uncertain;
                    entry.due = now.moment_of(since + limit);
                    self.park(slot);
                    self.doubtful.insert(id);
                    self.peer_of(slot).uncertain += 1;
                    if let Some(key) = self.doubt_key(group, slot) {
                        self.in_doubt.entry(key).or_default().push(id);
                    }
                }
                Some(Waiting::Receipt { peer, since }) => {
                    self.peer_mut(peer);
                    let settings = &self.peers[peer.0 as usize].settings;
                    let (group, limit) = (settings.group, settings.receipt_limit);
                    let entry = &mut self.slab[slot];
                    entry.peer = peer;
                    entry.state = State::Receipt;
                    entry.due = now.moment_of(since + limit);
                    self.peers[peer.0 as usize].awaiting += 1;
                    self.index_parts(slot, group);
                }
            }
        }
        self.recover_sender(now, slot, &message);
        // No link is up yet: everything waits.
        if self.may_evict(slot) {
            self.evict_one(slot);
        }
    }

    /// Takes what was found written down beside messages, before them; each kind by growing number.
    pub fn recover_remembered(&mut self, now: Now, found: Remembered) {
        match found {
            Remembered::Group(peer, group) => self.recover_group(peer, group),
            Remembered::Key(record) => self.keys.recover(record, now, self.settings.key_retention),
            Remembered::Stopped(consent) => {
                self.consents.set(consent, true);
            }
            Remembered::Order(order) => {
                self.orders.put(order.clone());
                self.begin_order(now, &order);
            }
            Remembered::Balance(name, balance) => self.money.recover_balance(name, balance),
            Remembered::Operation(record) => self.money.recover_operation(&record),
            Remembered::Settled(upto) => self.money.recover_settled(upto),
            Remembered::Settlement(settlement) => self.money.recover_settlement(settlement),
            Remembered::Pool(record) => self.pools.recover(record),
            Remembered::PoolGone(id, rows) => self.pools.recover_gone(id, rows),
            Remembered::Number(id, number, row) => self.pools.recover_number(now, id, number, row),
            Remembered::Journal(part) => self.pools.recover_journal(now, part),
            Remembered::Parked(record) => {
                let group = self.peer_mut(record.peer).settings.group;
                let key = self.receipts.key(group, &record.receipt.id);
                let parked = Parked {
                    peer: record.peer,
                    group,
                    receipt: record.receipt,
                    at: record.at,
                    until: now.moment_of(record.at + self.settings.receipt_parking),
                    written: true,
                    reply: None,
                };
                self.parking.put(record.number, key, parked);
                self.watch_parking(now);
            }
        }
    }

    /// Ends recovery: ids and rows go on after those on disk, and the rows of hand-overs that have been dealt with go.
    pub fn recovered(&mut self, next_id: MessageId, next_handed_seq: u64, rows: &[u64], out: &mut Output) {
        self.recovering = false;
        self.pools.recovered();
        let (ids, slab) = (&self.ids, &self.slab);
        self.pools.find_orphans(|id| ids.get(slab, id).is_some());
        self.next_id = next_id.max(MessageId::FIRST);
        self.handed_seq = next_handed_seq.max(1);
        out.batch.handed_done.extend_from_slice(rows);
    }
}
