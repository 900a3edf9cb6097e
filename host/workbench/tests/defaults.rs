//! Default plugins with cases pass them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::{passes_cases, root};

/// A component that `cargo xtask plugins` has built; built now if it is missing. `SWITCHYARD_PLUGINS` names another
/// folder.
fn plugin_component(name: &str) -> PathBuf {
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
fn hlr_resolver_passes_its_cases() {
    passes_cases(&plugin_component("hlr_resolver.wasm"), &root().join("plugins/hlr-resolver/cases.toml"));
}

#[test]
fn shared_sender_passes_its_cases() {
    passes_cases(&plugin_component("shared_sender.wasm"), &root().join("plugins/shared-sender/cases.toml"));
}
