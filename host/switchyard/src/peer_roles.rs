//! Which peers are accounts, and where the messages of others go by default.

use model::PeerId;
use std::collections::{HashMap, HashSet};

/// The roles of peers: accounts, and default accounts of other peers.
#[derive(Debug, Default)]
pub(crate) struct PeerRoles {
    /// Peer → its default account.
    pub(crate) defaults: HashMap<PeerId, PeerId>,
    /// Peers whose messages are priced. MO messages are not.
    accounts: HashSet<PeerId>,
    /// The local socket's peer. Its users are accounts that pay, and subscribers as well.
    shell: Option<PeerId>,
}

impl PeerRoles {
    /// The roles: the default accounts of peers, the accounts, and the local socket's peer, which is an account too.
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

    /// Whether a peer only submits; messages from any other peer come from subscribers.
    pub(crate) fn is_submit_only(&self, peer: PeerId) -> bool {
        self.is_account(peer) && self.shell != Some(peer)
    }
}
