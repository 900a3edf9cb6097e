//! State shared by all connections of the Redis server.

use crate::accounts::Accounts;
use crate::counts::RedisCounters;
use crate::redis_options::{AcceptedScripts, RedisOptions};
use parking_lot::Mutex;
use ports::{
    ConnectionLimiter, ConnectionLimits, EventSink, LinkRegistry, PasswordVerifier, RateLimiter, clock,
};
use resp::{ClusterNode, RespOptions, Scripts, Session};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, Ordering::Relaxed};
use std::time::Instant;

/// The Redis version reported to clients, which select their commands by it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) settings: Mutex<Arc<RedisSettings>>,
    pub(crate) verifier: PasswordVerifier,
    pub(crate) connection_limiter: Arc<ConnectionLimiter>,
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) counts: RedisCounters,
    next_connection_id: AtomicI64,
    log_limiter: Mutex<RateLimiter>,
    started_at: Instant,
    pub(crate) port: AtomicU16,
}

/// The options, and values derived from them. A connection keeps the settings with which it was opened.
pub(crate) struct RedisSettings {
    pub(crate) options: RedisOptions,
    pub(crate) accounts: Accounts,
    session: Arc<RespOptions>,
}

impl RedisSettings {
    pub(crate) fn new(options: RedisOptions) -> Self {
        let scripts = match &options.scripts {
            AcceptedScripts::Listed(sums) => Scripts::new(sums.iter().copied(), false),
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

    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
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
            counts: RedisCounters::default(),
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
