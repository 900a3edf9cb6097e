//! The other end of the socket.

use crate::wire::{Ask, Event, Fault, Reply, Request, Response};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a command has not done what it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Nobody is at the socket, or it is not for this user.
    #[error(
        "{path:?}: {source}. Is the appliance running, with [shell] socket = {path:?}, and may you use it?"
    )]
    NoAppliance {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The appliance has hung up.
    #[error("the appliance has hung up")]
    Broken,
    /// The appliance said what it should not.
    #[error("the appliance's answer cannot be understood: {0}. Is it of another version?")]
    Strange(String),
    /// What the user gave cannot be.
    #[error("{0}")]
    Input(String),
    /// Nobody reads what is printed any more.
    #[error("nobody reads this any more")]
    Output,
    /// The appliance said no.
    #[error("{0}")]
    Fault(Fault),
}

pub(super) struct Client {
    stream: UnixStream,
    received: Vec<u8>,
    next: u64,
}

impl Client {
    pub(super) fn connect(path: &Path) -> Result<Self, Failure> {
        let failed = |source| Failure::NoAppliance { path: path.to_owned(), source };
        let stream = UnixStream::connect(path).map_err(failed)?;
        Ok(Self { stream, received: Vec::new(), next: 1 })
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, ask: Ask) -> Result<Value, Failure> {
        let id = self.next;
        self.next += 1;
        let mut line =
            serde_json::to_vec(&Request { id, ask }).map_err(|error| Failure::Strange(error.to_string()))?;
        line.push(b'\n');
        // Whoever is turned away finds the reason in what was sent before the appliance hung up.
        let _ = self.stream.write_all(&line);
        loop {
            match self.response()?.what {
                Reply::Ok(value) => return Ok(value),
                Reply::Error(fault) => return Err(Failure::Fault(fault)),
                Reply::Event(_) => {}
            }
        }
    }

    /// The next event.
    pub(super) fn event(&mut self) -> Result<Event, Failure> {
        match self.response()?.what {
            Reply::Event(event) => Ok(event),
            Reply::Error(fault) => Err(Failure::Fault(fault)),
            Reply::Ok(_) => Err(Failure::Strange("an answer that nobody waits for".to_owned())),
        }
    }

    fn response(&mut self) -> Result<Response, Failure> {
        loop {
            if let Some(end) = self.received.iter().position(|octet| *octet == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| Failure::Strange(error.to_string()));
            }
            self.wait()?;
            let mut chunk = [0; 8192];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Failure::Broken),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Broken),
            }
        }
    }

    /// Waits until there is something to read, or nobody to read what would be printed: an ssh client that hangs up does not
    /// end what it has started by itself.
    fn wait(&self) -> Result<(), Failure> {
        let out = std::io::stdout();
        let mut files = [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(&out, PollFlags::empty())];
        loop {
            match poll(&mut files, None) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Failure::Strange(error.to_string())),
                Ok(_) => {}
            }
            let [stream, out] = &files;
            if !stream.revents().is_empty() {
                return Ok(());
            }
            if !out.revents().is_empty() {
                return Err(Failure::Output);
            }
        }
    }
}

/// Waits for a while before something is tried again that nothing announces: an appliance that comes back.
pub(super) fn pause(time: Duration) {
    let (keep, wait) = std::sync::mpsc::channel::<()>();
    let _ = wait.recv_timeout(time);
    drop(keep);
}
