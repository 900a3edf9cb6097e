use ports::ConnectionLimiter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the Redis server.
#[derive(Debug, Default)]
pub(crate) struct RedisCounters {
    pub(crate) requests: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) wrong_passwords: AtomicU64,
}

/// State of the Redis server. Counters begin at the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedisServerState {
    /// Open connections.
    pub open: usize,
    /// Accepted connections.
    pub connections: u64,
    /// Connections that were turned away: over a limit, or displaced before login.
    pub turned_away: u64,
    /// Requests about pools.
    pub requests: u64,
    /// Requests denied for lack of permission.
    pub denied: u64,
    /// Failed logins.
    pub wrong_passwords: u64,
}

impl RedisCounters {
    pub(crate) fn state(&self, connection_limiter: &ConnectionLimiter) -> RedisServerState {
        RedisServerState {
            open: connection_limiter.open(),
            connections: connection_limiter.counts().accepted.load(Relaxed),
            turned_away: connection_limiter.counts().turned_away(),
            requests: self.requests.load(Relaxed),
            denied: self.denied.load(Relaxed),
            wrong_passwords: self.wrong_passwords.load(Relaxed),
        }
    }
}
