//! Which peers are accounts, and where the messages of others go by default.

use crate::config::Config;
use model::{Directory, PeerId};
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
    pub(crate) fn of(config: &Config, names: &Directory) -> Self {
        let peers = config.peers.iter().map(|peer| (peer.links.peer, &peer.keys.default_account));
        let gateways =
            config.gateways.iter().map(|gateway| (gateway.links.peer(), &gateway.keys.default_account));
        let networks =
            config.networks.iter().map(|network| (network.links.peer, &network.keys.default_account));
        let plugin_peers =
            config.plugin_peers.iter().map(|peer| (peer.link.peer, &peer.keys.default_account));
        let defaults = peers.chain(gateways).chain(plugin_peers).chain(networks);
        let defaults =
            defaults.filter_map(|(peer, account)| Some((peer, names.id(account.as_deref()?)?))).collect();
        let shell = config.shell.as_ref().map(|shell| shell.options.peer);
        let accounts = config.accounts.iter().map(|account| account.links.peer).chain(shell).collect();
        Self { defaults, accounts, shell }
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
