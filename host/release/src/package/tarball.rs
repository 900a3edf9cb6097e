//! The tarball for other distributions: a static binary.
//!
//! It links glibc statically, because a musl toolchain is not installed everywhere. glibc 2.34 and later contain name lookup by files and
//! DNS; other services in nsswitch.conf (mDNS, LDAP) would need shared libraries of the same glibc version, and are skipped where these
//! cannot be loaded.

use super::staging::{StagingDir, put, put_all, sources};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The architecture, as a Rust target.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Builds the static daemon in its own target folder: other flags would rebuild everything.
pub(super) fn build() -> Result<PathBuf> {
    let target = target();
    let folder = workspace::target().join("static");
    let mut cargo = workspace::cargo();
    // With an explicit target, the flags do not apply to proc macros, which cannot be static.
    cargo
        .args(["build", "--release", "--package", "switchyard", "--target", &target])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    workspace::timed("package: building the static daemon", || workspace::run(&mut cargo))?;
    Ok(folder.join(target).join("release/switchyard"))
}

/// Whether a binary needs no shared library and no loader.
pub(super) fn check_static(binary: &Path) -> Result<()> {
    let output =
        Command::new("readelf").args(["--dynamic", "--program-headers", "--wide"]).arg(binary).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && text.contains("LOAD"), "{} is not an ELF binary", binary.display());
    let asks = |line: &&str| line.contains("(NEEDED)") || line.trim_start().starts_with("INTERP");
    match text.lines().find(asks) {
        Some(line) => anyhow::bail!("{} is not static: {}", binary.display(), line.trim()),
        None => Ok(()),
    }
}

/// Packs the tarball; the list gives each file's path.
pub(super) fn pack(staging: &StagingDir) -> Result<PathBuf> {
    let name = format!("switchyard-{}-{}-linux-static", super::version(), std::env::consts::ARCH);
    let above = super::folder();
    let top = above.join(&name);
    if top.exists() {
        std::fs::remove_dir_all(&top)?;
    }
    let root = workspace::root();
    put(&staging.binary(), &top.join("bin/switchyard"))?;
    put_all(&staging.folder.join("plugins"), &top.join("lib/switchyard/plugins"))?;
    put_all(&staging.folder.join("man"), &top.join("share/man/man1"))?;
    put_all(&staging.folder.join("completions"), &top.join("share/completions"))?;
    put_all(&root.join("policies"), &top.join("share/doc/switchyard/policies"))?;
    put_all(&root.join("policies/schemas"), &top.join("share/doc/switchyard/policies/schemas"))?;
    // The manual, in the folders of the source tree, so that its links work.
    for folder in [
        "docs",
        "docs/tutorial",
        "docs/guide",
        "docs/plugin-author",
        "docs/reference",
        "docs/internals",
        "docs/adr",
        "wit",
        "wit/previous/0.1",
        "wit/previous/0.2",
    ] {
        put_all(&root.join(folder), &top.join("share/doc/switchyard").join(folder))?;
    }
    for document in [
        "LICENSE",
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "UPGRADING.md",
        "plugins/README.md",
        "host/switchyard/switchyard.toml",
    ] {
        put(&root.join(document), &top.join("share/doc/switchyard").join(document))?;
    }
    for (from, to) in [
        ("switchyard.toml", "etc/switchyard/switchyard.toml"),
        ("routes.toml", "etc/switchyard/routes.toml"),
        ("switchyard.service", "lib/systemd/system/switchyard.service"),
        ("switchyard.sysusers", "lib/sysusers.d/switchyard.conf"),
        ("low-ports.conf", "share/doc/switchyard/low-ports.conf"),
    ] {
        put(&sources().join(from), &top.join(to))?;
    }
    let tarball = above.join(format!("{name}.tar.xz"));
    let mut tar = archive()?;
    tar.env("XZ_OPT", "-6 -T0")
        .args(["--xz", "--create", "--file"])
        .arg(&tarball)
        .arg("--directory")
        .arg(&above);
    workspace::run(tar.arg(&name))?;
    std::fs::remove_dir_all(top)?;
    Ok(tarball)
}

/// A reproducible tar: the same files give the same octets.
pub(super) fn archive() -> Result<Command> {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--format=gnu",
        "--numeric-owner",
        "--owner=0",
        "--group=0",
        "--mode=u+rwX,go+rX,go-w",
    ])
    .arg(format!("--mtime=@{}", super::source_date()?));
    Ok(tar)
}
