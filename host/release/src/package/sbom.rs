//! Bills of materials in CycloneDX: cargo-cyclonedx lists the crates of the daemon and of the packaged plugins; Debian packages with
//! linked parts are added.

use super::prerequisites;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Debian package with parts in the result.
#[derive(Debug)]
pub(crate) struct Debian {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) architecture: String,
}

impl Debian {
    /// The installed version of a package.
    pub(super) fn installed(name: &str) -> Result<Self> {
        let output = Command::new("dpkg-query")
            .args(["--show", "--showformat", "${Version} ${Architecture}", name])
            .output()
            .context("running dpkg-query")?;
        ensure!(output.status.success(), "{name} is not installed, or this system is not Debian");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (version, architecture) = text.split_once(' ').context("no output of dpkg-query")?;
        Ok(Self { name: name.to_owned(), version: version.to_owned(), architecture: architecture.to_owned() })
    }

    fn component(&self, system: &str) -> Value {
        let Self { name, version, architecture } = self;
        let escaped = version.replace('+', "%2B").replace(':', "%3A").replace('~', "%7E");
        let purl = format!("pkg:deb/{system}/{name}@{escaped}?arch={architecture}");
        json!({ "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl })
    }
}

/// Debian packages linked into the static binary: the C library and the compiler's runtime.
pub(super) fn linked() -> Result<Vec<Debian>> {
    ["libc.a", "libgcc_eh.a"].into_iter().map(|library| Debian::installed(&owner(library)?)).collect()
}

/// The package that contains a library of the compiler.
fn owner(library: &str) -> Result<String> {
    let output =
        Command::new("cc").arg(format!("-print-file-name={library}")).output().context("running cc")?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let path = path.canonicalize().with_context(|| format!("cc does not find {library}"))?;
    let output =
        Command::new("dpkg-query").arg("--search").arg(&path).output().context("running dpkg-query")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let package = text.split(':').next().filter(|name| !name.is_empty());
    Ok(package.with_context(|| format!("{} belongs to no package", path.display()))?.to_owned())
}

/// The font of the console, whose file is in the source tree.
const FONT: &str = "pkg:npm/%40fontsource-variable/inter@5.3.0";

fn font() -> Value {
    json!({ "type": "file", "bom-ref": FONT, "name": "inter", "version": "5.3.0", "purl": FONT,
        "licenses": [{ "expression": "OFL-1.1" }] })
}

/// The crates.
#[derive(Debug)]
pub(crate) struct Materials {
    components: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, Value>,
    tools: Value,
}

impl Materials {
    /// Runs cargo-cyclonedx. It writes files next to each manifest; they are removed afterwards.
    pub(crate) fn gather() -> Result<Self> {
        println!("package: bills of materials");
        let root = workspace::root();
        let name = "switchyard-bill";
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        ask(&root.join("host/switchyard/Cargo.toml"), &target, name)?;
        let mut bills = vec![root.join("host/switchyard").join(format!("{name}.json"))];
        ask(&root.join("plugins/prefix-router/Cargo.toml"), "wasm32-unknown-unknown", name)?;
        for plugin in plugins(&root)? {
            bills.push(root.join("plugins").join(plugin).join(format!("{name}.json")));
        }
        let mut all = Self { components: BTreeMap::new(), dependencies: BTreeMap::new(), tools: Value::Null };
        let read = bills.iter().try_for_each(|bill| all.add(bill, &root));
        for folder in ["host", "plugins", "plugins/examples", "plugins/test-guests", "."] {
            sweep(&root.join(folder), name)?;
        }
        read?;
        ensure!(all.components.len() > 100, "only {} crates were found", all.components.len());
        all.components.insert(FONT.to_owned(), font());
        Ok(all)
    }

    fn add(&mut self, bill: &Path, root: &Path) -> Result<()> {
        let text = std::fs::read_to_string(bill).with_context(|| format!("reading {}", bill.display()))?;
        // The path of the source on this machine is private.
        let text = text.replace(&root.display().to_string(), "/switchyard");
        let bill: Value = serde_json::from_str(&text)?;
        self.tools = bill["metadata"]["tools"].clone();
        let mut top = bill["metadata"]["component"].clone();
        // The top component's dependencies are in the list already; its binaries are the component itself.
        if let Some(top) = top.as_object_mut() {
            top.remove("components");
        }
        for component in bill["components"].as_array().into_iter().flatten().chain([&top]) {
            let reference = component["bom-ref"].as_str().context("a component without a reference")?;
            self.components.insert(reference.to_owned(), component.clone());
        }
        for dependency in bill["dependencies"].as_array().into_iter().flatten() {
            let reference = dependency["ref"].as_str().context("a dependency without a reference")?;
            self.dependencies.insert(reference.to_owned(), dependency.clone());
        }
        Ok(())
    }

    /// Writes the bill of materials next to the result, as `NAME.cdx.json`.
    pub(crate) fn write(&self, made: &Path, kind: &str, debian: &[Debian]) -> Result<PathBuf> {
        let name = made.file_name().and_then(|name| name.to_str()).context("no name")?;
        let mut components: Vec<Value> = self.components.values().cloned().collect();
        let system = distribution();
        components.extend(debian.iter().map(|package| package.component(&system)));
        let top = json!({ "type": kind, "bom-ref": name, "name": name, "version": super::version(),
            "licenses": [{ "expression": "Apache-2.0" }] });
        let contained: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
        let mut dependencies = vec![json!({ "ref": name, "dependsOn": contained })];
        dependencies.extend(self.dependencies.values().cloned());
        let date = format!("@{}", super::source_date()?);
        let output = Command::new("date").args(["--utc", "--date", &date, "+%Y-%m-%dT%H:%M:%SZ"]).output()?;
        let timestamp = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "timestamp": timestamp, "tools": self.tools, "component": top },
            "components": components,
            "dependencies": dependencies,
        });
        let path = made.with_file_name(format!("{name}.cdx.json"));
        std::fs::write(&path, serde_json::to_vec_pretty(&bill)?)?;
        println!("package: {}: {} components", path.display(), components.len());
        Ok(path)
    }
}

fn ask(manifest: &Path, target: &str, name: &str) -> Result<()> {
    let mut cargo = prerequisites::cargo("cyclonedx");
    cargo.arg("--manifest-path").arg(manifest);
    cargo.args(["--quiet", "--format", "json", "--spec-version", "1.5", "--target", target]);
    workspace::run(cargo.args(["--no-build-deps", "--override-filename", name]).stdout(Stdio::null()))
}

/// Folders of the packaged plugins: the crates that build components, without their supporting crates and tests.
fn plugins(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("plugins"))? {
        let folder = entry?.path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        if manifest.contains("\"cdylib\"") {
            found.extend(folder.file_name().and_then(|name| name.to_str()).map(str::to_owned));
        }
    }
    ensure!(found.iter().any(|name| name == "prefix-router"), "the default router is not among {found:?}");
    Ok(found)
}

/// Removes the files of cargo-cyclonedx next to the manifests of a workspace.
fn sweep(folder: &Path, name: &str) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let bill = entry?.path().join(format!("{name}.json"));
        if bill.exists() {
            std::fs::remove_file(bill)?;
        }
    }
    Ok(())
}

/// The distribution of these packages: `debian`, `ubuntu`.
fn distribution() -> String {
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system.lines().find_map(|line| line.strip_prefix("ID=")).unwrap_or("debian");
    system.trim_matches('"').to_owned()
}
