//! HTTP listeners, with or without TLS, with limits of connections and time.

use crate::{
    Acceptor, ConnectionCounts, ConnectionLimiter, ConnectionLimits, ConnectionPermit, DrainedBody,
    ServerCertificate, Socket,
};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::future::Future;
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

/// The idle timeout of a connection. It is longer than the slowest answer takes; streamed answers send something from
/// time to time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer to a client that gets no permit, on a listener without TLS.
const REFUSAL_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The limits of an HTTP listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections.
    pub connections: ConnectionLimits,
    /// The time for a request's head. It is also the keep-alive timeout, and the time for a TLS handshake, which is
    /// at most 10 s.
    pub head_timeout: Duration,
    /// The time for a request's body, in addition to one second for each KiB of it.
    pub body_timeout: Duration,
}

impl HttpLimits {
    /// Creates limits with 30 s for a head and for a body.
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

/// Classifies requests for a listener.
pub trait RequestClassifier: Send + Sync + 'static {
    /// Whether the request's head identifies the caller, so that the connection counts as identified. If that takes a
    /// while to find out, return false and let the request's handler call [`ConnectionPermit::identify`] of the
    /// [`Arc<ConnectionPermit>`] in the request's extensions.
    fn is_identified(&self, headers: &HeaderMap) -> bool;

    /// Whether a request for this path is answered for every caller, even on a connection of the reserve.
    fn is_always_answered(&self, path: &str) -> bool;
}

/// An HTTP listener.
#[derive(Debug)]
pub struct HttpListener {
    address: SocketAddr,
    acceptor: Acceptor,
    counts: Arc<ConnectionCounts>,
    certificate: Option<Arc<ServerCertificate>>,
    limits: HttpListenerLimits,
}

/// The limits of an HTTP listener, to change them while it is served.
#[derive(Clone, Debug)]
pub struct HttpListenerLimits {
    limits: Arc<Mutex<HttpLimits>>,
    limiter: Arc<ConnectionLimiter>,
}

impl HttpListenerLimits {
    /// Changes the limits for connections that come from now on.
    pub fn set(&self, limits: HttpLimits) {
        self.limiter.set_limits(limits.connections);
        *self.limits.lock() = limits;
    }
}

impl HttpListener {
    /// Opens a listener, with TLS if there is a certificate. `name` is the listener's name in the log.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn open(
        name: &str,
        address: SocketAddr,
        certificate: Option<Arc<ServerCertificate>>,
        limits: HttpLimits,
        counts: Arc<ConnectionCounts>,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let limiter = ConnectionLimiter::new(limits.connections, counts.clone());
        let mut acceptor = Acceptor::new(name, Arc::new(socket), limiter.clone());
        let limits = HttpListenerLimits { limits: Arc::new(Mutex::new(limits)), limiter };
        if certificate.is_none() {
            acceptor = acceptor.refuse_with(REFUSAL_RESPONSE);
        }
        Ok(Self { address, acceptor, counts, certificate, limits })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &HttpListenerLimits {
        &self.limits
    }

    /// The counters of its connections.
    #[must_use]
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.counts
    }

    /// Serves for ever. Requests have the remote address as [`ConnectInfo`], and the connection's
    /// [`Arc<ConnectionPermit>`], as extensions.
    pub async fn serve(self, router: Router, classifier: Arc<dyn RequestClassifier>) {
        loop {
            let (stream, remote, permit) = self.acceptor.accept().await;
            let connection = Connection {
                remote,
                permit: Arc::new(permit),
                limits: *self.limits.limits.lock(),
                router: router.clone(),
                classifier: classifier.clone(),
            };
            let certificate = self.certificate.clone();
            tokio::spawn(async move {
                let permit = connection.permit.clone();
                tokio::select! {
                    () = connection.run(stream, certificate) => {}
                    () = permit.displaced() => {}
                }
            });
        }
    }
}

/// The state of one connection.
#[derive(Clone)]
struct Connection {
    remote: SocketAddr,
    permit: Arc<ConnectionPermit>,
    limits: HttpLimits,
    router: Router,
    classifier: Arc<dyn RequestClassifier>,
}

impl Connection {
    async fn run(self, stream: TcpStream, certificate: Option<Arc<ServerCertificate>>) {
        let remote = self.remote;
        let Some(stream) = tls_handshake(stream, certificate, remote, self.limits.head_timeout).await else {
            return;
        };
        let idle_timer = Box::pin(tokio::time::sleep(IDLE_TIMEOUT));
        let io = TokioIo::new(IdleTimeoutStream { stream, idle_timer });
        let head_timeout = self.limits.head_timeout;
        let service = service_fn(move |request| self.clone().answer(request));
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(head_timeout);
        if let Err(error) = server.serve_connection(io, service).with_upgrades().await {
            tracing::debug!(%remote, %error, "HTTP connection ended");
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let is_known = self.classifier.is_identified(request.headers()) && self.permit.identify();
        if self.permit.is_in_reserve()
            && !is_known
            && !self.classifier.is_always_answered(request.uri().path())
        {
            return Ok(busy());
        }
        let timeout = self.limits.body_timeout;
        let mut request = request.map(|body| Body::new(DrainedBody::new(body, timeout)));
        request.extensions_mut().insert(ConnectInfo(self.remote));
        request.extensions_mut().insert(self.permit);
        TowerToHyperService::new(self.router).call(request).await
    }
}

/// The connection of a request, as soon as it is answered with 101. Its permit ends with the request.
pub fn upgrade(request: &mut Request<Body>) -> impl Future<Output = io::Result<Socket>> + Send + use<> {
    let upgraded = hyper::upgrade::on(request);
    async move {
        let upgraded = upgraded.await.map_err(io::Error::other)?;
        Ok(Socket::Passed(Box::new(TokioIo::new(upgraded))))
    }
}

/// The answer on a connection that has only a permit of the reserve.
fn busy() -> Response<Body> {
    let mut response = Response::new(Body::from("too many connections; try again in a second\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

async fn tls_handshake(
    stream: TcpStream,
    certificate: Option<Arc<ServerCertificate>>,
    remote: SocketAddr,
    timeout: Duration,
) -> Option<Socket> {
    let Some(certificate) = certificate else { return Some(Socket::Plain(stream)) };
    let timeout = timeout.min(HANDSHAKE_TIMEOUT);
    let handshake = TlsAcceptor::from(certificate.current()).accept(stream);
    match tokio::time::timeout(timeout, handshake).await {
        Ok(Ok(stream)) => Some(Socket::Tls(Box::new(stream.into()))),
        Ok(Err(error)) => {
            tracing::debug!(%remote, %error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%remote, "TLS handshake timed out");
            None
        }
    }
}

/// A stream that fails when nothing was read or written for the idle timeout.
#[derive(Debug)]
struct IdleTimeoutStream {
    stream: Socket,
    idle_timer: Pin<Box<Sleep>>,
}

impl IdleTimeoutStream {
    /// Resets the idle timer if the operation is ready; otherwise checks the timer.
    fn check_idle<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.idle_timer.as_mut().reset(tokio::time::Instant::now() + IDLE_TIMEOUT);
            return done;
        }
        match self.idle_timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for IdleTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.check_idle(context, done)
    }
}

impl AsyncWrite for IdleTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, octets);
        self.check_idle(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
