//! Answers to requests with the header `Partition: all`, which cover all partitions of a cluster.

use super::{LinkView, QueueView, StatusView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A row with its partition.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PartitionRow<T> {
    /// The partition of the row.
    pub partition: u8,
    /// The row.
    #[serde(flatten)]
    pub row: T,
}

/// A partition whose leader did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MissingPartition)]
pub struct MissingPartitionView {
    /// Number of the partition.
    pub partition: u8,
    /// The reason why it is missing.
    pub reason: String,
}

/// The queues of all partitions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AllQueues)]
pub struct AllQueuesView {
    /// The queues, sorted by peer or account, then by partition.
    pub queues: Vec<PartitionRow<QueueView>>,
    /// The partitions whose leader did not answer.
    pub missing: Vec<MissingPartitionView>,
}

/// The links of all partitions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AllLinks)]
pub struct AllLinksView {
    /// The links, sorted by peer or account, then by partition.
    pub links: Vec<PartitionRow<LinkView>>,
    /// The partitions whose leader did not answer.
    pub missing: Vec<MissingPartitionView>,
}

/// The status of the leader of each partition.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AllStatuses)]
pub struct AllStatusesView {
    /// One status for each partition.
    pub statuses: Vec<PartitionRow<StatusView>>,
    /// The partitions whose leader did not answer.
    pub missing: Vec<MissingPartitionView>,
}

/// The answer to `GET /v1/queues`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Queues)]
#[serde(untagged)]
pub enum QueuesAnswer {
    /// The queues of one partition.
    One(Vec<QueueView>),
    /// The queues of all partitions, with `Partition: all`.
    All(AllQueuesView),
}

/// The answer to `GET /v1/links`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Links)]
#[serde(untagged)]
pub enum LinksAnswer {
    /// The links of one partition.
    One(Vec<LinkView>),
    /// The links of all partitions, with `Partition: all`.
    All(AllLinksView),
}

/// The answer to `GET /v1/status`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = StatusAnswer)]
#[serde(untagged)]
pub enum StatusAnswer {
    /// The status of one partition.
    One(Box<StatusView>),
    /// The status of each partition, with `Partition: all`.
    All(AllStatusesView),
}
