//! Default plugins with cases pass them.

use crate::support::{passes_cases, root};
use std::path::PathBuf;

/// A component that `cargo xtask` has built.
fn plugin_component(name: &str) -> PathBuf {
    testkit::built::plugins().unwrap().join(name)
}

#[test]
fn firewall_passes_its_cases() {
    passes_cases(&plugin_component("firewall.wasm"), &root().join("plugins/firewall/cases.toml"));
}

#[test]
fn hlr_resolver_passes_its_cases() {
    passes_cases(&plugin_component("hlr_resolver.wasm"), &root().join("plugins/hlr-resolver/cases.toml"));
}

#[test]
fn prefix_router_passes_its_cases() {
    passes_cases(&plugin_component("prefix_router.wasm"), &root().join("plugins/prefix-router/cases.toml"));
}

#[test]
fn least_cost_passes_its_cases() {
    passes_cases(&plugin_component("least_cost.wasm"), &root().join("plugins/least-cost/cases.toml"));
}

#[test]
fn adaptive_passes_its_cases() {
    passes_cases(&plugin_component("adaptive.wasm"), &root().join("plugins/adaptive/cases.toml"));
}

#[test]
fn front_ends_pass_their_cases() {
    for name in ["kannel", "jasmin", "twilio"] {
        let cases = root().join(format!("plugins/{name}-front-end/cases.toml"));
        passes_cases(&plugin_component(&format!("{name}_front_end.wasm")), &cases);
    }
}

#[test]
fn shared_sender_passes_its_cases() {
    passes_cases(&plugin_component("shared_sender.wasm"), &root().join("plugins/shared-sender/cases.toml"));
}

#[test]
fn http_peer_passes_its_cases() {
    passes_cases(&plugin_component("http_peer.wasm"), &root().join("plugins/http-peer/cases.toml"));
}

#[test]
fn twilio_peer_passes_its_cases() {
    let cases = root().join("plugins/examples/twilio-peer/cases.toml");
    passes_cases(&plugin_component("twilio_peer.wasm"), &cases);
}

#[test]
fn second_chance_passes_its_cases() {
    passes_cases(&plugin_component("second_chance.wasm"), &root().join("plugins/second-chance/cases.toml"));
}

#[test]
fn number_portability_passes_its_cases() {
    let cases = root().join("plugins/number-portability/cases.toml");
    passes_cases(&plugin_component("number_portability.wasm"), &cases);
}
