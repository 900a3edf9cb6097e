//! The measured programs: the daemon, and an example program that calls plugins without a daemon.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct BenchPrograms {
    pub(super) daemon: PathBuf,
    program: PathBuf,
}

impl BenchPrograms {
    /// Uses this daemon, and `examples/measure_hooks` in the folder where cargo puts both.
    pub(super) fn next_to(daemon: &Path) -> Result<Self> {
        let daemon = daemon.canonicalize().with_context(|| format!("{}", daemon.display()))?;
        let program = daemon.with_file_name("examples").join("measure_hooks");
        ensure!(
            program.exists(),
            "there is no {}; build it: cargo build --package hooks --example measure_hooks",
            program.display()
        );
        Ok(Self { daemon, program })
    }

    /// Runs a measurement with plugins in `folder`.
    pub(super) fn ask(&self, folder: &Path, task: &Value) -> Result<Value> {
        std::fs::create_dir_all(folder)?;
        let mut process = Command::new(&self.program)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        // Closing the pipe marks the end of the task.
        process.stdin.take().context("no standard input")?.write_all(task.to_string().as_bytes())?;
        let output = process.wait_with_output()?;
        ensure!(output.status.success(), "{} ended with {}", self.program.display(), output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
