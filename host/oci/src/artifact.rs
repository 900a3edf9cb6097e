//! A plugin as an artifact (CNCF, "Wasm OCI Artifact layout").

use crate::bill_of_materials::BillFormat;
use crate::error::printable;
use crate::manifest::encode;
use crate::{
    BillOfMaterials, ContentDigest, ContentStore, Descriptor, ImageManifest, MAX_BILL_OCTETS, OciError,
    media_type,
};
use serde::Serialize;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The maximum size of a component that an appliance accepts, in octets.
pub const MAX_COMPONENT_OCTETS: u64 = 64 << 20;
/// The annotation of a manifest with the signature of the component: base64 of 64 octets (ed25519).
pub const SIGNATURE_ANNOTATION: &str = "org.switchyard.signature";
/// The annotation of a layer with the name of its file (OCI image spec 1.1, annotations.md).
const TITLE_ANNOTATION: &str = "org.opencontainers.image.title";
/// The time at which an artifact was made (OCI image spec 1.1, annotations.md).
const CREATED_ANNOTATION: &str = "org.opencontainers.image.created";
/// The config of an artifact that has none (OCI image spec 1.1, manifest.md, "Guidance for an Empty Descriptor").
const EMPTY_CONFIG: &[u8] = b"{}";
/// Maximum length of a file name in an artifact, in octets.
const MAX_FILE_NAME: usize = 128;

/// A component, with its file name, its signature and its bill of materials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginArtifact {
    /// The component, at most [`MAX_COMPONENT_OCTETS`].
    pub component: Vec<u8>,
    /// The name of the component's file, without a folder. A name that is not a plain file name is ignored.
    pub file_name: Option<String>,
    /// The signature, as text. It is not verified here.
    pub signature: Option<String>,
    /// The bill of materials.
    pub bill: Option<BillOfMaterials>,
}

/// The description of a component in the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentDescription {
    /// The time of the build, in whole seconds. The same file gets the same digest only with the same time.
    pub created: SystemTime,
    /// The full names of its exports.
    pub exports: Vec<String>,
    /// The full names of its imports.
    pub imports: Vec<String>,
    /// The full name of the world that it was built for.
    pub target: Option<String>,
}

/// The digests of a pushed artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedArtifact {
    /// The digest of its manifest, which identifies the artifact.
    pub digest: ContentDigest,
    /// The digest of the manifest of its bill of materials.
    pub bill_digest: Option<ContentDigest>,
}

/// A pulled artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledArtifact {
    /// The digest of its manifest.
    pub digest: ContentDigest,
    /// The plugin.
    pub artifact: PluginArtifact,
}

/// The config in the CNCF's layout.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: &'a str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [ContentDigest; 1],
    component: ComponentConfig<'a>,
}

#[derive(Serialize)]
struct ComponentConfig<'a> {
    exports: &'a [String],
    imports: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
}

/// Writes an artifact. The tag is set last, when everything that it refers to is written.
///
/// # Errors
/// If the component is too large, or the store refuses or cannot be reached.
pub fn push(
    store: &dyn ContentStore,
    artifact: &PluginArtifact,
    description: &ComponentDescription,
    tag: Option<&str>,
) -> Result<PushedArtifact, OciError> {
    let location = store.location();
    if artifact.component.len() as u64 > MAX_COMPONENT_OCTETS {
        return Err(OciError::too_large(&location, &"the component", MAX_COMPONENT_OCTETS));
    }
    let created = OffsetDateTime::from(description.created);
    let created = created.replace_nanosecond(0).unwrap_or(created).format(&Rfc3339);
    // The time of a file may be outside the calendar; the config must have a valid time.
    let created = created.unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned());

    let mut layer = Descriptor::of(media_type::WASM, &artifact.component);
    store.write_blob(&layer, &artifact.component)?;
    let config = WasmConfig {
        created: &created,
        architecture: "wasm",
        os: "wasip2",
        layer_digests: [layer.digest],
        component: ComponentConfig {
            exports: &description.exports,
            imports: &description.imports,
            target: description.target.as_deref(),
        },
    };
    let config = encode(&location, "the config", &config)?;
    let config_descriptor = Descriptor::of(media_type::WASM_CONFIG, &config);
    store.write_blob(&config_descriptor, &config)?;

    if let Some(name) = artifact.file_name.as_ref().filter(|name| is_file_name(name)) {
        layer.annotations.insert(TITLE_ANNOTATION.to_owned(), name.clone());
    }
    let mut manifest = ImageManifest::new(config_descriptor, layer);
    if let Some(signature) = &artifact.signature {
        manifest.annotations.insert(SIGNATURE_ANNOTATION.to_owned(), signature.clone());
    }
    let (subject, _) = manifest.encode(&location)?;
    let bill_digest = match &artifact.bill {
        Some(bill) => Some(push_bill(store, bill, subject, &created)?),
        None => None,
    };
    let digest = store.write_manifest(&manifest, tag)?.digest;
    Ok(PushedArtifact { digest, bill_digest })
}

