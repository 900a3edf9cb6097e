//! Shared state and snapshots that the nodes of a cluster copy from each other, in addition to the log.
//!
//! Each store of a node that has something to share is a [`SharedState`]. The [`Publisher`] of the leader writes to etcd what
//! has changed in them, the [`Replica`] of a follower applies it. Large files pass from node to node ([`NodeListener`],
//! [`NodeClient`]), and so does the snapshot for a node that is further behind than the log in etcd goes back. What came to a
//! node and belongs to another partition goes to its leader in the same way ([`LeaderClient`]).
#![forbid(unsafe_code)]

mod error;
mod folder;
mod leader_client;
mod node_client;
mod node_listener;
mod node_tls;
mod passed_request;
mod publisher;
mod replica;
mod shared_files;
mod state;

pub use error::ReplicationError;
pub use folder::SharedFolder;
pub use leader_client::LeaderClient;
pub use node_client::NodeClient;
pub use node_listener::{NodeListener, PassedHandlers, SnapshotSource};
pub use node_tls::NodeCertificate;
pub use publisher::Publisher;
pub use replica::Replica;
pub use shared_files::SharedFiles;
pub use state::{LocalContent, SharedState};
