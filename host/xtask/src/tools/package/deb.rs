//! The Debian package, by cargo-deb; what is in it says `[package.metadata.deb]` of the daemon's `Cargo.toml`.

use super::needs;
use super::stage::Stage;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::house;

/// Builds it. A suffix makes a version that is newer by a little.
pub(super) fn build(stage: &Stage, suffix: Option<&str>) -> Result<PathBuf> {
    let version = format!("{}-1{}", super::version(), suffix.unwrap_or_default());
    changelog(stage, &version)?;
    let folder = if suffix.is_some() { super::folder().join("trial") } else { super::folder() };
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("dpkg").arg("--print-architecture").output().context("running dpkg")?;
    let architecture = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let package = folder.join(format!("switchyard_{version}_{architecture}.deb"));
    let mut cargo = needs::cargo("deb");
    cargo
        .args(["--no-build", "--no-strip", "--quiet", "--package", "switchyard", "--deb-version", &version])
        .arg("--output")
        .arg(&package)
        .env("SOURCE_DATE_EPOCH", super::source_date()?.to_string());
    if suffix.is_some() {
        // Nobody downloads it.
        cargo.arg("--fast");
    }
    house::run(&mut cargo)?;
    ensure!(package.exists(), "cargo-deb made no {}", package.display());
    Ok(package)
}

/// Debian's form of it; what changed is in CHANGELOG.md.
fn changelog(stage: &Stage, version: &str) -> Result<()> {
    let date = format!("@{}", super::source_date()?);
    let output = Command::new("date").args(["--utc", "--rfc-email", "--date", &date]).output()?;
    let date = String::from_utf8_lossy(&output.stdout);
    let text = format!(
        "switchyard ({version}) unstable; urgency=medium\n\n  * What has changed is in /usr/share/doc/switchyard/CHANGELOG.md.\n\n -- \
         The Switchyard authors <packages@switchyard.example>  {date}"
    );
    Ok(std::fs::write(stage.folder.join("changelog"), text)?)
}

/// What lintian has to say; an error of its is one of ours.
pub(super) fn check(package: &Path) -> Result<()> {
    println!("package: lintian {}", package.display());
    // Root is who builds in containers, and lintian only warns of it.
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error", "--tag-display-limit", "0"]).arg(package);
    house::run(&mut lintian)
}
