//! Sessions saved between commands, in a file that only its owner can read.

use crate::ClientError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Session secrets by the URL of the appliance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLogins(BTreeMap<String, String>);

/// Path of the file: `switchyard/logins.json` in the user's configuration folder.
pub(crate) fn default_path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("switchyard/logins.json"))
}

impl SavedLogins {
    /// Reads the file; empty if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Self, ClientError> {
        let wrong = |source| ClientError::SavedLogins { path: path.to_owned(), source };
        match std::fs::read(path) {
            Ok(octets) => serde_json::from_slice(&octets).map_err(|error| wrong(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error)),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), ClientError> {
        let write = || {
            if let Some(folder) = path.parent() {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            // Write a new file and rename it: readers never see a part of it, and it has the right mode from the start.
            let beside = path.with_extension(format!("{}.new", std::process::id()));
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&beside)?;
            let written = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
            let written = written.and_then(|octets| file.write_all(&octets));
            let moved = written.and_then(|()| std::fs::rename(&beside, path));
            if moved.is_err() {
                // The rest of the file contains a session.
                let _ = std::fs::remove_file(&beside);
            }
            moved
        };
        write().map_err(|source| ClientError::SavedLogins { path: path.to_owned(), source })
    }

    pub(crate) fn get(&self, url: &str) -> Option<&str> {
        self.0.get(url).map(String::as_str)
    }

    pub(crate) fn insert(&mut self, url: &str, session: &str) {
        self.0.insert(url.to_owned(), session.to_owned());
    }

    pub(crate) fn remove(&mut self, url: &str) -> Option<String> {
        self.0.remove(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn saved_logins_round_trip_with_owner_only_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard/logins.json");
        assert_eq!(SavedLogins::read(&path).unwrap(), SavedLogins::default());
        let mut logins = SavedLogins::default();
        logins.insert("http://one", "a");
        logins.insert("http://two", "b");
        logins.insert("http://one", "c");
        logins.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let mut read = SavedLogins::read(&path).unwrap();
        assert_eq!((read.get("http://one"), read.get("http://three")), (Some("c"), None));
        assert_eq!(read.remove("http://one").as_deref(), Some("c"));
        read.write(&path).unwrap();
        assert_eq!(SavedLogins::read(&path).unwrap().get("http://one"), None);
        std::fs::write(&path, "nothing").unwrap();
        let problem = SavedLogins::read(&path).unwrap_err().to_string();
        assert!(problem.contains("logins.json"), "{problem}");
    }
}
