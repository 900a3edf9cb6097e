//! A node of a cluster: the log that the nodes share, in etcd.
//!
//! etcd holds the head of the log and its tail, a ring of records. Each append is one transaction that compares the head:
//! replication and fencing are one act ([`EtcdJournal`]). A claim compares the head too, and puts a higher term. Safety
//! rests on no clock, lease or lock; only when a follower claims does ([`Suspicion`]).
//!
//! The crate `journal` has the format of the records and the interface; this crate knows nothing of batches.
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
pub use shared_state::{SeenElsewhere, SharedChanges};
pub use suspicion::Suspicion;

use std::time::Duration;

/// A leader appends at least this often, also without traffic.
pub const HEARTBEAT: Duration = Duration::from_millis(300);
