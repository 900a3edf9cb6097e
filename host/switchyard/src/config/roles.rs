//! The roles of the configured peers.

use super::Config;
use super::partitions::PartitionAccountKind;
use crate::peer_roles::PeerRoles;
use model::Directory;

impl Config {
    /// The roles of its peers.
    pub(crate) fn peer_roles(&self, names: &Directory) -> PeerRoles {
        let peers = self.peers.iter().map(|peer| (peer.links.peer, &peer.keys.default_account));
        let gateways =
            self.gateways.iter().map(|gateway| (gateway.links.peer(), &gateway.keys.default_account));
        let networks =
            self.networks.iter().map(|network| (network.links.peer, &network.keys.default_account));
        let plugin_peers = self.plugin_peers.iter().map(|peer| (peer.link.peer, &peer.keys.default_account));
        let defaults = peers.chain(gateways).chain(plugin_peers).chain(networks);
        let defaults =
            defaults.filter_map(|(peer, account)| Some((peer, names.id(account.as_deref()?)?))).collect();
        let shell = self.shell.as_ref().map(|shell| shell.options.peer);
        let accounts = self.accounts.iter().map(|account| account.links.peer);
        let of_partitions =
            self.partition_accounts.iter().filter(|account| account.kind != PartitionAccountKind::Account);
        let accounts = accounts.chain(of_partitions.map(|account| account.links.account));
        PeerRoles::new(defaults, accounts, shell)
    }
}
