//! The store: tables, group commit and recovery, on redb.
//!
//! One [`Store::commit`] is one transaction with an fsync: a whole [`engine::Batch`] or nothing of it. Readers are
//! not blocked. The tables and the encoding of their records are described above the encoders in [`mod@record`],
//! [`idempotency_keys`], [`orphan_dlrs`], [`ledger`], [`queue_actions`] and [`pools`].
#![forbid(unsafe_code)]

mod cursor;
mod error;
pub mod idempotency_keys;
pub mod ledger;
pub mod orphan_dlrs;
mod peer_groups;
mod pool_tables;
pub mod pools;
pub mod queue_actions;
pub mod record;
mod recover;
mod restore;
mod scan;
mod snapshot;
mod store;

pub use error::StoreError;
pub use pool_tables::PoolHistory;
pub use record::RecordError;
pub use recover::Recovery;
pub use restore::RestoredCounts;
pub use scan::{BackwardScan, ScanStep};
pub use store::{CommitStats, FinishedPage, Store, StoreOptions, StoredMessage, free_space, is_in_use};
