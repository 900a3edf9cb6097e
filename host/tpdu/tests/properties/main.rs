//! Property tests of the codec.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod generate;
mod roundtrip;
mod smpp;
