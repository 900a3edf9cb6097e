//! Integration tests of the plugin tools.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod defaults;
mod examples;
mod foreign;
mod support;
mod templates;
