//! Properties of every PDU and every stream.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod generate;
mod oracle;
mod pair;
mod roundtrip;
mod streams;
