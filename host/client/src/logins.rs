//! Sessions that the command line keeps between two commands: a file of the user's own, for nobody else's eyes.

use crate::ClientError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Sessions by the address of their appliance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Logins(BTreeMap<String, String>);

/// Where they are kept: `switchyard/logins.json` in the user's folder of settings.
pub(crate) fn place() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(settings.join("switchyard/logins.json"))
}

impl Logins {
    /// Those that are kept there; none where there is no file.
    pub(crate) fn read(path: &Path) -> Result<Self, ClientError> {
        let wrong = |source| ClientError::Logins { path: path.to_owned(), source };
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
            // Beside it and renamed: who reads it meanwhile finds all of it, and the mode is right from the first octet on.
            let beside = path.with_extension(format!("{}.new", std::process::id()));
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&beside)?;
            let written = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
            let written = written.and_then(|octets| file.write_all(&octets));
            let moved = written.and_then(|()| std::fs::rename(&beside, path));
            if moved.is_err() {
                // What is left of it holds a session.
                let _ = std::fs::remove_file(&beside);
            }
            moved
        };
        write().map_err(|source| ClientError::Logins { path: path.to_owned(), source })
    }

    pub(crate) fn of(&self, url: &str) -> Option<&str> {
        self.0.get(url).map(String::as_str)
    }

    pub(crate) fn keep(&mut self, url: &str, word: &str) {
        self.0.insert(url.to_owned(), word.to_owned());
    }

    pub(crate) fn forget(&mut self, url: &str) -> Option<String> {
        self.0.remove(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_kept_comes_back_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard/logins.json");
        assert_eq!(Logins::read(&path).unwrap(), Logins::default());
        let mut logins = Logins::default();
        logins.keep("http://one", "a");
        logins.keep("http://two", "b");
        logins.keep("http://one", "c");
        logins.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let mut read = Logins::read(&path).unwrap();
        assert_eq!((read.of("http://one"), read.of("http://three")), (Some("c"), None));
        assert_eq!(read.forget("http://one").as_deref(), Some("c"));
        read.write(&path).unwrap();
        assert_eq!(Logins::read(&path).unwrap().of("http://one"), None);
        std::fs::write(&path, "nothing").unwrap();
        let told = Logins::read(&path).unwrap_err().to_string();
        assert!(told.contains("logins.json"), "{told}");
    }
}
