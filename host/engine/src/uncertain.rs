//! Uncertain messages: sent to a peer and never answered.

use crate::engine::Engine;
use crate::slab::{Slot, State, flag};
use crate::{EngineCommand, Output, UncertainPolicy};
use model::{DlrState, FinalState, MessageId, Now, ObservationKind, PeerMessageId, StepKind};
use std::time::Duration;

impl Engine {
    /// Marks a message as uncertain and applies the peer's policy.
    pub(crate) fn mark_uncertain(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.totals.uncertain += 1;
        let entry = &self.slab[slot];
        let settings = &self.peers[entry.peer.0 as usize].settings;
        // Another partition recognises repetitions, and must get outcomes and DLRs in order.
        let at_once = settings.remote || settings.partition_account;
        let remedy = settings.uncertainty;
        if remedy == UncertainPolicy::SendAgain || entry.has(flag::OWN_DLR) {
            self.totals.sent_again += 1;
            self.add_step(now, slot, StepKind::SentAgain);
            let previous_leader_sends = self.settings.previous_leader_sends;
            if self.recovering && !previous_leader_sends.is_zero() {
                self.hold_lock_for_retry(slot);
                self.wait_until(now, slot, now.mono + previous_leader_sends, out);
            } else if self.slab[slot].attempts > 1 && !self.recovering && !at_once {
                // Otherwise a peer that never answers would get the message as fast as its timer runs. During
                // recovery the daemon ended, not the peer.
                self.try_later(now, slot, 0, false, out);
            } else {
                self.put_back(now, slot, out);
            }
            return;
        }
        self.await_settlement(now, slot, out);
        self.report_uncertain(now, slot, out);
        if remedy == UncertainPolicy::Query {
            self.query_peer(now, slot, out);
        }
    }

    /// Lets an uncertain message wait for a late answer, a DLR or an admin.
    pub(crate) fn await_settlement(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let settings = &self.peers[self.slab[slot].peer.0 as usize].settings;
        let (limit, group) = (settings.uncertain_limit, settings.group);
        let entry = &mut self.slab[slot];
        entry.state = State::Uncertain;
        entry.due = now.mono + limit;
        let id = entry.id;
        self.hold_lock_for_retry(slot);
        self.uncertain_ids.insert(id);
        self.peer_of(slot).uncertain += 1;
        if let Some(key) = self.uncertain_key(group, slot) {
            self.uncertain_by_pair.entry(key).or_default().push(id);
        }
        self.write_progress(now, slot, out);
    }

    /// Makes an uncertain message whose peer ids are known wait for its DLRs like an answered message; the limit of
    /// uncertain messages still applies.
    pub(crate) fn await_dlr_by_known_ids(
        &mut self,
        now: Now,
        slot: Slot,
        known: Vec<PeerMessageId>,
        out: &mut Output,
    ) {
        let expects = self.peer_of(slot).settings.sends_dlrs && self.slab[slot].dlr_request().any();
        if self.slab[slot].state != State::Uncertain || known.is_empty() || !expects {
            return;
        }
        self.leave_uncertain(slot);
        self.release_subscriber_lock(slot);
        self.store_segments(slot, known);
        let peer = self.slab[slot].peer.0 as usize;
        let settings = &self.peers[peer].settings;
        let (group, limit) = (settings.group, settings.uncertain_limit);
        let entry = &mut self.slab[slot];
        entry.state = State::AwaitingDlr;
        entry.due = now.mono + limit;
        self.peers[peer].awaiting += 1;
        self.index_segments(slot, group);
        self.write_progress(now, slot, out);
        self.receipt_expected(now, slot, out);
        self.match_orphan_dlrs(now, slot, group, out);
    }

    /// The key that matches an uncertain message with a DLR by its addresses.
    pub(crate) fn uncertain_key(&self, group: u32, slot: Slot) -> Option<u64> {
        let message = self.slab[slot].message.as_ref()?;
        let (source, destination) = message.addresses_on(self.slab[slot].leg);
        Some(self.pairs.key(model::PeerId(group), &source.value, &destination.value))
    }

    /// Ends the uncertainty of a message; the caller sets its state.
    pub(crate) fn leave_uncertain(&mut self, slot: Slot) {
        let group = self.peer_of(slot).settings.group;
        self.peer_of(slot).uncertain -= 1;
        let id = self.slab[slot].id;
        self.uncertain_ids.remove(&id);
        if let Some(key) = self.uncertain_key(group, slot) {
            self.forget_uncertain(key, id);
        }
    }

    pub(crate) fn forget_uncertain(&mut self, key: u64, id: MessageId) {
        if let Some(ids) = self.uncertain_by_pair.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.uncertain_by_pair.remove(&key);
            }
        }
    }

    /// Queries the peer, if its message id is known and a link is up.
    fn query_peer(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let entry = &self.slab[slot];
        let Some(message) = entry.message.clone() else { return };
        let Some(peer_id) = entry
            .history
            .as_ref()
            .and_then(|history| history.segments.last())
            .map(|segment| segment.id.clone())
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
            out.commands.push(EngineCommand::QueryPeer {
                link,
                id: entry.id,
                peer_id,
                message,
                leg: entry.leg,
            });
            self.slab[slot].set(flag::QUERIED, true);
            self.add_step(now, slot, StepKind::StatusQueried);
        }
    }

    /// The wait of an uncertain message, or for a DLR, has expired.
    pub(crate) fn dlr_wait_expired(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let remedy = self.peer_of(slot).settings.uncertainty;
        if remedy == UncertainPolicy::Query && !self.slab[slot].has(flag::QUERIED) {
            if self.slab[slot].message.is_none() {
                self.load_if_missing(slot, out);
            } else {
                self.query_peer(now, slot, out);
            }
            if self.slab[slot].has(flag::QUERIED) || self.slab[slot].message.is_none() {
                self.slab[slot].due = now.mono + Duration::from_secs(60);
                return;
            }
        }
        let accepted = self.slab[slot].history.as_ref().is_some_and(|history| {
            history.segments.iter().any(|segment| segment.state == Some(DlrState::Accepted))
        });
        let end = if accepted { FinalState::Relayed } else { FinalState::Unknown };
        if self.slab[slot].state == State::AwaitingDlr && !accepted {
            self.observe(now, slot, ObservationKind::Failed { after: None }, out);
        }
        self.end(now, slot, end, None, out);
    }
}
