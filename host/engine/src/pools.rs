//! Number pools: numbers that many users share, each held by one at a time.

mod table;

pub use table::{Reply, step};
