//! Default plugins that have cases of their own pass them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::{passes, root};

/// A component that `cargo xtask plugins` built; built here when it is not there. `SWITCHYARD_PLUGINS` names another
/// folder.
fn built(name: &str) -> PathBuf {
    let elsewhere = std::env::var_os("SWITCHYARD_PLUGINS").map(PathBuf::from);
    let path = elsewhere.clone().unwrap_or_else(|| root().join("target/plugins")).join(name);
    if !path.exists() && elsewhere.is_none() {
        let mut xtask = Command::new(env!("CARGO"));
        xtask.current_dir(root()).args(["xtask", "plugins"]);
        assert!(xtask.status().unwrap().success(), "building the guests: `cargo xtask plugins` failed");
    }
    path
}

#[test]
fn the_resolver_of_the_home_location_register_passes_its_cases() {
    passes(&built("hlr_resolver.wasm"), &root().join("plugins/hlr-resolver/cases.toml"));
}

#[test]
fn the_router_that_texts_from_a_shared_pool_passes_its_cases() {
    passes(&built("shared_sender.wasm"), &root().join("plugins/shared-sender/cases.toml"));
}
