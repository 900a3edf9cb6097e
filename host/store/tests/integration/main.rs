//! Integration tests of the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod cluster;
mod damage;
mod encrypted_contents;
mod formats;
mod model;
mod open;
mod pools;
mod power_cut;
mod reading;
mod restore;
mod support;
