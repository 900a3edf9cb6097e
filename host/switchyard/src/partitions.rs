//! The partitions of the cluster, as seen by the leader of one of them.

use crate::config::OtherPartitions;
use arc_swap::ArcSwap;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use cluster::{Cluster, Exchange};
use ports::{LoginInterface, PassOn, PassedApi, PassedConnection, Passing, Socket};
use replication::LeaderClient;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Map of the logins, accounts, pools and callbacks of other partitions, and of those partitions' leaders.
#[derive(Debug)]
pub(crate) struct PartitionMap {
    cluster: Arc<Cluster>,
    client: Arc<LeaderClient>,
    elsewhere: ArcSwap<OtherPartitions>,
}

impl PartitionMap {
    pub(crate) fn new(cluster: Arc<Cluster>, client: LeaderClient, elsewhere: &OtherPartitions) -> Arc<Self> {
        let elsewhere = ArcSwap::from_pointee(elsewhere.clone());
        Arc::new(Self { cluster, client: Arc::new(client), elsewhere })
    }

    /// Replaces the logins, accounts, pools and callbacks of other partitions.
    pub(crate) fn set(&self, elsewhere: &OtherPartitions) {
        if **self.elsewhere.load() != *elsewhere {
            self.elsewhere.store(Arc::new(elsewhere.clone()));
        }
    }
}

fn exchange_of(cluster: &Cluster, partition: u8) -> io::Result<Exchange> {
    let leader = cluster.leader_of(partition).and_then(|leader| leader.exchange);
    leader.ok_or_else(|| io::Error::other("no node leads the partition at the moment"))
}

impl PassOn for PartitionMap {
    fn partition(&self) -> u8 {
        self.cluster.partition()
    }

    fn other_partitions(&self) -> Vec<u8> {
        let elsewhere = self.elsewhere.load();
        let with_nodes = self.cluster.known_partitions();
        let all: BTreeSet<u8> = with_nodes.into_iter().chain(elsewhere.names.values().copied()).collect();
        all.into_iter().filter(|partition| *partition != self.cluster.partition()).collect()
    }

    fn elsewhere(&self, interface: LoginInterface, name: &[u8]) -> Option<u8> {
        let elsewhere = self.elsewhere.load();
        match interface {
            LoginInterface::Smpp => elsewhere.system_ids.get(name).copied(),
            LoginInterface::Business => elsewhere.names.get(std::str::from_utf8(name).ok()?).copied(),
            LoginInterface::Cmpp => elsewhere.cmpp.get(name).copied(),
            LoginInterface::Smgp => elsewhere.smgp.get(name).copied(),
            LoginInterface::Sgip => elsewhere.sgip.get(name).copied(),
            LoginInterface::Redis => elsewhere.redis.get(name).copied(),
            LoginInterface::Admin => None,
        }
    }

    fn pool_elsewhere(&self, pool: &str) -> Option<u8> {
        self.elsewhere.load().pools.get(pool).copied()
    }

    fn callbacks_elsewhere(&self, peer: &str) -> Option<u8> {
        self.elsewhere.load().callbacks.get(peer).copied()
    }

    fn leader(&self, partition: u8) -> Option<String> {
        let leader = self.cluster.leader_of(partition)?;
        Some(format!("{} ({})", leader.node, leader.address))
    }

    fn connect(&self, partition: u8, connection: PassedConnection) -> Passing<Socket> {
        let (cluster, client) = (self.cluster.clone(), self.client.clone());
        Box::pin(async move { client.connect(&exchange_of(&cluster, partition)?, &connection).await })
    }

    fn request(
        &self,
        partition: u8,
        api: PassedApi,
        remote: SocketAddr,
        request: Request<Bytes>,
    ) -> Passing<Response<Body>> {
        let (cluster, client) = (self.cluster.clone(), self.client.clone());
        Box::pin(
            async move { client.request(&exchange_of(&cluster, partition)?, api, remote, request).await },
        )
    }
}
