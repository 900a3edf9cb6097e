//! Plugin versions on disk: content-addressed, never changed, never removed.

use crate::HookError;
use crate::signature::Trust;
use crate::world::{self, Wit};
use model::Hook;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::Engine;
use wasmtime::component::Component;

/// One version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionInfo {
    /// The plugin.
    pub plugin: String,
    /// The first twelve hexadecimal digits of its SHA-256.
    pub version: String,
    /// All of its SHA-256, in hexadecimal digits: what bindings hold to.
    #[serde(default)]
    pub sha256: String,
    /// Octets of the component.
    pub size: u64,
    /// The hook that it can serve.
    pub hook: Hook,
    /// The version of the contract that it was built for.
    pub wit: Wit,
    /// What it imports.
    pub imports: Vec<String>,
    /// The name of the trusted key that signed it.
    #[serde(default)]
    pub signed_by: Option<String>,
}

/// A component, compiled, and what it is.
pub(crate) struct Kept {
    pub(crate) component: Component,
    pub(crate) hook: Hook,
    pub(crate) wit: Wit,
}

/// The folder: `components/NAME/VERSION.wasm` with `.sig` and `.json` beside it, `artefacts/`, and a file per hook with what
/// is and was bound.
#[derive(Debug)]
pub(crate) struct Library {
    folder: PathBuf,
    trust: Trust,
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

/// The hexadecimal digits of a component's SHA-256; the first [`VERSION`] of them are its version.
fn digest(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Digits of a version: enough for people to tell versions apart, and too few for octets of strangers.
const VERSION: usize = 12;

fn good_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

impl Library {
    pub(crate) fn open(folder: &Path, trust: Trust) -> Result<Self, HookError> {
        for part in ["components", "artefacts"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(HookError::storage(&path))?;
        }
        Ok(Self { folder: folder.to_owned(), trust })
    }

    pub(crate) fn artefacts(&self) -> PathBuf {
        self.folder.join("artefacts")
    }

    /// The file of a hook's bindings.
    pub(crate) fn bindings(&self, hook: Hook) -> PathBuf {
        self.folder.join(format!("{}.json", hook.name()))
    }

    fn component(&self, plugin: &str, version: &str) -> PathBuf {
        self.folder.join("components").join(plugin).join(format!("{version}.wasm"))
    }

    /// Looks a component over and keeps it. `signature` is the base64 form of an ed25519 signature over its octets.
    pub(crate) fn add(
        &self,
        engine: &Engine,
        plugin: &str,
        octets: &[u8],
        signature: Option<&str>,
    ) -> Result<VersionInfo, HookError> {
        if !good_name(plugin) {
            return Err(HookError::BadName(plugin.to_owned()));
        }
        if !octets.starts_with(b"\0asm") {
            return Err(HookError::NotWasm);
        }
        if octets.get(4..8) == Some(&[1, 0, 0, 0]) {
            return Err(HookError::NotComponent);
        }
        let sha256 = digest(octets);
        let version = sha256[..VERSION].to_owned();
        let path = self.component(plugin, &version);
        self.refuse_others(plugin, &version, &sha256)?;
        // Uploaded again without its signature, a version keeps the one it has, if that still counts.
        let kept = std::fs::read_to_string(path.with_extension("sig")).ok();
        let kept = kept.filter(|kept| signature.is_none() && self.trust.judge(octets, Some(kept)).is_ok());
        let signed_by = self.trust.judge(octets, signature.or(kept.as_deref()))?;
        let compiled = crate::compile::compile(engine, octets)?;
        let (hook, wit) = world::of(engine, &compiled)?;
        crate::artefact::keep_compiled(&self.artefacts(), engine, &version, octets, &compiled);
        let info = VersionInfo {
            plugin: plugin.to_owned(),
            version: version.clone(),
            sha256,
            size: octets.len() as u64,
            hook,
            wit,
            imports: world::imports(engine, &compiled),
            signed_by,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(HookError::storage(folder))?;
        }
        if let Some(signature) = signature {
            write_whole(&path.with_extension("sig"), signature.trim().as_bytes())?;
        }
        let described =
            serde_json::to_vec_pretty(&info).map_err(|error| HookError::Engine(error.to_string()))?;
        write_whole(&path.with_extension("json"), &described)?;
        // A file that does not hold what its name says is replaced: that is how a damaged one is mended.
        if std::fs::read(&path).map_or(true, |kept| kept != octets) {
            write_whole(&path, octets)?;
        }
        Ok(info)
    }

    /// A version keeps its octets: others that begin with the same digits are refused. A damaged file may be mended, by what
    /// it was.
    fn refuse_others(&self, plugin: &str, version: &str, sha256: &str) -> Result<(), HookError> {
        let path = self.component(plugin, version);
        let described = std::fs::read(path.with_extension("json")).ok();
        let described = described.and_then(|octets| serde_json::from_slice::<VersionInfo>(&octets).ok());
        let known = described.map(|info| info.sha256).filter(|sha256| !sha256.is_empty());
        let kept = || std::fs::read(&path).ok().map(|octets| digest(&octets));
        match known.or_else(|| kept().filter(|kept| kept.starts_with(version))) {
            Some(known) if known != sha256 => {
                Err(HookError::OtherOctets { plugin: plugin.to_owned(), version: version.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// All of a kept version's SHA-256.
    pub(crate) fn sha256(&self, plugin: &str, version: &str) -> Result<String, HookError> {
        self.octets(plugin, version, "").map(|octets| digest(&octets))
    }

    /// A version's octets. `sha256` is what they have to be, if it is known.
    fn octets(&self, plugin: &str, version: &str, sha256: &str) -> Result<Vec<u8>, HookError> {
        let known = good_name(plugin) && version.bytes().all(|c| c.is_ascii_hexdigit());
        let path = self.component(plugin, version);
        let unknown = || HookError::Unknown { plugin: plugin.to_owned(), version: version.to_owned() };
        if !known {
            return Err(unknown());
        }
        let octets = match std::fs::read(&path) {
            Ok(octets) => octets,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(unknown()),
            Err(source) => return Err(HookError::Storage { path, source }),
        };
        let is = digest(&octets);
        if is[..VERSION] != *version || (!sha256.is_empty() && is != sha256) {
            return Err(HookError::Damaged { path, version: version.to_owned() });
        }
        Ok(octets)
    }

    /// A version's component, compiled. `sha256` is what it has to be, if the binding knows it.
    pub(crate) fn compiled(
        &self,
        engine: &Engine,
        plugin: &str,
        version: &str,
        sha256: &str,
    ) -> Result<Kept, HookError> {
        let path = self.component(plugin, version);
        let octets = self.octets(plugin, version, sha256)?;
        // What was let in without a signature may not serve once signatures are required. While they are not, what serves
        // goes on doing so though its signer is trusted no more.
        if self.trust.required {
            let signature = std::fs::read_to_string(path.with_extension("sig")).ok();
            self.trust.judge(&octets, signature.as_deref())?;
        }
        let component = crate::artefact::load_or_compile(&self.artefacts(), engine, version, &octets)?;
        let (hook, wit) = world::of(engine, &component)?;
        Ok(Kept { component, hook, wit })
    }

    /// All versions.
    pub(crate) fn list(&self, engine: &Engine) -> Result<Vec<VersionInfo>, HookError> {
        let folder = self.folder.join("components");
        let mut found = Vec::new();
        for plugin in std::fs::read_dir(&folder).map_err(HookError::storage(&folder))?.flatten() {
            if !plugin.path().is_dir() {
                continue;
            }
            let name = plugin.file_name().to_string_lossy().into_owned();
            for file in std::fs::read_dir(plugin.path()).map_err(HookError::storage(&folder))?.flatten() {
                let path = file.path();
                if path.extension().is_none_or(|ending| ending != "wasm") {
                    continue;
                }
                let described = std::fs::read(path.with_extension("json")).ok();
                let described = described.and_then(|octets| serde_json::from_slice(&octets).ok());
                match described {
                    Some(info) => found.push(info),
                    // Kept by a version that wrote no description.
                    None => {
                        let version = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                        found.extend(self.describe(engine, &name, &version.unwrap_or_default(), &path));
                    }
                }
            }
        }
        found.sort_by(|a, b| (&a.plugin, &a.version).cmp(&(&b.plugin, &b.version)));
        Ok(found)
    }

    fn describe(&self, engine: &Engine, plugin: &str, version: &str, path: &Path) -> Option<VersionInfo> {
        let kept = self.compiled(engine, plugin, version, "").ok()?;
        let size = path.metadata().map_or(0, |data| data.len());
        let info = VersionInfo {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            sha256: self.sha256(plugin, version).ok()?,
            size,
            hook: kept.hook,
            wit: kept.wit,
            imports: world::imports(engine, &kept.component),
            signed_by: None,
        };
        if let Ok(octets) = serde_json::to_vec_pretty(&info)
            && let Err(error) = write_whole(&path.with_extension("json"), &octets)
        {
            tracing::warn!(%error, "description not kept");
        }
        Some(info)
    }
}
