//! Tables, group commit and recovery, on redb.
//!
//! One [`Store::commit`] is one transaction with an fsync: a whole [`engine::Batch`] or nothing of it. Reading goes on
//! beside it. What stands in which table, and in which octets, is written above the encoders in [`mod@record`],
//! [`ledger`], [`money`], [`orders`] and [`pools`].
#![forbid(unsafe_code)]

mod cursor;
mod error;
mod groups;
pub mod ledger;
pub mod money;
pub mod orders;
mod pool_tables;
pub mod pools;
pub mod record;
mod recover;
mod restored;
mod search;
mod snapshot;
mod store;

pub use error::StoreError;
pub use pool_tables::PoolHistory;
pub use record::RecordError;
pub use recover::Recovery;
pub use restored::Restored;
pub use search::{Looked, Seen};
pub use store::{Committed, FinishedPage, Found, Store, StoreOptions, free_space, is_in_use};
