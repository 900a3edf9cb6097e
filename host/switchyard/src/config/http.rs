//! `[http]`: whether the admin's door speaks TLS, and with which certificate.

use super::existing;
use configuration::Section;
use doors::{ConnectionLimits, HttpLimits, ServerTls};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Shorter, and whoever may change this could soon take what he did out of the log.
const SHORTEST_AUDIT: Duration = Duration::from_secs(30 * 86_400);

/// Places beyond all others, for readiness and for sessions that exist.
pub(super) const RESERVE: usize = 16;

/// How a listener for HTTP is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Not at all: who may listen is on the machine anyway, or somebody in front of us does TLS.
    Open,
    /// With a certificate of our own making, in the data directory.
    Own,
    /// With these files.
    Files(ServerTls),
}

/// The limits of a listener for HTTP; `reserve` is for connections that would be refused.
pub(super) fn limits(section: &Section<'_>, defaults: HttpLimits, reserve: usize) -> HttpLimits {
    let known = defaults.connections;
    let connections = section.number("connections", known.connections as u64, 1..=1_000_000) as usize;
    let per_address = known.per_address as u64;
    HttpLimits {
        connections: ConnectionLimits {
            connections,
            per_address: section.number("connections-per-address", per_address, 1..=1_000_000) as usize,
            unidentified: super::unbound_connections(section, "unauthenticated-connections", connections),
            reserve,
        },
        head_timeout: section.duration("head-timeout", defaults.head_timeout),
        body_timeout: section.duration("body-timeout", defaults.body_timeout),
    }
}

/// How long the audit log goes back.
pub(crate) fn audit_retention(section: &Section<'_>) -> Duration {
    let kept = section.duration("audit-retention", access::AUDIT_KEPT);
    if kept < SHORTEST_AUDIT {
        section.unfit("audit-retention", "is too short", "at least \"30d\"");
    }
    kept
}

/// What is said, or what is usual: TLS everywhere but on loopback.
pub(crate) fn lock(section: &Section<'_>, base: &Path, listen: SocketAddr) -> Lock {
    let unencrypted = section.flag("unencrypted", false);
    if !section.has("tls") {
        return if unencrypted || listen.ip().is_loopback() { Lock::Open } else { Lock::Own };
    }
    if unencrypted {
        section.wrong("unencrypted", "is true, and tls is set; take one of them away");
    }
    tls(section, base)
}

/// What the key `tls` says; nothing is no TLS.
pub(super) fn tls(section: &Section<'_>, base: &Path) -> Lock {
    if !section.has("tls") {
        return Lock::Open;
    }
    if section.is_text("tls") {
        section.choice("tls", (), &[("own", ())]);
        return Lock::Own;
    }
    let tls = section.section("tls");
    let certificate = tls.required("certificate", "\"server.pem\"");
    let key = tls.required("key", "\"server.key\"");
    let client_ca = tls.text("client-ca");
    let files = ServerTls {
        certificate: existing(&tls, "certificate", base, &certificate),
        key: existing(&tls, "key", base, &key),
        client_ca: client_ca.map(|path| existing(&tls, "client-ca", base, &path)),
    };
    tls.finish();
    Lock::Files(files)
}
