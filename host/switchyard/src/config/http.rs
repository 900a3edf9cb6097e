//! `[http]` and `[business]`: HTTP listeners.

use business::BusinessOptions;
use configuration::{KeyValue, Keys, Section, Shape};
use ports::{ConnectionLimits, HttpLimits, ServerTlsFiles};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Minimum retention of the audit log. A shorter one would allow an admin to erase the traces of their actions.
const MIN_AUDIT_RETENTION: Duration = Duration::from_secs(30 * 86_400);

/// Connections reserved for readiness probes and existing sessions.
const RESERVED_CONNECTIONS: usize = 16;

/// The TLS mode of an HTTP listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HttpTlsMode {
    /// No TLS: the listener is on loopback, or a proxy terminates TLS.
    Plaintext,
    /// TLS with a self-signed certificate, stored in the data directory.
    SelfSigned,
    /// TLS with these certificate files.
    Files(ServerTlsFiles),
}

const SELF_SIGNED: &[(&str, HttpTlsMode, &str)] =
    &[("own", HttpTlsMode::SelfSigned, "A self-signed certificate, generated at the first start.")];

impl KeyValue for HttpTlsMode {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        if !section.is_text(key) {
            return <ServerTlsFiles as KeyValue>::read(section, key).map(Self::Files);
        }
        let own = |text: &str| SELF_SIGNED.iter().find(|(word, ..)| *word == text).map(|one| one.1.clone());
        section.parsed(key, own, "one of: own")
    }

    fn shape() -> Shape {
        let own = Shape::Words(SELF_SIGNED.iter().map(|(word, _, doc)| (*word, *doc)).collect());
        Shape::Either(Box::new(own), Box::new(ServerTlsFiles::shape()))
    }

    fn empty() -> Self {
        Self::Plaintext
    }
}

/// The timeouts of an HTTP listener.
#[derive(Debug, Clone, Copy, Keys)]
struct RequestTimeouts {
    /// Maximum time for a request head and for an idle connection.
    #[key(default = "30s")]
    head_timeout: Duration,
    /// Maximum time for a request body, in addition to 1 s per KiB.
    #[key(default = "30s")]
    body_timeout: Duration,
}

impl RequestTimeouts {
    fn limits(self, connections: ConnectionLimits) -> HttpLimits {
        HttpLimits { connections, head_timeout: self.head_timeout, body_timeout: self.body_timeout }
    }
}

/// `[http]`: the admin API and console.
#[derive(Debug, Clone, Keys)]
#[keys(live = "applies to new connections", check = Self::check)]
pub(crate) struct HttpKeys {
    /// The address and port to listen on.
    #[key(default = "127.0.0.1:8080", restart = "the request for the change arrives at this listener")]
    pub(crate) listen: SocketAddr,
    /// TLS: `own` for a self-signed certificate, or certificate files.
    #[key(default_as = "`own`, except on loopback addresses", restart = "it belongs to the listener")]
    tls: Option<HttpTlsMode>,
    /// Permits plain HTTP on an address that is not loopback.
    #[key(default = false, restart = "it belongs to the listener")]
    unencrypted: bool,
    /// The file of the root token, which is generated at the first start.
    #[key(default_as = "`token` in the data directory", restart = "the token is read at the start")]
    pub(crate) token_file: Option<PathBuf>,
    /// Maximum number of connections.
    #[key(range = 1..=1_000_000, default = 1000)]
    pub(crate) connections: usize,
    /// Maximum number of connections per IP address (IPv6: per /64 network).
    #[key(range = 1..=1_000_000, default = 200)]
    pub(crate) connections_per_address: usize,
    /// Maximum number of unauthenticated connections; a new one replaces the oldest.
    #[key(range = 1..=1_000_000, at_most = connections, default_as = "a quarter of `connections`",
        default_with = ConnectionLimits::default_unidentified(connections))]
    pub(crate) unauthenticated_connections: usize,
    #[key(flatten)]
    timeouts: RequestTimeouts,
    /// Retention of audit log entries, at least 30d.
    #[key(default = "400d", live = "takes effect at once")]
    pub(crate) audit_retention: Duration,
}

