//! Publishes the state of peers and number pools to plugins, every second and before each activation, so that a new
//! policy is validated against the current state.

use crate::core_handle::CoreHandle;
use arc_swap::ArcSwap;
use hooks::{PeerSnapshots, PeerState, PoolSnapshots, PoolState};
use model::Directory;
use std::sync::Arc;

/// Publishes the snapshots.
pub(crate) struct PeerSnapshotPublisher {
    pub(crate) core: CoreHandle,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) peers: Arc<PeerSnapshots>,
    pub(crate) pools: Arc<PoolSnapshots>,
}

impl PeerSnapshotPublisher {
    /// Replaces all snapshots; does nothing if the core has ended.
    pub(crate) fn publish(&self) {
        let Some((peers, pools)) = self.core.query(|engine, _| (engine.peers(), engine.pool_counts())) else {
            return;
        };
        let names = self.directory.load();
        let states = peers.into_iter().map(|peer| {
            let links = u32::try_from(peer.links.len()).unwrap_or(u32::MAX);
            (names.name(peer.peer).to_string(), PeerState { links, queued: peer.queued })
        });
        self.peers.publish(states.collect());
        let pools = pools.into_iter().map(|(name, ready, counts)| {
            let state = PoolState {
                ready: ready as u64,
                busy: (counts.busy_up + counts.busy_down) as u64,
                down: (counts.idle_down + counts.busy_down) as u64,
                total: counts.total() as u64,
            };
            (name.to_string(), state)
        });
        self.pools.publish(pools.collect());
    }
}
