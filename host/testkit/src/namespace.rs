//! Network namespaces: several machines on one.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// A command that runs a program in a network namespace. The process is the program's.
pub fn command(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("/usr/sbin/ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

/// Runs `ip` with these arguments, in a network namespace if one is given.
///
/// # Errors
/// If it fails.
pub fn ip(namespace: Option<&str>, words: &str) -> Result<()> {
    let mut command = Command::new("/usr/sbin/ip");
    if let Some(namespace) = namespace {
        command.args(["-netns", namespace]);
    }
    let output = command.args(words.split(' ')).output().context("running ip, of the package iproute2")?;
    ensure!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
