//! The roles of peers: accounts, and the default accounts of other peers.

use model::PeerId;
use std::collections::{HashMap, HashSet};

/// The roles of peers: accounts, and the default accounts of other peers.
#[derive(Debug, Default)]
pub(crate) struct PeerRoles {
    /// Peer → its default account.
    pub(crate) defaults: HashMap<PeerId, PeerId>,
    /// Peers whose messages are priced. MO messages are not.
    accounts: HashSet<PeerId>,
    /// The local socket's peer. Its users are both accounts, which pay, and subscribers.
    shell: Option<PeerId>,
}

impl PeerRoles {
    /// Creates the roles. The local socket's peer is an account, too.
    pub(crate) fn new(
        defaults: HashMap<PeerId, PeerId>,
        accounts: impl Iterator<Item = PeerId>,
        shell: Option<PeerId>,
    ) -> Self {
        Self { defaults, accounts: accounts.chain(shell).collect(), shell }
    }

    /// Whether a peer is an account or the local socket: its messages are priced.
    pub(crate) fn is_account(&self, peer: PeerId) -> bool {
        self.accounts.contains(&peer)
    }

    /// Whether a peer only submits; messages of any other peer come from subscribers.
    pub(crate) fn is_submit_only(&self, peer: PeerId) -> bool {
        self.is_account(peer) && self.shell != Some(peer)
    }
}
