//! The packages in the lock files of Cargo, npm, Python's tools and Go.

use crate::manifest::Manifest;
use crate::{PluginLanguage, WorkbenchError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A package in a lock file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockedPackage {
    pub(super) name: String,
    pub(super) version: String,
    /// Its package URL; `None` if it is not in the language's registry.
    pub(super) url: Option<String>,
    /// The SHA-256 of its archive, in hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// The packages in the lock file of a plugin's project, each once and in order. Empty if there is no lock file; C has none.
pub(super) fn locked_packages(
    folder: &Path,
    manifest: &Manifest,
) -> Result<Vec<LockedPackage>, WorkbenchError> {
    let files: &[(&str, Reader)] = match manifest.language {
        PluginLanguage::Rust => &[("Cargo.lock", cargo)],
        PluginLanguage::Js => &[("package-lock.json", npm)],
        PluginLanguage::Python => {
            &[("uv.lock", python_lock), ("poetry.lock", python_lock), ("requirements.txt", requirements)]
        }
        PluginLanguage::Go => &[("go.mod", go_modules)],
        PluginLanguage::C => &[],
    };
    // The lock file of a member of a workspace is in a folder above.
    let folder = std::path::absolute(folder).map_err(WorkbenchError::file(folder))?;
    let depth = if manifest.language == PluginLanguage::Rust { usize::MAX } else { 1 };
    for folder in folder.ancestors().take(depth) {
        for (name, read) in files {
            let path = folder.join(name);
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(WorkbenchError::file(&path)(error)),
            };
            let found = read(&text, &manifest.name);
            let packages = found.map_err(|why| WorkbenchError::Unreadable { path, why })?;
            return Ok(packages.into_iter().collect());
        }
    }
    Ok(Vec::new())
}

/// Reads the text of a lock file, for a plugin of this name.
type Reader = fn(&str, &str) -> Result<BTreeSet<LockedPackage>, String>;

/// A package of `Cargo.lock` (the Cargo book, "The lock file").
#[derive(Deserialize)]
struct CargoPackage {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// The crates that the plugin depends on, including those for its build and its tests: the file does not distinguish them.
fn cargo(text: &str, plugin: &str) -> Result<BTreeSet<LockedPackage>, String> {
    #[derive(Deserialize)]
    struct CargoLock {
        #[serde(default)]
        package: Vec<CargoPackage>,
    }
    let CargoLock { package: packages } = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut by_name: BTreeMap<&str, Vec<&CargoPackage>> = BTreeMap::new();
    for package in &packages {
        by_name.entry(&package.name).or_default().push(package);
    }
    let is_own = |package: &CargoPackage| package.name == plugin && package.source.is_none();
    let mut waiting: Vec<&CargoPackage> = packages.iter().filter(|package| is_own(package)).collect();
    let mut found = BTreeSet::new();
    while let Some(package) = waiting.pop() {
        for dependency in &package.dependencies {
            // `name`, or `name version` if the file has several versions, or `name version (source)`.
            let mut words = dependency.split(' ');
            let (name, version) = (words.next().unwrap_or_default(), words.next());
            let named = by_name.get(name).into_iter().flatten();
            for one in named.filter(|one| version.is_none_or(|version| version == one.version)) {
                if found.insert(locked_crate(one)) {
                    waiting.push(one);
                }
            }
        }
    }
    Ok(found)
}

fn locked_crate(package: &CargoPackage) -> LockedPackage {
    let CargoPackage { name, version, source, checksum, .. } = package;
    let is_registered = source.as_deref().is_some_and(|source| source.starts_with("registry+"));
    LockedPackage {
        name: name.clone(),
        version: version.clone(),
        url: is_registered.then(|| package_url("cargo", name, version)),
        sha256: checksum.clone(),
    }
}

/// The packages of `package-lock.json`, without those for development (npm's documentation, "package-lock.json").
fn npm(text: &str, _: &str) -> Result<BTreeSet<LockedPackage>, String> {
    #[derive(Deserialize)]
    struct NpmLock {
        /// By the path in which a package is installed.
        #[serde(default)]
        packages: BTreeMap<String, NpmPackage>,
    }
    #[derive(Deserialize)]
    struct NpmPackage {
        version: Option<String>,
        #[serde(default)]
        dev: bool,
    }
    let lock: NpmLock = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let installed = lock.packages.into_iter().filter_map(|(path, package)| {
        let (_, name) = path.rsplit_once("node_modules/")?;
        let version = package.version.filter(|_| !package.dev)?;
        let url = package_url("npm", &name.replace('@', "%40"), &version);
        Some(LockedPackage { name: name.to_owned(), url: Some(url), version, sha256: None })
    });
    Ok(installed.collect())
}

/// The packages of `uv.lock` and `poetry.lock`.
fn python_lock(text: &str, plugin: &str) -> Result<BTreeSet<LockedPackage>, String> {
    let lock: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let lock = serde_json::to_value(lock).map_err(|error| error.to_string())?;
    let packages = lock["package"].as_array().into_iter().flatten();
    let read = packages.filter_map(|package| {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        Some(python_package(text("name").filter(|name| *name != plugin)?, text("version")?))
    });
    Ok(read.collect())
}

/// The requirements with a single version, `name==version` (PEP 508).
fn requirements(text: &str, _: &str) -> Result<BTreeSet<LockedPackage>, String> {
    let pinned = text.lines().filter_map(|line| {
        let (name, version) = line.split(['#', ';']).next()?.split_once("==")?;
        let name = name.split('[').next()?.trim();
        let version = version.split_whitespace().next()?;
        Some(python_package(name, version))
    });
    Ok(pinned.collect())
}

fn python_package(name: &str, version: &str) -> LockedPackage {
    // The purl specification writes names as the index does.
    let url = package_url("pypi", &name.to_ascii_lowercase().replace('_', "-"), version);
    LockedPackage { name: name.to_owned(), version: version.to_owned(), url: Some(url), sha256: None }
}

/// The modules that `go.mod` requires: since Go 1.17 it lists all of them (the Go modules reference, "go.mod files").
fn go_modules(text: &str, _: &str) -> Result<BTreeSet<LockedPackage>, String> {
    let mut in_block = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let required = match line.strip_prefix("require") {
            Some(rest) if rest.trim() == "(" => {
                in_block = true;
                continue;
            }
            Some(rest) => rest,
            None if line == ")" => {
                in_block = false;
                continue;
            }
            None if in_block => line,
            None => continue,
        };
        let mut words = required.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            let url = Some(package_url("golang", name, version));
            found.insert(LockedPackage {
                name: name.to_owned(),
                version: version.to_owned(),
                url,
                sha256: None,
            });
        }
    }
    Ok(found)
}

