//! The leader of a partition: heartbeats, publishing of the shared state, the cluster API.

use crate::critical_thread;
use crate::shared_state::value_name;
use admin::metrics::{self, MetricsPage};
use admin::{Problem, ProblemKind, SharedStateOwner};
use anyhow::{Context as _, Result};
use api::{ClusterRole, ClusterView};
use capabilities::{RedbKvStore, WriteThrough};
use cluster::{Cluster, SharedContent};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use journal::Seq;
use parking_lot::Mutex;
use replication::{NodeListener, PassedHandlers, Publisher, Replica};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::Notify;

/// Interval at which the leader checks whether a heartbeat is due.
const HEARTBEAT_CHECK: Duration = cluster::HEARTBEAT.checked_div(2).unwrap();
/// Interval at which the leader publishes changes of the shared state that no request waits for, for example the
/// rollback of a faulty plugin.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// A node while it leads.
pub(crate) struct LeadingNode {
    cluster: Arc<Cluster>,
    /// Signals that the lead should be handed over.
    hand_over: Notify,
    publisher: Arc<Publisher>,
    listener: Arc<NodeListener>,
    /// Replica of the state that all partitions share; `None` in partition 0, which owns that state.
    replica_of_all: Option<Arc<Mutex<Replica>>>,
    /// The heartbeat and publishing threads end when these senders are dropped.
    _threads: [Sender<()>; 2],
}

impl LeadingNode {
    /// Begins to lead. `is_founded`: whether etcd already has the shared state of the cluster.
    pub(crate) fn begin(
        cluster: Arc<Cluster>,
        store: &Arc<Store>,
        values: &RedbKvStore,
        (publisher, is_founded): (Publisher, bool),
        listener: Arc<NodeListener>,
        replica_of_all: Option<Arc<Mutex<Replica>>>,
    ) -> Result<Self> {
        cluster.set_role(ClusterRole::Leader);
        let (heartbeats, stopped) = bounded(0);
        let beating = store.clone();
        critical_thread::spawn("heartbeat", move || beat(&beating, &stopped))?;
        if !is_founded {
            publisher.found()?;
        }
        let written = cluster.clone();
        values.write_through(WriteThrough::new(move |rows| write_values(&written, rows)));
        let publisher = Arc::new(publisher);
        let (publishing, stopped) = bounded(0);
        let published = publisher.clone();
        critical_thread::spawn("shared-state", move || publish_regularly(&published, &stopped))?;
        Ok(Self {
            cluster,
            hand_over: Notify::new(),
            publisher,
            listener,
            replica_of_all,
            _threads: [heartbeats, publishing],
        })
    }

    /// Serves snapshots of the tables to joining nodes. They are copied to a folder of the data directory first.
    pub(crate) fn serve_snapshots(&self, store: Arc<Store>, data: PathBuf) {
        let take = move || {
            let folder = tempfile::Builder::new()
                .prefix(crate::manifest::COPY_PREFIX)
                .tempdir_in(&data)
                .with_context(|| format!("creating a folder in {}", data.display()))?;
            let path = folder.path().join("snapshot.redb");
            let rows = store.snapshot()?.copy_to(&path)?;
            tracing::info!(rows, "snapshot taken for a joining node");
            anyhow::Ok((folder, path))
        };
        self.listener.serve_snapshots(Box::new(move || take().map_err(|error| format!("{error:#}"))));
    }

    /// The cluster.
    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Replica of the state that all partitions share; `None` if this node leads partition 0, which owns that state.
    pub(crate) fn replica_of_all(&self) -> Option<&Arc<Mutex<Replica>>> {
        self.replica_of_all.as_ref()
    }

    /// From now on, accepts requests and links that other nodes pass on.
    pub(crate) fn serve_passed(&self, handlers: PassedHandlers) {
        self.listener.serve_passed(handlers);
    }

    /// The node at which the state of all partitions is changed.
    pub(crate) fn shared_state_owner(&self) -> SharedStateOwner {
        if self.replica_of_all.is_none() {
            return SharedStateOwner::ThisNode;
        }
        SharedStateOwner::Leader(self.cluster.leader_of(0).map(|leader| leader.address))
    }

    /// Reports whether the free disk space is below the watermark. If it is, this node refuses submissions, and hands
    /// the lead over if another node has enough space.
    pub(crate) fn report_disk_space(&self, low: bool) {
        self.cluster.set_disk_low(low);
        if low && self.cluster.has_other_with_disk_space() {
            tracing::warn!("handing the lead over: the disk is nearly full, and another node has space");
            self.hand_over.notify_one();
        }
    }

