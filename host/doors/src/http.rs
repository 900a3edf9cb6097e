//! Listeners for HTTP: connections with or without TLS, within limits of number and time.

use crate::{Acceptor, Certificate, ConnectionCounts, ConnectionLimits, Place, Places, Unread};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long nothing may come or go: longer than the slowest answer takes, and what comes bit by bit says so now and then.
const SILENCE: Duration = Duration::from_secs(600);
/// How long a TLS handshake may take, if not less.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What a client is told that gets no place, where there is no TLS to tell it through.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The limits of a listener for HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections.
    pub connections: ConnectionLimits,
    /// How long it may take until a request's head is all there. An idle connection is closed after this time, too; and a TLS
    /// handshake, which has 10 s at most.
    pub head_timeout: Duration,
    /// How long a request's body may take, beside a second for each KiB of it.
    pub body_timeout: Duration,
}

impl HttpLimits {
    /// Limits with 30 s for a head and for a body.
    #[must_use]
    pub fn new(connections: usize, per_address: usize) -> Self {
        let timeout = Duration::from_secs(30);
        Self {
            connections: ConnectionLimits::new(connections, per_address),
            head_timeout: timeout,
            body_timeout: timeout,
        }
    }
}

/// Whose requests these are, as far as a listener has to know.
pub trait Callers: Send + Sync + 'static {
    /// Whether a request's head shows who makes it, so that its connection counts as identified. Where that takes a while to
    /// find out, this says no, and the request's handler calls [`Place::identify`] of the [`Arc<Place>`] in its extensions.
    fn knows(&self, headers: &HeaderMap) -> bool;

    /// Whether a request for this path is answered whoever makes it, also on a connection of the reserve.
    fn is_always_answered(&self, path: &str) -> bool;
}

/// A listener for HTTP.
#[derive(Debug)]
pub struct HttpListener {
    address: SocketAddr,
    acceptor: Acceptor,
    counts: Arc<ConnectionCounts>,
    certificate: Option<Arc<Certificate>>,
    limits: HttpLimits,
}

impl HttpListener {
    /// Listens, with TLS if there is a certificate. `name` is for the log.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn open(
        name: &str,
        address: SocketAddr,
        certificate: Option<Arc<Certificate>>,
        limits: HttpLimits,
        counts: Arc<ConnectionCounts>,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let places = Places::new(limits.connections, counts.clone());
        let mut acceptor = Acceptor::new(name, Arc::new(socket), places);
        if certificate.is_none() {
            acceptor = acceptor.refuse_with(REFUSAL);
        }
        Ok(Self { address, acceptor, counts, certificate, limits })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts of its connections.
    #[must_use]
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.counts
    }

    /// Serves for ever. Requests have the remote address as [`ConnectInfo`] and the connection's [`Arc<Place>`] as extensions.
    pub async fn serve(self, router: Router, callers: Arc<dyn Callers>) {
        loop {
            let (stream, remote, place) = self.acceptor.accept().await;
            let connection = Connection {
                remote,
                place: Arc::new(place),
                limits: self.limits,
                router: router.clone(),
                callers: callers.clone(),
            };
            let certificate = self.certificate.clone();
            tokio::spawn(async move {
                let place = connection.place.clone();
                tokio::select! {
                    () = connection.run(stream, certificate) => {}
                    () = place.displaced() => {}
                }
            });
        }
    }
}

/// What serves one connection.
#[derive(Clone)]
struct Connection {
    remote: SocketAddr,
    place: Arc<Place>,
    limits: HttpLimits,
    router: Router,
    callers: Arc<dyn Callers>,
}

impl Connection {
    async fn run(self, stream: TcpStream, certificate: Option<Arc<Certificate>>) {
        let remote = self.remote;
        let Some(stream) = shake_hands(stream, certificate, remote, self.limits.head_timeout).await else {
            return;
        };
        let silence = Box::pin(tokio::time::sleep(SILENCE));
        let io = TokioIo::new(Watched { stream, silence });
        let head_timeout = self.limits.head_timeout;
        let service = service_fn(move |request| self.clone().answer(request));
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(head_timeout);
        if let Err(error) = server.serve_connection(io, service).await {
            tracing::debug!(%remote, %error, "HTTP connection ended");
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let is_known = self.callers.knows(request.headers()) && self.place.identify();
        if self.place.is_in_reserve() && !is_known && !self.callers.is_always_answered(request.uri().path()) {
            return Ok(busy());
        }
        let timeout = self.limits.body_timeout;
        let mut request = request.map(|body| Body::new(Unread::new(body, timeout)));
        request.extensions_mut().insert(ConnectInfo(self.remote));
        request.extensions_mut().insert(self.place);
        TowerToHyperService::new(self.router).call(request).await
    }
}

/// The answer on a connection that has a place of the reserve only.
fn busy() -> Response<Body> {
    let mut response = Response::new(Body::from("too many connections; try again in a second\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

async fn shake_hands(
    stream: TcpStream,
    certificate: Option<Arc<Certificate>>,
    remote: SocketAddr,
    timeout: Duration,
) -> Option<Stream> {
    let Some(certificate) = certificate else { return Some(Stream::Plain(stream)) };
    let timeout = timeout.min(HANDSHAKE);
    let handshake = TlsAcceptor::from(certificate.current()).accept(stream);
    match tokio::time::timeout(timeout, handshake).await {
        Ok(Ok(stream)) => Some(Stream::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%remote, %error, "TLS handshake of HTTP failed");
            None
        }
        Err(_) => {
            tracing::debug!(%remote, "TLS handshake of HTTP took too long");
            None
        }
    }
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection's octets; it ends when nothing has come or gone for ten minutes.
#[derive(Debug)]
struct Watched {
    stream: Stream,
    silence: Pin<Box<Sleep>>,
}

impl Watched {
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

impl AsyncRead for Watched {
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

impl AsyncWrite for Watched {
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
