//! Files that only their owner can read, in the user's configuration folder.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder: `switchyard` in the user's configuration folder; `None` if neither `XDG_CONFIG_HOME` nor `HOME` is set.
pub(crate) fn settings_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("switchyard"))
}

/// Reads a JSON file; the default if it does not exist.
pub(crate) fn read_private<T: DeserializeOwned + Default>(path: &Path) -> io::Result<T> {
    match std::fs::read(path) {
        Ok(octets) => Ok(serde_json::from_slice(&octets)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error),
    }
}

/// Writes a JSON file with mode 0600, in a folder with mode 0700.
pub(crate) fn write_private(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    atomic_file::replace_file(path, &serde_json::to_vec_pretty(value)?, atomic_file::PRIVATE)
}
