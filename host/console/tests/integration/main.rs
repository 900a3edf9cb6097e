//! Integration tests of the console.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod pages;
mod plugin_pages;
