//! Membership: the state that a node publishes about itself, and its view of the other nodes and of etcd.

use crate::client::{
    ALARM, ANSWER_TIMEOUT, COMPACT, DELETE_RANGE, EtcdClient, PUT, RANGE, STATUS, TXN, is_refusal, reason,
};
use crate::nodes::{NodeRecord, NodeTable, RENEWAL};
use crate::proto::{
    AlarmRequest, AlarmResponse, COMPARE_CREATE, CompactionRequest, Compare, DeleteRangeRequest,
    DeleteRangeResponse, Empty, KeyValue, PutRequest, PutResponse, RangeRequest, RangeResponse,
    StatusResponse, TxnRequest, TxnResponse, compare,
};
use crate::ring::{ClusterKeys, decode_head};
use crate::{ClusterError, ClusterOptions, DegradedPolicy, EtcdJournal, Exchange};
use api::{ClusterNodeView, ClusterRole, ClusterView, EtcdMemberView, PartitionView, RecordFormats};
use journal::{Head, LeaderLease, Seq};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tonic::Status;

/// Format of `PREFIX/id`.
const FORMAT: u32 = 1;
/// Interval at which the state of etcd's members is read.
const MEMBER_INTERVAL: Duration = Duration::from_secs(5);
/// Number of revisions that etcd keeps: enough for consistent reads, few enough for a small file.
const REVISIONS: i64 = 200;
/// Number of further revisions after which a compaction is due.
const COMPACTION: i64 = 1000;

/// Properties that all nodes of a cluster share, in `PREFIX/id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    /// Random number of the cluster: tables that follow this log cannot follow another one.
    cluster: u64,
    /// The number of slots of the ring.
    slots: u64,
}

/// The latest claim of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderRecord {
    /// The name of the node.
    pub node: String,
    /// The URL of its admin API.
    pub address: String,
    /// The term of its claim.
    pub term: u64,
    /// Whether the leader has resigned at an orderly end: another node may claim at once.
    pub resigned: bool,
}

/// The node that leads a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLeader {
    /// The partition.
    pub partition: u8,
    /// The name of the node.
    pub node: String,
    /// The URL of its admin API.
    pub address: String,
    /// Address at which other nodes fetch files and snapshots.
    pub exchange: Option<Exchange>,
}

/// The cluster, as one of its nodes sees it.
pub struct Cluster {
    pub(crate) client: EtcdClient,
    pub(crate) keys: ClusterKeys,
    pub(crate) runtime: Handle,
    pub(crate) lease: Arc<LeaderLease>,
    pub(crate) options: ClusterOptions,
    identity: Identity,
    pub(crate) own: Mutex<NodeRecord>,
    pub(crate) nodes: Mutex<NodeTable>,
    /// Nodes of the other partitions.
    pub(crate) neighbours: Mutex<BTreeMap<u8, NodeTable>>,
    /// The parts that this node lacks: of its partition's shared state, and of the state that all partitions share.
    pub(crate) lacks: Mutex<[Option<String>; 2]>,
    /// Value of `PREFIX/leader` that this node has written; `None` while it does not lead.
    pub(crate) claimed: Mutex<Option<Vec<u8>>>,
    view: Mutex<View>,
    /// The newest revision of etcd that this node has seen.
    pub(crate) revision: AtomicI64,
    compacted: AtomicI64,
    pub(crate) is_degraded: AtomicBool,
    /// The last record of the log that this node has seen.
    pub(crate) head: AtomicU64,
}

