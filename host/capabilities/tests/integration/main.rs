//! Integration tests of the capabilities of plugins.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod fetch;
mod table_store;
