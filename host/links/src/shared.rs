use crate::LinksOptions;
use crate::accounts::Accounts;
use crate::lines::Lines;
use crate::state::Records;
use doors::{ConnectionCounts, Core, Hub, LoginLimiter, Routing, Verifier};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tokio::sync::mpsc;

/// What all links of the appliance share.
pub(crate) struct Shared {
    pub(crate) options: LinksOptions,
    pub(crate) core: Arc<dyn Core>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) accounts: Accounts,
    /// SGIP's logins.
    pub(crate) logins: crate::sgip::listen::Logins,
    pub(crate) records: Records,
    pub(crate) limiter: Arc<LoginLimiter>,
    pub(crate) verifier: Verifier,
    pub(crate) doors: Doors,
    /// Counts of all listeners' connections.
    pub(crate) connections: Arc<ConnectionCounts>,
    /// Nobody new is let in.
    pub(crate) full: AtomicBool,
    /// Bounds what strangers can write into the log.
    pub(crate) lines: Lines,
    /// Held by every task; all of them have ended when the other end says so.
    pub(crate) alive: parking_lot::Mutex<Option<mpsc::Sender<()>>>,
}

/// Counts of what happened before anybody was bound.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    pub(crate) binds: AtomicU64,
    pub(crate) binds_refused: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
}

/// Counts of what happened at the listeners before anybody was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DoorCounts {
    /// Connections that came in.
    pub connections: u64,
    /// Connections that were closed at once, because their address or the listener had too many, or later, unbound, because
    /// a newer one needed the place.
    pub turned_away: u64,
    /// Binds accepted.
    pub binds: u64,
    /// Binds refused.
    pub binds_refused: u64,
    /// TLS handshakes that failed.
    pub handshakes_failed: u64,
}