/// The last known state of etcd.
#[derive(Debug, Default)]
struct View {
    members: Vec<EtcdMemberView>,
    leader: Option<LeaderRecord>,
    /// Time since which etcd does not answer, and the error.
    silent: Option<(Instant, String)>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Cluster")
            .field("node", &self.options.node)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Joins the cluster in etcd, or creates it. `address` is the URL of this node's admin API; `formats` are the
    /// payload formats that this version reads and writes. Must run on `runtime`, on which a task then renews the
    /// node's record.
    ///
    /// # Errors
    /// The settings cannot be used; etcd refuses or does not answer within some seconds; or the keys belong to something
    /// else.
    pub async fn join(
        options: ClusterOptions,
        address: &str,
        (version, formats): (&str, RecordFormats),
        runtime: Handle,
    ) -> Result<Arc<Self>, ClusterError> {
        let client = EtcdClient::new(&options)?;
        let keys = ClusterKeys::new(&options.prefix, options.partition);
        let unread = Some("the shared state: it is not read yet".to_owned());
        let identity = identity(&client, &keys, options.slots).await?;
        let own = NodeRecord {
            role: ClusterRole::Follower,
            address: options.address.clone().unwrap_or_else(|| address.to_owned()),
            version: version.to_owned(),
            formats,
            applied: 0,
            exchange: None,
            term: 0,
            shared: 0,
            base: 0,
            lacks: unread.clone(),
            disk_low: false,
            is_joining: false,
            unreadable: None,
            renewal: 0,
        };
        let cluster = Arc::new(Self {
            client,
            keys,
            runtime: runtime.clone(),
            lease: Arc::new(LeaderLease::ended()),
            identity,
            own: Mutex::new(own),
            nodes: Mutex::default(),
            neighbours: Mutex::default(),
            lacks: Mutex::new([unread.clone(), unread.filter(|_| options.partition != 0)]),
            claimed: Mutex::default(),
            view: Mutex::default(),
            revision: AtomicI64::new(0),
            compacted: AtomicI64::new(0),
            is_degraded: AtomicBool::new(false),
            head: AtomicU64::new(0),
            options,
        });
        cluster.refresh_nodes().await.map_err(|status| cluster.client.failed(&status))?;
        let renewing = Arc::downgrade(&cluster);
        runtime.spawn(async move {
            while let Some(cluster) = renewing.upgrade() {
                cluster.renew().await;
                drop(cluster);
                tokio::time::sleep(RENEWAL).await;
            }
        });
        // In a task of its own: a member that does not answer must not delay the renewals.
        let asking = Arc::downgrade(&cluster);
        runtime.spawn(async move {
            while let Some(cluster) = asking.upgrade() {
                cluster.refresh_members().await;
                drop(cluster);
                tokio::time::sleep(MEMBER_INTERVAL).await;
            }
        });
        Ok(cluster)
    }

