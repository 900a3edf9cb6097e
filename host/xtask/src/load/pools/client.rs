//! One connection, one thing after the other.

use super::wire::{self, Answer};
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client that waits for its answers.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    input: Vec<u8>,
    /// Octets of `input` that were read already.
    taken: usize,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, input: Vec::new(), taken: 0 })
    }

    /// Asks, and waits for the answer; one that says no is an answer as well.
    pub fn ask(&mut self, words: &[&str]) -> Result<Answer> {
        self.send(&wire::request(words))?;
        self.answer()
    }

    /// Sends requests as they are; [`Client::answer`] gives their answers.
    pub fn send(&mut self, requests: &[u8]) -> Result<()> {
        self.socket.write_all(requests).context("asking")
    }

    /// Waits for the next answer.
    pub fn answer(&mut self) -> Result<Answer> {
        loop {
            let mut rest = &self.input[self.taken..];
            if let Some(answer) = wire::answer(&mut rest)? {
                self.taken = self.input.len() - rest.len();
                return Ok(answer);
            }
            self.input.drain(..self.taken);
            self.taken = 0;
            let mut some = [0; 1 << 14];
            let count = self.socket.read(&mut some).context("waiting for an answer")?;
            ensure!(count > 0, "the connection was closed");
            self.input.extend_from_slice(&some[..count]);
        }
    }
}