impl HttpKeys {
    fn check(&mut self, section: &Section<'_>) {
        if self.unencrypted && self.tls.is_some() {
            section.error("unencrypted", "is true, but tls is set; remove one of them");
        }
        if self.audit_retention < MIN_AUDIT_RETENTION {
            section.invalid("audit-retention", "is too short", "at least \"30d\"");
        }
    }

    /// The TLS mode. The default is TLS except on loopback.
    pub(crate) fn tls(&self) -> HttpTlsMode {
        match &self.tls {
            Some(tls) => tls.clone(),
            None if self.unencrypted || self.listen.ip().is_loopback() => HttpTlsMode::Plaintext,
            None => HttpTlsMode::SelfSigned,
        }
    }

    /// Limits of connections. Some connections are accepted beyond them, see [`RESERVED_CONNECTIONS`].
    pub(crate) fn limits(&self) -> HttpLimits {
        self.timeouts.limits(ConnectionLimits {
            connections: self.connections,
            per_address: self.connections_per_address,
            unidentified: self.unauthenticated_connections,
            reserve: RESERVED_CONNECTIONS,
        })
    }
}

/// `[business]`: the listener for business systems.
#[derive(Debug, Clone, Keys)]
#[keys(live = "applies to new connections")]
pub(crate) struct BusinessListener {
    /// The address and port to listen on.
    #[key(example = "127.0.0.1:8081", restart = "the listener is opened at the start")]
    pub(crate) listen: SocketAddr,
    /// TLS: `own` for a self-signed certificate, or certificate files.
    #[key(default_as = "no TLS", restart = "it belongs to the listener")]
    pub(crate) tls: HttpTlsMode,
    /// Maximum number of connections.
    #[key(range = 1..=1_000_000, default = 2000)]
    pub(crate) connections: usize,
    /// Maximum number of connections per IP address (IPv6: per /64 network).
    #[key(range = 1..=1_000_000, default = 500)]
    pub(crate) connections_per_address: usize,
    /// Maximum number of unauthenticated connections; a new one replaces the oldest.
    #[key(range = 1..=1_000_000, at_most = connections, default_as = "a quarter of `connections`",
        default_with = ConnectionLimits::default_unidentified(connections))]
    pub(crate) unauthenticated_connections: usize,
    #[key(flatten)]
    timeouts: RequestTimeouts,
    #[key(flatten)]
    pub(crate) options: BusinessOptions,
}

/// `[peer-callbacks]`: the listener for callbacks of `[[plugin-peer]]`.
#[derive(Debug, Clone, Keys)]
#[keys(live = "applies to new connections")]
pub(crate) struct CallbackListener {
    /// The address and port to listen on.
    #[key(example = "127.0.0.1:8082", restart = "the listener is opened at the start")]
    pub(crate) listen: SocketAddr,
    /// TLS: `own` for a self-signed certificate, or certificate files.
    #[key(default_as = "no TLS", restart = "it belongs to the listener")]
    pub(crate) tls: HttpTlsMode,
    /// Maximum number of connections.
    #[key(range = 1..=1_000_000, default = 1000)]
    pub(crate) connections: usize,
    /// Maximum number of connections per IP address (IPv6: per /64 network).
    #[key(range = 1..=1_000_000, default = 200)]
    pub(crate) connections_per_address: usize,
    #[key(flatten)]
    timeouts: RequestTimeouts,
}

impl CallbackListener {
    /// Limits of connections. A caller is not identified before its plugin has checked it.
    pub(crate) fn limits(&self) -> HttpLimits {
        self.timeouts.limits(ConnectionLimits {
            connections: self.connections,
            per_address: self.connections_per_address,
            unidentified: self.connections,
            reserve: 0,
        })
    }
}

impl BusinessListener {
    /// Limits of connections.
    pub(crate) fn limits(&self) -> HttpLimits {
        self.timeouts.limits(ConnectionLimits {
            connections: self.connections,
            per_address: self.connections_per_address,
            unidentified: self.unauthenticated_connections,
            reserve: 0,
        })
    }
}
