use crate::content_store::read_verified;
use crate::location::LayoutReference;
use crate::manifest::{decode, encode};
use crate::{
    ContentDigest, ContentStore, Descriptor, ImageIndex, ImageManifest, MAX_MANIFEST_OCTETS, OciError,
    ResolvedManifest, TagList, media_type,
};
use serde::{Deserialize, Serialize};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The annotation of an index entry with its tag (OCI image spec 1.1, annotations.md).
const TAG_ANNOTATION: &str = "org.opencontainers.image.ref.name";
/// The version of image layouts (OCI image spec 1.1, image-layout.md).
const LAYOUT_VERSION: &str = "1.0.0";
const MARK_FILE: &str = "oci-layout";
const INDEX_FILE: &str = "index.json";
/// Maximum size of the file `oci-layout`, in octets.
const MAX_MARK_OCTETS: u64 = 4096;

/// An image layout in a folder, for appliances without a network (OCI image spec 1.1, image-layout.md).
///
/// On disk:
/// * `oci-layout`: `{"imageLayoutVersion":"1.0.0"}`
/// * `index.json`: an image index; an entry has its tag in the annotation `org.opencontainers.image.ref.name`
/// * `blobs/sha256/DIGITS`: the blobs and manifests
///
/// Each file is written under another name and then renamed, and `oci-layout` is locked while the index changes.
#[derive(Debug)]
pub struct ImageLayout {
    reference: LayoutReference,
    location: String,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    #[serde(rename = "imageLayoutVersion")]
    version: String,
}

impl ImageLayout {
    /// The layout in a folder. The first write creates the folder.
    #[must_use]
    pub fn new(reference: LayoutReference) -> Self {
        let location = format!("oci-layout:{}", reference.folder.display());
        Self { reference, location }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.reference.folder.join(name)
    }

    fn blob_path(&self, digest: ContentDigest) -> PathBuf {
        self.path("blobs/sha256").join(digest.digits())
    }

    /// Opens a plain file. A pipe or a device on an untrusted USB stick could block, or never end.
    fn open(path: &Path) -> std::io::Result<File> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a plain file"));
        }
        File::open(path)
    }

    /// The octets of a small file.
    fn read_small(&self, name: &'static str, limit: u64) -> Result<Vec<u8>, OciError> {
        let path = self.path(name);
        let file = Self::open(&path).map_err(OciError::file(&path))?;
        let mut octets = Vec::new();
        file.take(limit + 1).read_to_end(&mut octets).map_err(OciError::file(&path))?;
        if octets.len() as u64 > limit {
            return Err(OciError::too_large(&self.location, &name, limit));
        }
        Ok(octets)
    }

    /// Refuses a folder that is not an image layout, or a layout of another version.
    fn check_mark(&self) -> Result<(), OciError> {
        let mark: Mark = decode(&self.location, MARK_FILE, &self.read_small(MARK_FILE, MAX_MARK_OCTETS)?)?;
        if mark.version == LAYOUT_VERSION {
            return Ok(());
        }
        let why = format!("image layout version {}, and only {LAYOUT_VERSION} is known", mark.version);
        Err(OciError::malformed(&self.location, MARK_FILE, &why))
    }

    fn read_index(&self) -> Result<ImageIndex, OciError> {
        self.check_mark()?;
        decode(&self.location, INDEX_FILE, &self.read_small(INDEX_FILE, MAX_MANIFEST_OCTETS)?)
    }

    /// Creates the layout in the folder, unless it exists.
    fn create(&self) -> Result<(), OciError> {
        let mark_path = self.path(MARK_FILE);
        if mark_path.exists() {
            return self.check_mark();
        }
        // The files of the folder may have another purpose.
        if self.path(INDEX_FILE).exists() {
            return Err(OciError::Usage {
                location: self.location.clone(),
                why: "the folder has an index.json and no oci-layout, so it is something else; choose another folder",
            });
        }
        let blobs = self.path("blobs/sha256");
        std::fs::create_dir_all(&blobs).map_err(OciError::file(&blobs))?;
        let index = encode(&self.location, INDEX_FILE, &ImageIndex::default())?;
        write_file(&self.path(INDEX_FILE), &index)?;
        let mark = Mark { version: LAYOUT_VERSION.to_owned() };
        write_file(&mark_path, &encode(&self.location, MARK_FILE, &mark)?)
    }

    fn read_content(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, OciError> {
        let path = self.blob_path(descriptor.digest);
        let file = match Self::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(OciError::not_found(&self.location, &descriptor.digest));
            }
            Err(error) => return Err(OciError::file(&path)(error)),
        };
        read_verified(&self.location, descriptor, limit, file, OciError::file(&path))
    }

    /// The entry that the reference names.
    fn entry(&self) -> Result<Descriptor, OciError> {
        let mut entries = self.read_index()?.manifests;
        let LayoutReference { tag, digest, .. } = &self.reference;
        let content = match (digest, tag) {
            (Some(digest), _) => {
                entries.retain(|entry| entry.digest == *digest);
                entries.truncate(1);
                digest.to_string()
            }
            (None, Some(tag)) => {
                entries.retain(|entry| entry.annotations.get(TAG_ANNOTATION) == Some(tag));
                format!("tag {tag}")
            }
            (None, None) => {
                // Bills of materials have no tag, and the reference never names them.
                entries.retain(|entry| entry.artifact_type.is_none());
                "artifact".to_owned()
            }
        };
        if entries.len() > 1 {
            return Err(OciError::Usage {
                location: self.location.clone(),
                why: "there are several such artifacts; give a tag or a digest (index.json lists them)",
            });
        }
        entries.pop().ok_or_else(|| OciError::not_found(&self.location, &content))
    }
}

