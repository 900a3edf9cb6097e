//! Guests that import WASI find an empty world; what they see and say goes the way of all plugins.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use support::{passes, root};

fn empty_world(guest: &str) {
    let folder = root().join("plugins/test-guests").join(guest);
    passes(&folder, &folder.join("cases.toml"));
}

#[test]
fn a_guest_in_python_finds_nothing() {
    empty_world("ambient-python");
}

#[test]
fn a_guest_in_javascript_finds_nothing() {
    empty_world("ambient-js");
}
