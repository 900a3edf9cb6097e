//! The plugin library: versions on disk, content-addressed, never changed, never removed.

use crate::HookError;
use crate::NewComponent;
use crate::compile::Priority;
use crate::contract::{self, WitVersion};
use crate::debug_info::strip_debug_info;
use crate::signature::Trust;
use crate::version_lookup::FoundVersion;
use api::PluginOrigin;
use model::{Hook, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wasmtime::Engine;
use wasmtime::component::Component;

/// A version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionInfo {
    /// The plugin.
    pub plugin: String,
    /// The first twelve hexadecimal digits of the component's SHA-256 digest.
    pub version: String,
    /// The full SHA-256 digest in hexadecimal; bindings refer to it.
    #[serde(default)]
    pub sha256: String,
    /// Size of the component, in octets.
    pub size: u64,
    /// The hook that it can serve.
    pub hook: Hook,
    /// The contract version that it was built for.
    pub wit: WitVersion,
    /// Its imports.
    pub imports: Vec<String>,
    /// The name of the trusted key that signed it.
    #[serde(default)]
    pub signed_by: Option<String>,
    /// Whether it has the schema of its policy document.
    #[serde(default)]
    pub policy_schema: bool,
    /// The source from which it was pulled; `None` if it was uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PluginOrigin>,
    /// Whether its debug information is stored.
    #[serde(skip)]
    pub debug_info: bool,
    /// Whether its bill of materials is stored.
    #[serde(skip)]
    pub sbom: bool,
}

/// A compiled component and its description.
pub(crate) struct StoredComponent {
    pub(crate) component: Component,
    pub(crate) hook: Hook,
    pub(crate) wit: WitVersion,
}

/// The plugin folder: `components/NAME/VERSION.wasm` with the files `.sig`, `.json`, `.sbom` and `.debug` of the same
/// version, `artefacts/`, and one file per hook with its bindings and history.
#[derive(Debug)]
pub(crate) struct Library {
    folder: PathBuf,
    trust: Trust,
    has_traffic: AtomicBool,
}

/// Writes a file atomically.
pub(crate) fn write_atomically(path: &Path, octets: &[u8]) -> Result<(), HookError> {
    atomic_file::replace_file(path, octets, atomic_file::PUBLIC).map_err(HookError::storage(path))
}

/// The SHA-256 digest of a component in hexadecimal. Its first [`VERSION_DIGITS`] digits are the version.
fn sha256_hex(octets: &[u8]) -> String {
    hex(&Sha256::digest(octets))
}

/// Number of digits of a version: enough for people to tell versions apart, but not enough to identify untrusted
/// octets.
pub(crate) const VERSION_DIGITS: usize = 12;

/// The stored description of a component; `None` if there is none, or it is damaged.
fn read_description(component: &Path) -> Option<VersionInfo> {
    serde_json::from_slice(&std::fs::read(component.with_extension("json")).ok()?).ok()
}

/// Whether a plugin can have this name: 1 to 64 letters, digits, `-` and `_`, so that it cannot be a path to another folder.
#[must_use]
pub fn is_plugin_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

impl Library {
    pub(crate) fn open(folder: &Path, trust: Trust) -> Result<Self, HookError> {
        for part in ["components", "artefacts"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(HookError::storage(&path))?;
        }
        Ok(Self { folder: folder.to_owned(), trust, has_traffic: AtomicBool::new(false) })
    }

    /// From now on, compilations must not slow down traffic.
    pub(crate) fn begin_traffic(&self) {
        self.has_traffic.store(true, Relaxed);
    }

    fn priority(&self) -> Priority {
        if self.has_traffic.load(Relaxed) { Priority::Lowest } else { Priority::Normal }
    }

    pub(crate) fn artefact_folder(&self) -> PathBuf {
        self.folder.join("artefacts")
    }

