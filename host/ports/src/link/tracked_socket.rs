use bytes::{Buf, BytesMut};
use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A connection between two nodes of a cluster, which carries one of a client.
pub trait PassedStream: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin> PassedStream for T {}

/// A connection, plain or TLS.
#[derive(Debug)]
pub enum Socket {
    /// Plain.
    Plain(TcpStream),
    /// TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// Passed on by another node.
    Passed(Box<dyn PassedStream>),
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Passed(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Passed(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Passed(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Passed(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A socket that counts the octets written, and measures how long the rest has been waiting.
#[derive(Debug)]
pub(crate) struct TrackedSocket {
    socket: Socket,
    /// Octets written to the socket.
    written: u64,
    /// TLS holds octets that the kernel has not taken.
    unflushed: bool,
    /// The end of the output when it was last empty or last reached, and the time: everything up to it must be
    /// written in time. So a peer that reads one octet at a time counts as slow too.
    mark: Option<(u64, Instant)>,
    chunk: usize,
}

/// Octets read at a time. The size starts small, since most connections are idle, and grows with the traffic.
const FIRST_CHUNK: usize = 2 << 10;
const MAX_CHUNK: usize = 64 << 10;
/// After this time without progress the reader counts as slow.
const STALL_AFTER: Duration = Duration::from_millis(100);

impl TrackedSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, written: 0, unflushed: false, mark: None, chunk: FIRST_CHUNK }
    }

    /// The number of octets of the stream that are written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether the socket takes nothing at the moment.
    pub(crate) fn is_stalled(&self) -> bool {
        self.mark.is_some_and(|(_, since)| since.elapsed() >= STALL_AFTER)
    }

    /// Reads the available octets into `input`; 0 is the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        if input.capacity() - input.len() < self.chunk / 2 {
            input.reserve(self.chunk);
        }
        let room = input.capacity() - input.len();
        let read = pin!(self.socket.read_buf(input)).poll(cx);
        if let Poll::Ready(Ok(count)) = &read
            && *count == room
        {
            self.chunk = (self.chunk * 2).min(MAX_CHUNK);
        }
        read
    }

    /// Writes as much of `output` as the socket takes. Ready when something was written, or when the socket has
    /// failed.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut BytesMut) -> Poll<io::Result<()>> {
        let mut progress = false;
        while !output.is_empty() {
            match Pin::new(&mut self.socket).poll_write(cx, output) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    output.advance(count);
                    self.written += count as u64;
                    self.unflushed = true;
                    progress = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        if output.is_empty() && self.unflushed {
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if progress { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Measures how long the output has been waiting. Returns the moment by which it must make progress.
    pub(crate) fn write_deadline(
        &mut self,
        now: Instant,
        waiting: usize,
        timeout: Duration,
    ) -> Option<Instant> {
        let end = self.written + waiting as u64;
        match self.mark {
            _ if waiting == 0 => self.mark = None,
            Some((offset, _)) if self.written < offset => {}
            _ => self.mark = Some((end, now)),
        }
        self.mark.map(|(_, since)| since + timeout)
    }

    /// Writes the rest of the output and shuts down our side.
    pub(crate) async fn flush_and_shutdown(&mut self, output: &mut BytesMut, timeout: Duration) {
        let flush = async {
            while !output.is_empty() {
                let count = self.socket.write(output).await?;
                if count == 0 {
                    return Err(io::Error::from(io::ErrorKind::WriteZero));
                }
                output.advance(count);
                self.written += count as u64;
            }
            self.socket.flush().await?;
            self.socket.shutdown().await
        };
        let _ = tokio::time::timeout(timeout, flush).await;
    }

    /// Reads and discards what the peer still sends, until it closes or one second has passed. Closing a socket with
    /// unread octets resets the connection, and the reset would overtake our last octets.
    pub(crate) async fn linger(mut self) {
        let mut rest = [0; 512];
        let drain = async { while matches!(self.socket.read(&mut rest).await, Ok(count) if count > 0) {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), drain).await;
    }
}
