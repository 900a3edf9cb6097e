//! Encryption with one key.

use crate::root_key::{KEY_OCTETS, derive};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::sync::atomic::AtomicBool;

/// The key of an account for one period.
///
/// It encrypts with AES-256-GCM. The nonce is computed from the plaintext (HMAC-SHA-256 of message, part and octets,
/// cut to 96 bits). If a text is written again, after a crash, by a retry or into another table, the octets are the
/// same; another text of the same message has another nonce. So no counter has to survive crashes and restored backups.
/// Among 2^32 texts, two have the same nonce with a probability of 2^-33.
pub(crate) struct TextKey {
    /// Number of the key, by which records refer to it.
    pub(crate) number: u64,
    encryption: LessSafeKey,
    nonces: hmac::Key,
    /// Whether this process has encrypted with it.
    pub(crate) used: AtomicBool,
}

impl std::fmt::Debug for TextKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextKey").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The encrypted text: a message and one of its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePart {
    pub(crate) message: u64,
    pub(crate) part: u8,
}

impl MessagePart {
    /// 8 message, 1 part, 8 number of the key.
    fn octets(self, key: u64) -> [u8; 17] {
        let mut octets = [0; 17];
        octets[..8].copy_from_slice(&self.message.to_le_bytes());
        octets[8] = self.part;
        octets[9..].copy_from_slice(&key.to_le_bytes());
        octets
    }
}

/// A key of AES-256-GCM. `None` never happens: its length is right.
pub(crate) fn encryption_key(octets: &[u8; KEY_OCTETS]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, octets).ok().map(LessSafeKey::new)
}

impl TextKey {
    pub(crate) fn new(number: u64, secret: &[u8; KEY_OCTETS]) -> Option<Self> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Some(Self {
            number,
            encryption: encryption_key(&derive(&secret, "encryption", &[]))?,
            nonces: hmac::Key::new(hmac::HMAC_SHA256, &derive(&secret, "nonces", &[])),
            used: AtomicBool::new(false),
        })
    }

    /// 12 nonce, encrypted octets, 16 tag. `None` only for more than 64 GiB.
    pub(crate) fn seal(&self, part: MessagePart, plain: &[u8]) -> Option<Vec<u8>> {
        let bound = part.octets(self.number);
        let mut all = hmac::Context::with_key(&self.nonces);
        all.update(&bound);
        all.update(plain);
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&all.sign().as_ref()[..NONCE_LEN]);
        let mut sealed = Vec::with_capacity(NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let encrypted = sealed.get_mut(NONCE_LEN..)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.encryption.seal_in_place_separate_tag(nonce, Aad::from(bound), encrypted).ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }

    /// Decrypts the result of [`TextKey::seal`] for the same part; `None` for any other octets.
    pub(crate) fn open(&self, part: MessagePart, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut octets = encrypted.to_vec();
        let bound = Aad::from(part.octets(self.number));
        let length = self.encryption.open_in_place(nonce, bound, &mut octets).ok()?.len();
        octets.truncate(length);
        Some(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message_part(message: u64, part: u8) -> MessagePart {
        MessagePart { message, part }
    }

    proptest! {
        #[test]
        fn sealed_text_opens_only_with_its_message_part_and_key(
            plain in proptest::collection::vec(any::<u8>(), 0..300),
            (message, part) in any::<(u64, u8)>(),
            change in any::<(prop::sample::Index, u8)>(),
        ) {
            let key = TextKey::new(7, &[1; 32]).unwrap();
            let sealed = key.seal(message_part(message, part), &plain).unwrap();
            prop_assert_eq!(sealed.len(), plain.len() + 28);
            prop_assert_eq!(key.open(message_part(message, part), &sealed), Some(plain.clone()));
            prop_assert_eq!(key.open(message_part(message ^ 1, part), &sealed), None);
            prop_assert_eq!(key.open(message_part(message, part ^ 1), &sealed), None);
            prop_assert_eq!(TextKey::new(8, &[1; 32]).unwrap().open(message_part(message, part), &sealed), None);
            prop_assert_eq!(TextKey::new(7, &[2; 32]).unwrap().open(message_part(message, part), &sealed), None);
            let mut changed = sealed.clone();
            let at = change.0.index(changed.len());
            changed[at] ^= change.1 | 1;
            prop_assert_eq!(key.open(message_part(message, part), &changed), None);
            prop_assert_eq!(key.open(message_part(message, part), &sealed[..at]), None);
        }
    }

    #[test]
    fn a_nonce_is_used_again_for_the_same_octets_only() {
        let key = TextKey::new(7, &[1; 32]).unwrap();
        let nonce = |message, part, plain: &[u8]| {
            key.seal(message_part(message, part), plain).unwrap()[..12].to_vec()
        };
        let first = nonce(1, 1, b"hello");
        assert_eq!(nonce(1, 1, b"hello"), first);
        let others = [nonce(1, 1, b"hallo"), nonce(2, 1, b"hello"), nonce(1, 2, b"hello"), nonce(1, 1, b"")];
        assert!(!others.contains(&first));
        assert_ne!(
            TextKey::new(8, &[1; 32]).unwrap().seal(message_part(1, 1), b"hello").unwrap()[..12],
            first
        );
    }
}
