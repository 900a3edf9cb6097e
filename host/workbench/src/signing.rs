//! Signatures: ed25519 over a component's octets, stored in FILE.wasm.sig in the same folder.

use crate::WorkbenchError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The path of a component's signature.
pub(crate) fn signature_path(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// Creates a key pair: FILE, readable by its owner only, and FILE.pub. Returns the public key.
pub(crate) fn keygen(path: &Path) -> Result<String, WorkbenchError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| WorkbenchError::Random(error.to_string()))?;
    let key = SigningKey::from_bytes(&secret);
    let public = STANDARD.encode(key.verifying_key().to_bytes());
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(WorkbenchError::Exists(path.to_owned()));
        }
        Err(error) => return Err(WorkbenchError::file(path)(error)),
    };
    writeln!(file, "{}", STANDARD.encode(secret)).map_err(WorkbenchError::file(path))?;
    let mut public_path = path.as_os_str().to_owned();
    public_path.push(".pub");
    let public_path = PathBuf::from(public_path);
    std::fs::write(&public_path, format!("{public}\n")).map_err(WorkbenchError::file(&public_path))?;
    Ok(public)
}

/// Signs a component; returns the signature's path.
pub(crate) fn sign(key: &Path, component: &Path) -> Result<PathBuf, WorkbenchError> {
    let secret = octets(
        key,
        "it is not a secret key: base64 of 32 octets; 'switchyard plugin keygen FILE' creates one",
    )?;
    let signing = SigningKey::from_bytes(&secret);
    let octets = std::fs::read(component).map_err(WorkbenchError::file(component))?;
    let path = signature_path(component);
    let text = format!("{}\n", STANDARD.encode(signing.sign(&octets).to_bytes()));
    std::fs::write(&path, text).map_err(WorkbenchError::file(&path))?;
    Ok(path)
}

/// The signature of a component's file, as text; `None` if there is none.
pub(crate) fn read(component: &Path) -> Result<Option<String>, WorkbenchError> {
    let path = signature_path(component);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WorkbenchError::file(&path)(error)),
    };
    let text = text.trim();
    check(&path, text)?;
    Ok(Some(text.to_owned()))
}

/// Refuses a text that is not a signature. `path` is its place, for the message.
pub(crate) fn check(path: &Path, text: &str) -> Result<(), WorkbenchError> {
    let why = "it is not a signature: base64 of 64 octets";
    signature(text).map(drop).ok_or_else(|| WorkbenchError::Key { path: path.to_owned(), why })
}

/// Verifies a signature of these octets by this key.
pub(crate) fn verify(key: &Path, octets_signed: &[u8], text: &str) -> Result<bool, WorkbenchError> {
    let why = "it is not a public key: base64 of 32 octets";
    let key = VerifyingKey::from_bytes(&octets(key, why)?)
        .map_err(|_| WorkbenchError::Key { path: key.to_owned(), why })?;
    Ok(signature(text).is_some_and(|signature| key.verify_strict(octets_signed, &signature).is_ok()))
}

fn signature(text: &str) -> Option<Signature> {
    Signature::from_slice(&STANDARD.decode(text).ok()?).ok()
}

fn octets(path: &Path, why: &'static str) -> Result<[u8; 32], WorkbenchError> {
    let text = std::fs::read_to_string(path).map_err(WorkbenchError::file(path))?;
    let decoded = STANDARD.decode(text.trim()).ok();
    decoded
        .and_then(|octets| octets.try_into().ok())
        .ok_or(WorkbenchError::Key { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_signature_is_of_one_key_and_one_component() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.wasm"), "component").unwrap();
        let public = keygen(&at("release.key")).unwrap();
        keygen(&at("other.key")).unwrap();
        assert_eq!(std::fs::read_to_string(at("release.key.pub")).unwrap().trim(), public);
        assert_eq!(std::fs::metadata(at("release.key")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(keygen(&at("release.key")), Err(WorkbenchError::Exists(_))));
        assert_eq!(read(&at("a.wasm")).unwrap(), None);
        assert_eq!(sign(&at("release.key"), &at("a.wasm")).unwrap(), at("a.wasm.sig"));
        let text = read(&at("a.wasm")).unwrap().unwrap();
        assert!(verify(&at("release.key.pub"), b"component", &text).unwrap());
        assert!(!verify(&at("release.key.pub"), b"another", &text).unwrap());
        assert!(!verify(&at("other.key.pub"), b"component", &text).unwrap());
        std::fs::write(at("a.wasm.sig"), "rubbish").unwrap();
        assert!(read(&at("a.wasm")).is_err());
        assert!(sign(&at("a.wasm"), &at("a.wasm")).unwrap_err().to_string().contains("keygen"));
    }
}
