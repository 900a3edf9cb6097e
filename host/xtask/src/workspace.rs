//! Paths of the source tree, and how to run programs.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// Runs a program to its end; a failure is an error that names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("running {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// A program that needs root: runs directly for root, with sudo for others.
pub fn root_command(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        Command::new(program)
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg(program);
        sudo
    }
}

/// Cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo in the source tree, as if called from a shell. The variables that cargo has set for this program are removed: some build
/// scripts read them, and everything that depends on them would be rebuilt whenever another program calls cargo.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let is_inherited = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || matches!(name, "CARGO" | "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
        });
        if is_inherited {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds the daemon and returns its path. Cargo's progress is shown.
pub fn daemon(release: bool) -> Result<PathBuf> {
    let (what, profile) = match release {
        true => ("building the daemon, with all optimisations", "release"),
        false => ("building the daemon", "debug"),
    };
    let mut cargo = cargo();
    if release {
        cargo.args(["build", "--release", "--package", "switchyard"]);
    } else {
        // The whole workspace, so that cargo chooses the same features as for the tests and reuses their build.
        cargo.args(["build", "--workspace", "--bin", "switchyard"]);
    }
    timed(what, || run(&mut cargo))?;
    Ok(target().join(profile).join("switchyard"))
}

/// Runs a step, and prints its name and how long it took.
pub fn timed<T, E>(what: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    println!("{what} ...");
    let begun = Instant::now();
    let outcome = work();
    let end = if outcome.is_ok() { "done" } else { "failed" };
    println!("{what}: {end} after {:.0} s", begun.elapsed().as_secs_f64());
    outcome
}

/// Where the tests' peers in other languages are installed.
pub fn peers() -> PathBuf {
    root().join(".state/peers")
}

/// PyPI `schemathesis`, in its own environment because of its many dependencies.
pub fn schemathesis() -> PathBuf {
    peers().join("schemathesis/bin/schemathesis")
}
