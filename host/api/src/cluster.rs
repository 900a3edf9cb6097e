//! The cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/cluster`: the cluster, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Cluster)]
pub struct ClusterView {
    /// The name of this node.
    pub node: String,
    /// Its role.
    pub role: ClusterRole,
    /// The partition of this node. All other fields except `partitions` refer to this partition.
    #[serde(default)]
    pub partition: u8,
    /// All partitions of the cluster, by number.
    #[serde(default)]
    pub partitions: Vec<PartitionView>,
    /// The node that leads; null if the last leader was stopped cleanly.
    #[schema(required)]
    pub leader: Option<String>,
    /// The term of the last claim. Each claim of a node begins the next one.
    pub term: u64,
    /// The last record of the log.
    pub head: u64,
    /// The number of records that etcd keeps. A node that lacks older records needs a backup of the leader.
    pub slots: u64,
    /// The format of the records that the leader writes: the newest one that all nodes read.
    pub format: u8,
    /// Whether records are on the disk of this node only, because no other node keeps up.
    pub degraded: bool,
    /// All nodes, by name.
    pub nodes: Vec<ClusterNodeView>,
    /// The members of etcd, as configured here.
    pub etcd: Vec<EtcdMemberView>,
    /// The error if etcd does not answer; null if it answers.
    #[schema(required)]
    pub etcd_error: Option<String>,
}

/// A partition of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Partition)]
pub struct PartitionView {
    /// Its number. The ids of its messages begin with it: divide by 2 to the power of 46.
    pub partition: u8,
    /// The node that leads it; null if there is no leader now.
    #[schema(required)]
    pub leader: Option<String>,
    /// The URL of the leader's admin API; null if there is no leader.
    #[schema(required)]
    pub address: Option<String>,
    /// Number of its nodes that were seen in the last seconds.
    pub alive: usize,
    /// Number of its nodes.
    pub nodes: usize,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ClusterNode)]
pub struct ClusterNodeView {
    /// Its name.
    pub name: String,
    /// Its role, or its role when it was last seen.
    pub role: ClusterRole,
    /// Whether it was seen in the last seconds.
    pub alive: bool,
    /// The URL of its admin API.
    pub address: String,
    /// Its version.
    pub version: String,
    /// The formats of records that it reads.
    pub formats: RecordFormats,
    /// The last record that is durable in its tables.
    pub durable: u64,
    /// The reason why it cannot lead: it lacks messages or shared state such as a plugin, or cannot read some records. Null if
    /// it can lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// Formats of the records that the nodes of a cluster read from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordFormats {
    /// The oldest format.
    pub oldest: u8,
    /// The newest format.
    pub newest: u8,
}

/// The role of a node in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterRole {
    /// It applies the records of the leader.
    Follower,
    /// It accepts and sends messages.
    Leader,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EtcdMember)]
pub struct EtcdMemberView {
    /// Its address.
    pub endpoint: String,
    /// Its version; empty if it does not answer.
    pub version: String,
    /// Whether it leads etcd.
    pub leader: bool,
    /// Size of its database file, in octets.
    pub octets: u64,
    /// The problem of the member; null if it is healthy.
    #[schema(required)]
    pub problem: Option<String>,
}
