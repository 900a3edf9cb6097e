//! The root key, which encrypts the key file.

use crate::TextKeyError;
use ring::hmac;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Octets of a key.
pub(crate) const KEY_OCTETS: usize = 32;

/// The key that encrypts all other keys. It is stored only in its own file.
pub struct RootKey(hmac::Key);

impl std::fmt::Debug for RootKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RootKey")
    }
}

impl RootKey {
    /// Reads a file of 32 octets that only its owner can read.
    ///
    /// # Errors
    /// The file cannot be read, has another length, or can be read by other users.
    pub fn read(path: &Path) -> Result<Self, TextKeyError> {
        let missing = |source| TextKeyError::RootKeyMissing { path: path.to_owned(), source };
        let file = File::open(path).map_err(missing)?;
        if file.metadata().map_err(missing)?.permissions().mode() & 0o077 != 0 {
            return Err(TextKeyError::RootKeyExposed(path.to_owned()));
        }
        let mut octets = Vec::with_capacity(KEY_OCTETS + 1);
        file.take(KEY_OCTETS as u64 + 1).read_to_end(&mut octets).map_err(missing)?;
        let octets: [u8; KEY_OCTETS] =
            octets.try_into().map_err(|_| TextKeyError::NotARootKey(path.to_owned()))?;
        Ok(Self::new(&octets))
    }

    pub(crate) fn new(octets: &[u8; KEY_OCTETS]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, octets))
    }

    /// Creates a root key from random octets, in a new file that only its owner can read. Durable on return.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(path: &Path) -> Result<(), TextKeyError> {
        let octets = random::<KEY_OCTETS>()?;
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => TextKeyError::RootKeyExists(path.to_owned()),
            _ => TextKeyError::File { path: path.to_owned(), doing: "written", source },
        })?;
        let written = file.write_all(&octets).and_then(|()| file.sync_all());
        written.and_then(|()| sync_folder_of(path)).map_err(TextKeyError::file(path, "written"))
    }

    /// A key for one purpose (HMAC-SHA-256 of `purpose` and `context`).
    pub(crate) fn derive(&self, purpose: &str, context: &[u8]) -> [u8; KEY_OCTETS] {
        derive(&self.0, purpose, context)
    }
}

/// A key for one purpose, derived from another key.
pub(crate) fn derive(key: &hmac::Key, purpose: &str, context: &[u8]) -> [u8; KEY_OCTETS] {
    let mut all = hmac::Context::with_key(key);
    all.update(purpose.as_bytes());
    all.update(&[0]);
    all.update(context);
    let mut derived = [0; KEY_OCTETS];
    derived.copy_from_slice(all.sign().as_ref());
    derived
}

pub(crate) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], TextKeyError> {
    let mut octets = [0; LENGTH];
    getrandom::fill(&mut octets).map_err(TextKeyError::Random)?;
    Ok(octets)
}

/// Makes the names in the folder of a file durable.
pub(crate) fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_root_key_is_made_once_and_read_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.key");
        let missing = RootKey::read(&path).unwrap_err().to_string();
        assert!(missing.contains("root-key-file of [privacy]"), "{missing}");
        RootKey::create(&path).unwrap();
        let derived = RootKey::read(&path).unwrap().derive("test", b"");
        assert_eq!(RootKey::read(&path).unwrap().derive("test", b""), derived);
        assert_ne!(RootKey::read(&path).unwrap().derive("another", b""), derived);
        assert!(matches!(RootKey::create(&path), Err(TextKeyError::RootKeyExists(_))));
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(matches!(RootKey::read(&path), Err(TextKeyError::RootKeyExposed(_))));
        mode(0o600);
        std::fs::write(&path, [7; 33]).unwrap();
        assert!(matches!(RootKey::read(&path), Err(TextKeyError::NotARootKey(_))));
        assert_eq!(format!("{:?}", RootKey::new(&[7; 32])), "RootKey");
    }
}
