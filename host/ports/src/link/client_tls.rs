use crate::{TlsFileError, crypto_provider, read_certificates, read_private_key, read_root_certificates};
use configuration::{Keys, Section};
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls_pki_types::ServerName;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The root certificates that the system trusts, on Debian and its relatives.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// TLS cannot be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// The name to verify is neither a host name nor an address.
    #[error("{0:?} is not a name that a certificate can carry; set tls.server-name")]
    Name(String),
}

/// TLS options of a peer.
#[derive(Clone, Debug, PartialEq, Default, Keys)]
#[keys(check = Self::check_pair)]
pub struct ClientTls {
    /// Certificate authorities of the peer, PEM.
    #[key(existing, default_as = "those of the system")]
    pub ca: Option<PathBuf>,
    /// The name in the peer's certificate.
    #[key(default_as = "the host of `address`")]
    pub server_name: Option<String>,
    /// The client certificate chain, PEM; needs `key`.
    #[key(existing)]
    pub certificate: Option<PathBuf>,
    /// The private key of the client certificate, PEM.
    #[key(existing)]
    pub key: Option<PathBuf>,
}

impl ClientTls {
    /// Reads the files for a peer on `host`.
    ///
    /// # Errors
    /// The first error found.
    pub fn connector(&self, host: &str) -> Result<(TlsConnector, ServerName<'static>), TlsError> {
        let path = self.ca.clone().unwrap_or_else(|| PathBuf::from(SYSTEM_AUTHORITIES));
        let wrong = |reason| TlsFileError::Certificate { path: path.clone(), reason };
        let verifier =
            WebPkiServerVerifier::builder_with_provider(read_root_certificates(&path)?, crypto_provider())
                .build()
                .map_err(|reason| TlsFileError::Authorities { path: path.clone(), reason })?;
        let builder = ClientConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_webpki_verifier(verifier);
        let config = match (&self.certificate, &self.key) {
            (Some(chain), Some(private)) => builder
                .with_client_auth_cert(read_certificates(chain)?, read_private_key(private)?)
                .map_err(|reason| TlsFileError::Certificate { path: chain.clone(), reason })?,
            _ => builder.with_no_client_auth(),
        };
        let name = self.server_name.clone().unwrap_or_else(|| host.to_owned());
        let server = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name))?;
        Ok((TlsConnector::from(Arc::new(config)), server))
    }

    /// Checks that the files exist and can be used for a peer on `host`.
    ///
    /// # Errors
    /// The first error found.
    pub fn check(&self, host: &str) -> Result<(), TlsError> {
        self.connector(host).map(drop)
    }

    fn check_pair(&mut self, section: &Section<'_>) {
        if self.certificate.is_some() != self.key.is_some() {
            section.error("certificate", "and key go together");
        }
    }
}
