//! The admin's door as a socket: connections with or without TLS, so many at once and no more.

use crate::tls::Certificate;
use axum::serve::Listener;
use doors::{Guard, Permit};
use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Connections at once.
const MOST: usize = 1_000;
/// Connections of one address at once.
const MOST_OF_ONE: usize = 200;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long nothing may come or go: longer than the slowest answer takes, and what comes bit by bit says so now and then.
const SILENCE: Duration = Duration::from_secs(600);

/// The listener. Handshakes happen beside each other: one that hangs keeps nobody waiting.
#[derive(Debug)]
pub struct Socket {
    address: SocketAddr,
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
}

impl Socket {
    /// Listens, with TLS if there is a certificate.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn open(address: SocketAddr, certificate: Option<Arc<Certificate>>) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let (sender, ready) = mpsc::channel(16);
        tokio::spawn(accept(socket, certificate, sender));
        Ok(Self { address, ready })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Listener for Socket {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            // Only when the runtime ends.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn accept(
    socket: TcpListener,
    certificate: Option<Arc<Certificate>>,
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    let (places, guard) = (Arc::new(Semaphore::new(MOST)), Arc::new(Guard::new(u32::MAX)));
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = ready.closed() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: they come back when connections end.
                tracing::warn!(%error, "HTTP connection not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(place) = guard.admit(address.ip(), MOST_OF_ONE, Instant::now()) else {
            tracing::debug!(%address, "too many HTTP connections from this address");
            continue;
        };
        let Ok(permit) = places.clone().try_acquire_owned() else {
            tracing::warn!(%address, most = MOST, "too many HTTP connections");
            continue;
        };
        // Answers are small; none waits for another to go with it.
        let _ = stream.set_nodelay(true);
        let held = Held { _place: place, _permit: permit };
        let (certificate, ready) = (certificate.clone(), ready.clone());
        tokio::spawn(async move {
            if let Some(stream) = shake_hands(stream, certificate, address).await {
                let silence = Box::pin(tokio::time::sleep(SILENCE));
                // Nobody takes it when the door is shut.
                let _ = ready.send((Connection { stream, silence, _held: held }, address)).await;
            }
        });
    }
}

async fn shake_hands(
    stream: TcpStream,
    certificate: Option<Arc<Certificate>>,
    address: SocketAddr,
) -> Option<Stream> {
    let Some(certificate) = certificate else { return Some(Stream::Plain(stream)) };
    let handshake = TlsAcceptor::from(certificate.current()).accept(stream);
    match tokio::time::timeout(HANDSHAKE, handshake).await {
        Ok(Ok(stream)) => Some(Stream::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "TLS handshake of HTTP failed");
            None
        }
        Err(_) => {
            tracing::debug!(%address, "TLS handshake of HTTP took too long");
            None
        }
    }
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What a connection takes, and gives back when it ends.
#[derive(Debug)]
struct Held {
    _place: Permit,
    _permit: OwnedSemaphorePermit,
}

/// One connection; it ends when nothing has come or gone for ten minutes.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    silence: Pin<Box<Sleep>>,
    _held: Held,
}

impl Connection {
    /// What became of reading or writing, with the silence ended or counted.
    fn heard<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.silence.as_mut().reset(tokio::time::Instant::now() + SILENCE);
            return done;
        }
        match self.silence.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.heard(context, done)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, octets),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, octets),
        };
        self.heard(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
