//! A value of the shared state in etcd: 1 octet type, then the contents. `V`: a value, LZ4 with its length in front.
//! `F`: a file's digest and length, JSON. `D`: a removed name.

use serde::{Deserialize, Serialize};

/// Maximum length of an encoded value: etcd accepts requests of 1.5 MiB.
pub(crate) const MAX_VALUE: usize = 1 << 20;

const VALUE: u8 = b'V';
const FILE: u8 = b'F';
pub(crate) const REMOVED: u8 = b'D';

/// A file that the nodes fetch from each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SharedFile {
    /// SHA-256 digest in hexadecimal.
    pub sha256: String,
    /// Length in octets.
    pub octets: u64,
}

impl SharedFile {
    pub(crate) fn is_valid(&self) -> bool {
        self.sha256.len() == 64 && self.sha256.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// Contents of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedContent {
    /// A value.
    Value(Vec<u8>),
    /// A file, which is fetched from another node.
    File(SharedFile),
    /// The name was removed.
    Removed,
}

/// Encodes a value for etcd. The error is its length, if that exceeds [`MAX_VALUE`].
pub(crate) fn encode(content: &SharedContent) -> Result<Vec<u8>, usize> {
    let (kind, rest) = match content {
        SharedContent::Value(value) => (VALUE, lz4_flex::compress_prepend_size(value)),
        SharedContent::File(file) => (FILE, serde_json::to_vec(file).unwrap_or_default()),
        SharedContent::Removed => (REMOVED, Vec::new()),
    };
    if rest.len() > MAX_VALUE {
        return Err(rest.len());
    }
    let mut encoded = vec![kind];
    encoded.extend(rest);
    Ok(encoded)
}

/// Decodes a value; `None` if its form is unknown.
pub(crate) fn decode(octets: &[u8]) -> Option<SharedContent> {
    let (kind, rest) = octets.split_first()?;
    match *kind {
        VALUE => {
            // LZ4 cannot compress better than this: a larger length must not cause a large allocation.
            let length = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            if length > rest.len().saturating_mul(256) {
                return None;
            }
            lz4_flex::decompress_size_prepended(rest).ok().map(SharedContent::Value)
        }
        FILE => serde_json::from_slice(rest).ok().filter(SharedFile::is_valid).map(SharedContent::File),
        REMOVED if rest.is_empty() => Some(SharedContent::Removed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn file() -> SharedFile {
        SharedFile { sha256: "0a".repeat(32), octets: 7 }
    }

    #[test]
    fn a_file_has_a_digest() {
        for wrong in ["", "zz", &"0A".repeat(32), "../x"] {
            let file = SharedFile { sha256: wrong.to_owned(), octets: 7 };
            let encoded = encode(&SharedContent::File(file)).unwrap();
            assert_eq!(decode(&encoded), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn content_decodes_to_itself(value in vec(any::<u8>(), 0..2000)) {
            for content in [SharedContent::Value(value), SharedContent::File(file()), SharedContent::Removed] {
                prop_assert_eq!(decode(&encode(&content).unwrap()), Some(content));
            }
        }

        #[test]
        fn any_octets_are_content_or_refused(value in vec(any::<u8>(), 0..200)) {
            let _ = decode(&value);
        }
    }
}
