//! Where things are, and how programs are run.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The top of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// Runs a program to its end; its failure is an error that names it.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("running {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// A program that needs root: as it is for root, through sudo for others.
pub fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        Command::new(program)
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg(program);
        sudo
    }
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the source tree, as if called from a shell. What cargo has told us of ourselves is not passed on: some build
/// scripts look at it, and everything above them would be built anew whenever another program calls.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || matches!(name, "CARGO" | "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
        });
        if told {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds the daemon and tells where it is. Cargo's own progress shows.
pub fn daemon(release: bool) -> Result<PathBuf> {
    let (what, profile) = match release {
        true => ("building the daemon, with all optimisations", "release"),
        false => ("building the daemon", "debug"),
    };
    let mut cargo = cargo();
    if release {
        cargo.args(["build", "--release", "--package", "switchyard"]);
    } else {
        // Of the whole workspace, so that cargo takes the features that the tests take, and with them what was built for them.
        cargo.args(["build", "--workspace", "--bin", "switchyard"]);
    }
    phase(what, || run(&mut cargo))?;
    Ok(target().join(profile).join("switchyard"))
}

/// Says what is done, does it, and says how long it took.
pub fn phase<T, E>(what: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    println!("{what} ...");
    let begun = Instant::now();
    let outcome = work();
    let end = if outcome.is_ok() { "done" } else { "failed" };
    println!("{what}: {end} after {:.0} s", begun.elapsed().as_secs_f64());
    outcome
}

/// Where the tests' peers of other languages are installed.
pub fn peers() -> PathBuf {
    root().join(".state/peers")
}

/// PyPI `schemathesis`, which has a place of its own: what it needs is much, and none of the peers' business.
pub fn schemathesis() -> PathBuf {
    peers().join("schemathesis/bin/schemathesis")
}
