//! Open listeners. When a listener's options change, its socket and its connections stay.

use crate::sgip::{self, SgipListenerOptions};
use crate::shared::Shared;
use crate::{ListenerOptions, TlsError, smpp_acceptor};
use configuration::{Key, KeyValue as _, Keys, Natural, Section, Word};
use ports::{Acceptor, ConnectionLimiter, ConnectionLimits, ConnectionPermit, ServerTlsFiles};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The address cannot be bound.
    #[error("listener {name:?}: cannot listen on {address}: {reason}")]
    Socket {
        /// The listener's name.
        name: String,
        /// The address.
        address: SocketAddr,
        /// The cause.
        reason: io::Error,
    },
    /// The TLS files cannot be used.
    #[error("listener {name:?}: {reason}")]
    Tls {
        /// The listener's name.
        name: String,
        /// The cause.
        reason: TlsError,
    },
    /// A listener of this name is open.
    #[error("a listener {0:?} exists already")]
    NameTaken(String),
    /// The appliance is shutting down.
    #[error("the appliance is shutting down")]
    ShuttingDown,
}

/// The handler of accepted connections.
pub(crate) type ConnectionHandler =
    Box<dyn Fn(TcpStream, SocketAddr, ConnectionPermit, &mpsc::Sender<()>) + Send + Sync>;

/// The signal to close the connections of a listener: the moment until which they have time.
pub(crate) type CloseSignal = watch::Receiver<Option<Instant>>;

/// The options of a listener, by protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ListenerKind {
    /// For ESMEs.
    Smpp(ListenerOptions),
    /// For SPs and gateways.
    Sgip(SgipListenerOptions),
}

/// The protocol of a listener.
#[derive(Debug, Clone, Copy, Word)]
enum ListenerProtocol {
    /// SMPP 3.3, 3.4 and 5.0.
    Smpp,
    /// SGIP 1.2.
    Sgip,
}

impl Keys for ListenerKind {
    fn read_keys(section: &Section<'_>) -> Self {
        match section.key_or(&Natural, "protocol", "\"smpp\"") {
            ListenerProtocol::Smpp => Self::Smpp(ListenerOptions::read_keys(section)),
            ListenerProtocol::Sgip => Self::Sgip(SgipListenerOptions::read_keys(section)),
        }
    }

    fn keys() -> Vec<Key> {
        let mut keys = ListenerOptions::keys();
        let protocol = Key::new("protocol", "The protocol.", ListenerProtocol::shape());
        keys.push(Key { default: Some("\"smpp\""), ..protocol });
        let is_new = |key: &Key| !keys.iter().any(|known| known.name == key.name);
        let more: Vec<Key> = SgipListenerOptions::keys().into_iter().filter(is_new).collect();
        keys.extend(more);
        keys
    }

    fn take_live(&mut self, new: &Self, live: bool) {
        if live {
            self.clone_from(new);
        }
    }
}

impl From<ListenerOptions> for ListenerKind {
    fn from(options: ListenerOptions) -> Self {
        Self::Smpp(options)
    }
}

impl From<SgipListenerOptions> for ListenerKind {
    fn from(options: SgipListenerOptions) -> Self {
        Self::Sgip(options)
    }
}

impl ListenerKind {
    /// The name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Smpp(options) => &options.name,
            Self::Sgip(options) => &options.name,
        }
    }

    /// The listening address.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        match self {
            Self::Smpp(options) => options.listen,
            Self::Sgip(options) => options.listen,
        }
    }

    /// The limits of connections: all, of one address, and unbound ones.
    pub fn limits_mut(&mut self) -> [&mut usize; 3] {
        match self {
            Self::Smpp(ListenerOptions {
                connections, connections_per_address, unbound_connections, ..
            })
            | Self::Sgip(SgipListenerOptions {
                connections,
                connections_per_address,
                unbound_connections,
                ..
            }) => [connections, connections_per_address, unbound_connections],
        }
    }

    /// The limits of connections.
    #[must_use]
    pub fn limits(&self) -> ConnectionLimits {
        let [connections, per_address, unidentified] = self.clone().limits_mut().map(|limit| *limit);
        ConnectionLimits { connections, per_address, unidentified, reserve: 0 }
    }

    /// The TLS files, if it uses TLS.
    #[must_use]
    pub fn tls(&self) -> Option<&ServerTlsFiles> {
        match self {
            Self::Smpp(options) => options.tls.as_ref(),
            Self::Sgip(_) => None,
        }
    }
}

