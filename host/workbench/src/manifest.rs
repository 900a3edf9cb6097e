use crate::{Language, WorkbenchError};
use model::Hook;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in a plugin's folder that says what it is.
pub(crate) const FILE: &str = "plugin.toml";

/// What `plugin.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The plugin's name; `build` makes NAME.wasm.
    pub(crate) name: String,
    pub(crate) language: Language,
    /// The hook that it serves, which is the name of its world.
    pub(crate) world: Hook,
    /// It keeps the WASI imports of its language's libraries, which the host serves with an empty world: what is printed
    /// goes to the log, the time is the call's. Otherwise nothing of a system is in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) wasi: bool,
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Result<Self, WorkbenchError> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(WorkbenchError::NoPlugin(folder.to_owned()));
            }
            Err(error) => return Err(WorkbenchError::file(&path)(error)),
        };
        let manifest: Self = toml::from_str(&text)
            .map_err(|error| WorkbenchError::Unreadable { path, why: error.to_string() })?;
        check_name(&manifest.name)?;
        if manifest.wasi && !matches!(manifest.language, Language::Js | Language::Python) {
            return Err(WorkbenchError::Usage(format!(
                "plugin.toml says wasi = true; a {} plugin has no WASI to import",
                manifest.language.name()
            )));
        }
        Ok(manifest)
    }

    pub(crate) fn text(&self) -> String {
        let Self { name, language, world, wasi } = self;
        let language = match language {
            Language::Rust => "rust",
            Language::Js => "js",
            Language::Python => "python",
            Language::C => "c",
        };
        let wasi = if *wasi { "wasi = true\n" } else { "" };
        format!("name = \"{name}\"\nlanguage = \"{language}\"\nworld = \"{}\"\n{wasi}", world.name())
    }
}

/// Refuses names that are no file's, no crate's or no plugin's name.
pub(crate) fn check_name(name: &str) -> Result<(), WorkbenchError> {
    let good = (1..=64).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-');
    if good { Ok(()) } else { Err(WorkbenchError::BadName(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let written = |language, wasi| {
            let manifest =
                Manifest { name: "first-1".to_owned(), language, world: Hook::DeliveryPolicy, wasi };
            std::fs::write(folder.path().join(FILE), manifest.text()).unwrap();
            (Manifest::read(folder.path()), manifest)
        };
        for wasi in [false, true] {
            let (read, manifest) = written(Language::Js, wasi);
            assert_eq!(read.unwrap(), manifest);
        }
        assert!(written(Language::C, true).0.unwrap_err().to_string().contains("wasi = true"));
    }

    #[test]
    fn a_name_is_no_path() {
        for bad in ["", "../up", "a/b", "1st", "Big", "ä", "with space", &"a".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        check_name("prefix-router2").unwrap();
    }
}
