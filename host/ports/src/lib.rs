//! The shared parts of every protocol front end: an SMPP or SGIP link, an HTTP listener for business systems, a push to a
//! URL, a Redis listener.
//!
//! * To the engine: [`EventSink`], and [`Routing`] for the routing question.
//! * From the engine: [`LinkRegistry`] for links, each with a [`LinkHandle`], [`EngineClient`] for request and answer, [`PoolFeed`] for watchers of
//!   number pools.
//! * Texts and their codings: [`text`].
//! * Limits: connections ([`ConnectionLimiter`], [`Acceptor`]), passwords ([`PasswordVerifier`], [`LoginLimiter`]), rates
//!   ([`RateLimiter`]), addresses ([`IpNetwork`], [`SourceRules`]), log lines ([`LogLimiter`]).
//! * Accounts over all protocols: [`AccountRegistry`]. Refused submissions: [`RefusalLog`].
//! * Links: [`link`], with the driver of every protocol on sockets.
//! * To the other partitions of a cluster: [`PassOn`].
//!
//! A front end knows nothing of queues, and nothing of the other front ends.
#![forbid(unsafe_code)]

mod acceptor;
mod account_registry;
mod address_group;
pub mod clock;
mod connection_limiter;
mod descriptors;
mod drained_body;
mod engine_client;
mod event_sink;
mod http_listener;
mod ip_network;
pub mod link;
mod link_registry;
mod log_limiter;
mod login_limiter;
mod pass_on;
mod password_verifier;
mod pool_feed;
mod protocol;
mod rate_limiter;
mod refusal_log;
mod routing;
mod server_certificate;
mod source_rules;
pub mod text;
mod tls_files;
mod tlv_rules;

pub use acceptor::Acceptor;
pub use account_registry::{
    AccountLimits, AccountRegistry, LoginAccount, LoginAttempt, LoginRefused, LoginSecret, SessionPermit,
    SessionRequest, TenantRate,
};
pub use address_group::AddressGroup;
pub use connection_limiter::{
    ConnectionCounts, ConnectionLimitReached, ConnectionLimiter, ConnectionLimits, ConnectionPermit,
};
pub use descriptors::{descriptor_share, raise_descriptor_limit};
pub use drained_body::DrainedBody;
pub use engine_client::{EngineClient, EngineTimeout};
pub use event_sink::EventSink;
pub use http_listener::{HttpLimits, HttpListener, HttpListenerLimits, RequestClassifier, upgrade};
pub use ip_network::{IpNetwork, ParseIpNetworkError};
pub use link::{LinkHandle, PassedStream, Socket};
pub(crate) use link_registry::LinkCommands;
pub use link_registry::{LinkCommand, LinkRegistry};
pub use log_limiter::LogLimiter;
pub use login_limiter::{LoginBlocked, LoginInterface, LoginLimiter, LoginLimits};
pub use pass_on::{
    FirstRequest, PassOn, PassedApi, PassedConnection, PassedInterface, PassedOnMarker, Passing, splice,
};
pub use password_verifier::{
    PasswordError, PasswordHashKey, PasswordVerifier, check_password_hash, hash_password,
};
pub use pool_feed::{PoolFeed, PoolFeedUpdate};
pub use protocol::Protocol;
pub use rate_limiter::{RateLimiter, default_burst};
pub use refusal_log::{MAX_REFUSALS_PER_ACCOUNT, RefusalLog, RefusalRecord};
pub use routing::Routing;
pub use server_certificate::{ServerCertificate, ServerCertificateError, self_signed_certificate};
pub use source_rules::{SourceKeys, SourceRules, matches_wildcard};
pub use tls_files::{
    ServerTlsFiles, TlsFileError, crypto_provider, read_certificates, read_private_key,
    read_root_certificates,
};
pub use tlv_rules::{TlvKeys, TlvRules};