    /// Writes changes of the shared state to the cluster; durable on return.
    pub(crate) fn publish(&self) -> Result<(), Problem> {
        self.publisher.publish().map_err(|error| {
            let what = format!(
                "the change is made on this node, but the cluster does not have it yet: {error}. It is retried every second"
            );
            Problem::new(ProblemKind::Unavailable, what)
        })
    }

    /// The cluster as seen by this node.
    pub(crate) fn view(&self) -> ClusterView {
        self.cluster.status()
    }

    /// Hands the lead over, if another node can take it.
    pub(crate) fn begin_hand_over(&self, by: &str) -> Result<(), Problem> {
        let view = self.view();
        let can_lead =
            |node: &api::ClusterNodeView| node.alive && node.lacks.is_none() && node.name != view.node;
        if !view.nodes.iter().any(can_lead) {
            let what = "no other node is alive and complete, so no node could take over; see GET /v1/cluster";
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        tracing::info!(by, "handing the lead over");
        self.hand_over.notify_one();
        Ok(())
    }

    /// Removes a node that has left the cluster.
    pub(crate) fn remove(&self, name: &str, by: &str) -> Result<(), Problem> {
        let view = self.view();
        let Some(node) = view.nodes.iter().find(|node| node.name == name) else {
            let what = format!("the cluster has no node {name:?}; GET /v1/cluster lists them");
            return Err(Problem::new(ProblemKind::NotFound, what));
        };
        if node.alive {
            let what = format!("{name} is alive: stop it first");
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        let removed = self.cluster.remove_node(name);
        removed.map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))?;
        tracing::info!(by, node = name, "node removed from the cluster");
        Ok(())
    }
}

/// The metrics of a leader.
pub(crate) fn write_metrics(cluster: &ClusterView, page: &mut MetricsPage) {
    let flag = |holds: bool| f64::from(u8::from(holds));
    let alive = cluster.nodes.iter().filter(|node| node.alive).count();
    page.put(&metrics::CLUSTER_NODES_ALIVE, &[], alive as f64);
    page.put(&metrics::CLUSTER_TERM, &[], cluster.term as f64);
    page.put(&metrics::CLUSTER_DEGRADED, &[], flag(cluster.degraded));
    for partition in &cluster.partitions {
        let number = partition.partition.to_string();
        page.put(&metrics::CLUSTER_PARTITION_LED, &[&number], flag(partition.leader.is_some()));
    }
    for node in &cluster.nodes {
        let behind = cluster.head.saturating_sub(node.durable);
        page.put(&metrics::CLUSTER_RECORDS_BEHIND, &[&node.name], behind as f64);
    }
    for member in &cluster.etcd {
        page.put(&metrics::ETCD_MEMBER_UP, &[&member.endpoint], flag(member.problem.is_none()));
        page.put(&metrics::ETCD_MEMBER_BYTES, &[&member.endpoint], member.octets as f64);
    }
}

/// Waits until the lead should be handed over; without a cluster, for ever.
pub(crate) async fn handed_over(node: Option<&LeadingNode>) {
    match node {
        Some(node) => node.hand_over.notified().await,
        None => std::future::pending().await,
    }
}

/// Appends an empty record when nothing was appended for a while, so that the other nodes see that this node lives.
/// Starts before the messages are recovered.
fn beat(store: &Store, stopped: &Receiver<()>) {
    let mut last = Seq(0);
    while !store.is_closed() {
        let appended = store.last_appended();
        if appended == last
            && let Err(error) = store.heartbeat()
        {
            if store.is_closed() {
                return;
            }
            critical_thread::fail_stop(&error);
        }
        last = store.last_appended();
        if stopped.recv_timeout(HEARTBEAT_CHECK) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn publish_regularly(publisher: &Publisher, stopped: &Receiver<()>) {
    let mut has_failed = false;
    while stopped.recv_timeout(PUBLISH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        match publisher.publish() {
            Ok(()) => has_failed = false,
            Err(error) if !has_failed => {
                has_failed = true;
                tracing::warn!(%error, "writing the shared state of the cluster failed, retrying every second");
            }
            Err(_) => {}
        }
    }
}

/// Writes values of plugins. On a thread of its own: plugins call from threads of runtimes, which must not block on
/// another runtime.
fn write_values(cluster: &Cluster, rows: &[capabilities::RowChange]) -> Result<(), String> {
    let changes: Vec<_> = rows
        .iter()
        .map(|(row, value)| {
            let content =
                value.as_ref().map_or(SharedContent::Removed, |value| SharedContent::Value(value.clone()));
            (value_name(row), content)
        })
        .collect();
    let written = std::thread::scope(|scope| scope.spawn(|| cluster.write_shared(&changes)).join());
    match written {
        Ok(written) => written.map(drop).map_err(|error| error.to_string()),
        Err(_) => Err("writing to etcd failed".to_owned()),
    }
}
