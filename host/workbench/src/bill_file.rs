//! Bills of materials in files.

use crate::WorkbenchError;
use oci::BillOfMaterials;
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// File name endings of the bill of materials of `NAME.wasm`, after `NAME`. Pulled bills get the first.
pub(crate) const SBOM_SUFFIXES: [&str; 2] = ["sbom.json", "bom.json"];

/// The bill of materials of a component: from the given file, otherwise from the file next to the component.
///
/// # Errors
/// A file cannot be read, is not a bill of materials, or describes another component.
pub(crate) fn read_bill(
    file: &Path,
    component: &[u8],
    given: Option<&Path>,
) -> Result<Option<BillOfMaterials>, WorkbenchError> {
    let beside = || {
        let paths = SBOM_SUFFIXES.map(|ending| file.with_extension(ending));
        paths.into_iter().find(|path| path.exists())
    };
    let Some(path) = given.map(Path::to_owned).or_else(beside) else { return Ok(None) };
    let octets = std::fs::read(&path).map_err(WorkbenchError::file(&path))?;
    let bill = BillOfMaterials::new(octets)
        .map_err(|why| WorkbenchError::Unreadable { path: path.clone(), why: why.to_string() })?;
    let sha256 = model::hex(&Sha256::digest(component));
    if bill.component_sha256().is_some_and(|described| described != sha256) {
        return Err(WorkbenchError::Unreadable {
            path,
            why: "it describes another component, by its SHA-256: build the plugin again, or give its own with --sbom".to_owned(),
        });
    }
    Ok(Some(bill))
}
