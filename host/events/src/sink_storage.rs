use crate::position_store::{PositionFiles, PositionStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Storage of the positions and files of the journal's readers.
#[derive(Clone)]
pub struct SinkStorage {
    pub(crate) positions: Arc<dyn PositionStore>,
    /// The data directory of this appliance.
    pub(crate) data: PathBuf,
    /// The name of this node; empty without a cluster.
    pub(crate) node: String,
    /// The identity of the journal; `None` if the journal's own files have it.
    pub(crate) journal: Option<u64>,
}

impl SinkStorage {
    /// The storage without a cluster: files in the folder `events` of the data directory.
    #[must_use]
    pub fn local(data: &Path) -> Self {
        Self {
            positions: Arc::new(PositionFiles::new(data.join("events"))),
            data: data.to_owned(),
            node: String::new(),
            journal: None,
        }
    }

    /// The storage of a cluster node: `positions` are shared, `data` is the node's own. `cluster` is the number of the
    /// cluster.
    #[must_use]
    pub fn in_cluster(node: &str, cluster: u64, positions: Arc<dyn PositionStore>, data: &Path) -> Self {
        Self { positions, data: data.to_owned(), node: node.to_owned(), journal: Some(cluster) }
    }
}

impl std::fmt::Debug for SinkStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkStorage").field("node", &self.node).finish_non_exhaustive()
    }
}
