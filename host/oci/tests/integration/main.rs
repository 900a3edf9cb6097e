//! Registries that misbehave, and image layouts. The tests against real registries are in `tests/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod fake_registry;
mod image_layout;
mod registry;

use oci::{
    ArtifactLocation, BillOfMaterials, ComponentDescription, ContentStore, ImageLayout, PluginArtifact,
    RegistryClient, RegistryCredentials, RegistryOptions,
};
use std::time::{Duration, SystemTime};

/// An artifact with a signature and a bill of materials.
fn artifact() -> PluginArtifact {
    PluginArtifact {
        component: b"\0asm component".to_vec(),
        file_name: Some("first.wasm".to_owned()),
        signature: Some("c2lnbmF0dXJl".to_owned()),
        bill: Some(BillOfMaterials::new(br#"{"spdxVersion":"SPDX-2.3"}"#.to_vec()).unwrap()),
    }
}

fn description() -> ComponentDescription {
    ComponentDescription {
        created: SystemTime::UNIX_EPOCH + Duration::from_millis(1_764_331_200_500),
        exports: vec!["switchyard:hooks/routing@0.3.0".to_owned()],
        imports: vec!["switchyard:hooks/log@0.3.0".to_owned()],
        target: Some("switchyard:hooks/router@0.3.0".to_owned()),
    }
}

/// The store of a location.
fn store(location: &str, credentials: Option<RegistryCredentials>) -> Box<dyn ContentStore> {
    match location.parse().unwrap() {
        ArtifactLocation::Registry(reference) => {
            let roots = ureq::tls::RootCerts::WebPki;
            let options = RegistryOptions { credentials, plain_http: false, roots, time_limit: None };
            Box::new(RegistryClient::new(reference, options))
        }
        ArtifactLocation::Layout(reference) => Box::new(ImageLayout::new(reference)),
    }
}
