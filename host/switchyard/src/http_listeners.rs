//! The HTTP listeners of the daemon: identification of callers, and certificates.

use crate::config::{Config, HttpTlsMode};
use anyhow::Result;
use axum::http::HeaderMap;
use ports::{RequestClassifier, ServerCertificate};
use std::net::SocketAddr;
use std::sync::Arc;

/// Callers of the admin API. Readiness probes are answered even if the listener is full.
pub(crate) struct AdminCallers(pub(crate) Arc<admin::Authenticator>);

impl RequestClassifier for AdminCallers {
    fn is_identified(&self, headers: &HeaderMap) -> bool {
        self.0.is_authenticated(headers)
    }

    fn is_always_answered(&self, path: &str) -> bool {
        matches!(path, "/v1/ready" | "/v1/health")
    }
}

/// Callers of the business and callback listeners: business systems, which are identified when the handler has verified
/// their password; and peers that call back, which their plugin checks.
pub(crate) struct BusinessCallers;

impl RequestClassifier for BusinessCallers {
    fn is_identified(&self, _: &HeaderMap) -> bool {
        false
    }

    fn is_always_answered(&self, _: &str) -> bool {
        false
    }
}

/// Callers of a follower: only public probes.
pub(crate) struct PublicProbes;

impl RequestClassifier for PublicProbes {
    fn is_identified(&self, _: &HeaderMap) -> bool {
        false
    }

    fn is_always_answered(&self, path: &str) -> bool {
        matches!(path, "/v1/ready" | "/v1/health")
    }
}

/// The certificate of an HTTP listener, reloaded when its files change. Must be called within a tokio runtime.
pub(crate) fn certificate(
    config: &Config,
    mode: &HttpTlsMode,
    listen: SocketAddr,
) -> Result<Option<Arc<ServerCertificate>>> {
    let files = match mode {
        HttpTlsMode::Plaintext => return Ok(None),
        HttpTlsMode::SelfSigned => {
            ports::self_signed_certificate(&config.appliance.data.join("tls"), listen.ip())?
        }
        HttpTlsMode::Files(files) => files.clone(),
    };
    let certificate = ServerCertificate::read(files)?;
    let watched = certificate.clone();
    tokio::spawn(async move {
        if let Err(error) = watched.watch().await {
            tracing::warn!(%error, "watching the HTTP certificates failed, changed certificates are not reloaded");
        }
    });
    Ok(Some(certificate))
}
