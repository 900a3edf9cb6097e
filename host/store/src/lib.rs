//! The store: group commit to the journal, redb tables, and recovery.
//!
//! One [`Store::commit`] appends one record to the journal, with one fsync: a whole [`model::Batch`] or nothing. The
//! tables are updated later: merged changes wait in memory until a reader needs them or [`Store::apply`] is called, and
//! are durable in the tables after the next [`Store::checkpoint`]. At its start, the store applies the records that the
//! tables lack. The encoders of [`codec`] describe the records of both.
#![forbid(unsafe_code)]

mod apply;
mod changes;
mod checked;
mod decoding;
mod error;
mod finished;
mod follower;
mod peer_groups;
mod pending;
mod pool_changes;
mod pool_tables;
mod reading;
mod recover;
mod restore;
mod retention;
mod scan;
mod snapshot;
mod store;
mod tables;
mod verify;

pub use decoding::{StoredMessage, decode_record};
pub use error::StoreError;
pub use follower::Follower;
pub use pool_tables::PoolHistory;
pub use reading::FinishedPage;
pub use recover::Recovery;
pub use restore::RestoredCounts;
pub use scan::{BackwardScan, ScanStep};
pub use store::{CommitStats, FollowedJournal, Store, StoreOptions, free_space, is_in_use, journal_path};
pub use verify::verify;
