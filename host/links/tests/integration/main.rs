//! Integration tests of links over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod client;
mod robust;
mod server;
mod sgip;
mod support;
