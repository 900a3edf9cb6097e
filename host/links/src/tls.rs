use crate::ClientTls;
use ports::{
    ServerTlsFiles, TlsFileError, crypto_provider, read_certificates, read_private_key,
    read_root_certificates,
};
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls_pki_types::ServerName;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

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

/// Reads the TLS files of a listener.
pub(crate) fn acceptor(options: &ServerTlsFiles) -> Result<TlsAcceptor, TlsError> {
    Ok(TlsAcceptor::from(Arc::new(options.read()?)))
}

/// Reads the TLS files of a peer. `host` is the host of its address.
pub(crate) fn connector(
    options: &ClientTls,
    host: &str,
) -> Result<(TlsConnector, ServerName<'static>), TlsError> {
    let path = options.ca.clone().unwrap_or_else(|| PathBuf::from(SYSTEM_AUTHORITIES));
    let wrong = |reason| TlsFileError::Certificate { path: path.clone(), reason };
    let verifier =
        WebPkiServerVerifier::builder_with_provider(read_root_certificates(&path)?, crypto_provider())
            .build()
            .map_err(|reason| TlsFileError::Authorities { path: path.clone(), reason })?;
    let builder = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_webpki_verifier(verifier);
    let config = match (&options.certificate, &options.key) {
        (Some(chain), Some(private)) => builder
            .with_client_auth_cert(read_certificates(chain)?, read_private_key(private)?)
            .map_err(|reason| TlsFileError::Certificate { path: chain.clone(), reason })?,
        _ => builder.with_no_client_auth(),
    };
    let name = options.server_name.clone().unwrap_or_else(|| host.to_owned());
    let server = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name))?;
    Ok((TlsConnector::from(Arc::new(config)), server))
}

impl ClientTls {
    /// Checks that the files exist and can be used for a peer on `host`.
    ///
    /// # Errors
    /// The first error found.
    pub fn check(&self, host: &str) -> Result<(), TlsError> {
        connector(self, host).map(drop)
    }
}
