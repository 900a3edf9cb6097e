use std::path::PathBuf;

/// Errors of a cluster node.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An address of etcd cannot be used.
    #[error("cluster.endpoints: {endpoint}: {reason}")]
    Endpoint {
        /// The address.
        endpoint: String,
        /// The fault.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{path}: {source}. Check the path and the permissions of the file")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// etcd did not answer, or it refused.
    #[error("etcd at {endpoint}: {reason}")]
    Etcd {
        /// The member that was asked last.
        endpoint: String,
        /// The answer, or the error.
        reason: String,
    },
    /// A newer version wrote the key.
    #[error(
        "{key} in etcd has format {found}, and this switchyard knows format {known}: start the version that wrote it"
    )]
    UnknownFormat {
        /// The key.
        key: String,
        /// The format that was found.
        found: u32,
        /// The known format.
        known: u32,
    },
    /// A value in etcd has an unknown form.
    #[error(
        "{key} in etcd cannot be read: something else has written it. Name another prefix in cluster.prefix"
    )]
    Foreign {
        /// The key.
        key: String,
    },
    /// A value of the shared state is too long for etcd.
    #[error(
        "{name} has {octets} octets after compression, and the nodes of a cluster can share {limit}: make it smaller"
    )]
    TooLarge {
        /// The name of the value.
        name: String,
        /// Its octets after compression.
        octets: usize,
        /// The limit.
        limit: usize,
    },
    /// Another node has claimed the log.
    #[error("this node does not lead the cluster any more")]
    NotLeader,
    /// The system has no random numbers.
    #[error("no random number for the new cluster: {0}")]
    Random(getrandom::Error),
}
