//! Accepts the connections of a listener, within the limits of a [`ConnectionLimiter`].

use crate::{ConnectionLimiter, ConnectionPermit, LogLimiter};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// The acceptor of one listening socket.
#[derive(Debug)]
pub struct Acceptor {
    name: String,
    socket: Arc<TcpListener>,
    limiter: Arc<ConnectionLimiter>,
    refusal: &'static [u8],
    log: LogLimiter,
}

impl Acceptor {
    /// Creates an acceptor; `name` is the listener's name in the log.
    #[must_use]
    pub fn new(name: &str, socket: Arc<TcpListener>, limiter: Arc<ConnectionLimiter>) -> Self {
        Self { name: name.to_owned(), socket, limiter, refusal: b"", log: LogLimiter::default() }
    }

    /// Sets the octets that a refused client gets, in the form of the listener's protocol.
    #[must_use]
    pub fn refuse_with(mut self, refusal: &'static [u8]) -> Self {
        self.refusal = refusal;
        self
    }

    /// Waits for the next connection that gets a permit. Cancel safe.
    pub async fn accept(&self) -> (TcpStream, SocketAddr, ConnectionPermit) {
        loop {
            let (stream, remote) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // The usual cause is a lack of file descriptors. It passes; a busy loop would not help.
                    if let Some(unlogged) = self.log.take(Instant::now()) {
                        tracing::error!(listener = %self.name, %error, unlogged, "cannot accept connections");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            match self.limiter.admit(remote.ip()) {
                Ok(permit) => {
                    // All protocols write whole messages at once.
                    let _ = stream.set_nodelay(true);
                    return (stream, remote, permit);
                }
                Err(limit) => {
                    // If the socket does not take the octets at once, the client gets none.
                    let _ = stream.try_write(self.refusal);
                    if let Some(unlogged) = self.log.take(Instant::now()) {
                        let reason = limit.reason();
                        tracing::warn!(listener = %self.name, %remote, reason, unlogged, "connection refused");
                    }
                }
            }
        }
    }
}
