//! Integration tests of the journal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod crash;
mod damage;
mod files;
mod format;
mod retention;
mod support;
mod writing;