/// A package URL (purl specification); the name is escaped by the caller.
fn package_url(kind: &str, name: &str, version: &str) -> String {
    format!("pkg:{kind}/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urls(found: Result<BTreeSet<LockedPackage>, String>) -> Vec<String> {
        found.unwrap().into_iter().map(|package| package.url.unwrap_or(package.name)).collect()
    }

    #[test]
    fn crates_are_those_on_which_the_plugin_depends() {
        let lock = r#"
version = 4
[[package]]
name = "first"
version = "0.1.0"
dependencies = ["a", "b 2.0.0", "sdk"]
[[package]]
name = "a"
version = "1.0.0+x"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00ff"
dependencies = ["a", "b 1.0.0"]
[[package]]
name = "b"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "b"
version = "2.0.0"
source = "git+https://example.com/b#00"
[[package]]
name = "sdk"
version = "0.1.0"
[[package]]
name = "other"
version = "1.0.0"
"#;
        assert_eq!(urls(cargo(lock, "first")), ["pkg:cargo/a@1.0.0%2Bx", "pkg:cargo/b@1.0.0", "b", "sdk"]);
        assert_eq!(cargo(lock, "first").unwrap().first().unwrap().sha256.as_deref(), Some("00ff"));
        assert!(cargo("package = 1", "first").is_err());
    }

    #[test]
    fn other_lock_files_are_read() {
        let lock = r#"{ "lockfileVersion": 3, "packages": {
            "": { "version": "1.0.0" },
            "node_modules/@a/b": { "version": "1.2.3", "resolved": "x" },
            "node_modules/@a/b/node_modules/c": { "version": "2.0.0" },
            "node_modules/d": { "version": "2.0.0", "dev": true },
            "node_modules/e": { "resolved": "../e", "link": true } } }"#;
        assert_eq!(urls(npm(lock, "")), ["pkg:npm/%40a/b@1.2.3", "pkg:npm/c@2.0.0"]);
        let lock = "[[package]]\nname = \"first\"\nversion = \"0.1.0\"\n[[package]]\nname = \"Typing_X\"\nversion = \"4.0\"\n";
        assert_eq!(urls(python_lock(lock, "first")), ["pkg:pypi/typing-x@4.0"]);
        let lock = "# pinned\na==1.0 --hash=sha256:00\nb[x]==2.0 ; python_version > '3'\nc>=1\n";
        assert_eq!(urls(requirements(lock, "")), ["pkg:pypi/a@1.0", "pkg:pypi/b@2.0"]);
        let lock = "module first\n\ngo 1.27\n\nrequire example.com/a v1.0.0\n\nrequire (\n\texample.com/b v2.0.0 // indirect\n)\n\nreplace example.com/c v1 => ./c\n";
        assert_eq!(
            urls(go_modules(lock, "")),
            ["pkg:golang/example.com/a@v1.0.0", "pkg:golang/example.com/b@v2.0.0"]
        );
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "([\\[\\]{}=\",.: \n#a-z0-9]|package|name|version|require|node_modules/){0,60}") {
            for read in [cargo, npm, python_lock, requirements, go_modules] {
                let _ = read(&text, "first");
            }
        }
    }
}
