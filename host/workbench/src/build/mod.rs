//! `switchyard plugin build`: a plugin's folder becomes a component.

mod c;
mod javascript;
mod python;
mod rust;

pub(crate) use c::bindings as c_bindings;
pub(crate) use rust::toolchain;

use crate::component::Component;
use crate::manifest::Manifest;
use crate::{Language, WorkbenchError, contract};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What a build left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The component.
    pub path: PathBuf,
    /// The first twelve hex digits of its SHA-256.
    pub version: String,
    /// Its size in octets.
    pub size: usize,
    /// Nothing had changed, so nothing was built.
    pub fresh: bool,
}

/// Builds a plugin's folder. The component goes to `out`, or to NAME.wasm in the folder. Where nothing has changed since the
/// last time, nothing is done.
///
/// # Errors
/// When the folder is no plugin's, a tool is missing (the message says what installs it), the code does not build, or the
/// component imports what its world does not give.
pub fn build(folder: &Path, out: Option<&Path>) -> Result<Built, WorkbenchError> {
    let manifest = Manifest::read(folder)?;
    if !folder.join("wit").exists() {
        contract::write(&folder.join("wit"))?;
    }
    let path = out.map_or_else(|| folder.join(format!("{}.wasm", manifest.name)), Path::to_owned);
    let work = folder.join("build");
    std::fs::create_dir_all(&work).map_err(WorkbenchError::file(&work))?;
    // Two builds of a folder at once: the second finds what the first has made.
    let lock = work.join("lock");
    let held = std::fs::File::create(&lock).map_err(WorkbenchError::file(&lock))?;
    held.lock().map_err(WorkbenchError::file(&lock))?;
    let stamp = work.join("stamp");
    let inputs = inputs(folder, &manifest)?;
    // Cargo knows better what a Rust plugin is made of: it may use crates from elsewhere.
    let unchanged = manifest.language != Language::Rust
        && std::fs::read_to_string(&stamp).is_ok_and(|stamped| {
            std::fs::read(&path).is_ok_and(|made| stamped == format!("{inputs} {}", digest(&made)))
        });
    if unchanged {
        let component = Component::read(&path)?;
        return Ok(Built { path, version: component.version, size: component.size, fresh: true });
    }
    let made = match manifest.language {
        Language::Rust => rust::build(folder, &manifest)?,
        Language::Js => javascript::build(folder, &manifest, &work)?,
        Language::Python => python::build(folder, &manifest, &work)?,
        Language::C => c::build(folder, &manifest, &work)?,
    };
    let component = Component::new(&path, &made)?;
    component.serves(&manifest)?;
    let fresh = std::fs::read(&path).is_ok_and(|old| old == made);
    if !fresh {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(WorkbenchError::file(parent))?;
        }
        std::fs::write(&path, &made).map_err(WorkbenchError::file(&path))?;
    }
    std::fs::write(&stamp, format!("{inputs} {}", digest(&made))).map_err(WorkbenchError::file(&stamp))?;
    Ok(Built { path, version: component.version, size: component.size, fresh })
}

fn digest(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}

/// What a component is made of, as one digest: every file of the folder that is not a result, and this program's version.
fn inputs(folder: &Path, manifest: &Manifest) -> Result<String, WorkbenchError> {
    let mut files = Vec::new();
    gather(folder, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    hash.update(manifest.text());
    hash.update(env!("CARGO_PKG_VERSION"));
    for tool in [javascript::TOOL, python::TOOL, c::TOOL] {
        hash.update(tool.folder);
    }
    for file in files {
        let octets = std::fs::read(&file).map_err(WorkbenchError::file(&file))?;
        hash.update(file.strip_prefix(folder).unwrap_or(&file).as_os_str().as_encoded_bytes());
        hash.update((octets.len() as u64).to_le_bytes());
        hash.update(octets);
    }
    Ok(hash.finalize().iter().map(|octet| format!("{octet:02x}")).collect())
}

/// Files of a folder; results and tools' own folders left out.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), WorkbenchError> {
    let entries = std::fs::read_dir(folder).map_err(WorkbenchError::file(folder))?;
    for entry in entries {
        let path = entry.map_err(WorkbenchError::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let result = name.starts_with('.')
            || matches!(&*name, "build" | "target" | "bindings" | "node_modules" | "__pycache__")
            || name.ends_with(".wasm")
            || name.ends_with(".sig");
        if result {
            continue;
        }
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
