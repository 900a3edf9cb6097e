use super::State;
use crate::bindings::switchyard::hooks::peers::{Host, PeerState as WitState};
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

impl Host for State {
    fn state(&mut self, peer: String) -> Option<WitState> {
        let states = self.board.0.load();
        states.get(&peer).map(|state| WitState { links: state.links, queued: state.queued })
    }
}
