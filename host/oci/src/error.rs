use crate::ContentDigest;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Maximum length of an untrusted text in a message, in characters.
const MAX_EXCERPT: usize = 200;

/// An error in pushing or pulling an artifact. No message quotes an unparsed reference, credentials or the query of a URL,
/// because each may contain a secret.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// Not a location.
    #[error(
        "not a location of an artifact: {0}; expected oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST] or \
         oci-layout:FOLDER[:TAG][@sha256:DIGEST]"
    )]
    Location(&'static str),
    /// Not a digest.
    #[error(
        "a digest is sha256: and 64 hexadecimal digits in lower case; other algorithms are not supported"
    )]
    Digest,
    /// A location cannot be used for the operation.
    #[error("{location}: {why}")]
    Usage {
        /// The location.
        location: String,
        /// The missing or superfluous part, and the remedy.
        why: &'static str,
    },
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file with credentials, or their environment variables, cannot be used.
    #[error("{place}: {why}")]
    Credentials {
        /// The file or the variables.
        place: String,
        /// The defect.
        why: &'static str,
    },
    /// The registry does not answer.
    #[error(
        "{url}: {why}\nIs HOST:PORT a registry that is running? For a registry without TLS give --plain-http, for one with its \
         own certificate authority --registry-ca FILE"
    )]
    Unreachable {
        /// The URL, without a query.
        url: String,
        /// The cause.
        why: String,
    },
    /// The registry requires credentials, or refuses the given ones.
    #[error("{url}: {why}")]
    Unauthorized {
        /// The URL, without a query.
        url: String,
        /// The remedy.
        why: &'static str,
    },
    /// The registry refused a request.
    #[error("{url}: the registry answered {status}: {detail}")]
    Refused {
        /// The URL, without a query.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The registry's message.
        detail: String,
    },
    /// There is no such artifact, manifest or blob.
    #[error("{location} has no {content}; check the tag or the digest")]
    NotFound {
        /// The location.
        location: String,
        /// The tag or digest.
        content: String,
    },
    /// The octets do not have the expected digest.
    #[error(
        "{location}: {expected} is damaged or was replaced: the digest of what was read is {found}. Push it again from its source"
    )]
    DigestMismatch {
        /// The location.
        location: String,
        /// The requested digest.
        expected: ContentDigest,
        /// The digest of the octets that were read.
        found: ContentDigest,
    },
    /// The size of the content differs from its descriptor.
    #[error(
        "{location}: {digest} does not have the {expected} octets of its descriptor. Push it again from its source"
    )]
    SizeMismatch {
        /// The location.
        location: String,
        /// Its digest.
        digest: ContentDigest,
        /// The size of the descriptor, in octets.
        expected: u64,
    },
    /// The content is larger than its limit.
    #[error("{location}: {content} is larger than {limit} octets, which is the limit")]
    TooLarge {
        /// The location.
        location: String,
        /// The content.
        content: String,
        /// The limit, in octets.
        limit: u64,
    },
    /// The location has something other than the OCI specifications describe.
    #[error("{location}: {content} is malformed: {why}")]
    Malformed {
        /// The location.
        location: String,
        /// The document.
        content: &'static str,
        /// The defect.
        why: String,
    },
    /// The artifact is not a WebAssembly component.
    #[error("{location} is not a plugin: {why}")]
    NotAPlugin {
        /// The location.
        location: String,
        /// The difference.
        why: String,
    },
    /// A bill of materials has an unknown format.
    #[error(
        "not a bill of materials: expected JSON of SPDX (with \"spdxVersion\") or CycloneDX (with \"bomFormat\")"
    )]
    BillOfMaterials,
}

impl OciError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn malformed(location: &str, content: &'static str, why: &impl Display) -> Self {
        Self::Malformed { location: location.to_owned(), content, why: printable(&why.to_string()) }
    }

    pub(crate) fn too_large(location: &str, content: &impl Display, limit: u64) -> Self {
        Self::TooLarge { location: location.to_owned(), content: content.to_string(), limit }
    }

    pub(crate) fn not_found(location: &str, content: &impl Display) -> Self {
        Self::NotFound { location: location.to_owned(), content: content.to_string() }
    }
}

/// The start of an untrusted text, without terminal control characters.
pub(crate) fn printable(text: &str) -> String {
    let characters = text.chars().take(MAX_EXCERPT);
    characters.map(|character| if character.is_control() { ' ' } else { character }).collect()
}
