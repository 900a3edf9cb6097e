use cluster::ClusterError;
use std::path::{Path, PathBuf};

/// Errors of copying between nodes.
#[derive(Debug, thiserror::Error)]
pub enum ReplicationError {
    /// etcd failed, or the node does not lead.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A store of this node cannot give or take its part of the shared state.
    #[error("the shared {part} of this node: {reason}")]
    Part {
        /// The part.
        part: &'static str,
        /// The error of the store.
        reason: String,
    },
    /// A file fails.
    #[error("{path}: {source}. Check the free space and the permissions")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// No other node sent a file.
    #[error("no other node sent {what}: {reason}")]
    Fetch {
        /// The file.
        what: String,
        /// The error of the last node.
        reason: String,
    },
    /// The certificate of this node cannot be used.
    #[error(
        "the certificate of this node in {folder}: {reason}. Remove the folder to have a new one made",
        folder = folder.display()
    )]
    Certificate {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        reason: String,
    },
}

impl ReplicationError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
