//! Plugin signatures: ed25519 over the component's octets.

use crate::HookError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};

/// A trusted signing key.
#[derive(Debug, Clone)]
pub struct TrustedKey {
    /// The name of its owner.
    pub name: String,
    key: VerifyingKey,
}

impl TrustedKey {
    /// Decodes a base64-encoded ed25519 public key of 32 octets.
    ///
    /// # Errors
    /// The text is not such a key.
    pub fn new(name: &str, base64: &str) -> Result<Self, HookError> {
        let bad = || HookError::BadKey(name.to_owned());
        let octets = STANDARD.decode(base64.trim()).map_err(|_| bad())?;
        let octets: [u8; 32] = octets.try_into().map_err(|_| bad())?;
        let key = VerifyingKey::from_bytes(&octets).map_err(|_| bad())?;
        Ok(Self { name: name.to_owned(), key })
    }
}

/// The trusted keys, and the requirement of signatures.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The keys.
    pub keys: Vec<TrustedKey>,
    /// Whether unsigned components are refused.
    pub required: bool,
}

impl Trust {
    /// Verifies a signature and returns the signer's name. A signature must be valid even if none is required.
    pub(crate) fn verify(&self, octets: &[u8], signature: Option<&str>) -> Result<Option<String>, HookError> {
        let Some(signature) = signature else {
            return if self.required { Err(HookError::Unsigned) } else { Ok(None) };
        };
        let read = STANDARD.decode(signature.trim()).ok();
        let read = read.and_then(|octets| Signature::from_slice(&octets).ok());
        let Some(read) = read else { return Err(HookError::BadSignature("it is not base64 of 64 octets")) };
        let signer = self.keys.iter().find(|trusted| trusted.key.verify_strict(octets, &read).is_ok());
        match signer {
            Some(signer) => Ok(Some(signer.name.clone())),
            None if self.keys.is_empty() && !self.required => Ok(None),
            None => Err(HookError::BadSignature("it is not by a trusted key, or for another component")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signer, SigningKey};

    #[test]
    fn only_a_trusted_signature_of_the_same_octets_is_valid() {
        let (ours, theirs) = (SigningKey::from_bytes(&[7; 32]), SigningKey::from_bytes(&[8; 32]));
        let key = TrustedKey::new("release", &STANDARD.encode(ours.verifying_key().to_bytes())).unwrap();
        let sign = |key: &SigningKey, octets: &[u8]| STANDARD.encode(key.sign(octets).to_bytes());
        let trust = Trust { keys: vec![key], required: true };
        let verify = |signature: Option<&str>| trust.verify(b"component", signature);
        assert_eq!(verify(Some(&sign(&ours, b"component"))).unwrap().as_deref(), Some("release"));
        assert!(matches!(verify(Some(&sign(&ours, b"another"))), Err(HookError::BadSignature(_))));
        assert!(matches!(verify(Some(&sign(&theirs, b"component"))), Err(HookError::BadSignature(_))));
        assert!(matches!(verify(Some("rubbish")), Err(HookError::BadSignature(_))));
        assert!(matches!(verify(None), Err(HookError::Unsigned)));
        let lenient = Trust { required: false, ..trust.clone() };
        assert_eq!(lenient.verify(b"component", None).unwrap(), None);
        assert!(lenient.verify(b"component", Some(&sign(&theirs, b"component"))).is_err());
        assert!(TrustedKey::new("short", "AAAA").is_err());
    }
}
