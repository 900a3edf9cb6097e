//! The store: tables, group commit and recovery, on redb.
//!
//! One [`Store::commit`] is one transaction with an fsync: a whole [`model::Batch`] or nothing of it. Readers are
//! not blocked. The encoders of [`codec`] describe the records of the tables.
#![forbid(unsafe_code)]

mod error;
mod peer_groups;
mod pool_tables;
mod recover;
mod restore;
mod scan;
mod snapshot;
mod store;

pub use error::StoreError;
pub use pool_tables::PoolHistory;
pub use recover::Recovery;
pub use restore::RestoredCounts;
pub use scan::{BackwardScan, ScanStep};
pub use store::{CommitStats, FinishedPage, Store, StoreOptions, StoredMessage, free_space, is_in_use};
