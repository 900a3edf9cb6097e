//! Integration tests of the engine: scenarios, and a simulation under faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod dlrs_and_keys;
mod pool_disk;
mod scenarios;
mod simulation;
