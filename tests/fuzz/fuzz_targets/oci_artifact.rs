//! The first line as the location of an artifact; the rest as a manifest and as an index of an image layout in a folder, which is
//! pulled. A registry's documents pass through the same decoders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{ArtifactLocation, ContentDigest, ContentStore, ImageLayout, pull};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The blob that a manifest may name.
const COMPONENT: &[u8] = b"component";

/// A folder with an image layout, without an index.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder").keep();
    std::fs::create_dir_all(folder.join("blobs/sha256")).expect("its folders");
    std::fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).expect("its mark");
    write_blob(&folder, COMPONENT);
    folder
});

fn write_blob(folder: &std::path::Path, octets: &[u8]) -> PathBuf {
    let path = folder.join("blobs/sha256").join(ContentDigest::of(octets).digits());
    std::fs::write(&path, octets).expect("a blob");
    path
}

/// Pulls the tag `1`.
fn pull_with(index: &[u8]) {
    std::fs::write(FOLDER.join("index.json"), index).expect("the index");
    let location = format!("oci-layout:{}:1", FOLDER.display());
    let Ok(ArtifactLocation::Layout(reference)) = location.parse() else { panic!("not a folder") };
    let layout = ImageLayout::new(reference);
    let shown = layout.location();
    match pull(&layout) {
        Ok(pulled) => {
            // No manifest in the folder names anything else.
            assert_eq!(pulled.artifact.component, COMPONENT);
            let name = pulled.artifact.file_name.unwrap_or_default();
            assert!(!name.contains(['/', '\0']) && !name.starts_with('.'), "{name:?}");
        }
        Err(error) => {
            let text = error.to_string().replace(&shown, "");
            assert!(
                !text.contains(|character: char| character.is_control() && character != '\n'),
                "{text:?}"
            );
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|octet| *octet == b'\n').unwrap_or(data.len());
    let (line, rest) = data.split_at(end);
    if let Ok(Ok(location)) = std::str::from_utf8(line).map(str::parse::<ArtifactLocation>) {
        assert_eq!(location.to_string().parse::<ArtifactLocation>().ok(), Some(location));
    }
    let document = rest.get(1..).unwrap_or_default();
    let manifest = write_blob(&FOLDER, document);
    pull_with(document);
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{}","size":{},"annotations":{{"org.opencontainers.image.ref.name":"1"}}}}]}}"#,
        ContentDigest::of(document),
        document.len(),
    );
    pull_with(index.as_bytes());
    if document != COMPONENT {
        std::fs::remove_file(manifest).expect("the manifest");
    }
});
