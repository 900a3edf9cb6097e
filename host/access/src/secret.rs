//! Secrets of tokens and sessions, and their hashes.

use crate::AccessError;
use model::from_hex;
use sha2::{Digest, Sha256};

/// The stored hash of a secret: SHA-256. Secrets are 256 random bits, so a slow hash is not needed.
pub(crate) type SecretHash = [u8; 32];

/// Generates a secret: 256 random bits as 64 hexadecimal digits.
pub(crate) fn generate() -> Result<String, AccessError> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(AccessError::Random)?;
    Ok(model::hex(&octets))
}

/// The hash of hexadecimal digits; `None` for other text, or of another length.
pub(crate) fn stored_hash(digits: &str) -> Option<SecretHash> {
    from_hex(digits)?.try_into().ok()
}

pub(crate) fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares two texts in constant time.
pub(crate) fn constant_time_eq(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_hashes_round_trip_through_hex() {
        let secret = generate().unwrap();
        assert_eq!(secret.len(), 64);
        assert_ne!(secret, generate().unwrap());
        let hash = hash(&secret);
        assert_eq!(stored_hash(&model::hex(&hash)), Some(hash));
        for wrong in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(stored_hash(wrong), None, "{wrong}");
        }
        assert!(
            constant_time_eq("ab", "ab")
                && !constant_time_eq("ab", "ac")
                && !constant_time_eq("ab", "abc")
                && !constant_time_eq("", "a")
        );
    }
}
