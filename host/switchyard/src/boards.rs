//! What plugins may know of peers and number pools: published every second, and before a plugin is activated, so that its
//! policy is held against what there is now.

use crate::core_loop::CoreHandle;
use arc_swap::ArcSwap;
use hooks::{Board, PeerState, PoolBoard, PoolState};
use model::Directory;
use std::sync::Arc;

/// The boards, and where their states come from.
pub(crate) struct Boards {
    pub(crate) core: CoreHandle,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) peers: Arc<Board>,
    pub(crate) pools: Arc<PoolBoard>,
}

impl Boards {
    /// Replaces all states; nothing while the core is gone.
    pub(crate) fn publish(&self) {
        let Some((peers, pools)) = self.core.look(|engine, _| (engine.peers(), engine.pool_counts())) else {
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
