use crate::{artifact, description, store};
use oci::{ContentDigest, OciError, PluginArtifact, PulledArtifact, pull, push};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn location(folder: &Path, ending: &str) -> String {
    format!("oci-layout:{}{ending}", folder.display())
}

fn push_to(folder: &Path, artifact: &PluginArtifact, tag: Option<&str>) -> Result<ContentDigest, OciError> {
    let target = store(&location(folder, ""), None);
    Ok(push(&*target, artifact, &description(), tag)?.digest)
}

fn pull_from(folder: &Path, ending: &str) -> Result<PulledArtifact, OciError> {
    pull(&*store(&location(folder, ending), None))
}

fn another() -> PluginArtifact {
    PluginArtifact { component: b"\0asm another".to_vec(), ..artifact() }
}

fn blob(folder: &Path, digest: ContentDigest) -> PathBuf {
    folder.join("blobs/sha256").join(digest.digits())
}

#[test]
fn an_artifact_is_pulled_as_it_was_pushed() {
    let top = tempfile::tempdir().unwrap();
    let folder = top.path().join("stick/plugins");
    let digest = push_to(&folder, &artifact(), Some("1.0")).unwrap();
    assert_eq!(push_to(&folder, &artifact(), Some("1.0")).unwrap(), digest);
    for ending in ["", ":1.0", &*format!("@{digest}")] {
        let pulled = pull_from(&folder, ending).unwrap();
        assert_eq!(pulled, PulledArtifact { digest, artifact: artifact() });
    }
    let mark = std::fs::read_to_string(folder.join("oci-layout")).unwrap();
    assert_eq!(mark, r#"{"imageLayoutVersion":"1.0.0"}"#);
    assert!(
        matches!(pull_from(&folder, ":2.0"), Err(OciError::NotFound { content, .. }) if content == "tag 2.0")
    );
}

#[test]
fn a_tag_moves_and_what_had_it_stays_bound_by_its_digest() {
    let top = tempfile::tempdir().unwrap();
    let first = push_to(top.path(), &artifact(), Some("stable")).unwrap();
    let second = push_to(top.path(), &another(), Some("stable")).unwrap();
    assert_eq!(pull_from(top.path(), ":stable").unwrap().digest, second);
    assert_eq!(pull_from(top.path(), &format!("@{first}")).unwrap().artifact, artifact());
    assert!(pull_from(top.path(), "").unwrap_err().to_string().contains("give a tag or a digest"));
    // One artifact with two tags.
    push_to(top.path(), &another(), Some("2.0")).unwrap();
    assert_eq!(pull_from(top.path(), ":2.0").unwrap(), pull_from(top.path(), ":stable").unwrap());
    assert_eq!(pull_from(top.path(), &format!("@{second}")).unwrap().digest, second);
    let listed = store(&location(top.path(), ""), None).tags().unwrap();
    assert_eq!((listed.tags.join(" ").as_str(), listed.is_complete), ("2.0 stable", true));
}

#[test]
fn damaged_content_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let digest = push_to(top.path(), &artifact(), Some("1.0")).unwrap();
    let component = blob(top.path(), ContentDigest::of(&artifact().component));
    std::fs::write(&component, "\0asm COMPONENT").unwrap();
    assert!(matches!(pull_from(top.path(), ":1.0"), Err(OciError::DigestMismatch { .. })));
    std::fs::write(&component, "\0asm").unwrap();
    assert!(matches!(pull_from(top.path(), ":1.0"), Err(OciError::SizeMismatch { .. })));
    std::fs::remove_file(&component).unwrap();
    assert!(matches!(pull_from(top.path(), ":1.0"), Err(OciError::NotFound { .. })));
    std::os::unix::fs::symlink("/dev/zero", &component).unwrap();
    let error = pull_from(top.path(), ":1.0").unwrap_err().to_string();
    assert!(error.contains("not a plain file"), "{error}");
    std::fs::remove_file(&component).unwrap();
    // A push repairs damaged files.
    push_to(top.path(), &artifact(), Some("1.0")).unwrap();
    assert_eq!(pull_from(top.path(), ":1.0").unwrap().digest, digest);
    std::fs::write(blob(top.path(), digest), "{}").unwrap();
    assert!(matches!(pull_from(top.path(), ":1.0"), Err(OciError::SizeMismatch { .. })));
}

#[test]
fn a_folder_of_another_purpose_is_left_alone() {
    let top = tempfile::tempdir().unwrap();
    assert!(matches!(pull_from(top.path(), ":1.0"), Err(OciError::File { .. })));
    std::fs::write(top.path().join("index.json"), "[]").unwrap();
    let error = push_to(top.path(), &artifact(), None).unwrap_err().to_string();
    assert!(error.contains("no oci-layout"), "{error}");
    std::fs::write(top.path().join("oci-layout"), r#"{"imageLayoutVersion":"2.0.0"}"#).unwrap();
    let error = push_to(top.path(), &artifact(), None).unwrap_err().to_string();
    assert!(error.contains("version 2.0.0"), "{error}");
    assert_eq!(std::fs::read_to_string(top.path().join("index.json")).unwrap(), "[]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_file_of_a_layout_panics(mark: Vec<u8>, index: Vec<u8>, place in 0_usize..400, octet: u8) {
        let top = tempfile::tempdir().unwrap();
        push_to(top.path(), &artifact(), Some("1.0")).unwrap();
        let path = top.path().join("index.json");
        let mut damaged = std::fs::read(&path).unwrap();
        if let Some(there) = damaged.get_mut(place) {
            *there = octet;
        }
        for index in [&damaged, &index] {
            std::fs::write(&path, index).unwrap();
            let _ = pull_from(top.path(), ":1.0");
            let _ = store(&location(top.path(), ""), None).tags();
        }
        std::fs::write(top.path().join("oci-layout"), mark).unwrap();
        prop_assert!(pull_from(top.path(), ":1.0").is_err());
    }
}
