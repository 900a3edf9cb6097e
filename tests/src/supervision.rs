//! Supervision of a daemon: a service manager that is a datagram socket, and a disk that hangs.

use crate::TIMEOUT;
use crate::test_daemon::TestDaemonConfig;
use anyhow::{Context, Result, bail, ensure};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The time within which the daemon must send watchdog messages.
const WATCHDOG: Duration = Duration::from_secs(2);

/// The service manager of a daemon, as far as the daemon sees it.
pub struct ServiceManager(UnixDatagram);

impl ServiceManager {
    /// Opens the socket and sets its path in the daemon's environment.
    pub fn of(folder: &Path, config: &mut TestDaemonConfig) -> Result<Self> {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path)?;
        config
            .environment("NOTIFY_SOCKET", path)
            .environment("RUNTIME_DIRECTORY", folder)
            .environment("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        Ok(Self(socket))
    }

    /// The next message, one line per element; `None` if none arrives in this time.
    pub fn receive(&self, time: Duration) -> Result<Option<Vec<String>>> {
        let mut octets = [0; 4096];
        self.0.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
        match self.0.recv(&mut octets) {
            Ok(length) => {
                let text = std::str::from_utf8(&octets[..length])?;
                Ok(Some(text.lines().map(str::to_owned).collect()))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a message with this line; returns it with the earlier ones.
    pub fn wait_for(&self, word: &str) -> Result<Vec<Vec<String>>> {
        let deadline = Instant::now() + TIMEOUT;
        let mut heard = Vec::new();
        while let Some(message) = self.receive(deadline.saturating_duration_since(Instant::now()))? {
            let is_it = message.iter().any(|said| said == word);
            heard.push(message);
            if is_it {
                return Ok(heard);
            }
        }
        bail!("{word} was not notified; received: {heard:?}")
    }

    /// Checks that no watchdog message arrives for twice its time.
    pub fn hears_no_watchdog(&self) -> Result<()> {
        let deadline = Instant::now() + WATCHDOG * 2;
        while let Some(message) = self.receive(deadline.saturating_duration_since(Instant::now()))? {
            ensure!(!message.contains(&"WATCHDOG=1".to_owned()), "a watchdog message was sent");
            if Instant::now() >= deadline {
                break;
            }
        }
        Ok(())
    }
}

/// Whether one of the messages has a line that begins so.
pub fn was_notified(messages: &[Vec<String>], what: &str) -> bool {
    messages.iter().flatten().any(|word| word.starts_with(what))
}

/// A disk whose writes hang when the test says so.
pub struct HangingDisk(PathBuf);

impl HangingDisk {
    /// Gives this disk to the daemon.
    pub fn of(folder: &Path, config: &mut TestDaemonConfig) -> Result<Self> {
        let (shim, hangs) = (folder.join("hanging_disk.so"), folder.join("hangs"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/disk/hanging_disk.c");
        let mut compile = Command::new("cc");
        compile.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(&shim).arg(source);
        workspace::run(&mut compile).context("compiling the disk that hangs")?;
        config.environment("LD_PRELOAD", shim).environment("HANGING_DISK", &hangs);
        Ok(Self(hangs))
    }

    /// From now on, writes hang.
    pub fn hang(&self) -> Result<()> {
        Ok(std::fs::write(&self.0, "")?)
    }

    /// Lets all writes go on.
    pub fn release(&self) -> Result<()> {
        Ok(std::fs::remove_file(&self.0)?)
    }
}
