//! Tests of the documents and schemas in `policies/`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod schemas;
