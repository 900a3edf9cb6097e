//! Compiled components, kept on disk so that a restart need not compile.
//!
//! `unsafe`: wasmtime executes what [`Component::deserialize`] is given without looking at it, so the octets must be its
//! own. A file is only used when it carries the SHA-256 of itself and of the component it was made from, and the mark of
//! the very engine configuration that would run it. That guards against damage, leftovers and mix-ups. Against somebody
//! who can write into the data directory it guards no more than the daemon's own binary is guarded: the directory is the
//! daemon's alone (mode 0700).
#![allow(unsafe_code)]

use crate::HookError;
use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The mark of an engine: wasmtime's version and all settings that compiled code depends on.
fn mark(engine: &Engine) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

fn path(folder: &Path, engine: &Engine, version: &str) -> PathBuf {
    folder.join(format!("{version}-{:016x}.cwasm", mark(engine)))
}

/// The compiled component: from disk if a fitting artefact is there, else compiled and kept.
pub(crate) fn load_or_compile(
    folder: &Path,
    engine: &Engine,
    version: &str,
    component: &[u8],
) -> Result<Component, HookError> {
    let path = path(folder, engine, version);
    if let Some(compiled) = read(&path, component) {
        // SAFETY: `read` has found the octets unchanged since `keep` wrote what this engine configuration had made.
        match unsafe { Component::deserialize(engine, &compiled) } {
            Ok(component) => return Ok(component),
            Err(error) => tracing::warn!(version, %error, "artefact not usable, compiling again"),
        }
    }
    let compiled = crate::compile::compile(engine, component)?;
    keep_compiled(folder, engine, version, component, &compiled);
    Ok(compiled)
}

/// Keeps what a component was compiled to. A component that cannot be written down is only compiled again next time.
pub(crate) fn keep_compiled(
    folder: &Path,
    engine: &Engine,
    version: &str,
    component: &[u8],
    compiled: &Component,
) {
    let kept = match compiled.serialize() {
        Ok(octets) => keep(&path(folder, engine, version), component, &octets),
        Err(error) => Err(HookError::Engine(format!("{error:#}"))),
    };
    if let Err(error) = kept {
        tracing::warn!(version, %error, "artefact not kept");
    }
}

/// File: 32 octets SHA-256 of the component, 32 octets SHA-256 of the rest, the rest: wasmtime's serialised form.
fn read(path: &Path, component: &[u8]) -> Option<Vec<u8>> {
    let mut file = std::fs::read(path).ok()?;
    let rest = file.split_off(64.min(file.len()));
    let (of_component, of_rest) = file.split_at_checked(32)?;
    (of_component == Sha256::digest(component).as_slice() && of_rest == Sha256::digest(&rest).as_slice())
        .then_some(rest)
}

fn keep(path: &Path, component: &[u8], compiled: &[u8]) -> Result<(), HookError> {
    let mut file = Sha256::digest(component).to_vec();
    file.extend_from_slice(&Sha256::digest(compiled));
    file.extend_from_slice(compiled);
    crate::library::write_whole(path, &file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_foreign_artefact_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cwasm");
        keep(&path, b"component", b"compiled").unwrap();
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