    /// The bindings file of a hook.
    pub(crate) fn bindings(&self, hook: Hook) -> PathBuf {
        self.folder.join(format!("{}.json", hook.name()))
    }

    fn component(&self, plugin: &str, version: &str) -> PathBuf {
        self.folder.join("components").join(plugin).join(format!("{version}.wasm"))
    }

    /// Checks a component and stores it.
    pub(crate) fn add(
        &self,
        engine: &Engine,
        plugin: &str,
        component: NewComponent<'_>,
    ) -> Result<VersionInfo, HookError> {
        let NewComponent { octets, signature, origin, sbom } = component;
        if !is_plugin_name(plugin) {
            return Err(HookError::BadName(plugin.to_owned()));
        }
        if !octets.starts_with(b"\0asm") {
            return Err(HookError::NotWasm);
        }
        if octets.get(4..8) == Some(&[1, 0, 0, 0]) {
            return Err(HookError::NotComponent);
        }
        let sha256 = sha256_hex(octets);
        let version = sha256[..VERSION_DIGITS].to_owned();
        let path = self.component(plugin, &version);
        self.check_same_octets(plugin, &version, &sha256)?;
        // An upload without a signature keeps the stored signature of the version if it is still valid.
        let stored = std::fs::read_to_string(path.with_extension("sig")).ok();
        let stored =
            stored.filter(|stored| signature.is_none() && self.trust.verify(octets, Some(stored)).is_ok());
        let signed_by = self.trust.verify(octets, signature.or(stored.as_deref()))?;
        let folder = self.artefact_folder();
        let stored = crate::artefact::load(&folder, engine, &version, octets);
        let is_stored = stored.is_some();
        let compiled = match stored {
            Some(compiled) => compiled,
            None => crate::compile::compile(engine, octets, self.priority())?,
        };
        let (hook, wit) = contract::identify(engine, &compiled)?;
        let policy_schema = policy_schema::read(octets)?.is_some();
        if !is_stored {
            crate::artefact::store_compiled(&folder, engine, &version, octets, &compiled);
        }
        let info = VersionInfo {
            plugin: plugin.to_owned(),
            version: version.clone(),
            sha256,
            size: octets.len() as u64,
            hook,
            wit,
            imports: contract::imports(engine, &compiled),
            signed_by,
            policy_schema,
            origin: origin.or_else(|| read_description(&path).and_then(|stored| stored.origin)),
            debug_info: path.with_extension("debug").exists(),
            sbom: sbom.is_some() || path.with_extension("sbom").exists(),
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(HookError::storage(folder))?;
        }
        if let Some(signature) = signature {
            write_atomically(&path.with_extension("sig"), signature.trim().as_bytes())?;
        }
        if let Some(sbom) = sbom {
            write_atomically(&path.with_extension("sbom"), sbom)?;
        }
        let description =
            serde_json::to_vec_pretty(&info).map_err(|error| HookError::Engine(error.to_string()))?;
        write_atomically(&path.with_extension("json"), &description)?;
        // An upload repairs a damaged file: it replaces a file whose contents do not match its name.
        if std::fs::read(&path).map_or(true, |stored| stored != octets) {
            write_atomically(&path, octets)?;
        }
        Ok(info)
    }

    /// Compiles a component, unless it is compiled already.
    pub(crate) fn compile(&self, engine: &Engine, octets: &[u8]) -> Result<(), HookError> {
        let sha256 = sha256_hex(octets);
        let version = &sha256[..VERSION_DIGITS];
        crate::artefact::load_or_compile(&self.artefact_folder(), engine, version, octets, self.priority())
            .map(drop)
    }

