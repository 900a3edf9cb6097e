//! Integration tests of the Redis listener for number pools.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod fixture;
mod partitions;
mod redis_server;
