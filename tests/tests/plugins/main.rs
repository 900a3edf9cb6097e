//! Plugins: their lifecycle, their decisions, and what the daemon stores for them.

mod counters;
mod foreign;
mod ledger;
mod policy;
mod resolver;
