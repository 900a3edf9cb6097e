//! The Debian package's life in a clean Debian 12: made by mmdebstrap, booted by systemd-nspawn, so that it is a real systemd that
//! starts the daemon with its unit.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use xtask::house;

/// What goes on inside.
const SCRIPT: &str = include_str!("trial.sh");

/// Runs the script when the system is up, and then ends the system with its exit status.
const UNIT: &str = "[Unit]\nDescription=The package's trial\nAfter=basic.target dbus.service\n\n\
    [Service]\nType=oneshot\nTimeoutStartSec=15min\nStandardOutput=file:/trial/log\nStandardError=inherit\n\
    ExecStart=/bin/bash /trial/trial.sh /trial/first.deb /trial/next.deb\n\
    ExecStopPost=/bin/sh -c 'systemctl --no-block exit $EXIT_STATUS'\n";

/// Longest time that all of it may take; the watchdog's 30 seconds are in it, and machines without hurry.
const PATIENCE: &str = "20m";

/// Installs, uses, upgrades, removes and purges the package.
pub(super) fn run(package: &Path, next: &Path) -> Result<()> {
    let folder = super::folder().join("trial");
    let base = base(&folder)?;
    let root = folder.join("root");
    remove(&root)?;
    std::fs::create_dir_all(&root)?;
    println!("package: a clean Debian 12 is booted for {}", package.display());
    house::run(house::as_root("tar").args(["--extract", "--file"]).arg(&base).arg("--directory").arg(&root))?;
    let shared = folder.join("shared");
    if shared.exists() {
        std::fs::remove_dir_all(&shared)?;
    }
    std::fs::create_dir_all(&shared)?;
    std::fs::write(shared.join("trial.sh"), SCRIPT)?;
    std::fs::write(shared.join("trial.service"), UNIT)?;
    std::fs::write(shared.join("log"), "")?;
    std::fs::copy(package, shared.join("first.deb"))?;
    std::fs::copy(next, shared.join("next.deb"))?;
    let units = root.join("etc/systemd/system");
    let mut install = house::as_root("install");
    house::run(
        install
            .args(["-D", "--mode=0644", "--target-directory"])
            .arg(&units)
            .arg(shared.join("trial.service")),
    )?;
    let wants = units.join("multi-user.target.wants");
    house::run(house::as_root("mkdir").arg("--parents").arg(&wants))?;
    // A copy would be passed over.
    house::run(house::as_root("ln").args(["--symbolic", "../trial.service"]).arg(wants))?;

    let mut boot = house::as_root("timeout");
    boot.args([
        "--kill-after=20s",
        PATIENCE,
        "systemd-nspawn",
        "--quiet",
        "--boot",
        "--register=no",
        "--private-network",
    ])
    .args(["--console=pipe", "--machine=switchyard-trial"])
    .arg(format!("--directory={}", root.display()))
    .arg(format!("--bind={}:/trial", shared.display()))
    .stdin(Stdio::null())
    .stdout(Stdio::null());
    // Where no systemd runs, as in containers, there is nobody to ask for a unit of its own.
    if !Path::new("/run/systemd/system").exists() {
        boot.arg("--keep-unit");
    }
    let status = boot.status().context("running systemd-nspawn")?;
    let log = std::fs::read_to_string(shared.join("log"))?;
    let kept: Vec<_> = log.lines().collect();
    for line in kept.iter().filter(|line| line.starts_with("trial: ") || line.contains("exposure level")) {
        println!("package: {line}");
    }
    ensure!(
        log.trim_end().ends_with("trial: all well") && status.success(),
        "the package's trial failed ({status}); its log, in {}, ends with:\n{}",
        shared.join("log").display(),
        kept[kept.len().saturating_sub(30)..].join("\n")
    );
    remove(&root)
}

/// Debian 12 with what the package needs, and nothing else; made once.
fn base(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let base = folder.join("debian-12.tar");
    if !base.exists() {
        println!("package: a clean Debian 12 is made; this takes minutes, once");
        let partial = folder.join("debian-12.partial.tar");
        let mut make = house::as_root("mmdebstrap");
        make.args([
            "--quiet",
            "--variant=minbase",
            "--include=systemd,systemd-sysv,dbus,ca-certificates",
            "bookworm",
        ]);
        house::run(make.arg(&partial)).context("making a Debian 12; are its packages reachable?")?;
        std::fs::rename(partial, &base)?;
    }
    Ok(base)
}

fn remove(root: &Path) -> Result<()> {
    house::run(house::as_root("rm").args(["--recursive", "--force", "--one-file-system"]).arg(root))
}
