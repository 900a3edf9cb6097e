//! `[http]`: whether the admin's door speaks TLS, and with which certificate.

use super::existing;
use configuration::Section;
use doors::ServerTls;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Shorter, and whoever may change this could soon take what he did out of the log.
const SHORTEST_AUDIT: Duration = Duration::from_secs(30 * 86_400);

/// How the admin's door is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Not at all: who may listen is on the machine anyway, or somebody in front of us does TLS.
    Open,
    /// With a certificate of our own making, in the data directory.
    Own,
    /// With these files.
    Files(ServerTls),
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
