use argon2::password_hash::SaltString;
use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A password cannot be hashed, or a hash cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The system has no randomness to give.
    #[error("no randomness from the system: {0}")]
    Random(getrandom::Error),
    /// What is wrong with the hash.
    #[error("not an argon2 password hash in PHC form ($argon2id$…): {0}")]
    Hash(argon2::password_hash::Error),
}

/// Hashes a password for the configuration: argon2id with the recommended 19 MiB and two passes, in PHC form.
///
/// # Errors
/// When the system has no randomness to give.
pub fn hash_password(password: &[u8]) -> Result<String, PasswordError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(PasswordError::Random)?;
    let salt = SaltString::encode_b64(&salt).map_err(PasswordError::Hash)?;
    let hash = Argon2::default().hash_password(password, &salt).map_err(PasswordError::Hash)?;
    Ok(hash.to_string())
}

/// Whether a text is a password hash that binds can be verified against.
///
/// # Errors
/// What is wrong with it.
pub fn check_password_hash(hash: &str) -> Result<(), PasswordError> {
    let parsed = PasswordHash::new(hash).map_err(PasswordError::Hash)?;
    argon2::Algorithm::try_from(parsed.algorithm)
        .map_err(|_| PasswordError::Hash(argon2::password_hash::Error::Algorithm))?;
    Ok(())
}

/// Verifies passwords away from the threads that move messages.
///
/// argon2 is slow on purpose, and after a network fault all ESMEs bind at once. What was verified lately is therefore
/// remembered for some minutes, as a hash under a key that lives only in this process.
#[derive(Debug)]
pub struct Verifier {
    key: [u8; 32],
    running: Arc<Semaphore>,
    known: Mutex<FxHashMap<[u8; 32], Instant>>,
}

impl Verifier {
    const REMEMBERED: Duration = Duration::from_secs(600);
    const MOST: usize = 4096;

    /// A verifier that runs `at_once` verifications at a time.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(at_once: usize) -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { key, running: Arc::new(Semaphore::new(at_once.max(1))), known: Mutex::default() })
    }

    fn mark(&self, hash: &str, password: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.key);
        digest.update((hash.len() as u64).to_le_bytes());
        digest.update(hash.as_bytes());
        digest.update(password);
        digest.finalize().into()
    }

    /// Whether this password was found right for this hash in the last minutes.
    #[must_use]
    pub fn is_known(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        let mark = self.mark(hash, password);
        self.known.lock().get(&mark).is_some_and(|until| *until > now)
    }

    /// Whether the password is right.
    pub async fn verify(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        if self.is_known(hash, password, now) {
            return true;
        }
        let Ok(permit) = self.running.clone().acquire_owned().await else { return false };
        // Another bind of the same account may have been verified while this one waited for its turn.
        if self.is_known(hash, password, now) {
            return true;
        }
        let right = Self::compute(permit, hash, password).await;
        if right {
            let mark = self.mark(hash, password);
            let mut known = self.known.lock();
            if known.len() >= Self::MOST {
                known.retain(|_, until| *until > now);
                if known.len() >= Self::MOST {
                    known.clear();
                }
            }
            known.insert(mark, now + Self::REMEMBERED);
        }
        right
    }

    /// Takes as long as a wrong password does, and says that it is wrong: for an account that does not exist, with any
    /// other's hash, and for one that is not allowed for another reason.
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
    fn hashes_are_told_from_other_text() {
        assert!(check_password_hash(&hash_password(b"secret").unwrap()).is_ok());
        for wrong in ["", "secret", "$2b$12$abcdefghijklmnopqrstuv", "$scrypt$ln=1$c2FsdHNhbHQ$aGFzaA"] {
            assert!(check_password_hash(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn check_032_twelve_characters_and_the_memory_of_right_ones_only() {
        let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
        let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
        let hash = cheap.hash_password(b"twelve-chars", &salt).unwrap().to_string();
        let verifier = Verifier::new(1).unwrap();
        let now = Instant::now();
        assert!(!verifier.verify(&hash, b"wrong", now).await);
        assert!(!verifier.is_known(&hash, b"wrong", now));
        assert!(verifier.verify(&hash, b"twelve-chars", now).await);
        assert!(verifier.is_known(&hash, b"twelve-chars", now));
        assert!(!verifier.is_known(&hash, b"twelve-chars", now + Verifier::REMEMBERED));
        assert!(!verifier.refuse(Some(&hash), b"twelve-chars").await && !verifier.refuse(None, b"x").await);
        assert!(!verifier.verify("no hash at all", b"x", now).await);
    }
}
