//! Peers with a home: the partition of the cluster that has the links.
//!
//! In the other partitions the peer has one [`RemotePeerLink`] instead of its links. It submits to the leader of the home, over
//! the mutual TLS of the nodes, and receives outcomes and DLRs. At the home the connection is a [`PartitionSession`], the link of
//! an account that the other partition has there.

mod frame;
mod remote_peer_link;
mod session;
mod sessions;

pub(crate) use remote_peer_link::dial_home;
pub(crate) use session::PartitionSession;
pub(crate) use sessions::PartitionSessions;

use model::PeerId;
use ports::Protocol;
use std::collections::{BTreeMap, HashMap};

/// A peer whose home is another partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotePeerOptions {
    /// The peer's name, which is the same in all partitions.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// Its home.
    pub partition: u8,
    /// The greatest number of messages at the home without an outcome.
    pub window: usize,
    /// The protocol between home and peer, whose codes the outcomes have; `None` for an account.
    pub protocol: Option<Protocol>,
    /// Attributes of accounts, if plugins at the home may read them.
    pub account_attributes: HashMap<PeerId, BTreeMap<String, String>>,
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
