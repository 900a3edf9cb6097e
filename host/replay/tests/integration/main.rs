//! Integration tests of replays.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod differences;
#[path = "../../../archive/tests/integration/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;
mod reference_model;
mod replay_runs;
mod strategies;
