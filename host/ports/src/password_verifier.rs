use argon2::password_hash::SaltString;
use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier as _};
use configuration::{KeyFormat, Section, Shape};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A password cannot be hashed, or a hash cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The system has no randomness.
    #[error("no randomness from the system: {0}")]
    Random(getrandom::Error),
    /// The hash is malformed.
    #[error("not an argon2 password hash in PHC form ($argon2id$…): {0}")]
    Hash(argon2::password_hash::Error),
}

/// Hashes a password for the configuration: argon2id with the recommended 19 MiB and two passes, in PHC form.
///
/// # Errors
/// If the system has no randomness.
pub fn hash_password(password: &[u8]) -> Result<String, PasswordError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(PasswordError::Random)?;
    let salt = SaltString::encode_b64(&salt).map_err(PasswordError::Hash)?;
    let hash = Argon2::default().hash_password(password, &salt).map_err(PasswordError::Hash)?;
    Ok(hash.to_string())
}

/// Checks that a text is a password hash that passwords can be verified against.
///
/// # Errors
/// If the hash is malformed or of another algorithm.
pub fn check_password_hash(hash: &str) -> Result<(), PasswordError> {
    let parsed = PasswordHash::new(hash).map_err(PasswordError::Hash)?;
    argon2::Algorithm::try_from(parsed.algorithm)
        .map_err(|_| PasswordError::Hash(argon2::password_hash::Error::Algorithm))?;
    Ok(())
}

/// The format of a password hash in the configuration.
#[derive(Debug, Clone, Copy)]
pub struct PasswordHashKey;

impl KeyFormat<String> for PasswordHashKey {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<String> {
        let hash = section.text(key)?;
        if check_password_hash(&hash).is_err() {
            section.error(key, "is not an argon2 hash; create one with: switchyard hash-password");
        }
        Some(hash)
    }

    fn shape(&self) -> Shape {
        let pattern = "^(\\$argon2|\\(unchanged\\)$)";
        Shape::Value("password hash", json!({ "type": "string", "format": "password", "pattern": pattern }))
    }
}

/// Verifies passwords, off the threads that move messages.
///
/// argon2 is slow on purpose, and after a network fault all ESMEs bind at once. Therefore right passwords are cached
/// for some minutes, as hashes under a key that exists only in this process.
#[derive(Debug)]
pub struct PasswordVerifier {
    key: [u8; 32],
    running: Arc<Semaphore>,
    cache: Mutex<FxHashMap<[u8; 32], Instant>>,
}

impl PasswordVerifier {
    const CACHE_TTL: Duration = Duration::from_secs(600);
    const MAX_CACHED: usize = 4096;

    /// Creates a verifier that runs at most `max_concurrent` verifications at a time.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(max_concurrent: usize) -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { key, running: Arc::new(Semaphore::new(max_concurrent.max(1))), cache: Mutex::default() })
    }

    fn cache_key(&self, hash: &str, password: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.key);
        digest.update((hash.len() as u64).to_le_bytes());
        digest.update(hash.as_bytes());
        digest.update(password);
        digest.finalize().into()
    }

    /// Whether this password was verified for this hash in the last minutes.
    #[must_use]
    pub fn is_cached(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        let cache_key = self.cache_key(hash, password);
        self.cache.lock().get(&cache_key).is_some_and(|until| *until > now)
    }

    /// Whether the password is right.
    pub async fn verify(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        if self.is_cached(hash, password, now) {
            return true;
        }
        let Ok(permit) = self.running.clone().acquire_owned().await else { return false };
        // Another bind of the same account may have been verified while this one waited.
        if self.is_cached(hash, password, now) {
            return true;
        }
        let right = Self::compute(permit, hash, password).await;
        if right {
            let cache_key = self.cache_key(hash, password);
            let mut cache = self.cache.lock();
            if cache.len() >= Self::MAX_CACHED {
                cache.retain(|_, until| *until > now);
                if cache.len() >= Self::MAX_CACHED {
                    cache.clear();
                }
            }
            cache.insert(cache_key, now + Self::CACHE_TTL);
        }
        right
    }

    /// Returns false after the time of a real verification. Use it for an account that does not exist, with the hash
    /// of any account, and for an account that is refused for another reason.
    pub async fn refuse(&self, hash: Option<&str>, password: &[u8]) -> bool {
        if let Some(hash) = hash
            && let Ok(permit) = self.running.clone().acquire_owned().await
        {
            let _ = Self::compute(permit, hash, password).await;
        }
        false
    }

    async fn compute(permit: OwnedSemaphorePermit, hash: &str, password: &[u8]) -> bool {
        let (text, octets) = (hash.to_owned(), password.to_vec());
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            match PasswordHash::new(&text) {
                Ok(parsed) => Argon2::default().verify_password(&octets, &parsed).is_ok(),
                Err(_) => false,
            }
        })
        .await
        .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::{Algorithm, Params, Version};

    #[test]
    fn password_hashes_are_recognized() {
        assert!(check_password_hash(&hash_password(b"secret").unwrap()).is_ok());
        for wrong in ["", "secret", "$2b$12$abcdefghijklmnopqrstuv", "$scrypt$ln=1$c2FsdHNhbHQ$aGFzaA"] {
            assert!(check_password_hash(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn check_032_only_right_passwords_are_cached() {
        let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
        let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
        let hash = cheap.hash_password(b"twelve-chars", &salt).unwrap().to_string();
        let verifier = PasswordVerifier::new(1).unwrap();
        let now = Instant::now();
        assert!(!verifier.verify(&hash, b"wrong", now).await);
        assert!(!verifier.is_cached(&hash, b"wrong", now));
        assert!(verifier.verify(&hash, b"twelve-chars", now).await);
        assert!(verifier.is_cached(&hash, b"twelve-chars", now));
        assert!(!verifier.is_cached(&hash, b"twelve-chars", now + PasswordVerifier::CACHE_TTL));
        assert!(!verifier.refuse(Some(&hash), b"twelve-chars").await && !verifier.refuse(None, b"x").await);
        assert!(!verifier.verify("no hash at all", b"x", now).await);
    }
}
