//! Integration tests of the codec.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod batches;
mod contents;
mod generators;
mod records;
