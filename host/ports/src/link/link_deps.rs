use super::LinkState;
use super::link_record::LinkRecords;
use crate::{ConnectionCounts, EventSink, LinkRegistry, LogLimiter, Routing};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;

/// The limits of every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Maximum time that output waits for a peer that does not read. Then the link is closed.
    pub write_timeout: Duration,
    /// Octets that may wait to be written to one peer before nothing more is read from it; at four times this the
    /// link is closed.
    pub output_limit: usize,
    /// Time that a closing link waits for commands of the engine.
    pub close_timeout: Duration,
}

/// Counters of logins and of handshakes.
#[derive(Debug, Default)]
pub(crate) struct LoginCounts {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
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

/// Dependencies that the links of all protocols share.
pub struct LinkDeps {
    /// The way to the engine.
    pub core: Arc<dyn EventSink>,
    /// The routing question.
    pub routing: Arc<dyn Routing>,
    /// The registry of live links.
    pub registry: Arc<LinkRegistry>,
    /// Limits the log lines that remote clients can cause.
    pub log: LogLimiter,
    pub(crate) limits: LinkLimits,
    pub(crate) records: Arc<LinkRecords>,
    pub(crate) logins: LoginCounts,
    /// Connection counters of all listeners.
    pub(crate) connections: Arc<ConnectionCounts>,
    refuses_logins: AtomicBool,
    /// Each task holds a clone; all tasks have ended when the receiver is closed.
    alive: Mutex<Option<mpsc::Sender<()>>>,
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl LinkDeps {
    /// Creates what links share, without links.
    #[must_use]
    pub fn new(
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
        registry: Arc<LinkRegistry>,
        limits: LinkLimits,
    ) -> Arc<Self> {
        let (alive, ended) = mpsc::channel(1);
        Arc::new(Self {
            core,
            routing,
            registry,
            log: LogLimiter::default(),
            limits,
            records: Arc::default(),
            logins: LoginCounts::default(),
            connections: Arc::default(),
            refuses_logins: AtomicBool::new(false),
            alive: Mutex::new(Some(alive)),
            ended: tokio::sync::Mutex::new(ended),
        })
    }

    /// See [`LinkLimits::output_limit`].
    #[must_use]
    pub fn output_limit(&self) -> usize {
        self.limits.output_limit
    }

    /// Whether no new task may start.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.alive.lock().is_none()
    }

    /// Starts the task of a link or listener, unless the links shut down.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(alive) = self.alive.lock().clone() else { return };
        tokio::spawn(async move {
            task.await;
            drop(alive);
        });
    }

    /// Starts no more tasks.
    pub fn shut_down(&self) {
        self.alive.lock().take();
    }

    /// Waits until all tasks have ended, after [`LinkDeps::shut_down`]. Returns whether they did so within `timeout`.
    pub async fn wait_for_tasks(&self, timeout: Duration) -> bool {
        let mut ended = self.ended.lock().await;
        // Links close at their deadline at the latest; their last events to the engine take a moment more.
        tokio::time::timeout(timeout + self.limits.close_timeout, ended.recv()).await.is_ok()
    }

    /// Refuses new logins, or accepts them again. Existing sessions stay, and peers are still dialed.
    pub fn refuse_logins(&self, refuse: bool) {
        self.refuses_logins.store(refuse, Relaxed);
    }

    /// Whether new logins are refused.
    #[must_use]
    pub fn refuses_logins(&self) -> bool {
        self.refuses_logins.load(Relaxed)
    }

    /// Dials a peer at once if it waits to be dialed again. Returns whether there is one that is dialed.
    #[must_use]
    pub fn dial_now(&self, name: &str) -> bool {
        self.records.dial_now(name)
    }

    /// Returns every link: bound links of accounts, and links of peers in any phase.
    #[must_use]
    pub fn states(&self) -> Vec<LinkState> {
        self.records.snapshot()
    }

    /// The counters of all listeners.
    #[must_use]
    pub fn listener_counts(&self) -> ListenerCounts {
        ListenerCounts {
            connections: self.connections.accepted.load(Relaxed),
            turned_away: self.connections.turned_away(),
            binds: self.logins.accepted.load(Relaxed),
            binds_refused: self.logins.refused.load(Relaxed),
            handshakes_failed: self.logins.handshakes_failed.load(Relaxed),
        }
    }
}
