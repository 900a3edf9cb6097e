//! Integration tests of the GSUP codec and its connections.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod checklist;
mod failures;
mod properties;
mod vectors;
