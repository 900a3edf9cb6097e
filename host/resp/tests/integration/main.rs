//! Integration tests of the Redis protocol session.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod client;
mod cluster;
mod programs;
mod script;
mod session;
mod transaction;
