//! What a node says that cannot read what a newer version wrote.

use cluster::Cluster;
use journal::Seq;
use std::fmt::Display;
use std::sync::Arc;
use store::StoreError;

/// Whether this node reads what the leader writes. If not, it stays where it is, says so, and does not lead.
pub(crate) struct UnreadableLog {
    cluster: Arc<Cluster>,
    /// What it said.
    told: Option<String>,
    has_newer_tables: bool,
}

impl UnreadableLog {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        cluster.set_unreadable(None);
        Self { cluster, told: None, has_newer_tables: false }
    }

    /// Whether this node waits for its upgrade.
    pub(crate) const fn is_unreadable(&self) -> bool {
        self.told.is_some()
    }

    /// Whether the snapshot of the leader's tables is of a newer version, too: it is not fetched again.
    pub(crate) const fn has_newer_tables(&self) -> bool {
        self.has_newer_tables
    }

    /// Everything that the leader has written so far was read.
    pub(crate) fn clear(&mut self) {
        if self.told.take().is_some() {
            tracing::info!("the log can be read again, following on");
            self.cluster.set_unreadable(None);
        }
    }

    /// This record cannot be read.
    pub(crate) fn stop_at(&mut self, record: Seq, reason: &dyn Display) {
        self.tell(format!(
            "the records from {record} on, which a newer version wrote ({reason}): upgrade it"
        ));
    }

    /// No snapshot of the leader's tables could be taken over.
    pub(crate) fn check_tables(&mut self, error: &anyhow::Error) {
        if let Some(StoreError::TooNew { found, known, .. }) = error.downcast_ref() {
            self.has_newer_tables = true;
            let lacks = format!(
                "the messages, of which the leader's tables have format {found}, and it reads formats up to {known}: upgrade it"
            );
            self.tell(lacks);
        }
    }

    fn tell(&mut self, lacks: String) {
        if self.told.as_ref() == Some(&lacks) {
            return;
        }
        tracing::error!(lacks, "following no more, this node does not lead");
        self.cluster.set_unreadable(Some(lacks.clone()));
        self.told = Some(lacks);
    }
}
