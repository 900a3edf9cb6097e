//! Detects records that only a newer version can read, and publishes that this node cannot follow.

use cluster::Cluster;
use journal::Seq;
use std::fmt::Display;
use std::sync::Arc;
use store::StoreError;

/// Whether this node can read the leader's records. If it cannot, it stops following, publishes the reason, and does
/// not lead.
pub(crate) struct UnreadableLog {
    cluster: Arc<Cluster>,
    /// The published reason; `None` while the node reads all records.
    published: Option<String>,
    has_newer_tables: bool,
}

impl UnreadableLog {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        cluster.set_unreadable(None);
        Self { cluster, published: None, has_newer_tables: false }
    }

    /// Whether this node cannot read the log and waits for its upgrade.
    pub(crate) const fn is_unreadable(&self) -> bool {
        self.published.is_some()
    }

    /// Whether the snapshot of the leader's tables has a newer format, too: then it is not fetched again.
    pub(crate) const fn has_newer_tables(&self) -> bool {
        self.has_newer_tables
    }

    /// Call when all records of the leader so far were read.
    pub(crate) fn clear(&mut self) {
        if self.published.take().is_some() {
            tracing::info!("the log can be read again, continuing to follow");
            self.cluster.set_unreadable(None);
        }
    }

    /// Call when this record cannot be read.
    pub(crate) fn stop_at(&mut self, record: Seq, reason: &dyn Display) {
        self.publish(format!(
            "the records from {record} on, which a newer version wrote ({reason}): upgrade it"
        ));
    }

    /// Call when a snapshot of the leader's tables could not be used.
    pub(crate) fn check_tables(&mut self, error: &anyhow::Error) {
        if let Some(StoreError::TooNew { found, known, .. }) = error.downcast_ref() {
            self.has_newer_tables = true;
            let lacks = format!(
                "the messages: the leader's tables have format {found}, but it reads formats up to {known}; upgrade it"
            );
            self.publish(lacks);
        }
    }

    fn publish(&mut self, lacks: String) {
        if self.published.as_ref() == Some(&lacks) {
            return;
        }
        tracing::error!(lacks, "following stopped, this node does not lead");
        self.cluster.set_unreadable(Some(lacks.clone()));
        self.published = Some(lacks);
    }
}
