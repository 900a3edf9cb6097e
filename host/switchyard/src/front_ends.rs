//! The front ends of the daemon.

use crate::pools::PoolService;
use business::Business;
use gsm::GsmNetwork;
use links::{Links, ShutdownLeftover};
use plugin_peers::PluginPeers;
use shell::ShellServer;
use std::sync::Arc;
use std::time::Duration;

/// Front ends: everything that connects peers, accounts and clients to the engine.
pub(crate) struct FrontEnds {
    pub(crate) links: Arc<Links>,
    pub(crate) business: Arc<Business>,
    pub(crate) plugin_peers: Arc<PluginPeers>,
    pub(crate) networks: Vec<Arc<GsmNetwork>>,
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
            for network in &self.networks {
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
