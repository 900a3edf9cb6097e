//! Integration tests of the monitoring files and the metrics page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod monitoring;
