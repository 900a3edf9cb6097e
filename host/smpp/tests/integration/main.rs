//! Integration tests of the SMPP codec and session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod checklist;
mod properties;
