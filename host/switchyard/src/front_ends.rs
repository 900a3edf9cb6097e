//! The front ends of the daemon.

use crate::pools::PoolService;
use business::Business;
use gsm::GsmNetwork;
use links::{Links, ShutdownLeftover};
use plugin_peers::PluginPeers;
use shell::ShellServer;
use std::sync::Arc;
use std::time::Duration;

/// The core networks.
pub(crate) struct CoreNetworks {
    /// Those with links to this partition.
    pub(crate) here: Vec<Arc<GsmNetwork>>,
    /// Those whose home is another partition and whose subscribers can be looked up here. They are not connected.
    pub(crate) elsewhere: Vec<Arc<GsmNetwork>>,
}

impl CoreNetworks {
    /// All whose subscribers can be looked up.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<GsmNetwork>> {
        self.here.iter().chain(&self.elsewhere)
    }
}

/// Front ends: everything that connects peers, accounts and clients to the engine.
pub(crate) struct FrontEnds {
    pub(crate) links: Arc<Links>,
    pub(crate) business: Arc<Business>,
    pub(crate) plugin_peers: Arc<PluginPeers>,
    pub(crate) networks: CoreNetworks,
    pub(crate) pools: Arc<PoolService>,
    /// The listener for Redis clients; `None` if it is not configured.
    pub(crate) redis: Option<Arc<::pools::RedisServer>>,
    /// The local socket; `None` if it is not configured.
    pub(crate) shell: Option<Arc<ShellServer>>,
}

impl FrontEnds {
    /// Closes all front ends; requests in progress get `within` to finish. Returns the unfinished work of the links
    /// after that.
    pub(crate) async fn shutdown(&self, within: Duration) -> ShutdownLeftover {
        let networks = async {
            for network in &self.networks.here {
                network.shutdown(within).await;
            }
        };
        let shell = async {
            if let Some(shell) = &self.shell {
                shell.shutdown(within).await;
            }
        };
        let redis = async {
            if let Some(redis) = &self.redis {
                redis.shutdown(within).await;
            }
        };
        let (leftover, (), (), (), (), ()) = tokio::join!(
            self.links.shutdown(within),
            self.business.shutdown(within),
            self.plugin_peers.shutdown(within),
            networks,
            shell,
            redis
        );
        self.pools.engine_client.close();
        leftover
    }
}
