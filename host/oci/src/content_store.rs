use crate::location::is_tag;
use crate::{ContentDigest, Descriptor, ImageManifest, OciError};
use std::collections::BTreeSet;
use std::io::Read;

/// Maximum number of tags in a [`TagList`].
pub const MAX_TAGS: usize = 1000;

/// The tags of a repository or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagList {
    /// The tags, sorted, at most [`MAX_TAGS`].
    pub tags: Vec<String>,
    /// Whether the list is complete.
    pub is_complete: bool,
}

impl TagList {
    /// The list of these names. Skips names that are not valid tags, and tags that begin with `sha256-DIGITS`, under which
    /// registries store lists of referrers, and other tools store signatures.
    pub(crate) fn of(names: impl IntoIterator<Item = String>, is_complete: bool) -> Self {
        let is_version = |name: &String| is_tag(name) && !name.starts_with("sha256-");
        let mut tags: BTreeSet<_> = names.into_iter().filter(is_version).collect();
        let has_all = is_complete && tags.len() <= MAX_TAGS;
        while tags.len() > MAX_TAGS {
            tags.pop_last();
        }
        Self { tags: tags.into_iter().collect(), is_complete: has_all }
    }
}

/// The manifest of a tag or a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedManifest {
    /// The verified digest of its octets.
    pub digest: ContentDigest,
    /// The manifest.
    pub manifest: ImageManifest,
}

/// A store of blobs and manifests that are addressed by their digests: one repository of a registry, or a folder.
///
/// All returned content has been compared with its digest, its size and a limit. All functions return an [`OciError`] if the
/// store cannot be reached, refuses, or has other content than the descriptor says.
pub trait ContentStore {
    /// Its name for messages, without tag and digest.
    fn location(&self) -> String;

    /// The manifest of the tag or digest in the reference; the digest counts if it has both. The tag is resolved once.
    ///
    /// # Errors
    /// [`OciError::NotFound`] if there is none.
    fn resolve(&self) -> Result<ResolvedManifest, OciError>;

    /// The tags of the repository, regardless of the tag in the reference.
    ///
    /// # Errors
    /// [`OciError::NotFound`] if there is no such repository.
    fn tags(&self) -> Result<TagList, OciError>;

    /// Reads a manifest.
    ///
    /// # Errors
    /// See the trait.
    fn read_manifest(&self, descriptor: &Descriptor) -> Result<ImageManifest, OciError>;

    /// Reads a blob of at most `limit` octets.
    ///
    /// # Errors
    /// See the trait.
    fn read_blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, OciError>;

    /// Writes a blob, unless it exists.
    ///
    /// # Errors
    /// See the trait.
    fn write_blob(&self, descriptor: &Descriptor, octets: &[u8]) -> Result<(), OciError>;

    /// Writes a manifest, whose blobs must exist. A tag is moved from the manifest that had it. Returns the descriptor of
    /// the new manifest.
    ///
    /// # Errors
    /// See the trait.
    fn write_manifest(&self, manifest: &ImageManifest, tag: Option<&str>) -> Result<Descriptor, OciError>;

    /// The manifests whose `subject` is this one, in the order of the store; the latest is the last. If a registry sends its
    /// list in pages, only the first page.
    ///
    /// # Errors
    /// See the trait.
    fn referrers(&self, subject: ContentDigest) -> Result<Vec<Descriptor>, OciError>;
}

/// Reads content that a descriptor describes, and compares it with the descriptor. Reads at most one octet more than its size.
pub(crate) fn read_verified(
    location: &str,
    descriptor: &Descriptor,
    limit: u64,
    source: impl Read,
    failed: impl FnOnce(std::io::Error) -> OciError,
) -> Result<Vec<u8>, OciError> {
    let Descriptor { digest, size, .. } = descriptor;
    if *size > limit {
        return Err(OciError::too_large(location, digest, limit));
    }
    // The size is only a claim of the store, so the buffer grows with the received octets.
    let mut octets = Vec::new();
    source.take(size.saturating_add(1)).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() as u64 != *size {
        return Err(OciError::SizeMismatch {
            location: location.to_owned(),
            digest: *digest,
            expected: *size,
        });
    }
    verify(location, *digest, &octets)?;
    Ok(octets)
}

/// Compares octets with the requested digest.
pub(crate) fn verify(location: &str, expected: ContentDigest, octets: &[u8]) -> Result<(), OciError> {
    let found = ContentDigest::of(octets);
    if found == expected {
        return Ok(());
    }
    Err(OciError::DigestMismatch { location: location.to_owned(), expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media_type;

    fn read(descriptor: &Descriptor, limit: u64, octets: &[u8]) -> Result<Vec<u8>, OciError> {
        read_verified("here", descriptor, limit, octets, |error| panic!("{error}"))
    }

    #[test]
    fn a_list_of_tags_is_sorted_and_has_a_limit() {
        let names = ["2.0", "1.0", "", "a/b", "\u{1b}", "sha256-00.sig", "1.0"].map(str::to_owned);
        let list = TagList::of(names, true);
        assert_eq!(list, TagList { tags: vec!["1.0".to_owned(), "2.0".to_owned()], is_complete: true });
        let names = |count: usize| (0..count).map(|number| format!("{number:06}"));
        assert!(TagList::of(names(MAX_TAGS), true).is_complete);
        let list = TagList::of(names(MAX_TAGS + 1), true);
        assert_eq!((list.tags.len(), list.is_complete), (MAX_TAGS, false));
        assert!(!TagList::of(names(1), false).is_complete);
    }

    #[test]
    fn content_is_compared_with_digest_size_and_limit() {
        let descriptor = Descriptor::of(media_type::WASM, b"component");
        assert_eq!(read(&descriptor, 9, b"component").unwrap(), b"component");
        assert!(matches!(read(&descriptor, 8, b"component"), Err(OciError::TooLarge { limit: 8, .. })));
        assert!(matches!(read(&descriptor, 9, b"compONENT"), Err(OciError::DigestMismatch { .. })));
        for other in [&b"componen"[..], b"component+", b""] {
            let error = read(&descriptor, 99, other).unwrap_err();
            assert!(matches!(error, OciError::SizeMismatch { expected: 9, .. }), "{error}");
        }
        let huge = Descriptor { size: u64::MAX, ..descriptor };
        assert!(matches!(read(&huge, 99, b"component"), Err(OciError::TooLarge { .. })));
    }
}
