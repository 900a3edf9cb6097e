//! Plugin versions on disk: content-addressed, never changed, never removed.

use crate::HookError;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The interface that a router exports.
pub(crate) const ROUTING: &str = "switchyard:hooks/routing@0.1.0";
const PACKAGE: &str = "switchyard:hooks/";
const SERVED: &str = "switchyard:hooks@0.1.0";
const GIVEN: [&str; 6] = ["types", "log", "clock", "tables", "peers", "body"];

/// One version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionInfo {
    /// The plugin.
    pub plugin: String,
    /// The first twelve hexadecimal digits of its SHA-256.
    pub version: String,
    /// Octets of the component.
    pub size: u64,
}

/// The folder: `components/NAME/VERSION.wasm`, `artefacts/`, `router.json`.
#[derive(Debug)]
pub(crate) struct Library {
    folder: PathBuf,
}

/// Writes a file so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, octets: &[u8]) -> Result<(), HookError> {
    // Two who write the same file at once do not write into each other's.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let new = path.with_extension(format!("{}.new", NUMBER.fetch_add(1, Relaxed)));
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::File::create(&new)?;
        file.write_all(octets)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        match path.parent() {
            Some(folder) => std::fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(HookError::storage(path))
}

/// A version is the first twelve hexadecimal digits of the component's SHA-256.
fn version_of(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().take(6).map(|octet| format!("{octet:02x}")).collect()
}

fn good_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

impl Library {
    pub(crate) fn open(folder: &Path) -> Result<Self, HookError> {
        for part in ["components", "artefacts"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(HookError::storage(&path))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    pub(crate) fn artefacts(&self) -> PathBuf {
        self.folder.join("artefacts")
    }

    pub(crate) fn history(&self) -> PathBuf {
        self.folder.join("router.json")
    }

    fn component(&self, plugin: &str, version: &str) -> PathBuf {
        self.folder.join("components").join(plugin).join(format!("{version}.wasm"))
    }

    /// Looks a component over and keeps it.
    pub(crate) fn add(&self, engine: &Engine, plugin: &str, octets: &[u8]) -> Result<VersionInfo, HookError> {
        if !good_name(plugin) {
            return Err(HookError::BadName(plugin.to_owned()));
        }
        if !octets.starts_with(b"\0asm") {
            return Err(HookError::NotWasm);
        }
        if octets.get(4..8) == Some(&[1, 0, 0, 0]) {
            return Err(HookError::NotComponent);
        }
        let version = version_of(octets);
        let compiled = crate::compile::compile(engine, octets)?;
        check_world(engine, &compiled)?;
        crate::artefact::keep_compiled(&self.artefacts(), engine, &version, octets, &compiled)?;
        let path = self.component(plugin, &version);
        // A file that does not hold what its name says is replaced: that is how a damaged one is mended.
        if std::fs::read(&path).map_or(true, |kept| kept != octets) {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(HookError::storage(folder))?;
            }
            write_whole(&path, octets)?;
        }
        Ok(VersionInfo { plugin: plugin.to_owned(), version, size: octets.len() as u64 })
    }

    /// A version's component, compiled.
    pub(crate) fn compiled(
        &self,
        engine: &Engine,
        plugin: &str,
        version: &str,
    ) -> Result<Component, HookError> {
        let known = good_name(plugin) && version.bytes().all(|c| c.is_ascii_hexdigit());
        let path = self.component(plugin, version);
        let octets = match std::fs::read(&path) {
            Ok(octets) if known => octets,
            _ => return Err(HookError::Unknown { plugin: plugin.to_owned(), version: version.to_owned() }),
        };
        if version_of(&octets) != version {
            return Err(HookError::Damaged { path, version: version.to_owned() });
        }
        crate::artefact::load_or_compile(&self.artefacts(), engine, version, &octets)
    }

    /// All versions.
    pub(crate) fn list(&self) -> Result<Vec<VersionInfo>, HookError> {
        let folder = self.folder.join("components");
        let mut found = Vec::new();
        for plugin in std::fs::read_dir(&folder).map_err(HookError::storage(&folder))?.flatten() {
            let name = plugin.file_name().to_string_lossy().into_owned();
            for file in std::fs::read_dir(plugin.path()).map_err(HookError::storage(&folder))?.flatten() {
                let path = file.path();
                if path.extension().is_some_and(|ending| ending == "wasm") {
                    let version = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    let size = file.metadata().map_or(0, |data| data.len());
                    found.push(VersionInfo {
                        plugin: name.clone(),
                        version: version.unwrap_or_default(),
                        size,
                    });
                }
            }
        }
        found.sort_by(|a, b| (&a.plugin, &a.version).cmp(&(&b.plugin, &b.version)));
        Ok(found)
    }
}

/// Whether a component is a router of a version that is served.
fn check_world(engine: &Engine, component: &Component) -> Result<(), HookError> {
    let kind = component.component_type();
    let exports: Vec<String> = kind.exports(engine).map(|(name, _)| name.to_owned()).collect();
    if !exports.iter().any(|name| name == ROUTING) {
        let other_version = exports.iter().find(|name| name.starts_with("switchyard:hooks/routing"));
        return Err(match other_version {
            Some(found) => HookError::WrongVersion { found: found.clone(), served: SERVED },
            None => HookError::WrongWorld {
                found: if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") },
                wanted: ROUTING,
            },
        });
    }
    for (name, _) in kind.imports(engine) {
        let given = name
            .strip_prefix(PACKAGE)
            .and_then(|rest| rest.split_once('@'))
            .is_some_and(|(interface, version)| version == "0.1.0" && GIVEN.contains(&interface));
        if !given {
            return Err(HookError::ForeignImport(name.to_owned()));
        }
    }
    Ok(())
}
