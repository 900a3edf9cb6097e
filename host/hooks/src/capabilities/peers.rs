use super::State;
use crate::bindings::host::switchyard::hooks::peers::{Host, PeerState as WitState};
use crate::reference::ReferenceKind;
use crate::seen::Asked;
use arc_swap::ArcSwap;
use std::collections::HashMap;

/// What plugins may know of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerState {
    /// Links that take messages.
    pub links: u32,
    /// Messages waiting for it.
    pub queued: u64,
}

/// The states of all peers, written by the daemon about once a second and read by plugins.
#[derive(Debug, Default)]
pub struct Board(ArcSwap<HashMap<String, PeerState>>);

impl Board {
    /// Replaces all states.
    pub fn publish(&self, states: HashMap<String, PeerState>) {
        self.0.store(states.into());
    }
}

/// On record: nothing, or 4 links, 8 queued.
fn read(octets: &[u8]) -> Option<PeerState> {
    let (links, queued) = octets.split_first_chunk::<4>()?;
    Some(PeerState { links: u32::from_le_bytes(*links), queued: u64::from_le_bytes(queued.try_into().ok()?) })
}

impl State {
    pub(super) fn peer_state(&mut self, peer: &str) -> Option<PeerState> {
        self.refer(ReferenceKind::Peer, peer);
        if let Some(then) = self.seen.recall(Asked::Peer, &[peer.as_bytes()]) {
            return read(&then);
        }
        let state = self.powers.board.0.load().get(peer).copied();
        let mut octets = Vec::new();
        if let Some(state) = state {
            octets.extend_from_slice(&state.links.to_le_bytes());
            octets.extend_from_slice(&state.queued.to_le_bytes());
        }
        self.seen.note(Asked::Peer, &[peer.as_bytes()], &octets);
        state
    }
}

impl Host for State {
    fn state(&mut self, peer: String) -> Option<WitState> {
        self.peer_state(&peer).map(|state| WitState { links: state.links, queued: state.queued })
    }
}
