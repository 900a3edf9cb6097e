//! Plugins as OCI artifacts: the parts of the OCI image spec 1.1 and the OCI distribution spec 1.1 that their distribution
//! needs.
//!
//! A [`PluginArtifact`] is a component with its signature and its bill of materials. [`push`] writes it to a
//! [`ContentStore`] and [`pull`] reads it: a [`RegistryClient`] or an [`ImageLayout`] in a folder. The artifact has the
//! "Wasm OCI Artifact layout" of the CNCF, so that other tools for components can pull it:
//!
//! * The manifest has a config of type `application/vnd.wasm.config.v0+json` and one layer, `application/wasm`: the component.
//! * The signature is the annotation [`SIGNATURE_ANNOTATION`] of the manifest, since tools refuse a second layer.
//! * The bill of materials is a separate artifact whose `subject` is the manifest.
//!
//! All content is compared with its digest and its size before use, and has a size limit.
#![forbid(unsafe_code)]

mod artifact;
mod bill_of_materials;
mod challenge;
mod content_digest;
mod content_store;
mod credentials;
mod error;
mod image_layout;
mod location;
mod manifest;
mod registry_client;

pub use artifact::{
    ComponentDescription, MAX_COMPONENT_OCTETS, PluginArtifact, PulledArtifact, PushedArtifact,
    SIGNATURE_ANNOTATION, pull, push,
};
pub use bill_of_materials::{BillFormat, BillOfMaterials, MAX_BILL_OCTETS};
pub use content_digest::ContentDigest;
pub use content_store::{ContentStore, MAX_TAGS, ResolvedManifest, TagList};
pub use credentials::RegistryCredentials;
pub use error::OciError;
pub use image_layout::ImageLayout;
pub use location::{ArtifactLocation, LayoutReference, RegistryReference, is_tag};
pub use manifest::{Descriptor, ImageIndex, ImageManifest, MAX_MANIFEST_OCTETS, media_type};
pub use registry_client::{RegistryClient, RegistryOptions};
