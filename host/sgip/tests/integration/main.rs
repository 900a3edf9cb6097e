//! Integration tests of the SGIP codec and connection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod checklist;
mod properties;
mod vectors;
