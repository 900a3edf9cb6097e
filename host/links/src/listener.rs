//! Open listeners, and how one becomes another: its socket and its connections outlive a change of its options.

use crate::server;
use crate::sgip::{self, SgipListenerOptions};
use crate::shared::Shared;
use crate::{ListenError, ListenerOptions};
use doors::{Acceptor, ConnectionLimits, Place, Places};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

/// What is done with a connection that has come.
pub(crate) type Admit = Box<dyn Fn(TcpStream, SocketAddr, Place, &mpsc::Sender<()>) + Send + Sync>;

/// Until when the connections of a listener are to take leave, once they are.
pub(crate) type LeaveOrders = watch::Receiver<Option<Instant>>;

/// What a listener speaks, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spoken {
    Smpp(ListenerOptions),
    Sgip(SgipListenerOptions),
}

impl Spoken {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Smpp(options) => &options.name,
            Self::Sgip(options) => &options.name,
        }
    }

    pub(crate) fn listen(&self) -> SocketAddr {
        match self {
            Self::Smpp(options) => options.listen,
            Self::Sgip(options) => options.listen,
        }
    }

    fn limits(&self) -> ConnectionLimits {
        let (connections, per_address, unidentified) = match self {
            Self::Smpp(options) => {
                (options.connections, options.connections_per_address, options.unbound_connections)
            }
            Self::Sgip(options) => {
                (options.connections, options.connections_per_address, options.unbound_connections)
            }
        };
        ConnectionLimits { connections, per_address, unidentified, reserve: 0 }
    }

    fn has_tls(&self) -> bool {
        matches!(self, Self::Smpp(options) if options.tls.is_some())
    }
}

/// An open listener.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) spoken: Spoken,
    socket: Arc<TcpListener>,
    places: Arc<Places>,
    orders: watch::Sender<Option<Instant>>,
    /// Dropped, it ends the accepting and leaves the connections alone.
    accepting: watch::Sender<()>,
}

/// A listener that has all that it needs, and only has to be opened.
pub(crate) struct Ready {
    spoken: Spoken,
    socket: Arc<TcpListener>,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
}

impl Ready {
    /// Does all of opening that can fail. `socket` is that of an open listener on the same address.
    pub(crate) async fn new(spoken: Spoken, socket: Option<Arc<TcpListener>>) -> Result<Self, ListenError> {
        let acceptor = match &spoken {
            Spoken::Smpp(options) => server::acceptor(options)?,
            Spoken::Sgip(_) => None,
        };
        let (name, listen) = (spoken.name().to_owned(), spoken.listen());
        let failed = |reason| ListenError::Socket { name: name.clone(), address: listen, reason };
        let socket = match socket {
            Some(socket) => socket,
            None => Arc::new(TcpListener::bind(listen).await.map_err(failed)?),
        };
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { spoken, socket, address, acceptor })
    }

    pub(crate) fn name(&self) -> &str {
        self.spoken.name()
    }

    /// Accepts from here on, in the place of `before` if there was a listener of that name: its connections become ours.
    pub(crate) fn open(
        self,
        shared: &Arc<Shared>,
        alive: mpsc::Sender<()>,
        before: Option<Listener>,
    ) -> Listener {
        let Self { spoken, socket, address, acceptor } = self;
        let limits = spoken.limits();
        let (places, orders) = match before {
            Some(before) => (before.places, before.orders),
            None => (Places::new(limits, shared.connections.clone()), watch::channel(None).0),
        };
        places.set_limits(limits);
        tracing::info!(listener = %spoken.name(), %address, tls = acceptor.is_some(), "listening");
        let admit = match &spoken {
            Spoken::Smpp(options) => {
                server::doorman(shared.clone(), options.clone(), acceptor, orders.subscribe())
            }
            Spoken::Sgip(options) => {
                sgip::listen::doorman(shared.clone(), options.clone(), orders.subscribe())
            }
        };
        let (accepting, go_on) = watch::channel(());
        let name = spoken.name().to_owned();
        let connections = Acceptor::new(&name, socket.clone(), places.clone());
        tokio::spawn(accept(name, admit, connections, alive, orders.subscribe(), go_on));
        Listener { address, spoken, socket, places, orders, accepting }
    }
}

impl Listener {
    /// Stops listening; its connections take leave until then.
    pub(crate) fn stop(&self, until: Instant) {
        self.orders.send_replace(Some(until));
    }

    /// Whether it is what is wanted. One with TLS never is: its files may have changed.
    pub(crate) fn is(&self, wanted: &Spoken) -> bool {
        self.spoken == *wanted && !wanted.has_tls() && !self.accepting.is_closed()
    }

    /// Its socket, where it is one on this address.
    pub(crate) fn socket_on(&self, address: SocketAddr) -> Option<Arc<TcpListener>> {
        (self.spoken.listen() == address).then(|| self.socket.clone())
    }
}

async fn accept(
    name: String,
    admit: Admit,
    connections: Acceptor,
    alive: mpsc::Sender<()>,
    mut orders: watch::Receiver<Option<Instant>>,
    mut go_on: watch::Receiver<()>,
) {
    loop {
        let (stream, remote, place) = tokio::select! {
            accepted = connections.accept() => accepted,
            _ = orders.changed() => break,
            _ = go_on.changed() => return,
        };
        admit(stream, remote, place, &alive);
    }
    tracing::info!(listener = %name, "no longer listening");
}
