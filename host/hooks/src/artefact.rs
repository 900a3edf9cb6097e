//! Artefacts: compiled components on disk, so that a restart need not compile.
//!
//! `unsafe`: wasmtime executes the input of [`Component::deserialize`] without validation, so it must be wasmtime's own
//! output. A file is only used if it carries the SHA-256 digests of its own contents and of its component, and the
//! fingerprint of the exact engine configuration that will run it. This protects against damage, leftovers and mix-ups.
//! It does not protect against an attacker who can write to the data directory: such an attacker may replace the daemon's
//! binary too. Only the daemon has access to the directory (mode 0700).
#![allow(unsafe_code)]

use crate::HookError;
use crate::compile::Priority;
use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The fingerprint of an engine: wasmtime's version and all settings that compiled code depends on.
fn engine_fingerprint(engine: &Engine) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

fn path(folder: &Path, engine: &Engine, version: &str) -> PathBuf {
    folder.join(format!("{version}-{:016x}.cwasm", engine_fingerprint(engine)))
}

/// The compiled component: loaded from a matching artefact, or else compiled and stored.
pub(crate) fn load_or_compile(
    folder: &Path,
    engine: &Engine,
    version: &str,
    component: &[u8],
    priority: Priority,
) -> Result<Component, HookError> {
    if let Some(compiled) = load(folder, engine, version, component) {
        return Ok(compiled);
    }
    let compiled = crate::compile::compile(engine, component, priority)?;
    store_compiled(folder, engine, version, component, &compiled);
    Ok(compiled)
}

/// The compiled component from a matching artefact.
pub(crate) fn load(folder: &Path, engine: &Engine, version: &str, component: &[u8]) -> Option<Component> {
    let compiled = read(&path(folder, engine, version), component)?;
    // SAFETY: `read` has verified that the octets are what `store_compiled` wrote for this engine configuration.
    match unsafe { Component::deserialize(engine, &compiled) } {
        Ok(component) => Some(component),
        Err(error) => {
            tracing::warn!(version, %error, "artefact not usable; compiling again");
            None
        }
    }
}

/// Stores a compiled component. If that fails, the component is compiled again next time.
pub(crate) fn store_compiled(
    folder: &Path,
    engine: &Engine,
    version: &str,
    component: &[u8],
    compiled: &Component,
) {
    let stored = match compiled.serialize() {
        Ok(octets) => write_artefact(&path(folder, engine, version), component, &octets),
        Err(error) => Err(HookError::Engine(format!("{error:#}"))),
    };
    if let Err(error) = stored {
        tracing::warn!(version, %error, "artefact not stored");
    }
}

/// File format: SHA-256 of the component (32 octets), SHA-256 of the rest (32 octets), the rest: wasmtime's serialized
/// form.
fn read(path: &Path, component: &[u8]) -> Option<Vec<u8>> {
    let mut file = std::fs::read(path).ok()?;
    let rest = file.split_off(64.min(file.len()));
    let (of_component, of_rest) = file.split_at_checked(32)?;
    (of_component == Sha256::digest(component).as_slice() && of_rest == Sha256::digest(&rest).as_slice())
        .then_some(rest)
}

fn write_artefact(path: &Path, component: &[u8], compiled: &[u8]) -> Result<(), HookError> {
    let mut file = Sha256::digest(component).to_vec();
    file.extend_from_slice(&Sha256::digest(compiled));
    file.extend_from_slice(compiled);
    crate::library::write_atomically(path, &file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_foreign_artefact_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cwasm");
        write_artefact(&path, b"component", b"compiled").unwrap();
        assert_eq!(read(&path, b"component").as_deref(), Some(&b"compiled"[..]));
        assert_eq!(read(&path, b"another"), None);
        let mut octets = std::fs::read(&path).unwrap();
        *octets.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &octets).unwrap();
        assert_eq!(read(&path, b"component"), None);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(read(&path, b"component"), None);
    }
}
