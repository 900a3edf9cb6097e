//! The bill of materials of a built component: the packages of the project's lock file, in CycloneDX.

use super::lock_file::{LockedPackage, locked_packages};
use super::{c, digest, go, javascript, python, write_if_changed};
use crate::manifest::Manifest;
use crate::{PluginLanguage, WorkbenchError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The tool in a bill that this program writes.
const WRITER: &str = "switchyard";

/// The path of a component's bill of materials: NAME.sbom.json in the same folder.
pub(crate) fn bill_path(component: &Path) -> PathBuf {
    component.with_extension("sbom.json")
}

/// Writes the bill of a component, unless its author has provided one.
pub(super) fn write(
    folder: &Path,
    manifest: &Manifest,
    path: &Path,
    component: &[u8],
) -> Result<(), WorkbenchError> {
    let path = bill_path(path);
    let stored = std::fs::read(&path).ok();
    let is_ours = |bill: &[u8]| {
        let bill: Value = serde_json::from_slice(bill).unwrap_or_default();
        bill.pointer("/metadata/tools/components/0/name").is_some_and(|name| name == WRITER)
    };
    if stored.is_some_and(|stored| !is_ours(&stored)) {
        return Ok(());
    }
    let bill = bill(manifest, component, &locked_packages(folder, manifest)?);
    write_if_changed(&path, format!("{bill:#}\n").as_bytes())
}

/// The bill. It contains no time and no serial number, so that the same build gives the same bill.
fn bill(manifest: &Manifest, component: &[u8], packages: &[LockedPackage]) -> Value {
    let writer = json!({ "type": "application", "name": WRITER, "version": env!("CARGO_PKG_VERSION") });
    let tools: Vec<Value> = [writer].into_iter().chain(language_tool(manifest.language)).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "tools": { "components": tools },
            "component": {
                "type": "application",
                "bom-ref": manifest.name,
                "name": manifest.name,
                "hashes": [{ "alg": "SHA-256", "content": digest(component) }],
            },
        },
        "components": packages.iter().map(package).collect::<Vec<_>>(),
    })
}

/// The tool of a language whose run-time library is a part of the component.
fn language_tool(language: PluginLanguage) -> Option<Value> {
    let (name, tool) = match language {
        PluginLanguage::Rust => return None,
        PluginLanguage::Js => ("componentize-qjs", javascript::TOOL),
        PluginLanguage::Python => ("componentize-py", python::TOOL),
        PluginLanguage::C => ("ziglang", c::TOOL),
        PluginLanguage::Go => ("go", go::TOOL),
    };
    let mut words = tool.what.split(' ');
    let version = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Some(json!({ "type": "application", "name": name, "version": version.unwrap_or_default() }))
}

fn package(package: &LockedPackage) -> Value {
    let LockedPackage { name, version, url, sha256 } = package;
    let reference = url.clone().unwrap_or_else(|| format!("{name}@{version}"));
    let mut entry = json!({ "type": "library", "bom-ref": reference, "name": name, "version": version });
    if let Some(url) = url {
        entry["purl"] = json!(url);
    }
    if let Some(sha256) = sha256 {
        entry["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Hook;

    fn manifest(language: PluginLanguage) -> Manifest {
        Manifest { name: "first".to_owned(), language, world: Hook::Router, wasi: false }
    }

    #[test]
    fn a_bill_names_the_component_its_packages_and_its_tools() {
        let folder = tempfile::tempdir().unwrap();
        let lock = r#"{ "packages": { "": {}, "node_modules/a": { "version": "1.0.0" } } }"#;
        std::fs::write(folder.path().join("package-lock.json"), lock).unwrap();
        let component = folder.path().join("first.wasm");
        write(folder.path(), &manifest(PluginLanguage::Js), &component, b"\0asm").unwrap();
        let read = || oci::BillOfMaterials::new(std::fs::read(bill_path(&component)).unwrap()).unwrap();
        let bill = read();
        assert_eq!(bill.format(), oci::BillFormat::CycloneDx);
        assert_eq!(bill.component_sha256().unwrap(), digest(b"\0asm"));
        let document: Value = serde_json::from_slice(bill.octets()).unwrap();
        assert_eq!(document["components"][0]["purl"], "pkg:npm/a@1.0.0");
        assert_eq!(document["metadata"]["tools"]["components"][1]["name"], "componentize-qjs");
        // Another component, the same file.
        write(folder.path(), &manifest(PluginLanguage::C), &component, b"\0asm1").unwrap();
        assert_eq!(read().component_sha256().unwrap(), digest(b"\0asm1"));
        // The author's bill stays.
        std::fs::write(bill_path(&component), r#"{"spdxVersion":"SPDX-2.3"}"#).unwrap();
        write(folder.path(), &manifest(PluginLanguage::C), &component, b"\0asm").unwrap();
        assert_eq!(read().format(), oci::BillFormat::Spdx);
    }

    #[test]
    fn tools_have_versions() {
        for language in [PluginLanguage::Js, PluginLanguage::Python, PluginLanguage::C, PluginLanguage::Go] {
            let tool = language_tool(language).unwrap();
            assert!(tool["version"].as_str().unwrap().contains('.'), "{tool}");
        }
        assert_eq!(language_tool(PluginLanguage::Rust), None);
    }
}
