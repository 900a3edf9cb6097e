//! Integration tests of the console.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod lists;
mod live_pages;
mod page_requests;
mod pages;
mod plugin_pages;
mod sessions;
