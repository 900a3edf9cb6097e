//! Listening, and what all connections share.

use crate::accounts::Accounts;
use crate::connection::Connection;
use crate::counts::{Counts, DoorState};
use crate::options::DoorOptions;
use doors::{Acceptor, Bucket, ConnectionLimits, Core, Hub, LoginLimiter, Place, Places, Verifier};
use model::Timestamp;
use parking_lot::Mutex;
use resp::{Node, Options, Scripts, Session};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// What clients are told for Redis's version: they choose by it which commands they dare to send.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// The door cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system has no randomness to give.
    #[error("no randomness from the system: {0}")]
    Random(getrandom::Error),
}

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("[redis] listen: cannot listen on {address}: {reason}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why not.
    pub reason: io::Error,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: DoorOptions,
    pub(crate) accounts: Accounts,
    pub(crate) verifier: Verifier,
    pub(crate) limiter: Arc<LoginLimiter>,
    pub(crate) places: Arc<Places>,
    pub(crate) core: Arc<dyn Core>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) counts: Counts,
    session: Arc<Options>,
    next: AtomicI64,
    lines: Mutex<Bucket>,
    since: Instant,
    port: AtomicU16,
}

/// Where and since when the door is.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) port: u16,
    pub(crate) since: Instant,
    pub(crate) connections: usize,
}

impl Shared {
    pub(crate) fn new(
        options: DoorOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn Core>,
        hub: Arc<Hub>,
    ) -> Result<Self, getrandom::Error> {
        let scripts = Scripts::new(options.scripts.iter().copied(), options.any_script);
        let session = Options {
            limits: options.limits,
            accounts: !options.accounts.is_empty(),
            scripts: Arc::new(scripts),
            plain_replies: options.plain_replies,
            version: REDIS_VERSION.to_owned(),
        };
        let limits = ConnectionLimits {
            connections: options.connections,
            per_address: options.connections_per_address,
            unidentified: options.unauthenticated_connections,
            reserve: 0,
        };
        Ok(Self {
            accounts: Accounts::new(options.accounts.clone()),
            verifier: Verifier::new(options.verifications)?,
            limiter,
            places: Places::new(limits, Arc::default()),
            core,
            hub,
            counts: Counts::default(),
            session: Arc::new(session),
            next: AtomicI64::new(1),
            lines: Mutex::new(Bucket::new(2.0, 20, now())),
            since: now(),
            port: AtomicU16::new(0),
            options,
        })
    }

    /// `local`: our end of the connection, where cluster clients are told to find us if nothing else is configured.
    pub(crate) fn session(&self, local: SocketAddr) -> Session {
        let node = self
            .options
            .announce
            .clone()
            .unwrap_or_else(|| Node { host: local.ip().to_canonical().to_string(), port: local.port() });
        Session::new(self.session.clone(), self.next.fetch_add(1, Relaxed)).at(node)
    }

    pub(crate) fn site(&self) -> Site {
        Site { port: self.port.load(Relaxed), since: self.since, connections: self.options.connections }
    }

    /// Keeps the log readable when strangers knock a thousand times a second.
    pub(crate) fn may_log(&self) -> bool {
        self.lines.lock().take(1, now())
    }
}

/// The door. Its methods must be called inside a tokio runtime.
pub struct Door {
    shared: Arc<Shared>,
    orders: watch::Sender<Option<Instant>>,
    /// Whoever holds a sender lives; nothing is ever sent.
    alive: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
}

impl Door {
    /// A door that does not listen yet.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(
        options: DoorOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn Core>,
        hub: Arc<Hub>,
    ) -> Result<Self, OpenError> {
        let shared = Shared::new(options, limiter, core, hub).map_err(OpenError::Random)?;
        let alive = Mutex::new(Some(mpsc::channel(1)));
        Ok(Self { shared: Arc::new(shared), orders: watch::channel(None).0, alive })
    }

    /// Listens on an address, which may be one of several; says which it is in the end.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn listen(&self, address: SocketAddr) -> Result<SocketAddr, ListenError> {
        let failed = |reason| ListenError { address, reason };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        // `INFO` has room for one.
        let _ = self.shared.port.compare_exchange(0, address.port(), Relaxed, Relaxed);
        if let Some((alive, _)) = &*self.alive.lock() {
            let acceptor = Acceptor::new("redis", Arc::new(socket), self.shared.places.clone())
                .refuse_with(b"-ERR max number of clients reached\r\n");
            tokio::spawn(accept(self.shared.clone(), acceptor, self.orders.subscribe(), alive.clone()));
        }
        Ok(address)
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> DoorState {
        self.shared.counts.state(&self.shared.places)
    }

    /// Stops listening and reading; what was asked is answered, within the time given, and the connections are closed. The
    /// core must go on working meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        self.orders.send_replace(Some(now() + within));
        let Some((sender, mut all_gone)) = self.alive.lock().take() else { return };
        drop(sender);
        // Connections end by themselves when the time is over; one that is being judged may take a little longer.
        let _ = tokio::time::timeout(within + Duration::from_secs(1), all_gone.recv()).await;
    }
}

async fn accept(
    shared: Arc<Shared>,
    acceptor: Acceptor,
    orders: watch::Receiver<Option<Instant>>,
    alive: mpsc::Sender<()>,
) {
    let mut stop = orders.clone();
    loop {
        let (stream, remote, place) = tokio::select! {
            accepted = acceptor.accept() => accepted,
            _ = stop.wait_for(Option::is_some) => return,
        };
        tokio::spawn(serve(shared.clone(), stream, remote, place, orders.clone(), alive.clone()));
    }
}

async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    remote: SocketAddr,
    place: Place,
    orders: watch::Receiver<Option<Instant>>,
    alive: mpsc::Sender<()>,
) {
    // Where there are no accounts, nobody can say who they are.
    if shared.options.accounts.is_empty() {
        place.identify();
    }
    let place = Arc::new(place);
    // Without a local address the connection is broken already.
    let Ok(local) = stream.local_addr() else { return };
    let connection = Connection::new(shared, remote, local, place.clone());
    tokio::select! {
        () = connection.run(stream, orders) => {}
        () = place.displaced() => {}
    }
    drop(alive);
}

/// The monotonic clock, as the runtime has it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
