//! `switchyard plugin build`: builds a component from a plugin's folder.

mod bill;
mod c;
mod go;
mod javascript;
mod lock_file;
mod python;
mod rust;

pub(crate) use c::bindings as c_bindings;
pub(crate) use go::{
    MODULE_FILE as GO_MODULE_FILE, module_file as go_module_file, write_bindings as go_bindings,
};
pub(crate) use rust::toolchain;

use crate::component::Component;
use crate::manifest::Manifest;
use crate::{PluginLanguage, WorkbenchError, contract};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The result of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildOutput {
    /// The component's file.
    pub path: PathBuf,
    /// The first twelve hexadecimal digits of its SHA-256 digest.
    pub version: String,
    /// Its size, in octets.
    pub size: usize,
    /// Whether nothing had changed, so nothing was built.
    pub up_to_date: bool,
}

/// Builds a plugin's folder. The component is written to `out`, or to NAME.wasm in the folder, and its debug information and its
/// bill of materials to the same folder. Does nothing if nothing has changed since the last build.
///
/// # Errors
/// The folder is not a plugin's, a tool is missing (the message names the command that installs it), the code does not
/// build, or the component has imports that its world does not offer.
pub fn build(folder: &Path, out: Option<&Path>) -> Result<BuildOutput, WorkbenchError> {
    let manifest = Manifest::read(folder)?;
    if !folder.join("wit").exists() {
        contract::write(&folder.join("wit"))?;
    }
    let path = out.map_or_else(|| folder.join(format!("{}.wasm", manifest.name)), Path::to_owned);
    let work = folder.join("build");
    std::fs::create_dir_all(&work).map_err(WorkbenchError::file(&work))?;
    // Of two concurrent builds of a folder, the second reuses the first one's result.
    let lock = work.join("lock");
    let held = std::fs::File::create(&lock).map_err(WorkbenchError::file(&lock))?;
    held.lock().map_err(WorkbenchError::file(&lock))?;
    let stamp = work.join("stamp");
    let inputs = inputs(folder, &manifest)?;
    // Cargo itself detects changes of a Rust plugin, which may depend on crates outside the folder.
    let unchanged = manifest.language != PluginLanguage::Rust
        && std::fs::read_to_string(&stamp).is_ok_and(|stamped| {
            std::fs::read(&path).is_ok_and(|made| stamped == format!("{inputs} {}", digest(&made)))
        });
    if unchanged {
        let octets = std::fs::read(&path).map_err(WorkbenchError::file(&path))?;
        let component = Component::new(&path, &octets)?;
        bill::write(folder, &manifest, &path, &octets)?;
        return Ok(BuildOutput { path, version: component.version, size: component.size, up_to_date: true });
    }
    let made = match manifest.language {
        PluginLanguage::Rust => rust::build(folder, &manifest)?,
        PluginLanguage::Js => javascript::build(folder, &manifest, &work)?,
        PluginLanguage::Python => python::build(folder, &manifest, &work)?,
        PluginLanguage::C => c::build(folder, &manifest, &work)?,
        PluginLanguage::Go => go::build(folder, &manifest, &work)?,
    };
    let made = with_policy_schema(folder, made)?;
    let component = hooks::strip_debug_info(&made).unwrap_or_else(|| made.clone());
    let has_debug_info = component.len() < made.len();
    let (with_debug_info, made) = (made, component);
    let component = Component::new(&path, &made)?;
    component.check_manifest(&manifest)?;
    let debug_path = debug_info_path(&path);
    if has_debug_info {
        std::fs::write(&debug_path, &with_debug_info).map_err(WorkbenchError::file(&debug_path))?;
    } else if debug_path.exists() {
        std::fs::remove_file(&debug_path).map_err(WorkbenchError::file(&debug_path))?;
    }
    let up_to_date = std::fs::read(&path).is_ok_and(|old| old == made);
    if !up_to_date {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(WorkbenchError::file(parent))?;
        }
        std::fs::write(&path, &made).map_err(WorkbenchError::file(&path))?;
    }
    bill::write(folder, &manifest, &path, &made)?;
    std::fs::write(&stamp, format!("{inputs} {}", digest(&made))).map_err(WorkbenchError::file(&stamp))?;
    Ok(BuildOutput { path, version: component.version, size: component.size, up_to_date })
}

/// The file in a plugin's folder with the JSON Schema of its policy document.
pub(crate) const POLICY_SCHEMA_FILE: &str = "policy.schema.json";

/// The component with the schema of the folder, if the folder has one.
fn with_policy_schema(folder: &Path, component: Vec<u8>) -> Result<Vec<u8>, WorkbenchError> {
    let path = folder.join(POLICY_SCHEMA_FILE);
    match std::fs::read_to_string(&path) {
        Ok(schema) => policy_schema::embed(&component, &schema)
            .map_err(|error| WorkbenchError::Unreadable { path, why: error.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(component),
        Err(error) => Err(WorkbenchError::file(&path)(error)),
    }
}

/// The path of a component's debug information: NAME.debug.wasm in the same folder, which is the component before its debug
/// sections were removed.
pub(crate) fn debug_info_path(component: &Path) -> PathBuf {
    component.with_extension("debug.wasm")
}

fn digest(octets: &[u8]) -> String {
    model::hex(&Sha256::digest(octets))
}

/// The digest of a component's inputs: every file of the folder except results, and this program's version.
fn inputs(folder: &Path, manifest: &Manifest) -> Result<String, WorkbenchError> {
    let mut files = Vec::new();
    collect_files(folder, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    hash.update(manifest.text());
    hash.update(env!("CARGO_PKG_VERSION"));
    for tool in [javascript::TOOL, python::TOOL, c::TOOL, go::TOOL] {
        hash.update(tool.folder);
    }
    for reporter in [javascript::REPORTER, python::REPORTER, go::REPORTER] {
        hash.update(reporter);
    }
    for file in files {
        let octets = std::fs::read(&file).map_err(WorkbenchError::file(&file))?;
        hash.update(file.strip_prefix(folder).unwrap_or(&file).as_os_str().as_encoded_bytes());
        hash.update((octets.len() as u64).to_le_bytes());
        hash.update(octets);
    }
    Ok(model::hex(&hash.finalize()))
}

/// Writes a generated file. If its contents do not change, it keeps its modification time, for editors and compilers.
fn write_if_changed(path: &Path, octets: &[u8]) -> Result<(), WorkbenchError> {
    if std::fs::read(path).is_ok_and(|old| old == octets) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(WorkbenchError::file(parent))?;
    }
    std::fs::write(path, octets).map_err(WorkbenchError::file(path))
}

/// The files of a folder, without results and the tools' own folders.
pub(crate) fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), WorkbenchError> {
    let entries = std::fs::read_dir(folder).map_err(WorkbenchError::file(folder))?;
    for entry in entries {
        let path = entry.map_err(WorkbenchError::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let result = name.starts_with('.')
            || matches!(&*name, "build" | "target" | "bindings" | "node_modules" | "__pycache__")
            || name.ends_with(".wasm")
            || name.ends_with(".sig")
            || name.ends_with(".sbom.json");
        if result {
            continue;
        }
        if path.is_dir() {
            collect_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
