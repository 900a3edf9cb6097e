//! The lifecycle of the Debian package in a clean Debian 12: made by mmdebstrap, booted by systemd-nspawn, so that a real systemd
//! starts the daemon's unit.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The script that runs in the container.
const SCRIPT: &str = include_str!("install_test.sh");

/// Runs the script when the system is up, then shuts the system down with its exit status.
const UNIT: &str = "[Unit]\nDescription=The package's trial\nAfter=basic.target dbus.service\n\n\
    [Service]\nType=oneshot\nTimeoutStartSec=15min\nStandardOutput=file:/trial/log\nStandardError=inherit\n\
    ExecStart=/bin/bash /trial/install_test.sh /trial/first.deb /trial/next.deb\n\
    ExecStopPost=/bin/sh -c 'systemctl --no-block exit $EXIT_STATUS'\n";

/// Maximum time; it includes the watchdog's 30 seconds, and slow machines.
const TIMEOUT: &str = "20m";

/// Installs, uses, upgrades, removes and purges the package.
pub(super) fn run(package: &Path, next: &Path) -> Result<()> {
    let folder = super::folder().join("trial");
    let base = base(&folder)?;
    let root = folder.join("root");
    remove(&root)?;
    std::fs::create_dir_all(&root)?;
    println!("package: booting a clean Debian 12 for {}", package.display());
    workspace::run(
        workspace::root_command("tar").args(["--extract", "--file"]).arg(&base).arg("--directory").arg(&root),
    )?;
    let shared = folder.join("shared");
    if shared.exists() {
        std::fs::remove_dir_all(&shared)?;
    }
    std::fs::create_dir_all(&shared)?;
    std::fs::write(shared.join("install_test.sh"), SCRIPT)?;
    std::fs::write(shared.join("trial.service"), UNIT)?;
    std::fs::write(shared.join("log"), "")?;
    std::fs::copy(package, shared.join("first.deb"))?;
    std::fs::copy(next, shared.join("next.deb"))?;
    let units = root.join("etc/systemd/system");
    let mut install = workspace::root_command("install");
    workspace::run(
        install
            .args(["-D", "--mode=0644", "--target-directory"])
            .arg(&units)
            .arg(shared.join("trial.service")),
    )?;
    let wants = units.join("multi-user.target.wants");
    workspace::run(workspace::root_command("mkdir").arg("--parents").arg(&wants))?;
    // A copy would be skipped.
    workspace::run(workspace::root_command("ln").args(["--symbolic", "../trial.service"]).arg(wants))?;

    let mut boot = workspace::root_command("timeout");
    boot.args([
        "--kill-after=20s",
        TIMEOUT,
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
    // Without systemd, for example in containers, no scope unit can be requested.
    if !Path::new("/run/systemd/system").exists() {
        boot.arg("--keep-unit");
    }
    let status = boot.status().context("running systemd-nspawn")?;
    let log = std::fs::read_to_string(shared.join("log"))?;
    let kept: Vec<_> = log.lines().collect();
    for line in
        kept.iter().filter(|line| line.starts_with("install test: ") || line.contains("exposure level"))
    {
        println!("package: {line}");
    }
    ensure!(
        log.trim_end().ends_with("install test: all steps passed") && status.success(),
        "the install test failed ({status}); end of its log {}:\n{}",
        shared.join("log").display(),
        kept[kept.len().saturating_sub(30)..].join("\n")
    );
    remove(&root)
}

/// Debian 12 with the package's dependencies and nothing else; made once.
fn base(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let base = folder.join("debian-12.tar");
    if !base.exists() {
        println!("package: making a clean Debian 12; this takes minutes, once");
        let partial = folder.join("debian-12.partial.tar");
        let mut make = workspace::root_command("mmdebstrap");
        make.args([
            "--quiet",
            "--variant=minbase",
            "--include=systemd,systemd-sysv,dbus,ca-certificates",
            "bookworm",
        ]);
        workspace::run(make.arg(&partial)).context("making a Debian 12; are Debian's mirrors reachable?")?;
        std::fs::rename(partial, &base)?;
    }
    Ok(base)
}

fn remove(root: &Path) -> Result<()> {
    workspace::run(
        workspace::root_command("rm").args(["--recursive", "--force", "--one-file-system"]).arg(root),
    )
}
