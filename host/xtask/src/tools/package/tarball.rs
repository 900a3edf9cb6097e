//! The tarball, for machines of other distributions: a binary that needs no library of theirs.
//!
//! It is glibc's, linked statically: a toolchain for musl is not everybody's. Names are looked up by files and DNS, which are part of it since
//! glibc 2.34; what a machine's nsswitch.conf names beside them (mDNS, LDAP) would have to be loaded from libraries of just that
//! glibc, and is passed over where it cannot be.

use super::stage::{Stage, put, put_all, sources};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::house;

/// The machine's kind, as Rust has it.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Builds the static daemon. In a folder of its own below that of other builds: with other flags everything is built anew.
pub(super) fn build() -> Result<PathBuf> {
    let target = target();
    let folder = house::target().join("static");
    let mut cargo = house::cargo();
    // With a target that is named, the flags are for it and not for macros, which cannot be static.
    cargo
        .args(["build", "--release", "--package", "switchyard", "--target", &target])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    house::phase("package: building the static daemon", || house::run(&mut cargo))?;
    Ok(folder.join(target).join("release/switchyard"))
}

/// Whether a binary asks for no library and no loader.
pub(super) fn check_static(binary: &Path) -> Result<()> {
    let output =
        Command::new("readelf").args(["--dynamic", "--program-headers", "--wide"]).arg(binary).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && text.contains("LOAD"), "{} is no binary", binary.display());
    let asks = |line: &&str| line.contains("(NEEDED)") || line.trim_start().starts_with("INTERP");
    match text.lines().find(asks) {
        Some(line) => anyhow::bail!("{} is not static: {}", binary.display(), line.trim()),
        None => Ok(()),
    }
}

/// What is in the tarball, and at what place.
pub(super) fn pack(stage: &Stage) -> Result<PathBuf> {
    let name = format!("switchyard-{}-{}-linux-static", super::version(), std::env::consts::ARCH);
    let above = super::folder();
    let top = above.join(&name);
    if top.exists() {
        std::fs::remove_dir_all(&top)?;
    }
    let root = house::root();
    put(&stage.binary(), &top.join("bin/switchyard"))?;
    put_all(&stage.folder.join("plugins"), &top.join("lib/switchyard/plugins"))?;
    put_all(&stage.folder.join("man"), &top.join("share/man/man1"))?;
    put_all(&stage.folder.join("completions"), &top.join("share/completions"))?;
    put_all(&root.join("policies"), &top.join("share/doc/switchyard/policies"))?;
    for document in ["LICENSE", "README.md", "CHANGELOG.md", "host/switchyard/GUIDE.md"] {
        let from = root.join(document);
        put(&from, &top.join("share/doc/switchyard").join(from.file_name().context("no name")?))?;
    }
    put(&root.join("host/switchyard/switchyard.toml"), &top.join("share/doc/switchyard/switchyard.toml"))?;
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
    house::run(tar.arg(&name))?;
    std::fs::remove_dir_all(top)?;
    Ok(tarball)
}

/// tar, of the same files always the same octets.
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
