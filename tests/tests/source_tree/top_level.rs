//! The top level of the tree.

use anyhow::{Result, ensure};
use std::path::Path;

/// The permitted entries, including tool configuration.
const ENTRIES: &[&str] = &[
    ".cargo",
    ".ci",
    ".editorconfig",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "UPGRADING.md",
    "appliance-image",
    "clippy.toml",
    "deny.toml",
    "docs",
    "host",
    "justfile",
    "plugins",
    "policies",
    "rustfmt.toml",
    "tests",
    "wit",
];

/// Entries that tools create and git ignores.
const IGNORED: &[&str] = &[".git", ".state", "target"];

#[test]
fn the_top_level_has_only_listed_entries() -> Result<()> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !ENTRIES.contains(&&*name) && !IGNORED.contains(&&*name) {
            others.push(name);
        }
    }
    others.sort();
    ensure!(others.is_empty(), "at the top of the source tree: {}", others.join(", "));
    Ok(())
}
