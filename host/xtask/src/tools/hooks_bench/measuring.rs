//! The programs that take part: the daemon, and the one that asks plugins without a daemon.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::house;

pub(super) struct Measuring {
    pub(super) daemon: PathBuf,
    program: PathBuf,
}

impl Measuring {
    pub(super) fn build() -> Result<Self> {
        let mut cargo = house::cargo();
        // In one go: by itself the example would take other features of what both are made of, and build it once more.
        cargo.args(["build", "--quiet", "--release", "--package", "switchyard", "--bin", "switchyard"]);
        cargo.args(["--package", "hooks", "--example", "measure_hooks"]);
        house::run(&mut cargo)?;
        let release = house::target().join("release");
        Ok(Self { daemon: release.join("switchyard"), program: release.join("examples/measure_hooks") })
    }

    /// Has something measured in `folder`, where plugins are kept.
    pub(super) fn ask(&self, folder: &Path, task: &Value) -> Result<Value> {
        std::fs::create_dir_all(folder)?;
        let mut process = Command::new(&self.program)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        // Its end closes the pipe: that is the end of the task.
        process.stdin.take().context("no standard input")?.write_all(task.to_string().as_bytes())?;
        let output = process.wait_with_output()?;
        ensure!(output.status.success(), "{} ended with {}", self.program.display(), output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
