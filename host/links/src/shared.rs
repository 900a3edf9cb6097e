use crate::LinksOptions;
use crate::accounts::Accounts;
use crate::link_record::LinkRecords;
use ports::{ConnectionCounts, EventSink, LinkRegistry, LogLimiter, LoginLimiter, PasswordVerifier, Routing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tokio::sync::mpsc;

/// State that all links share.
pub(crate) struct Shared {
    pub(crate) options: LinksOptions,
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) accounts: Accounts,
    /// The SGIP logins.
    pub(crate) logins: crate::sgip::bind_authenticator::Logins,
    pub(crate) records: LinkRecords,
    pub(crate) limiter: Arc<LoginLimiter>,
    pub(crate) verifier: PasswordVerifier,
    pub(crate) bind_counters: BindCounters,
    /// Connection counters of all listeners.
    pub(crate) connections: Arc<ConnectionCounts>,
    /// New binds are refused.
    pub(crate) refuse_binds: AtomicBool,
    /// Limits the log lines that remote clients can cause.
    pub(crate) log: LogLimiter,
    /// Each task holds a clone; all tasks have ended when the receiver is closed.
    pub(crate) alive: parking_lot::Mutex<Option<mpsc::Sender<()>>>,
}

/// Counters of binds and of handshakes.
#[derive(Debug, Default)]
pub(crate) struct BindCounters {
    pub(crate) binds: AtomicU64,
    pub(crate) binds_refused: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
}

/// Counters of all listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ListenerCounts {
    /// Connections accepted by the sockets.
    pub connections: u64,
    /// Connections closed because of a limit: at once, because their address or the listener had too many, or later,
    /// unbound, because a newer one needed the permit.
    pub turned_away: u64,
    /// Binds accepted.
    pub binds: u64,
    /// Binds refused.
    pub binds_refused: u64,
    /// TLS handshakes that failed.
    pub handshakes_failed: u64,
}
