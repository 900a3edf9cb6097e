//! The Redis server: listens, and holds the state shared by all connections.

use crate::connection::{ClientOrigin, Connection};
use crate::counts::RedisServerState;
use crate::redis_options::RedisOptions;
use crate::server_state::{RedisSettings, Shared};
use parking_lot::Mutex;
use ports::{
    Acceptor, ConnectionLimitReached, ConnectionPermit, EventSink, LinkRegistry, PassedConnection, Socket,
    clock,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

/// The server cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum RedisServerError {
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("[redis] listen: cannot listen on {address}: {reason}")]
pub struct RedisListenError {
    /// The address.
    pub address: SocketAddr,
    /// The cause.
    pub reason: io::Error,
}

/// The Redis server. Its methods must be called within a tokio runtime.
pub struct RedisServer {
    shared: Arc<Shared>,
    shutdown_signal: watch::Sender<Option<Instant>>,
    /// Each connection holds a sender; no value is sent.
    liveness: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
    /// The runtime of all connections, once it listens.
    runtime: OnceLock<Handle>,
}

impl RedisServer {
    /// Creates a server that does not listen yet.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new(
        options: RedisOptions,
        core: Arc<dyn EventSink>,
        registry: Arc<LinkRegistry>,
    ) -> Result<Self, RedisServerError> {
        let shared = Shared::new(options, core, registry).map_err(RedisServerError::Random)?;
        let liveness = Mutex::new(Some(mpsc::channel(1)));
        let shutdown_signal = watch::channel(None).0;
        Ok(Self { shared: Arc::new(shared), shutdown_signal, liveness, runtime: OnceLock::new() })
    }

    /// Changes the options for connections that come from now on. A login of an open connection is checked against the
    /// accounts with which it was opened.
    pub fn set_options(&self, options: RedisOptions) {
        let settings = RedisSettings::new(options);
        self.shared.connection_limiter.set_limits(settings.connection_limits());
        *self.shared.settings.lock() = Arc::new(settings);
    }

    /// Listens on an address, and returns the bound one. May be called several times.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn listen(&self, address: SocketAddr) -> Result<SocketAddr, RedisListenError> {
        let listen_error = |reason| RedisListenError { address, reason };
        let socket = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = socket.local_addr().map_err(listen_error)?;
        // `INFO` reports the first port only.
        let _ = self.shared.port.compare_exchange(0, address.port(), Relaxed, Relaxed);
        let _ = self.runtime.set(Handle::current());
        if let Some((liveness, _)) = &*self.liveness.lock() {
            let acceptor = Acceptor::new("redis", Arc::new(socket), self.shared.connection_limiter.clone())
                .refuse_with(b"-ERR max number of clients reached\r\n");
            tokio::spawn(accept(
                self.shared.clone(),
                acceptor,
                self.shutdown_signal.subscribe(),
                liveness.clone(),
            ));
        }
        Ok(address)
    }

    /// Serves a connection that came to another node of the cluster, as if it had come here. It is not passed on again.
    ///
    /// # Errors
    /// If it does not listen, or at a limit of connections, which counts it for the client's address.
    pub fn accept_passed(&self, socket: Socket, connection: &PassedConnection) -> Result<(), &'static str> {
        let runtime = self.runtime.get().ok_or("the Redis listener is not open")?;
        let liveness = self.liveness.lock().as_ref().map(|(liveness, _)| liveness.clone());
        let liveness = liveness.ok_or("the appliance is shutting down")?;
        let (shared, remote) = (self.shared.clone(), connection.remote);
        let permit = shared.connection_limiter.admit(remote.ip()).map_err(ConnectionLimitReached::reason)?;
        let local = connection.local.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        let origin = ClientOrigin { remote, local, was_passed_on: true };
        let shutdown_signal = self.shutdown_signal.subscribe();
        runtime.spawn(serve_connection(shared, socket, origin, permit, shutdown_signal, liveness));
        Ok(())
    }

    /// A snapshot of the state.
    #[must_use]
    pub fn state(&self) -> RedisServerState {
        self.shared.counts.state(&self.shared.connection_limiter)
    }

    /// Shuts down: stops listening and reading, answers pending requests within the given time, and closes all
    /// connections. The engine must keep running until then.
    pub async fn shutdown(&self, within: Duration) {
        self.shutdown_signal.send_replace(Some(clock::now() + within));
        let Some((sender, mut all_closed)) = self.liveness.lock().take() else { return };
        drop(sender);
        // Connections end at the deadline; a pending login may take a little longer.
        let _ = tokio::time::timeout(within + Duration::from_secs(1), all_closed.recv()).await;
    }
}

async fn accept(
    shared: Arc<Shared>,
    acceptor: Acceptor,
    shutdown_signal: watch::Receiver<Option<Instant>>,
    liveness: mpsc::Sender<()>,
) {
    let mut stop = shutdown_signal.clone();
    loop {
        let (stream, remote, permit) = tokio::select! {
            accepted = acceptor.accept() => accepted,
            _ = stop.wait_for(Option::is_some) => return,
        };
        // Without a local address, the connection is already broken.
        let Ok(local) = stream.local_addr() else { continue };
        let origin = ClientOrigin { remote, local, was_passed_on: false };
        let (shared, socket) = (shared.clone(), Socket::Plain(stream));
        tokio::spawn(serve_connection(
            shared,
            socket,
            origin,
            permit,
            shutdown_signal.clone(),
            liveness.clone(),
        ));
    }
}

async fn serve_connection(
    shared: Arc<Shared>,
    socket: Socket,
    origin: ClientOrigin,
    permit: ConnectionPermit,
    shutdown_signal: watch::Receiver<Option<Instant>>,
    liveness: mpsc::Sender<()>,
) {
    let settings = shared.settings();
    // Without accounts, every connection counts as authenticated.
    if settings.accounts.is_empty() {
        permit.identify();
    }
    let permit = Arc::new(permit);
    let connection = Connection::new(shared, settings, origin, permit.clone());
    tokio::select! {
        () = connection.run(socket, shutdown_signal) => {}
        () = permit.displaced() => {}
    }
    drop(liveness);
}
