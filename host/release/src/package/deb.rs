//! The Debian package, built by cargo-deb; its contents are in `[package.metadata.deb]` of the daemon's `Cargo.toml`.

use super::prerequisites;
use super::staging::StagingDir;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the package. A suffix makes a slightly newer version.
pub(super) fn build(staging: &StagingDir, suffix: Option<&str>) -> Result<PathBuf> {
    let version = format!("{}-1{}", super::version(), suffix.unwrap_or_default());
    changelog(staging, &version)?;
    let folder = if suffix.is_some() { super::folder().join("trial") } else { super::folder() };
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("dpkg").arg("--print-architecture").output().context("running dpkg")?;
    let architecture = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let package = folder.join(format!("switchyard_{version}_{architecture}.deb"));
    let mut cargo = prerequisites::cargo("deb");
    cargo
        .args(["--no-build", "--no-strip", "--quiet", "--package", "switchyard", "--deb-version", &version])
        .arg("--output")
        .arg(&package)
        .env("SOURCE_DATE_EPOCH", super::source_date()?.to_string());
    if suffix.is_some() {
        // It is not published.
        cargo.arg("--fast");
    }
    workspace::run(&mut cargo)?;
    ensure!(package.exists(), "cargo-deb made no {}", package.display());
    Ok(package)
}

/// Debian's changelog; it refers to CHANGELOG.md.
fn changelog(staging: &StagingDir, version: &str) -> Result<()> {
    let date = format!("@{}", super::source_date()?);
    let output = Command::new("date").args(["--utc", "--rfc-email", "--date", &date]).output()?;
    let date = String::from_utf8_lossy(&output.stdout);
    let text = format!(
        "switchyard ({version}) unstable; urgency=medium\n\n  * The changes are listed in /usr/share/doc/switchyard/CHANGELOG.md.\n\n -- \
         The Switchyard authors <packages@switchyard.example>  {date}"
    );
    Ok(std::fs::write(staging.folder.join("changelog"), text)?)
}

/// Runs lintian; its errors are errors.
pub(super) fn check(package: &Path) -> Result<()> {
    println!("package: lintian {}", package.display());
    // In containers root runs the build, and lintian only warns about it.
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error", "--tag-display-limit", "0"]).arg(package);
    workspace::run(&mut lintian)
}