/// An open listener.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    socket: Arc<TcpListener>,
    limiter: Arc<ConnectionLimiter>,
    close_signal: watch::Sender<Option<Instant>>,
    /// When it is dropped, accepting ends; open connections stay.
    accept_guard: watch::Sender<()>,
}

/// A listener that is ready to be opened.
pub(crate) struct PreparedListener {
    kind: ListenerKind,
    socket: Arc<TcpListener>,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
}

impl PreparedListener {
    /// Does every part of opening that can fail. `socket` is the socket of an open listener on the same address.
    pub(crate) async fn new(
        kind: ListenerKind,
        socket: Option<Arc<TcpListener>>,
    ) -> Result<Self, ListenerError> {
        let acceptor = match &kind {
            ListenerKind::Smpp(options) => smpp_acceptor::tls_acceptor(options)?,
            ListenerKind::Sgip(_) => None,
        };
        let (name, listen) = (kind.name().to_owned(), kind.listen());
        let failed = |reason| ListenerError::Socket { name: name.clone(), address: listen, reason };
        let socket = match socket {
            Some(socket) => socket,
            None => Arc::new(TcpListener::bind(listen).await.map_err(failed)?),
        };
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { kind, socket, address, acceptor })
    }

    pub(crate) fn name(&self) -> &str {
        self.kind.name()
    }

    /// Starts to accept connections. Takes over the connections of `before`, an older listener of the same name.
    pub(crate) fn open(
        self,
        shared: &Arc<Shared>,
        alive: mpsc::Sender<()>,
        before: Option<Listener>,
    ) -> Listener {
        let Self { kind, socket, address, acceptor } = self;
        let limits = kind.limits();
        let (limiter, close_signal) = match before {
            Some(before) => (before.limiter, before.close_signal),
            None => (ConnectionLimiter::new(limits, shared.connections.clone()), watch::channel(None).0),
        };
        limiter.set_limits(limits);
        tracing::info!(listener = %kind.name(), %address, tls = acceptor.is_some(), "listening");
        let handler = match &kind {
            ListenerKind::Smpp(options) => smpp_acceptor::connection_handler(
                shared.clone(),
                options.clone(),
                acceptor,
                close_signal.subscribe(),
            ),
            ListenerKind::Sgip(options) => sgip::sgip_acceptor::connection_handler(
                shared.clone(),
                options.clone(),
                close_signal.subscribe(),
            ),
        };
        let (accept_guard, stop_signal) = watch::channel(());
        let name = kind.name().to_owned();
        let connections = Acceptor::new(&name, socket.clone(), limiter.clone());
        tokio::spawn(accept(name, handler, connections, alive, close_signal.subscribe(), stop_signal));
        Listener { address, kind, socket, limiter, close_signal, accept_guard }
    }
}

impl Listener {
    /// Stops listening and closes the connections until `until`.
    pub(crate) fn stop(&self, until: Instant) {
        self.close_signal.send_replace(Some(until));
    }

    /// Whether the listener has these options. A listener with TLS never matches: its files may have changed.
    pub(crate) fn matches(&self, wanted: &ListenerKind) -> bool {
        self.kind == *wanted && wanted.tls().is_none() && !self.accept_guard.is_closed()
    }

    /// The listener's socket, if it listens on this address.
    pub(crate) fn socket_on(&self, address: SocketAddr) -> Option<Arc<TcpListener>> {
        (self.kind.listen() == address).then(|| self.socket.clone())
    }
}

async fn accept(
    name: String,
    handler: ConnectionHandler,
    connections: Acceptor,
    alive: mpsc::Sender<()>,
    mut close_signal: watch::Receiver<Option<Instant>>,
    mut stop_signal: watch::Receiver<()>,
) {
    loop {
        let (stream, remote, permit) = tokio::select! {
            accepted = connections.accept() => accepted,
            _ = close_signal.changed() => break,
            _ = stop_signal.changed() => return,
        };
        handler(stream, remote, permit, &alive);
    }
    tracing::info!(listener = %name, "listener closed");
}
