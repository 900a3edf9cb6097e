//! Two nodes, three members of etcd, an ESME and a peer.

use anyhow::{Context, Result};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, until};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::sync::Arc;
use testkit::etcd::EtcdServers;

/// A peer whose lost answers become second attempts, so that no message waits for a DLR.
pub(crate) const PEER_KEYS: &str = "dlrs = false\nuncertain = \"send-again\"";

pub(crate) struct ClusterFixture {
    pub(crate) base: Fixture,
    pub(crate) servers: EtcdServers,
    pub(crate) sink: Sink,
    pub(crate) tally: Arc<Tally>,
    /// Both nodes have the same address for ESMEs: on one machine, the leader's listener replaces the virtual address
    /// of two machines.
    smpp: u16,
}

impl ClusterFixture {
    pub(crate) fn new() -> Result<Self> {
        Self::with_sink(SinkOptions::default())
    }

    /// With a peer that behaves like this.
    pub(crate) fn with_sink(options: SinkOptions) -> Result<Self> {
        let base = Fixture::new()?;
        let servers = EtcdServers::start(&base.folder().join("etcd"), 3, None)?;
        let tally = Arc::new(Tally::new(2_000_000));
        let sink = Sink::start(options, &tally)?;
        Ok(Self { base, servers, sink, tally, smpp: free_port()? })
    }

    pub(crate) fn node(&self, name: &str, keys: &str) -> Result<TestDaemonConfig> {
        let mut config = self.node_without_router(name, keys)?;
        config.native("upstream");
        Ok(config)
    }

    pub(crate) fn node_without_router(&self, name: &str, keys: &str) -> Result<TestDaemonConfig> {
        self.node_in(name, name, keys)
    }

    /// A node without a router, with its files in this folder.
    pub(crate) fn node_in(&self, folder: &str, name: &str, keys: &str) -> Result<TestDaemonConfig> {
        let folder = self.base.folder().join(folder);
        let mut config = TestDaemonConfig::new(self.base.binary(), &folder)?;
        config.ports(self.smpp, free_port()?).archive("none");
        config.account("acme", "window = 1000");
        config.peer("upstream", self.sink.address(), &format!("links = 2\nwindow = 500\n{PEER_KEYS}"));
        config.cluster(name, &self.servers, keys);
        Ok(config)
    }

    /// A node of a partition, with listeners of its own. The accounts `zenith` and `shop` are in partition 1, `acme` is in partition 0.
    pub(crate) fn partition_node(&self, name: &str, partition: u8) -> Result<TestDaemonConfig> {
        self.partition_node_with(name, partition, &[], PEER_KEYS)
    }

    /// The same, with more sections of its own, and these keys of the peer.
    pub(crate) fn partition_node_with(
        &self,
        name: &str,
        partition: u8,
        own: &[&str],
        peer: &str,
    ) -> Result<TestDaemonConfig> {
        let folder = self.base.folder().join(format!("{name}-{partition}"));
        let mut config = TestDaemonConfig::new(self.base.binary(), &folder)?;
        config.archive("none").account("acme", "window = 1000");
        config.account("zenith", "partition = 1\nwindow = 1000");
        config.business_account("shop", "partition = 1", "");
        config.peer("upstream", self.sink.address(), &format!("links = 1\nwindow = 500\n{peer}"));
        let own = [&["listener", "business"], own].concat();
        let keys = format!("partition = {partition}\nown-sections = {own:?}");
        config.cluster(name, &self.servers, &keys).native("upstream");
        Ok(config)
    }

    /// Traffic to the address of the leader.
    pub(crate) fn source(&self) -> Result<Source> {
        self.source_at(([127, 0, 0, 1], self.smpp).into())
    }

    pub(crate) fn source_at(&self, address: SocketAddr) -> Result<Source> {
        let mut options = SourceOptions::new(address, "acme", PASSWORD);
        (options.reconnect, options.rate) = (true, Some(300.0));
        Source::start(&options, &self.tally)
    }

    pub(crate) fn wait_for_traffic(&self) -> Result<()> {
        let before = self.tally.accepted_count();
        until("traffic", || Ok(self.tally.accepted_count() > before + 300))
    }
}

/// The queue of a peer.
pub(crate) fn queue(node: &TestDaemon, peer: &str) -> Result<Value> {
    let queues = node.get("/v1/queues")?;
    let found = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == peer);
    found.cloned().with_context(|| format!("{peer} is not in {queues}"))
}

/// Waits for the end of a process.
pub(crate) fn ended(mut node: TestDaemon) -> Result<(ExitStatus, TestDaemonConfig)> {
    node.wait_for_end();
    let mut status = None;
    until("the end of the process", || {
        status = node.ended()?;
        Ok(status.is_some())
    })?;
    Ok((status.context("no status")?, node.config().clone()))
}
