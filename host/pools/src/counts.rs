use doors::Places;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the door counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) wrong_passwords: AtomicU64,
}

/// How the door stands. Counters begin at the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoorState {
    /// Connections that are open.
    pub open: usize,
    /// Connections that came in.
    pub connections: u64,
    /// Connections that were one too many: refused, or displaced before they had logged in.
    pub turned_away: u64,
    /// Requests about pools.
    pub requests: u64,
    /// Requests that the account may not make.
    pub denied: u64,
    /// Wrong names and passwords.
    pub wrong_passwords: u64,
}

impl Counts {
    pub(crate) fn state(&self, places: &Places) -> DoorState {
        DoorState {
            open: places.open(),
            connections: places.counts().accepted.load(Relaxed),
            turned_away: places.counts().turned_away(),
            requests: self.requests.load(Relaxed),
            denied: self.denied.load(Relaxed),
            wrong_passwords: self.wrong_passwords.load(Relaxed),
        }
    }
}
