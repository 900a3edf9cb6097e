use crate::OciError;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The SHA-256 digest of a blob or a manifest. Its text is `sha256:` and 64 hexadecimal digits in lower case.
///
/// Source: OCI image spec 1.1, descriptor.md, "Digests". Other algorithms are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// The digest of these octets.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        Self(Sha256::digest(octets).into())
    }

    /// The hexadecimal digits, without the algorithm.
    #[must_use]
    pub fn digits(&self) -> String {
        model::hex(&self.0)
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.digits())
    }
}

impl From<ContentDigest> for String {
    fn from(digest: ContentDigest) -> Self {
        digest.to_string()
    }
}

impl FromStr for ContentDigest {
    type Err = OciError;

    /// # Errors
    /// [`OciError::Digest`] for anything but its text.
    fn from_str(text: &str) -> Result<Self, OciError> {
        let digits = text.strip_prefix("sha256:").ok_or(OciError::Digest)?;
        if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(OciError::Digest);
        }
        let octets = model::from_hex(digits).and_then(|octets| octets.try_into().ok());
        octets.map(Self).ok_or(OciError::Digest)
    }
}

impl TryFrom<String> for ContentDigest {
    type Error = OciError;

    fn try_from(text: String) -> Result<Self, OciError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Source: OCI image spec 1.1, manifest.md, "Guidance for an Empty Descriptor".
    const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn only_sha256_in_lower_case_is_a_digest() {
        assert_eq!(ContentDigest::of(b"{}").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<ContentDigest>().unwrap(), ContentDigest::of(b"{}"));
        for wrong in ["", "sha256:", "sha512:00", &EMPTY[1..], &EMPTY[..70], &EMPTY.to_uppercase()] {
            assert!(wrong.parse::<ContentDigest>().is_err(), "{wrong}");
        }
        let upper = EMPTY.replace("ff8a", "FF8A");
        assert!(upper.parse::<ContentDigest>().is_err());
    }

    proptest! {
        #[test]
        fn the_text_of_a_digest_is_read_back(octets: Vec<u8>) {
            let digest = ContentDigest::of(&octets);
            prop_assert_eq!(digest.to_string().parse::<ContentDigest>().unwrap(), digest);
        }

        #[test]
        fn no_text_panics(text: String) {
            if let Ok(digest) = text.parse::<ContentDigest>() {
                prop_assert_eq!(digest.to_string(), text);
            }
        }
    }
}
