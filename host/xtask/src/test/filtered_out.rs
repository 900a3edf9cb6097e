//! Reports the tests that a tier has left out.

use super::run::Results;
use anyhow::{Context, Result};
use std::path::Path;

/// After the tier `check`.
pub(super) fn without_behaviour() -> Result<()> {
    let root = workspace::root();
    let mut integration = 0;
    for package in std::fs::read_dir(root.join("host"))? {
        integration += count(&package?.path().join("tests"))?;
    }
    println!(
        "test: left out: {integration} integration tests of the crates and {} behaviour tests (test functions in their sources); \
         they run in `cargo xtask test` and `cargo xtask test all`",
        count(&root.join("tests/tests"))?
    );
    Ok(())
}

/// After the tier `behaviour`.
pub(super) fn without_foreign(results: &Results) {
    println!(
        "test: left out: {} tests that need foreign programs, the documentation, the licences, and the verbs of cargo xtask; they run in \
         `cargo xtask test all`",
        results.filtered_out()
    );
}

/// After the tier `all`.
pub(super) fn without_nightly() {
    println!(
        "test: left out: {}; they run in `cargo xtask test nightly`",
        super::nightly::names().join(", ")
    );
}

/// Number of test functions in the sources of a folder.
fn count(folder: &Path) -> Result<usize> {
    if !folder.is_dir() {
        return Ok(0);
    }
    let mut number = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            number += count(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            number += text
                .lines()
                .filter(|line| line.trim() == "#[test]" || line.trim().starts_with("#[tokio::test"))
                .count();
        }
    }
    Ok(number)
}
