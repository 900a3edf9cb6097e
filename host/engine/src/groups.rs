//! Peer groups: what is found by group moves along when a peer changes its group.

use crate::engine::Engine;
use crate::slab::{Slot, State};
use crate::{Output, PeerSettings};
use model::{MessageId, Now, PeerId};

impl Engine {
    /// Takes the settings of a peer. If they put it into another group, its messages that wait for a DLR, its uncertain
    /// messages and its parked DLRs are indexed under the new group, and parked DLRs are matched once more.
    pub(crate) fn configure_peer(&mut self, now: Now, settings: PeerSettings, out: &mut Output) {
        let (peer, serial, group) = (settings.peer, settings.serial, settings.group);
        let known = &self.peer_mut(peer).settings;
        let (was_serial, old_group) = (known.serial, known.group);
        self.peer_mut(peer).configure(settings);
        if was_serial != serial {
            self.turns_changed(peer.0, serial);
        }
        if old_group != group {
            self.group_changed(now, peer, (old_group, group), out);
        }
        self.mark(peer.0);
    }

    /// A peer that is not configured keeps the group in which it was last: DLRs for its messages come on the binds of the
    /// others.
    pub(crate) fn recover_group(&mut self, peer: PeerId, group: u32) {
        let known = self.peer_mut(peer);
        if !known.configured {
            known.settings.group = group;
        }
    }

    fn group_changed(&mut self, now: Now, peer: PeerId, (from, to): (u32, u32), out: &mut Output) {
        for slot in self.slots_in(State::Receipt, |owner| owner == peer) {
            for key in self.part_keys(slot, from) {
                self.receipts.remove(key, slot);
            }
            self.index_parts(slot, to);
        }
        for slot in self.slots_in(State::Uncertain, |owner| owner == peer) {
            let id = self.slab[slot].id;
            if let Some(key) = self.doubt_key(from, slot) {
                self.forget_doubt(key, id);
            }
            if let Some(key) = self.doubt_key(to, slot) {
                self.in_doubt.entry(key).or_default().push(id);
            }
        }
        let receipts = &self.receipts;
        self.parking.regroup(peer, to, |id| receipts.key(to, id));
        if self.parking.len() == 0 {
            return;
        }
        let peers = &self.peers;
        let members: Vec<PeerId> =
            peers.iter().filter(|peer| peer.settings.group == to).map(|peer| peer.settings.peer).collect();
        let waiting = self.slots_in(State::Receipt, |owner| members.contains(&owner));
        let waiting: Vec<MessageId> = waiting.into_iter().map(|slot| self.slab[slot].id).collect();
        for id in waiting {
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if self.slab[slot].message.is_some() {
                self.match_parked(now, slot, to, out);
            } else if self.part_keys(slot, to).into_iter().any(|key| self.parking.holds(key)) {
                // A parked DLR may be forgotten only together with what follows from it, which needs the content.
                self.load_if_missing(slot, out);
            }
        }
    }

    /// Messages in a state, of peers that `fits` names, by their place in memory.
    fn slots_in(&self, state: State, fits: impl Fn(PeerId) -> bool) -> Vec<Slot> {
        let slots = 0..Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        slots.filter(|slot| self.slab[*slot].state == state && fits(self.slab[*slot].peer)).collect()
    }
}
