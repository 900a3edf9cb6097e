use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::peers::{Host, PeerState as WitState};
use crate::host_call_log::HostCallKind;
use api::PolicyReferenceKind;
use arc_swap::ArcSwap;
use std::collections::HashMap;

/// The state of a peer, as plugins see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerState {
    /// Links that accept messages.
    pub links: u32,
    /// Messages in the peer's queue.
    pub queued: u64,
}

/// Snapshots of all peers. The daemon publishes them about once a second; plugins read them.
#[derive(Debug, Default)]
pub struct PeerSnapshots(ArcSwap<HashMap<String, PeerState>>);

impl PeerSnapshots {
    /// Replaces all states.
    pub fn publish(&self, states: HashMap<String, PeerState>) {
        self.0.store(states.into());
    }
}

impl PeerState {
    /// Encoding in the record: empty, or links (4 octets) and queued messages (8).
    pub(crate) fn read(octets: &[u8]) -> Option<Self> {
        let (links, queued) = octets.split_first_chunk::<4>()?;
        Some(Self { links: u32::from_le_bytes(*links), queued: u64::from_le_bytes(queued.try_into().ok()?) })
    }
}

impl InstanceState {
    pub(super) fn peer_state(&mut self, peer: &str) -> Option<PeerState> {
        self.add_reference(PolicyReferenceKind::Peer, peer);
        if !self.context.may_use_peer(peer) {
            return None;
        }
        if let Some(recorded) = self.call_log.recall(HostCallKind::Peer, &[peer.as_bytes()]) {
            return PeerState::read(&recorded);
        }
        let state = self.services.peer_snapshots.0.load().get(peer).copied();
        let mut octets = Vec::new();
        if let Some(state) = state {
            octets.extend_from_slice(&state.links.to_le_bytes());
            octets.extend_from_slice(&state.queued.to_le_bytes());
        }
        self.call_log.append(HostCallKind::Peer, &[peer.as_bytes()], &octets);
        state
    }
}

impl Host for InstanceState {
    fn state(&mut self, peer: String) -> Option<WitState> {
        self.count_call(HostInterface::Peers);
        self.peer_state(&peer).map(|state| WitState { links: state.links, queued: state.queued })
    }
}
