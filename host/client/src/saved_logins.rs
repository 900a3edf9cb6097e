//! Sessions saved between commands, in a file that only its owner can read.

use crate::error::ClientError;
use crate::private_file::{read_private, settings_folder, write_private};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Session secrets by the URL of the appliance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedLogins(BTreeMap<String, String>);

/// Path of the file: `switchyard/logins.json` in the user's configuration folder.
pub(crate) fn default_path() -> Option<PathBuf> {
    settings_folder().map(|folder| folder.join("logins.json"))
}

impl SavedLogins {
    /// Reads the file; empty if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Self, ClientError> {
        read_private(path).map_err(|source| ClientError::SavedLogins { path: path.to_owned(), source })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), ClientError> {
        write_private(path, self).map_err(|source| ClientError::SavedLogins { path: path.to_owned(), source })
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
