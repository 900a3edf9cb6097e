use crate::{ClientTls, ServerTls};
use rustls::client::WebPkiServerVerifier;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where Debian and its like keep the authorities that the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// TLS cannot be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it should be.
    #[error("{path}: cannot read {what} in PEM form: {reason}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        reason: rustls_pki_types::pem::Error,
    },
    /// A file holds nothing of the kind.
    #[error("{path}: holds no {what}", path = path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The certificate and the key do not go together, or are of a kind that is not supported.
    #[error("{path}: {reason}", path = path.display())]
    Certificate {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong.
        reason: rustls::Error,
    },
    /// The authorities cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: rustls::server::VerifierBuilderError,
    },
    /// The name to verify is no host name and no address.
    #[error("{0:?} is not a name that a certificate can carry; set tls.server-name")]
    Name(String),
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let what = "certificates";
    let file = |reason| TlsError::File { path: path.to_owned(), what, reason };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if found.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned(), what });
    }
    Ok(found)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|reason| TlsError::File {
        path: path.to_owned(),
        what: "a private key",
        reason,
    })
}

fn authorities(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        // A bundle may hold authorities of kinds that nobody uses any more; one bad one does not spoil the rest.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned(), what: "usable authorities" });
    }
    Ok(Arc::new(roots))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Reads the files of a listener.
pub(crate) fn acceptor(options: &ServerTls) -> Result<TlsAcceptor, TlsError> {
    let wrong = |reason| TlsError::Certificate { path: options.certificate.clone(), reason };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = match &options.client_ca {
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities(path)?, provider())
                .build()
                .map_err(|reason| TlsError::Authorities { path: path.clone(), reason })?;
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let config =
        builder.with_single_cert(certificates(&options.certificate)?, key(&options.key)?).map_err(wrong)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Reads the files of a peer. `host` is the host of its address.
pub(crate) fn connector(
    options: &ClientTls,
    host: &str,
) -> Result<(TlsConnector, ServerName<'static>), TlsError> {
    let path = options.ca.clone().unwrap_or_else(|| PathBuf::from(SYSTEM_AUTHORITIES));
    let wrong = |reason| TlsError::Certificate { path: path.clone(), reason };
    let verifier = WebPkiServerVerifier::builder_with_provider(authorities(&path)?, provider())
        .build()
        .map_err(|reason| TlsError::Authorities { path: path.clone(), reason })?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_webpki_verifier(verifier);
    let config = match &options.certificate {
        Some((chain, private)) => builder
            .with_client_auth_cert(certificates(chain)?, key(private)?)
            .map_err(|reason| TlsError::Certificate { path: chain.clone(), reason })?,
        None => builder.with_no_client_auth(),
    };
    let name = options.server_name.clone().unwrap_or_else(|| host.to_owned());
    let server = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name))?;
    Ok((TlsConnector::from(Arc::new(config)), server))
}

impl ServerTls {
    /// Whether the files are there and can be used.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), TlsError> {
        acceptor(self).map(drop)
    }
}

impl ClientTls {
    /// Whether the files are there and can be used for a peer on `host`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self, host: &str) -> Result<(), TlsError> {
        connector(self, host).map(drop)
    }
}