    /// The number of the cluster.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.identity.cluster
    }

    /// The number of slots of the ring.
    pub(crate) const fn slots(&self) -> u64 {
        self.identity.slots
    }

    /// The partition of this node.
    #[must_use]
    pub const fn partition(&self) -> u8 {
        self.options.partition
    }

    /// The name of this node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.options.node
    }

    /// The log. `start` is the last record in the tables of this node: a new log begins after it.
    #[must_use]
    pub fn journal(self: &Arc<Self>, start: Seq) -> EtcdJournal {
        EtcdJournal::new(self.clone(), start)
    }

    /// Publishes whether this node leads or follows.
    pub fn set_role(&self, role: ClusterRole) {
        let term = self.leader().map_or(0, |leader| leader.term);
        let mut own = self.own.lock();
        (own.role, own.term) = (role, term);
    }

    /// The leaders of all partitions that have one, including this node's partition.
    #[must_use]
    pub fn partition_leaders(&self) -> Vec<PartitionLeader> {
        let now = Instant::now();
        let leader = |partition: u8, nodes: &NodeTable| {
            nodes.leader(now).map(|(node, record)| PartitionLeader {
                partition,
                node: node.clone(),
                address: record.address.clone(),
                exchange: record.exchange.clone(),
            })
        };
        let mut leaders: Vec<_> = leader(self.options.partition, &self.nodes.lock()).into_iter().collect();
        let neighbours = self.neighbours.lock();
        leaders.extend(neighbours.iter().filter_map(|(partition, nodes)| leader(*partition, nodes)));
        leaders.sort_by_key(|leader| leader.partition);
        leaders
    }

    /// The leader of a partition.
    #[must_use]
    pub fn leader_of(&self, partition: u8) -> Option<PartitionLeader> {
        self.partition_leaders().into_iter().find(|leader| leader.partition == partition)
    }

    /// The numbers of all partitions that have nodes, including this node's.
    #[must_use]
    pub fn known_partitions(&self) -> Vec<u8> {
        self.partitions(Instant::now()).iter().map(|view| view.partition).collect()
    }

    /// All partitions that have nodes, including this node's.
    fn partitions(&self, now: Instant) -> Vec<PartitionView> {
        let view = |partition: u8, nodes: &NodeTable| PartitionView {
            partition,
            leader: nodes.leader(now).map(|(node, _)| node.clone()),
            address: nodes.leader(now).map(|(_, record)| record.address.clone()),
            alive: nodes.iter().filter(|(_, known)| known.is_live(now)).count(),
            nodes: nodes.iter().count(),
        };
        let mut partitions = vec![view(self.options.partition, &self.nodes.lock())];
        let neighbours = self.neighbours.lock();
        partitions.extend(neighbours.iter().map(|(partition, nodes)| view(*partition, nodes)));
        partitions.sort_by_key(|view| view.partition);
        partitions
    }

    /// Publishes that the records up to `seq` are durable in the tables of this node.
    pub fn set_applied(&self, seq: Seq) {
        self.own.lock().applied = seq.0;
    }

    /// Publishes whether the free disk space of this node is below the watermark.
    pub fn set_disk_low(&self, low: bool) {
        self.own.lock().disk_low = low;
    }

    /// Whether another node could lead and has enough disk space.
    #[must_use]
    pub fn has_other_with_disk_space(&self) -> bool {
        self.nodes.lock().has_other_with_disk_space(Instant::now(), &self.options.node)
    }

    /// Publishes whether this node has yet to read the log, or to fetch a snapshot: the leader does not wait for it meanwhile.
    pub fn set_joining(&self, is_joining: bool) {
        self.own.lock().is_joining = is_joining;
    }

    /// Publishes the records that this node cannot read, so that it neither follows nor leads; `None` if it reads all
    /// records.
    pub fn set_unreadable(&self, unreadable: Option<String>) {
        self.own.lock().unreadable = unreadable;
    }

    /// The newest payload format that all known nodes read and this node writes.
    pub(crate) fn payload_format(&self) -> u8 {
        let formats = self.own.lock().formats;
        self.nodes.lock().common_format(&self.options.node, formats)
    }

    /// The URL of this node's admin API.
    pub(crate) fn address(&self) -> String {
        self.own.lock().address.clone()
    }

    /// The leader, as far as this node knows.
    #[must_use]
    pub fn leader(&self) -> Option<LeaderRecord> {
        self.view.lock().leader.clone()
    }

    pub(crate) fn set_leader(&self, leader: Option<LeaderRecord>) {
        self.view.lock().leader = leader;
    }

    /// The state of the cluster.
    #[must_use]
    pub fn status(&self) -> ClusterView {
        let now = Instant::now();
        let partitions = self.partitions(now);
        let view = self.view.lock();
        let head = self.head.load(Relaxed);
        let nodes = self.nodes.lock();
        let leader = view.leader.as_ref().map_or(self.node(), |leader| &leader.node);
        let known = nodes.iter().find(|(name, _)| *name == leader);
        let formats = known.map_or_else(|| self.own.lock().formats, |(_, known)| known.record.formats);
        let format = nodes.common_format(leader, formats);
        let nodes = nodes.iter().map(|(name, known)| ClusterNodeView {
            name: name.clone(),
            role: known.record.role,
            alive: known.is_live(now),
            address: known.record.address.clone(),
            version: known.record.version.clone(),
            formats: known.record.formats,
            durable: known.record.applied,
            lacks: known.record.lacks(),
        });
        ClusterView {
            node: self.options.node.clone(),
            role: self.own.lock().role,
            partition: self.options.partition,
            partitions,
            leader: view.leader.as_ref().filter(|leader| !leader.resigned).map(|leader| leader.node.clone()),
            term: view.leader.as_ref().map_or(0, |leader| leader.term),
            head,
            slots: self.identity.slots,
            format,
            degraded: self.is_degraded.load(Relaxed),
            nodes: nodes.collect(),
            etcd: view.members.clone(),
            etcd_error: view.silent.as_ref().map(|(_, why)| why.clone()),
        }
    }

    /// Waits until the record `seq` may overwrite the record in its slot: until another node has the old record, or as
    /// `degraded` says.
    pub(crate) async fn make_room(&self, seq: Seq) {
        let Some(victim) = seq.0.checked_sub(self.identity.slots).filter(|victim| *victim > 0) else {
            return;
        };
        let is_safe = || self.nodes.lock().durable_on_other_nodes(&self.options.node).0 >= victim;
        let mut is_safe_now = is_safe();
        while !is_safe_now {
            let is_awaited = self.nodes.lock().has_live_other(Instant::now(), &self.options.node)
                || self.options.degraded == DegradedPolicy::Stop;
            if !self.is_degraded.swap(!is_awaited, Relaxed) && !is_awaited {
                tracing::error!("no other node keeps up, older records are on this disk only");
            }
            if !is_awaited {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            if let Err(status) = self.refresh_nodes().await {
                self.client.find_member().await;
                tracing::warn!(reason = reason(&status), "reading the nodes from etcd failed");
            }
            is_safe_now = is_safe();
        }
        if self.is_degraded.swap(false, Relaxed) {
            tracing::info!("another node keeps up again");
        }
    }

    /// Renews this node's record in etcd, and reads those of the other nodes.
    async fn renew(&self) {
        let value = {
            let mut own = self.own.lock();
            own.renewal += 1;
            serde_json::to_vec(&*own).unwrap_or_default()
        };
        let put = PutRequest { key: self.keys.node(&self.options.node).into_bytes(), value };
        let told: Result<PutResponse, Status> = self.client.call(PUT, &put).await;
        let outcome = match told {
            Ok(_) => self.refresh_nodes().await,
            Err(status) => Err(status),
        };
        match outcome {
            Ok(()) => {
                if let Some((since, _)) = self.view.lock().silent.take() {
                    let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                    tracing::info!(ms, "etcd answers again");
                }
            }
            Err(status) => {
                let why = reason(&status);
                let endpoint = self.client.endpoint().to_owned();
                if !is_refusal(&status) {
                    self.client.find_member().await;
                }
                let mut view = self.view.lock();
                if view.silent.is_none() {
                    tracing::warn!(endpoint, reason = why, "etcd does not answer");
                    view.silent = Some((Instant::now(), format!("{endpoint}: {why}")));
                }
            }
        }
        self.compact().await;
    }

    pub(crate) async fn refresh_nodes(&self) -> Result<(), Status> {
        let mut found: BTreeMap<u8, Vec<(String, NodeRecord)>> = BTreeMap::new();
        for prefix in [self.keys.base_nodes(), self.keys.other_nodes()] {
            let answer: RangeResponse = self.client.call(RANGE, &RangeRequest::below(&prefix)).await?;
            for node in &answer.kvs {
                let place = std::str::from_utf8(&node.key).ok().and_then(|key| self.keys.node_of(key));
                if let (Some((partition, name)), Ok(record)) = (place, serde_json::from_slice(&node.value)) {
                    found.entry(partition).or_default().push((name, record));
                }
            }
        }
        let now = Instant::now();
        self.nodes.lock().observe(now, found.remove(&self.options.partition).unwrap_or_default());
        let mut neighbours = self.neighbours.lock();
        neighbours.retain(|partition, _| found.contains_key(partition));
        for (partition, nodes) in found {
            neighbours.entry(partition).or_default().observe(now, nodes);
        }
        Ok(())
    }

    /// Asks each member of etcd for its state.
    async fn refresh_members(&self) {
        let mut members = Vec::new();
        let alarms: Result<AlarmResponse, Status> = self.client.call(ALARM, &AlarmRequest::default()).await;
        let alarms = alarms.map(|answer| answer.alarms).unwrap_or_default();
        for (number, endpoint) in self.client.endpoints().enumerate() {
            let status: Result<StatusResponse, Status> = self.client.call_at(number, STATUS, &Empty {}).await;
            members.push(match status {
                Ok(status) => {
                    let id = status.header.as_ref().map_or(0, |header| header.member_id);
                    let raised = alarms.iter().find(|alarm| alarm.member_id == id).map(|alarm| alarm.alarm);
                    EtcdMemberView {
                        endpoint: endpoint.to_owned(),
                        version: status.version,
                        leader: id != 0 && status.leader == id,
                        octets: u64::try_from(status.db_size).unwrap_or_default(),
                        problem: match raised {
                            Some(1) => Some("its quota is used up (NOSPACE)".to_owned()),
                            Some(2) => Some("its data are damaged (CORRUPT)".to_owned()),
                            _ if status.leader == 0 => Some("it knows no leader".to_owned()),
                            _ => None,
                        },
                    }
                }
                Err(status) => EtcdMemberView {
                    endpoint: endpoint.to_owned(),
                    version: String::new(),
                    leader: false,
                    octets: 0,
                    problem: Some(reason(&status)),
                },
            });
        }
        let mut view = self.view.lock();
        for member in &members {
            let known = view.members.iter().find(|known| known.endpoint == member.endpoint);
            if let Some(problem) = &member.problem
                && known.is_none_or(|known| known.problem.is_none())
            {
                tracing::warn!(endpoint = member.endpoint, problem, "a member of etcd is unhealthy");
            }
        }
        view.members = members;
    }

    /// Compacts etcd: removes old revisions.
    async fn compact(&self) {
        let (newest, compacted) = (self.revision.load(Relaxed), self.compacted.load(Relaxed));
        if self.own.lock().role != ClusterRole::Leader || newest - compacted < REVISIONS + COMPACTION {
            return;
        }
        let revision = newest - REVISIONS;
        // A refusal is no failure: another leader has done it.
        let done: Result<Empty, Status> = self.client.call(COMPACT, &CompactionRequest { revision }).await;
        if done.is_ok() || done.is_err_and(|status| is_refusal(&status)) {
            self.compacted.store(revision, Relaxed);
        }
    }

    /// Removes a node that has left the cluster. Returns whether it was known. A node that still runs registers again
    /// at once. Waits for etcd: must not be called on a thread of the runtime.
    ///
    /// # Errors
    /// etcd refuses, or does not answer for some seconds.
    pub fn remove_node(&self, name: &str) -> Result<bool, ClusterError> {
        let request = DeleteRangeRequest { key: self.keys.node(name).into_bytes() };
        let removed = self.runtime.block_on(async {
            let removed: DeleteRangeResponse =
                self.client.call_any(DELETE_RANGE, &request, ANSWER_TIMEOUT * 10).await?;
            self.refresh_nodes().await?;
            Ok(removed)
        });
        removed.map(|removed| removed.deleted > 0).map_err(|status: Status| self.client.failed(&status))
    }

    /// The end of the log; `None` if it is empty.
    ///
    /// # Errors
    /// etcd does not answer for some seconds, or the key belongs to something else.
    pub async fn read_head(&self) -> Result<Option<Head>, ClusterError> {
        let key = self.keys.head();
        let found = read_key(&self.client, &key).await.map_err(|status| self.client.failed(&status))?;
        found.map(|found| decode_head(&found.value).ok_or(ClusterError::Foreign { key })).transpose()
    }
}

