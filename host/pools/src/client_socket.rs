//! The socket of a client, which may be a connection that another node of the cluster has passed on.

use ports::Socket;
use resp::Session;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// Octets per read. The buffer belongs to the thread, since most connections are idle.
const READ_SIZE: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

/// Result of [`ClientSocket::step`].
pub(crate) enum SocketStep {
    /// Number of received octets; 0 if the client has closed its side.
    Received(io::Result<usize>),
    /// Number of written octets of the output.
    Written(io::Result<usize>),
}

/// A socket that one task reads and writes.
pub(crate) struct ClientSocket {
    socket: Socket,
    /// Whether a lower layer, such as TLS, still buffers written octets.
    is_unflushed: bool,
}

impl ClientSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, is_unflushed: false }
    }

    /// Writes as much as the socket accepts without waiting; `None` if it accepts nothing.
    pub(crate) async fn try_write(&mut self, output: &[u8]) -> Option<io::Result<usize>> {
        poll_fn(|context| {
            Poll::Ready(match self.poll_write(context, output) {
                Poll::Ready(written) => Some(written),
                Poll::Pending => None,
            })
        })
        .await
    }

    /// Waits until part of the session's output is written, or, if `reading`, until the session has received octets.
    pub(crate) async fn step(&mut self, session: &mut Session, reading: bool) -> SocketStep {
        poll_fn(|context| {
            if let Poll::Ready(Err(error)) = self.poll_flush(context) {
                return Poll::Ready(SocketStep::Written(Err(error)));
            }
            if !session.output().is_empty()
                && let Poll::Ready(written) = self.poll_write(context, session.output())
            {
                return Poll::Ready(SocketStep::Written(written));
            }
            if reading {
                return self.poll_receive(context, session).map(SocketStep::Received);
            }
            Poll::Pending
        })
        .await
    }

    /// The socket; octets that are still buffered precede later ones.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    fn poll_write(&mut self, context: &mut Context<'_>, output: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, output);
        if let Poll::Ready(Ok(octets)) = &written {
            self.is_unflushed |= *octets > 0;
            if let Poll::Ready(Err(error)) = self.poll_flush(context) {
                return Poll::Ready(Err(error));
            }
        }
        written
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_unflushed {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.is_unflushed = flushed.is_pending();
        flushed
    }

    /// Reads once from the socket into the session.
    fn poll_receive(&mut self, context: &mut Context<'_>, session: &mut Session) -> Poll<io::Result<usize>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut into = ReadBuf::new(buffer);
            std::task::ready!(Pin::new(&mut self.socket).poll_read(context, &mut into))?;
            session.receive(into.filled());
            Poll::Ready(Ok(into.filled().len()))
        })
    }
}
