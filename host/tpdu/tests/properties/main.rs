//! What holds for all messages, whatever they are.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod generate;
mod roundtrip;
mod smpp;
