//! The client of the shell socket.

use crate::wire::{ShellEvent, ShellFault, ShellOperation, ShellReply, ShellRequest, ShellResponse};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum SmsError {
    /// The socket has no listener, or the user has no access to it.
    #[error(
        "{path:?}: {source}. Is the appliance running, with [shell] socket = {path:?}, and do you have access to it?"
    )]
    Unreachable {
        /// Path of the socket.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The appliance closed the connection.
    #[error("the appliance closed the connection")]
    Disconnected,
    /// The appliance sent an invalid response.
    #[error("invalid response from the appliance: {0}. Does it have another version?")]
    UnexpectedResponse(String),
    /// The user's input is invalid.
    #[error("{0}")]
    Input(String),
    /// The reader of the output has exited.
    #[error("the reader of the output has exited")]
    Output,
    /// The appliance refused the request.
    #[error("{0}")]
    Fault(ShellFault),
}

pub(super) struct ShellClient {
    stream: UnixStream,
    received: Vec<u8>,
    next: u64,
}

impl ShellClient {
    pub(super) fn connect(path: &Path) -> Result<Self, SmsError> {
        let failed = |source| SmsError::Unreachable { path: path.to_owned(), source };
        let stream = UnixStream::connect(path).map_err(failed)?;
        Ok(Self { stream, received: Vec::new(), next: 1 })
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request(&mut self, operation: ShellOperation) -> Result<Value, SmsError> {
        let id = self.next;
        self.next += 1;
        let mut line = serde_json::to_vec(&ShellRequest { id, operation })
            .map_err(|error| SmsError::UnexpectedResponse(error.to_string()))?;
        line.push(b'\n');
        // If the connection was refused, the reason is already in the receive buffer.
        let _ = self.stream.write_all(&line);
        loop {
            match self.response()?.reply {
                ShellReply::Ok(value) => return Ok(value),
                ShellReply::Error(fault) => return Err(SmsError::Fault(fault)),
                ShellReply::Event(_) => {}
            }
        }
    }

    /// Waits for the next event.
    pub(super) fn event(&mut self) -> Result<ShellEvent, SmsError> {
        match self.response()?.reply {
            ShellReply::Event(event) => Ok(event),
            ShellReply::Error(fault) => Err(SmsError::Fault(fault)),
            ShellReply::Ok(_) => Err(SmsError::UnexpectedResponse("an unexpected answer".to_owned())),
        }
    }

    fn response(&mut self) -> Result<ShellResponse, SmsError> {
        loop {
            if let Some(end) = self.received.iter().position(|octet| *octet == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| SmsError::UnexpectedResponse(error.to_string()));
            }
            self.wait()?;
            let mut chunk = [0; 8192];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(SmsError::Disconnected),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(SmsError::Disconnected),
            }
        }
    }

    /// Waits for input, or for the end of the output's reader: an ssh client that disconnects does not end the command
    /// by itself.
    fn wait(&self) -> Result<(), SmsError> {
        let out = std::io::stdout();
        let mut files = [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(&out, PollFlags::empty())];
        loop {
            match poll(&mut files, None) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(SmsError::UnexpectedResponse(error.to_string())),
                Ok(_) => {}
            }
            let [stream, out] = &files;
            if !stream.revents().is_empty() {
                return Ok(());
            }
            if !out.revents().is_empty() {
                return Err(SmsError::Output);
            }
        }
    }
}

/// Sleeps before a retry.
pub(super) fn pause(time: Duration) {
    let (keep, wait) = std::sync::mpsc::channel::<()>();
    let _ = wait.recv_timeout(time);
    drop(keep);
}
