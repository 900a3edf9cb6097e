//! Integration tests of the archive.
#![allow(clippy::expect_used, reason = "a failed step fails the test")]

mod scenarios;
mod sqlite;
