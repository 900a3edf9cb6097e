//! One TCP connection and its SMPP session.

use crate::TrafficError;
use smpp::Session;
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A session and its socket. The owner takes events from the session between two calls of [`Connection::turn`].
pub(crate) struct Connection {
    pub(crate) session: Session,
    stream: TcpStream,
}

/// Why [`Connection::turn`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The session may have events.
    Events,
    /// What the owner waited for is there.
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

    /// Writes what the session has to say, then waits for octets, for the session's next timer or for `wake`.
    pub(crate) async fn turn(&mut self, wake: impl Future<Output = ()>) -> Result<Turn, TrafficError> {
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
                    return Ok(Turn::Closed);
                }
                self.session.process(Instant::now());
                Ok(Turn::Events)
            }
            () = timer => {
                self.session.on_timeout(Instant::now());
                Ok(Turn::Events)
            }
            () = wake => Ok(Turn::Woken),
        }
    }

    /// Writes what the session has to say.
    pub(crate) async fn flush(&mut self) -> Result<(), TrafficError> {
        self.stream.write_all_buf(self.session.output()).await.map_err(TrafficError::Connection)
    }
}
