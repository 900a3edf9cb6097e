//! Cluster node: the replicated log in etcd, membership and shared state.
//!
//! etcd holds the head of the log and its tail, a ring of records. Each append is one transaction that compares the
//! head, so replication and fencing are one step ([`EtcdJournal`]). A claim also compares the head, and writes a higher
//! term. Safety does not depend on clocks, leases or locks; the time at which a follower claims does ([`Suspicion`]).
//!
//! The crate `journal` defines the format of the records and the interface; this crate does not know the contents of
//! batches.
#![forbid(unsafe_code)]

mod client;
mod cluster;
mod error;
mod etcd_journal;
mod log_copy;
mod nodes;
mod options;
mod proto;
mod ring;
mod shared_content;
mod shared_scope;
mod shared_state;
mod suspicion;

pub use client::innermost_cause;
pub use cluster::{Cluster, LeaderRecord, PartitionLeader};
pub use error::ClusterError;
pub use etcd_journal::{EtcdJournal, FollowedTail};
pub use log_copy::LogCopy;
pub use nodes::Exchange;
pub use options::{ClusterOptions, DegradedPolicy};
pub use shared_content::{SharedContent, SharedFile};
pub use shared_scope::SharedScope;
pub use shared_state::{ReplicationState, SharedChanges};
pub use suspicion::Suspicion;

use std::time::Duration;

/// Interval within which a leader appends, also without traffic.
pub const HEARTBEAT: Duration = Duration::from_millis(300);