    /// Refuses a component with the same version digits but another digest than the stored one. A damaged file may be
    /// replaced by its original contents.
    fn check_same_octets(&self, plugin: &str, version: &str, sha256: &str) -> Result<(), HookError> {
        let path = self.component(plugin, version);
        let known = read_description(&path).map(|info| info.sha256).filter(|sha256| !sha256.is_empty());
        let stored = || std::fs::read(&path).ok().map(|octets| sha256_hex(&octets));
        match known.or_else(|| stored().filter(|stored| stored.starts_with(version))) {
            Some(known) if known != sha256 => {
                Err(HookError::DigestConflict { plugin: plugin.to_owned(), version: version.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// The stored versions of a plugin, in no order; none if the plugin is unknown.
    pub(crate) fn stored_versions(&self, plugin: &str) -> Result<Vec<String>, HookError> {
        if !is_plugin_name(plugin) {
            return Ok(Vec::new());
        }
        let folder = self.folder.join("components").join(plugin);
        let files = match std::fs::read_dir(&folder) {
            Ok(files) => files,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(HookError::Storage { path: folder, source }),
        };
        let paths = files.flatten().map(|file| file.path());
        let components = paths.filter(|path| path.extension().is_some_and(|ending| ending == "wasm"));
        Ok(components.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect())
    }

    /// The full SHA-256 digest of a stored version.
    pub(crate) fn sha256(&self, plugin: &str, version: &str) -> Result<String, HookError> {
        self.octets(plugin, version, "").map(|octets| sha256_hex(&octets))
    }

    /// The octets of a version. If `sha256` is given, they must match it.
    fn octets(&self, plugin: &str, version: &str, sha256: &str) -> Result<Vec<u8>, HookError> {
        let known = is_plugin_name(plugin) && version.bytes().all(|c| c.is_ascii_hexdigit());
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
        let is = sha256_hex(&octets);
        if is[..VERSION_DIGITS] != *version || (!sha256.is_empty() && is != sha256) {
            return Err(HookError::Damaged { path, version: version.to_owned() });
        }
        Ok(octets)
    }

    /// Stores the debug information of a version: the component as the build made it, before its debug sections were
    /// removed.
    pub(crate) fn add_debug_info(
        &self,
        engine: &Engine,
        plugin: &str,
        version: &str,
        octets: &[u8],
    ) -> Result<VersionInfo, HookError> {
        let FoundVersion { version, sha256 } = self.find_version(plugin, version)?;
        let version = &*version;
        let stripped = strip_debug_info(octets).ok_or(HookError::NotWasm)?;
        if sha256_hex(&stripped) != sha256 {
            return Err(HookError::OtherDebugInfo { plugin: plugin.to_owned(), version: version.to_owned() });
        }
        let path = self.component(plugin, version);
        write_atomically(&path.with_extension("debug"), octets)?;
        self.version_info(engine, plugin, version, &path)
            .ok_or_else(|| HookError::Damaged { path, version: version.to_owned() })
    }

    /// The schema of a version's policy document.
    pub(crate) fn policy_schema(&self, plugin: &str, version: &str) -> Result<serde_json::Value, HookError> {
        let FoundVersion { version, sha256 } = self.find_version(plugin, version)?;
        let octets = self.octets(plugin, &version, &sha256)?;
        policy_schema::read(&octets)?
            .ok_or_else(|| HookError::NoPolicySchema { plugin: plugin.to_owned(), version })
    }

    /// The bill of materials of a version.
    pub(crate) fn sbom(&self, plugin: &str, version: &str) -> Result<Vec<u8>, HookError> {
        let FoundVersion { version, .. } = self.find_version(plugin, version)?;
        let path = self.component(plugin, &version).with_extension("sbom");
        match std::fs::read(&path) {
            Ok(octets) => Ok(octets),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(HookError::NoSbom { plugin: plugin.to_owned(), version })
            }
            Err(source) => Err(HookError::Storage { path, source }),
        }
    }

    /// Stores the bill of materials of a version. `described`: the SHA-256 of the component that it describes, if it names
    /// one.
    pub(crate) fn add_sbom(
        &self,
        engine: &Engine,
        plugin: &str,
        version: &str,
        (sbom, described): (&[u8], Option<&str>),
    ) -> Result<VersionInfo, HookError> {
        let FoundVersion { version, sha256 } = self.find_version(plugin, version)?;
        if described.is_some_and(|described| described != sha256) {
            return Err(HookError::OtherSbom { plugin: plugin.to_owned(), version });
        }
        let path = self.component(plugin, &version);
        write_atomically(&path.with_extension("sbom"), sbom)?;
        self.version_info(engine, plugin, &version, &path).ok_or(HookError::Damaged { path, version })
    }

    /// The debug information of a version, if it is stored.
    pub(crate) fn debug_info(&self, plugin: &str, version: &str) -> Option<Vec<u8>> {
        std::fs::read(self.component(plugin, version).with_extension("debug")).ok()
    }

    /// The octets of a version that may serve. If the binding has a digest (`sha256`), the component must match it.
    pub(crate) fn verified(&self, plugin: &str, version: &str, sha256: &str) -> Result<Vec<u8>, HookError> {
        let path = self.component(plugin, version);
        let octets = self.octets(plugin, version, sha256)?;
        // If signatures are required, a version that was stored without one may not serve. If not, a live version
        // continues to serve even if its signer is no longer trusted.
        if self.trust.required {
            let signature = std::fs::read_to_string(path.with_extension("sig")).ok();
            self.trust.verify(&octets, signature.as_deref())?;
        }
        Ok(octets)
    }

    /// The compiled component of a version. If the binding has a digest (`sha256`), the component must match it.
    pub(crate) fn compiled(
        &self,
        engine: &Engine,
        plugin: &str,
        version: &str,
        sha256: &str,
    ) -> Result<StoredComponent, HookError> {
        self.compile_stored(engine, version, &self.verified(plugin, version, sha256)?)
    }

    /// The compiled component of verified octets.
    pub(crate) fn compile_stored(
        &self,
        engine: &Engine,
        version: &str,
        octets: &[u8],
    ) -> Result<StoredComponent, HookError> {
        let (folder, priority) = (self.artefact_folder(), self.priority());
        let component = crate::artefact::load_or_compile(&folder, engine, version, octets, priority)?;
        let (hook, wit) = contract::identify(engine, &component)?;
        Ok(StoredComponent { component, hook, wit })
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
                let version = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                found.extend(self.version_info(engine, &name, &version.unwrap_or_default(), &path));
            }
        }
        found.sort_by(|a, b| (&a.plugin, &a.version).cmp(&(&b.plugin, &b.version)));
        Ok(found)
    }

    /// The description of a stored version; made now if an earlier release stored the version without one.
    fn version_info(&self, engine: &Engine, plugin: &str, version: &str, path: &Path) -> Option<VersionInfo> {
        match read_description(path) {
            Some(info) => Some(VersionInfo {
                debug_info: path.with_extension("debug").exists(),
                sbom: path.with_extension("sbom").exists(),
                ..info
            }),
            None => self.describe(engine, plugin, version, path),
        }
    }

    fn describe(&self, engine: &Engine, plugin: &str, version: &str, path: &Path) -> Option<VersionInfo> {
        let stored = self.compiled(engine, plugin, version, "").ok()?;
        let size = path.metadata().map_or(0, |data| data.len());
        let info = VersionInfo {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            sha256: self.sha256(plugin, version).ok()?,
            size,
            hook: stored.hook,
            wit: stored.wit,
            imports: contract::imports(engine, &stored.component),
            signed_by: None,
            policy_schema: self.policy_schema(plugin, version).is_ok(),
            origin: None,
            debug_info: path.with_extension("debug").exists(),
            sbom: path.with_extension("sbom").exists(),
        };
        if let Ok(octets) = serde_json::to_vec_pretty(&info)
            && let Err(error) = write_atomically(&path.with_extension("json"), &octets)
        {
            tracing::warn!(%error, "description of a plugin not stored");
        }
        Some(info)
    }
}
