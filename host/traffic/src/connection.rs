//! One TCP connection and its SMPP session.

use crate::TrafficError;
use smpp::Session;
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A session and its socket. The owner takes events from the session between two calls of [`Connection::wait`].
pub(crate) struct Connection {
    pub(crate) session: Session,
    stream: TcpStream,
}

/// The reason why [`Connection::wait`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakeup {
    /// The session may have events.
    Events,
    /// The future `wake` is ready.
    Woken,
    /// The peer has closed the connection.
    Closed,
}

impl Connection {
    pub(crate) fn new(session: Session, stream: TcpStream) -> Self {
        // Without it answers wait for more octets; a socket that refuses this still works.
        let _ = stream.set_nodelay(true);
        Self { session, stream }
    }

    /// Writes the session's output, then waits for octets, for the session's next timer or for `wake`.
    pub(crate) async fn wait(&mut self, wake: impl Future<Output = ()>) -> Result<Wakeup, TrafficError> {
        self.flush().await?;
        let deadline = self.session.deadline();
        let timer = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = self.stream.read_buf(self.session.input()) => {
                if read.map_err(TrafficError::Connection)? == 0 {
                    return Ok(Wakeup::Closed);
                }
                self.session.process(Instant::now());
                Ok(Wakeup::Events)
            }
            () = timer => {
                self.session.on_timeout(Instant::now());
                Ok(Wakeup::Events)
            }
            () = wake => Ok(Wakeup::Woken),
        }
    }

    /// Writes the session's output.
    pub(crate) async fn flush(&mut self) -> Result<(), TrafficError> {
        self.stream.write_all_buf(self.session.output()).await.map_err(TrafficError::Connection)
    }
}
