//! The Redis server: listens, and holds the state shared by all connections.

use crate::accounts::Accounts;
use crate::connection::Connection;
use crate::counts::{Counts, RedisServerState};
use crate::redis_options::{AcceptedScripts, RedisOptions};
use parking_lot::Mutex;
use ports::{
    Acceptor, ConnectionLimiter, ConnectionLimits, ConnectionPermit, EventSink, LinkRegistry,
    PasswordVerifier, RateLimiter, clock,
};
use resp::{ClusterNode, RespOptions, Scripts, Session};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// The Redis version reported to clients, which select their commands by it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

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

/// State shared by all connections.
pub(crate) struct Shared {
    settings: Mutex<Arc<RedisSettings>>,
    pub(crate) verifier: PasswordVerifier,
    pub(crate) connection_limiter: Arc<ConnectionLimiter>,
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) counts: Counts,
    next_connection_id: AtomicI64,
    log_limiter: Mutex<RateLimiter>,
    started_at: Instant,
    port: AtomicU16,
}

/// The options, and what follows from them. A connection keeps those with which it was opened.
pub(crate) struct RedisSettings {
    pub(crate) options: RedisOptions,
    pub(crate) accounts: Accounts,
    session: Arc<RespOptions>,
}

impl RedisSettings {
    fn new(options: RedisOptions) -> Self {
        let scripts = match &options.scripts {
            AcceptedScripts::These(sums) => Scripts::new(sums.iter().copied(), false),
            AcceptedScripts::Any => Scripts::new([], true),
        };
        let session = RespOptions {
            limits: options.limits(),
            accounts: !options.accounts.is_empty(),
            scripts: Arc::new(scripts),
            plain_replies: options.plain_replies,
            version: REDIS_VERSION.to_owned(),
        };
        let accounts = Accounts::new(options.accounts.clone());
        Self { options, accounts, session: Arc::new(session) }
    }

    fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections: self.options.connections,
            per_address: self.options.connections_per_address,
            unidentified: self.options.unauthenticated_connections,
            reserve: 0,
        }
    }
}

/// Facts about the server for `INFO`.
#[derive(Debug)]
pub(crate) struct ServerInfo {
    pub(crate) port: u16,
    pub(crate) started_at: Instant,
    pub(crate) connections: usize,
}

impl Shared {
    pub(crate) fn new(
        options: RedisOptions,
        core: Arc<dyn EventSink>,
        registry: Arc<LinkRegistry>,
    ) -> Result<Self, getrandom::Error> {
        let verifications = options.verifications;
        let settings = RedisSettings::new(options);
        Ok(Self {
            verifier: PasswordVerifier::new(verifications)?,
            connection_limiter: ConnectionLimiter::new(settings.connection_limits(), Arc::default()),
            core,
            registry,
            counts: Counts::default(),
            next_connection_id: AtomicI64::new(1),
            log_limiter: Mutex::new(RateLimiter::new(2.0, 20, clock::now())),
            started_at: clock::now(),
            port: AtomicU16::new(0),
            settings: Mutex::new(Arc::new(settings)),
        })
    }

    /// The settings for new connections.
    pub(crate) fn settings(&self) -> Arc<RedisSettings> {
        self.settings.lock().clone()
    }

    /// Creates a session. `local` is the local address of the connection, announced to cluster clients by default.
    pub(crate) fn session(&self, settings: &RedisSettings, local: SocketAddr) -> Session {
        let node = settings.options.announce.clone().unwrap_or_else(|| ClusterNode {
            host: local.ip().to_canonical().to_string(),
            port: local.port(),
        });
        Session::new(settings.session.clone(), self.next_connection_id.fetch_add(1, Relaxed)).with_node(node)
    }

    pub(crate) fn server_info(&self) -> ServerInfo {
        ServerInfo {
            port: self.port.load(Relaxed),
            started_at: self.started_at,
            connections: self.settings().options.connections,
        }
    }

    /// Limits the log rate for repeated failures.
    pub(crate) fn may_log(&self) -> bool {
        self.log_limiter.lock().take(1, clock::now())
    }
}

/// The Redis server. Its methods must be called within a tokio runtime.
pub struct RedisServer {
    shared: Arc<Shared>,
    shutdown_signal: watch::Sender<Option<Instant>>,
    /// Each connection holds a sender; no value is sent.
    liveness: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
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
        Ok(Self { shared: Arc::new(shared), shutdown_signal: watch::channel(None).0, liveness })
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

    /// A snapshot of the state.
    #[must_use]
    pub fn state(&self) -> RedisServerState {
        self.shared.counts.state(&self.shared.connection_limiter)
    }

    /// Shuts down: stops listening and reading, answers pending requests within the given time, and closes all
    /// connections. The engine must keep running meanwhile.
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
        tokio::spawn(serve_connection(
            shared.clone(),
            stream,
            remote,
            permit,
            shutdown_signal.clone(),
            liveness.clone(),
        ));
    }
}

async fn serve_connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    remote: SocketAddr,
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
    // Without a local address, the connection is already broken.
    let Ok(local) = stream.local_addr() else { return };
    let connection = Connection::new(shared, settings, (remote, local), permit.clone());
    tokio::select! {
        () = connection.run(stream, shutdown_signal) => {}
        () = permit.displaced() => {}
    }
    drop(liveness);
}
