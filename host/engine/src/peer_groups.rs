//! Peer groups: indexes by group follow a peer that changes its group.

use crate::engine::Engine;
use crate::slab::{Slot, State};
use crate::{Output, PeerSettings};
use model::{MessageId, Now, PeerId};

impl Engine {
    /// Applies the settings of a peer. If its group changes, its messages that wait for a DLR, its uncertain messages
    /// and its orphan DLRs are indexed under the new group, and orphan DLRs are matched again.
    pub(crate) fn configure_peer(&mut self, now: Now, settings: PeerSettings, out: &mut Output) {
        let (peer, serial, group) = (settings.peer, settings.serial, settings.group);
        let known = &self.peer_mut(peer).settings;
        let (was_serial, old_group) = (known.serial, known.group);
        let send = self.pace_limits.resolve(now, &settings.send_pace.buckets, &settings.send_pace.windows);
        let submit =
            self.pace_limits.resolve(now, &settings.submit_pace.buckets, &settings.submit_pace.windows);
        let known = self.peer_mut(peer);
        let before = (
            std::mem::replace(&mut known.send_limits, send.clone()),
            std::mem::replace(&mut known.submit_limits, submit.clone()),
        );
        known.configure(settings);
        if before != (send, submit) {
            self.pace_limits.check_again(before.0.into_iter().chain(before.1));
        }
        if was_serial != serial {
            self.serial_changed(peer.0, serial);
        }
        if old_group != group {
            self.group_changed(now, peer, (old_group, group), out);
        }
        self.mark_dirty(peer.0);
    }

    /// Sets the last group of a peer that is not configured: DLRs for its messages may come on binds of the group's other
    /// peers.
    pub(crate) fn recover_group(&mut self, peer: PeerId, group: u32) {
        let known = self.peer_mut(peer);
        if !known.configured {
            known.settings.group = group;
        }
    }

    fn group_changed(&mut self, now: Now, peer: PeerId, (from, to): (u32, u32), out: &mut Output) {
        for slot in self.slots_in(State::AwaitingDlr, |owner| owner == peer) {
            for key in self.segment_keys(slot, from) {
                self.dlr_index.remove(key, slot);
            }
            self.index_segments(slot, to);
        }
        for slot in self.slots_in(State::Uncertain, |owner| owner == peer) {
            let id = self.slab[slot].id;
            if let Some(key) = self.uncertain_key(from, slot) {
                self.forget_uncertain(key, id);
            }
            if let Some(key) = self.uncertain_key(to, slot) {
                self.uncertain_by_pair.entry(key).or_default().push(id);
            }
        }
        self.receipts.regroup(peer, to);
        let dlr_index = &self.dlr_index;
        self.orphan_dlrs.regroup(peer, to, |id| dlr_index.key(to, id));
        if self.orphan_dlrs.len() == 0 {
            return;
        }
        let peers = &self.peers;
        let members: Vec<PeerId> =
            peers.iter().filter(|peer| peer.settings.group == to).map(|peer| peer.settings.peer).collect();
        let waiting = self.slots_in(State::AwaitingDlr, |owner| members.contains(&owner));
        let waiting: Vec<MessageId> = waiting.into_iter().map(|slot| self.slab[slot].id).collect();
        for id in waiting {
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if self.slab[slot].message.is_some() {
                self.match_orphan_dlrs(now, slot, to, out);
            } else if self.segment_keys(slot, to).into_iter().any(|key| self.orphan_dlrs.holds(key)) {
                // An orphan DLR may be removed only together with its consequences, which need the content.
                self.load_if_missing(slot, out);
            }
        }
    }

    /// The slots of messages in a state, of peers that `fits` accepts.
    fn slots_in(&self, state: State, fits: impl Fn(PeerId) -> bool) -> Vec<Slot> {
        let slots = 0..Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        slots.filter(|slot| self.slab[*slot].state == state && fits(self.slab[*slot].peer)).collect()
    }
}
