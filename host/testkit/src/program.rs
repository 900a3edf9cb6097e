//! A program of a package, running in its own folder.

use crate::load::StopFlag;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process; killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    process: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it in this folder and waits until it listens. Its output is appended to `name.log` in that
    /// folder.
    pub fn start(name: &str, folder: &Path, command: &mut Command, listens: &[SocketAddr]) -> Result<Self> {
        let mut program = Self::launch(name, folder, command)?;
        program.wait_for(listens)?;
        Ok(program)
    }

    /// Like [`Program::start`], without waiting.
    pub fn launch(name: &str, folder: &Path, command: &mut Command) -> Result<Self> {
        // A program that is given by its path is not from a Debian package.
        let is_path = Path::new(command.get_program()).exists();
        if !is_path && !["/usr/bin", "/usr/sbin"].iter().any(|there| Path::new(there).join(name).exists()) {
            bail!("{name} is not installed; run: cargo xtask setup");
        }
        let log = folder.join(format!("{name}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let process = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self { name: name.to_owned(), process, log })
    }

    /// Waits until it listens.
    pub fn wait_for(&mut self, listens: &[SocketAddr]) -> Result<()> {
        self.wait_within(listens, crate::osmocom::TIMEOUT)
    }

    /// Like [`Program::wait_for`], with another timeout.
    pub fn wait_within(&mut self, listens: &[SocketAddr], timeout: Duration) -> Result<()> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + timeout);
        for address in listens {
            while TcpStream::connect(address).is_err() {
                let name = &self.name;
                if let Some(status) = self.process.try_wait()? {
                    bail!("{name} ended with {status}:\n{}", self.log());
                }
                ensure!(Instant::now() < deadline, "{name} does not listen at {address}:\n{}", self.log());
                pause.pause(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Sends SIGSTOP or SIGCONT.
    pub fn pause(&self, pause: bool) -> Result<()> {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        Ok(kill_process(Pid::from_child(&self.process), signal)?)
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(80)..].join("\n")
    }

    /// Waits until its log has this many matching lines.
    pub fn wait_for_log_lines(&self, times: usize, fits: impl Fn(&str) -> bool) -> Result<()> {
        crate::osmocom::until("a log line", || {
            let text = std::fs::read(&self.log)?;
            Ok(String::from_utf8_lossy(&text).lines().filter(|line| fits(line)).count() >= times)
        })
        .with_context(|| self.log())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