/// Writes a world-readable file atomically.
fn write_file(path: &Path, octets: &[u8]) -> Result<(), OciError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut builder = tempfile::Builder::new();
        let mut file = builder.permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
        file.write_all(octets)?;
        // A USB stick may be removed as soon as the command has ended.
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(OciError::file(path))
}

impl ContentStore for ImageLayout {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn resolve(&self) -> Result<ResolvedManifest, OciError> {
        let entry = self.entry()?;
        Ok(ResolvedManifest { digest: entry.digest, manifest: self.read_manifest(&entry)? })
    }

    fn tags(&self) -> Result<TagList, OciError> {
        let entries = self.read_index()?.manifests.into_iter();
        Ok(TagList::of(entries.filter_map(|mut entry| entry.annotations.remove(TAG_ANNOTATION)), true))
    }

    fn read_manifest(&self, descriptor: &Descriptor) -> Result<ImageManifest, OciError> {
        ImageManifest::decode(&self.location, &self.read_content(descriptor, MAX_MANIFEST_OCTETS)?)
    }

    fn read_blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, OciError> {
        self.read_content(descriptor, limit)
    }

    fn write_blob(&self, descriptor: &Descriptor, octets: &[u8]) -> Result<(), OciError> {
        self.create()?;
        // An existing blob is written again, because it may be damaged.
        let path = self.blob_path(descriptor.digest);
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder).map_err(OciError::file(folder))?;
        write_file(&path, octets)
    }

    fn write_manifest(&self, manifest: &ImageManifest, tag: Option<&str>) -> Result<Descriptor, OciError> {
        let (mut descriptor, octets) = manifest.encode(&self.location)?;
        self.write_blob(&descriptor, &octets)?;
        if let Some(tag) = tag {
            descriptor.annotations.insert(TAG_ANNOTATION.to_owned(), tag.to_owned());
        }
        let mark_path = self.path(MARK_FILE);
        let mark = File::open(&mark_path).map_err(OciError::file(&mark_path))?;
        mark.lock().map_err(OciError::file(&mark_path))?;
        let mut index = self.read_index()?;
        for entry in &mut index.manifests {
            // The manifest that had the tag stays, without the tag: its digest may be in use.
            if tag.is_some() && entry.annotations.get(TAG_ANNOTATION).map(String::as_str) == tag {
                entry.annotations.remove(TAG_ANNOTATION);
            }
        }
        index.manifests.retain(|entry| {
            entry.digest != descriptor.digest || entry.annotations.contains_key(TAG_ANNOTATION)
        });
        let has_tagged = index.manifests.iter().any(|entry| entry.digest == descriptor.digest);
        if tag.is_some() || !has_tagged {
            index.manifests.push(descriptor.clone());
        }
        write_file(&self.path(INDEX_FILE), &encode(&self.location, INDEX_FILE, &index)?)?;
        Ok(descriptor)
    }

    fn referrers(&self, subject: ContentDigest) -> Result<Vec<Descriptor>, OciError> {
        let mut referrers = self.read_index()?.manifests;
        referrers.retain(|entry| entry.artifact_type.is_some() && entry.media_type == media_type::MANIFEST);
        let mut found = Vec::new();
        for entry in referrers {
            if self.read_manifest(&entry)?.subject.is_some_and(|named| named.digest == subject) {
                found.push(entry);
            }
        }
        Ok(found)
    }
}