/// Writes a bill of materials as a referrer of a manifest, which need not exist yet (OCI distribution spec 1.1, "Pushing
/// Manifests with Subject").
fn push_bill(
    store: &dyn ContentStore,
    bill: &BillOfMaterials,
    subject: Descriptor,
    created: &str,
) -> Result<ContentDigest, OciError> {
    let kind = bill.format().media_type();
    let layer = Descriptor::of(kind, bill.octets());
    store.write_blob(&layer, bill.octets())?;
    let config = Descriptor::of(media_type::EMPTY, EMPTY_CONFIG);
    store.write_blob(&config, EMPTY_CONFIG)?;
    let mut manifest = ImageManifest::new(config, layer);
    manifest.artifact_type = Some(kind.to_owned());
    manifest.subject = Some(subject);
    manifest.annotations.insert(CREATED_ANNOTATION.to_owned(), created.to_owned());
    Ok(store.write_manifest(&manifest, None)?.digest)
}

/// Reads the artifact that the store's reference names. It may be from any tool that writes the CNCF's layout.
///
/// # Errors
/// If it does not exist, is not a component, is damaged or too large, or the store refuses or cannot be reached.
pub fn pull(store: &dyn ContentStore) -> Result<PulledArtifact, OciError> {
    let location = store.location();
    let resolved = store.resolve()?;
    let manifest = resolved.manifest;
    let wrong = |why: String| Err(OciError::NotAPlugin { location: location.clone(), why });
    if manifest.config.media_type != media_type::WASM_CONFIG {
        return wrong(format!(
            "its config is of type {}, and not {}",
            printable(&manifest.config.media_type),
            media_type::WASM_CONFIG
        ));
    }
    let [layer] = &*manifest.layers else {
        return wrong(format!("it has {} layers, and a component is one", manifest.layers.len()));
    };
    if layer.media_type != media_type::WASM {
        return wrong(format!("its layer is of type {}", printable(&layer.media_type)));
    }
    let component = store.read_blob(layer, MAX_COMPONENT_OCTETS)?;
    let artifact = PluginArtifact {
        component,
        file_name: layer.annotations.get(TITLE_ANNOTATION).filter(|name| is_file_name(name)).cloned(),
        signature: manifest.annotations.get(SIGNATURE_ANNOTATION).cloned(),
        bill: pull_bill(store, resolved.digest)?,
    };
    Ok(PulledArtifact { digest: resolved.digest, artifact })
}

/// The latest bill of materials of a manifest.
fn pull_bill(store: &dyn ContentStore, subject: ContentDigest) -> Result<Option<BillOfMaterials>, OciError> {
    let is_bill = |kind: &str| BillFormat::ALL.into_iter().any(|format| format.media_type() == kind);
    let referrers = store.referrers(subject)?;
    let found = referrers.iter().rfind(|entry| entry.artifact_type.as_deref().is_some_and(is_bill));
    let Some(entry) = found else { return Ok(None) };
    let manifest = store.read_manifest(entry)?;
    let names_subject = manifest.subject.is_some_and(|named| named.digest == subject);
    match &*manifest.layers {
        [layer] if names_subject && is_bill(&layer.media_type) => {
            BillOfMaterials::new(store.read_blob(layer, MAX_BILL_OCTETS)?).map(Some)
        }
        _ => {
            let why = format!("{} is not one document that belongs to {subject}", entry.digest);
            Err(OciError::malformed(&store.location(), "the bill of materials", &why))
        }
    }
}

/// Whether an untrusted name is a plain file name, which is safe to create in any folder.
fn is_file_name(name: &str) -> bool {
    let first = name.bytes().next();
    name.len() <= MAX_FILE_NAME
        && first.is_some_and(|octet| octet.is_ascii_alphanumeric() || octet == b'_')
        && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_file_name;

    #[test]
    fn a_file_name_leads_nowhere_else() {
        assert!(is_file_name("prefix_router.wasm") && is_file_name("a-1.2.wasm"));
        for wrong in ["", ".", "..", ".profile", "../a.wasm", "/a", "a/b", "a b", "-rf", "a\u{1b}", "é.wasm"]
        {
            assert!(!is_file_name(wrong), "{wrong}");
        }
    }
}
