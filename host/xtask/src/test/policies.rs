//! Checks of the source tree that run no test: documentation and dependencies.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;
use workspace::packages;

/// The dependency checker; an installed one is used, even with another version.
const CARGO_DENY: (&str, &str) = ("cargo-deny", "0.20.2");

/// `cargo doc`, without warnings.
pub(super) fn documentation() -> Result<()> {
    let mut doc = workspace::cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings");
    workspace::run(&mut doc).context("documentation: rustdoc warns")
}

/// The examples in doc comments. Only in packages that have some: rustdoc takes seconds for each package, also without examples.
pub(super) fn examples() -> Result<()> {
    let mut test = workspace::cargo();
    test.args(["test", "--quiet", "--doc"]);
    let mut found = false;
    for package in std::fs::read_dir(workspace::root().join("host"))? {
        let package = package?;
        if has_examples(&package.path().join("src"))? {
            found = true;
            test.arg("--package").arg(package.file_name());
        }
    }
    ensure!(found, "no package has examples in its documentation");
    workspace::run(&mut test).context("examples in the documentation")
}

fn has_examples(folder: &Path) -> Result<bool> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let found = if path.is_dir() {
            has_examples(&path)?
        } else {
            path.extension().is_some_and(|ending| ending == "rs")
                && contains_example(&std::fs::read_to_string(&path)?)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a doc comment contains a code block without another language mark, for example `text`.
fn contains_example(source: &str) -> bool {
    let comments = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    let fences = comments.filter_map(|comment| comment.trim().strip_prefix("```"));
    // Every second one ends a block.
    fences.step_by(2).any(|mark| mark.is_empty() || mark == "rust")
}

/// `cargo deny check`: licences, sources and bans without a network; advisories, if their database can be fetched.
pub(super) fn dependencies() -> Result<()> {
    let program = packages::cargo_tool(CARGO_DENY.0, CARGO_DENY.1)?;
    let check = |checks: &[&str]| {
        let mut deny = Command::new(&program);
        deny.current_dir(workspace::root()).args(["--color", "never", "check"]).args(checks);
        deny
    };
    workspace::run(&mut check(&["--hide-inclusion-graph", "bans", "licenses", "sources"]))
        .context("deny.toml")?;
    let advisories = check(&["advisories"]).output().context("running cargo deny")?;
    let text = String::from_utf8_lossy(&advisories.stderr);
    if advisories.status.success() {
        println!("licences: no advisory against a dependency");
    } else if text.contains("failed to fetch advisory database") || text.contains("unable to fetch") {
        println!("licences: advisories were NOT checked: their data base cannot be fetched here");
    } else {
        bail!("advisories against dependencies:\n{text}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::contains_example;

    #[test]
    fn examples_are_distinguished_from_other_blocks() {
        assert!(contains_example("/// ```\n/// f();\n/// ```\nfn f() {}\n"));
        assert!(contains_example("//! ```text\n//! a\n//! ```\n//! ```rust\n//! b\n//! ```\n"));
        assert!(!contains_example("/// ```text\n/// a\n/// ```\n// ```\nlet x = \"```\";\n"));
    }
}
