//! The documents of the OCI image spec 1.1 that distribution needs: descriptor, image manifest and image index.

use crate::error::printable;
use crate::{ContentDigest, OciError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum size of a manifest or an index that every registry accepts, in octets (OCI distribution spec 1.1, "Pushing
/// Manifests").
pub const MAX_MANIFEST_OCTETS: u64 = 4 << 20;

/// Media types of manifests, configs and layers.
pub mod media_type {
    /// An image manifest (OCI image spec 1.1, media-types.md).
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An image index (OCI image spec 1.1, media-types.md).
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// The config of an artifact that has none: `{}` (OCI image spec 1.1, media-types.md).
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// The config of a component (CNCF, "Wasm OCI Artifact layout").
    pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
    /// The layer with a component (CNCF, "Wasm OCI Artifact layout").
    pub const WASM: &str = "application/wasm";
}

/// A content descriptor: the type, digest and size of a blob or manifest (OCI image spec 1.1, descriptor.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: ContentDigest,
    /// Its size in octets.
    pub size: u64,
    /// The type of the artifact, if the manifest is not a container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// The descriptor of these octets.
    #[must_use]
    pub fn of(media_type: &str, octets: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: ContentDigest::of(octets),
            size: octets.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// An image manifest (OCI image spec 1.1, manifest.md). Its fields are written in this order, so that equal manifests have equal
/// digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    /// The type of the artifact, if its config does not define it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The config.
    pub config: Descriptor,
    /// The layers, in order.
    pub layers: Vec<Descriptor>,
    /// The manifest to which this one belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl ImageManifest {
    /// A manifest with this config and this layer.
    #[must_use]
    pub fn new(config: Descriptor, layer: Descriptor) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::MANIFEST.to_owned()),
            artifact_type: None,
            config,
            layers: vec![layer],
            subject: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Its octets, and their descriptor for an index.
    ///
    /// # Errors
    /// [`OciError::TooLarge`] above [`MAX_MANIFEST_OCTETS`].
    pub(crate) fn encode(&self, location: &str) -> Result<(Descriptor, Vec<u8>), OciError> {
        let octets = encode(location, "the manifest", self)?;
        let mut descriptor = Descriptor::of(media_type::MANIFEST, &octets);
        descriptor.artifact_type = self.artifact_type.clone();
        Ok((descriptor, octets))
    }

    /// Reads an image manifest. An index and manifests of other kinds are refused.
    pub(crate) fn decode(location: &str, octets: &[u8]) -> Result<Self, OciError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            #[serde(default)]
            media_type: Option<String>,
        }
        let kind: Kind = decode(location, "the manifest", octets)?;
        match kind.media_type.as_deref() {
            Some(media_type::MANIFEST) | None => {}
            Some(media_type::INDEX) => {
                return Err(OciError::NotAPlugin {
                    location: location.to_owned(),
                    why: "it is an index of several artifacts; give the digest of one of them".to_owned(),
                });
            }
            Some(other) => {
                let why = format!("its manifest is of type {}", printable(other));
                return Err(OciError::NotAPlugin { location: location.to_owned(), why });
            }
        }
        let manifest: Self = decode(location, "the manifest", octets)?;
        match manifest.schema_version {
            2 => Ok(manifest),
            other => {
                let why = format!("schemaVersion is {other}, and only 2 is known");
                Err(OciError::malformed(location, "the manifest", &why))
            }
        }
    }
}

/// An image index: a list of manifests (OCI image spec 1.1, image-index.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    /// The manifests.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Default for ImageIndex {
    fn default() -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::INDEX.to_owned()),
            manifests: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }
}

/// Reads a JSON document.
pub(crate) fn decode<T: DeserializeOwned>(
    location: &str,
    content: &'static str,
    octets: &[u8],
) -> Result<T, OciError> {
    serde_json::from_slice(octets).map_err(|error| OciError::malformed(location, content, &error))
}

/// Writes a JSON document of limited size.
pub(crate) fn encode(
    location: &str,
    content: &'static str,
    document: &impl Serialize,
) -> Result<Vec<u8>, OciError> {
    let octets =
        serde_json::to_vec(document).map_err(|error| OciError::malformed(location, content, &error))?;
    if octets.len() as u64 > MAX_MANIFEST_OCTETS {
        return Err(OciError::too_large(location, &content, MAX_MANIFEST_OCTETS));
    }
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layer() -> Descriptor {
        Descriptor::of(media_type::WASM, b"component")
    }

    #[test]
    fn a_manifest_is_written_as_the_specification_names_its_fields() {
        let mut manifest = ImageManifest::new(Descriptor::of(media_type::EMPTY, b"{}"), layer());
        manifest.artifact_type = Some("application/example".to_owned());
        manifest.subject = Some(layer());
        let (descriptor, octets) = manifest.encode("here").unwrap();
        assert_eq!(descriptor.digest, ContentDigest::of(&octets));
        assert_eq!(descriptor.artifact_type.as_deref(), Some("application/example"));
        assert_eq!(ImageManifest::decode("here", &octets).unwrap(), manifest);
        let json: serde_json::Value = serde_json::from_slice(&octets).unwrap();
        assert_eq!(json["schemaVersion"], 2);
        assert_eq!(json["mediaType"], media_type::MANIFEST);
        assert_eq!(json["artifactType"], "application/example");
        assert_eq!(json["layers"][0]["mediaType"], "application/wasm");
        assert_eq!(json["subject"]["size"], 9);
        assert!(json.get("annotations").is_none());
    }

    #[test]
    fn manifests_of_other_kinds_are_refused() {
        for (text, why) in [
            (
                r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#,
                "index",
            ),
            (
                r#"{"schemaVersion":2,"mediaType":"application/\u001b[2Jx"}"#,
                "its manifest is of type application/ [2Jx",
            ),
            (r#"{"schemaVersion":1}"#, "missing field"),
            ("[]", "malformed"),
            ("", "malformed"),
        ] {
            let error = ImageManifest::decode("here", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let (_, octets) = ImageManifest::new(layer(), layer()).encode("here").unwrap();
        let text = String::from_utf8(octets).unwrap();
        for (from, to) in [("\"schemaVersion\":2", "\"schemaVersion\":1"), ("\"size\":9", "\"size\":-9")] {
            assert!(text.contains(from));
            assert!(ImageManifest::decode("here", text.replace(from, to).as_bytes()).is_err(), "{to}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets: Vec<u8>) {
            let _ = ImageManifest::decode("here", &octets);
            let _ = decode::<ImageIndex>("here", "the index", &octets);
        }

        #[test]
        fn no_damage_of_a_manifest_panics(place in 0_usize..600, octet: u8) {
            let (_, mut octets) = ImageManifest::new(layer(), layer()).encode("here").unwrap();
            if let Some(damaged) = octets.get_mut(place) {
                *damaged = octet;
            }
            let _ = ImageManifest::decode("here", &octets);
        }
    }
}
