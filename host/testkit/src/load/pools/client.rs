//! One connection that sends one request at a time.

use super::wire::{self, RedisReply};
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum time for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client that waits for each answer.
#[derive(Debug)]
pub struct RedisClient {
    socket: TcpStream,
    input: Vec<u8>,
    /// Octets of `input` that were consumed.
    taken: usize,
}

impl RedisClient {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect_timeout(&address, TIMEOUT)
            .with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { socket, input: Vec::new(), taken: 0 })
    }

    /// Sends a request and waits for the answer; an error reply is an answer as well.
    pub fn ask(&mut self, words: &[&str]) -> Result<RedisReply> {
        self.send(&wire::encode_request(words))?;
        self.answer()
    }

    /// Sends encoded requests; [`RedisClient::answer`] returns their answers.
    pub fn send(&mut self, requests: &[u8]) -> Result<()> {
        self.socket.write_all(requests).context("asking")
    }

    /// Waits for the next answer.
    pub fn answer(&mut self) -> Result<RedisReply> {
        loop {
            let mut rest = &self.input[self.taken..];
            if let Some(answer) = wire::decode_reply(&mut rest)? {
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
