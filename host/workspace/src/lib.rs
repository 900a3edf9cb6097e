//! The source tree: its paths, how programs are run in it, and how its parts are built.
//!
//! The crate has few dependencies, because it is part of `cargo xtask`, whose own build takes only seconds.
#![allow(clippy::print_stdout, reason = "command line tools speak on standard output")]

pub mod packages;
pub mod plugins;

use anyhow::{Context, Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

/// Runs a program to its end; a failure is an error that names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let status = command.status().with_context(|| format!("running {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// A program that needs root: runs directly for root, with sudo for others.
pub fn root_command(program: &str) -> Command {
    if is_root() {
        Command::new(program)
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg(program);
        sudo
    }
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
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
                || matches!(
                    name,
                    "CARGO"
                        | "CARGO_BIN_NAME"
                        | "CARGO_CRATE_NAME"
                        | "CARGO_PRIMARY_PACKAGE"
                        | "RUSTC_BOOTSTRAP"
                )
        });
        if is_inherited {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Environment variable: path of the daemon that tests and workloads run.
pub const DAEMON_VARIABLE: &str = "SWITCHYARD_TEST_DAEMON";
/// Environment variable: path of a daemon of an earlier version, from which the test of upgrades begins.
pub const OLDER_DAEMON_VARIABLE: &str = "SWITCHYARD_TEST_OLDER_DAEMON";
/// Environment variable: folder of the plugins that tests and workloads use.
pub const PLUGINS_VARIABLE: &str = "SWITCHYARD_TEST_PLUGINS";
/// Environment variable: folder in which the daemons of a test run share compiled plugins.
pub const ARTEFACTS_VARIABLE: &str = "SWITCHYARD_TEST_ARTEFACTS";

/// Build profile of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Built quickly, with the features that the tests are built with.
    Debug,
    /// With all optimisations.
    Release,
}

/// A program of the source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// A binary, which has the name of its package.
    Binary(&'static str),
    /// An example.
    Example {
        /// Its package.
        package: &'static str,
        /// Its name.
        name: &'static str,
    },
}

/// Builds programs in one call of cargo, and returns the folder of the binaries; examples are in its folder `examples`. Cargo's progress
/// is shown.
pub fn build(profile: Profile, programs: &[Program]) -> Result<PathBuf> {
    let (folder, how) = match profile {
        Profile::Debug => ("debug", ""),
        Profile::Release => ("release", ", with all optimisations"),
    };
    let mut cargo = cargo();
    cargo.arg("build");
    if profile == Profile::Release {
        cargo.arg("--release");
    } else {
        // So that cargo chooses the same features as for the tests, and reuses their build.
        cargo.arg("--workspace");
    }
    let mut names = Vec::new();
    for program in programs {
        let (package, kind, name) = match *program {
            Program::Binary(name) => (name, "--bin", name),
            Program::Example { package, name } => (package, "--example", name),
        };
        if profile == Profile::Release {
            cargo.args(["--package", package]);
        }
        cargo.args([kind, name]);
        names.push(name);
    }
    timed(&format!("building {}{how}", names.join(", ")), || run(&mut cargo))?;
    Ok(target().join(folder))
}

/// Builds the daemon and returns its path.
pub fn daemon(profile: Profile) -> Result<PathBuf> {
    Ok(build(profile, &[Program::Binary("switchyard")])?.join("switchyard"))
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

/// Folder in which the tests' peers in other languages are installed.
pub fn peers() -> PathBuf {
    root().join(".state/peers")
}

/// The OpenTelemetry collector of PyPI `rotel`, if it is installed. Its place depends on the version of Python.
#[must_use]
pub fn rotel() -> Option<PathBuf> {
    let libraries = std::fs::read_dir(peers().join("rotel/lib")).ok()?.flatten();
    let mut programs = libraries.map(|python| python.path().join("site-packages/rotel/rotel-agent"));
    programs.find(|program| program.exists())
}

/// PyPI `schemathesis`, in its own environment because of its many dependencies.
pub fn schemathesis() -> PathBuf {
    peers().join("schemathesis/bin/schemathesis")
}
