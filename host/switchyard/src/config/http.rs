//! `[http]`: TLS mode and limits of the admin listener.

use super::existing_file;
use configuration::Section;
use ports::{ConnectionLimits, HttpLimits, ServerTlsFiles};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Minimum retention of the audit log. A shorter one would allow an admin to erase the traces of their actions.
const MIN_AUDIT_RETENTION: Duration = Duration::from_secs(30 * 86_400);

/// Connections reserved for readiness probes and existing sessions.
pub(super) const RESERVED_CONNECTIONS: usize = 16;

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

/// Reads the limits of an HTTP listener; `reserve` connections are accepted beyond them.
pub(super) fn limits(section: &Section<'_>, defaults: HttpLimits, reserve: usize) -> HttpLimits {
    let known = defaults.connections;
    let connections = section.number("connections", known.connections as u64, 1..=1_000_000) as usize;
    let per_address = known.per_address as u64;
    HttpLimits {
        connections: ConnectionLimits {
            connections,
            per_address: section.number("connections-per-address", per_address, 1..=1_000_000) as usize,
            unidentified: super::unidentified_connections(
                section,
                "unauthenticated-connections",
                connections,
            ),
            reserve,
        },
        head_timeout: section.duration("head-timeout", defaults.head_timeout),
        body_timeout: section.duration("body-timeout", defaults.body_timeout),
    }
}

/// Reads the retention of the audit log.
pub(crate) fn audit_retention(section: &Section<'_>) -> Duration {
    let kept = section.duration("audit-retention", access::DEFAULT_AUDIT_RETENTION);
    if kept < MIN_AUDIT_RETENTION {
        section.invalid("audit-retention", "is too short", "at least \"30d\"");
    }
    kept
}

/// Reads the TLS mode of the admin listener. The default is TLS except on loopback.
pub(crate) fn admin_tls(section: &Section<'_>, base: &Path, listen: SocketAddr) -> HttpTlsMode {
    let unencrypted = section.flag("unencrypted", false);
    if !section.has("tls") {
        return if unencrypted || listen.ip().is_loopback() {
            HttpTlsMode::Plaintext
        } else {
            HttpTlsMode::SelfSigned
        };
    }
    if unencrypted {
        section.error("unencrypted", "is true, but tls is set; remove one of them");
    }
    tls(section, base)
}

/// Reads the key `tls`; without it, there is no TLS.
pub(super) fn tls(section: &Section<'_>, base: &Path) -> HttpTlsMode {
    if !section.has("tls") {
        return HttpTlsMode::Plaintext;
    }
    if section.is_text("tls") {
        section.choice("tls", (), &[("own", ())]);
        return HttpTlsMode::SelfSigned;
    }
    let tls = section.section("tls");
    let certificate = tls.required("certificate", "\"server.pem\"");
    let key = tls.required("key", "\"server.key\"");
    let client_ca = tls.text("client-ca");
    let files = ServerTlsFiles {
        certificate: existing_file(&tls, "certificate", base, &certificate),
        key: existing_file(&tls, "key", base, &key),
        client_ca: client_ca.map(|path| existing_file(&tls, "client-ca", base, &path)),
    };
    tls.finish();
    HttpTlsMode::Files(files)
}
