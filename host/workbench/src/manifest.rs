use crate::{PluginLanguage, WorkbenchError};
use model::Hook;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The manifest file in a plugin's folder.
pub(crate) const MANIFEST_FILE: &str = "plugin.toml";

/// The contents of `plugin.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The plugin's name; `build` writes NAME.wasm.
    pub(crate) name: String,
    pub(crate) language: PluginLanguage,
    /// The hook that it serves, which is the name of its world.
    pub(crate) world: Hook,
    /// Keep the WASI imports of the language's run-time library, which the host satisfies with an empty world: output
    /// goes to the log, and the clock always shows the time of the call. Otherwise the component has no WASI imports.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) wasi: bool,
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Result<Self, WorkbenchError> {
        let path = folder.join(MANIFEST_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(WorkbenchError::NotAPlugin(folder.to_owned()));
            }
            Err(error) => return Err(WorkbenchError::file(&path)(error)),
        };
        let manifest: Self = toml::from_str(&text)
            .map_err(|error| WorkbenchError::Unreadable { path, why: error.to_string() })?;
        check_name(&manifest.name)?;
        if manifest.wasi && !matches!(manifest.language, PluginLanguage::Js | PluginLanguage::Python) {
            return Err(WorkbenchError::Usage(format!(
                "plugin.toml says wasi = true; a {} plugin has no WASI imports",
                manifest.language.name()
            )));
        }
        Ok(manifest)
    }

    pub(crate) fn text(&self) -> String {
        let Self { name, language, world, wasi } = self;
        let language = match language {
            PluginLanguage::Rust => "rust",
            PluginLanguage::Js => "js",
            PluginLanguage::Python => "python",
            PluginLanguage::C => "c",
            PluginLanguage::Go => "go",
        };
        let wasi = if *wasi { "wasi = true\n" } else { "" };
        format!("name = \"{name}\"\nlanguage = \"{language}\"\nworld = \"{}\"\n{wasi}", world.name())
    }
}

/// Refuses names that are not valid for files, crates and plugins.
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
    fn a_manifest_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let written = |language, wasi| {
            let manifest =
                Manifest { name: "first-1".to_owned(), language, world: Hook::DeliveryPolicy, wasi };
            std::fs::write(folder.path().join(MANIFEST_FILE), manifest.text()).unwrap();
            (Manifest::read(folder.path()), manifest)
        };
        for wasi in [false, true] {
            let (read, manifest) = written(PluginLanguage::Js, wasi);
            assert_eq!(read.unwrap(), manifest);
        }
        assert!(written(PluginLanguage::C, true).0.unwrap_err().to_string().contains("wasi = true"));
    }

    #[test]
    fn paths_are_refused_as_names() {
        for bad in ["", "../up", "a/b", "1st", "Big", "ä", "with space", &"a".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        check_name("prefix-router2").unwrap();
    }
}