async fn read_key(client: &EtcdClient, key: &str) -> Result<Option<KeyValue>, Status> {
    let request = RangeRequest::of(key.to_owned());
    let answer: RangeResponse = client.call_any(RANGE, &request, ANSWER_TIMEOUT * 10).await?;
    Ok(answer.kvs.into_iter().next())
}

/// Reads the identity of the cluster; writes it if there is none.
async fn identity(client: &EtcdClient, keys: &ClusterKeys, slots: u64) -> Result<Identity, ClusterError> {
    let key = keys.identity();
    let failed = |status: Status| client.failed(&status);
    if read_key(client, &key).await.map_err(failed)?.is_none() {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(ClusterError::Random)?;
        let new = Identity { format: FORMAT, cluster: u64::from_le_bytes(random), slots };
        let value = serde_json::to_vec(&new).unwrap_or_default();
        let request = TxnRequest {
            compare: vec![Compare {
                result: 0,
                target: COMPARE_CREATE,
                key: key.clone().into_bytes(),
                target_union: Some(compare::TargetUnion::CreateRevision(0)),
            }],
            success: vec![PutRequest { key: key.clone().into_bytes(), value }.into()],
            failure: Vec::new(),
        };
        // The key exists now, whether this node wrote it or another one.
        let _: TxnResponse = client.call_any(TXN, &request, ANSWER_TIMEOUT * 10).await.map_err(failed)?;
    }
    let found = read_key(client, &key).await.map_err(failed)?;
    let value = found.map(|found| found.value).unwrap_or_default();
    let foreign = || ClusterError::Foreign { key: key.clone() };
    let format: serde_json::Value = serde_json::from_slice(&value).map_err(|_| foreign())?;
    match format.get("format").and_then(serde_json::Value::as_u64) {
        Some(found) if found == u64::from(FORMAT) => {}
        Some(found) => {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(ClusterError::UnknownFormat { key, found, known: FORMAT });
        }
        None => return Err(foreign()),
    }
    let identity: Identity = serde_json::from_slice(&value).map_err(|_| foreign())?;
    if identity.slots < 16 || identity.slots > 10_000 { Err(foreign()) } else { Ok(identity) }
}
