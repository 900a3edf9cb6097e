//! Peers whose links another partition of the cluster has: its home.
//!
//! In the other partitions a [`RemotePeerLink`] stands for the links. It submits to the leader of the home, over the mutual TLS of
//! the nodes, and gets outcomes and DLRs back. At the home a [`PartitionSession`] is the other end: the link of an account that
//! the partition has there.

mod frame;
mod remote_peer_link;
mod session;
mod sessions;

pub(crate) use remote_peer_link::dial_home;
pub(crate) use session::PartitionSession;
pub(crate) use sessions::PartitionSessions;

use model::PeerId;

/// A peer whose links another partition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePeerOptions {
    /// The peer's name, which is the same in all partitions.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// Its home.
    pub partition: u8,
    /// Messages that may be at the home without an outcome.
    pub window: usize,
}

/// An account of another partition, for its messages to one peer of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionAccountOptions {
    /// The account's name.
    pub name: String,
    /// The peer id of the account.
    pub account: PeerId,
    /// The partition.
    pub partition: u8,
    /// The peer's name.
    pub peer_name: String,
    /// The peer id of the peer.
    pub peer: PeerId,
}
