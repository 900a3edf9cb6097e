//! Integration tests of the TPDU codec.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod checklist;
mod properties;
