//! TLS files: certificates, keys and root certificates of listeners and peers.

use configuration::Keys;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A TLS file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// A file cannot be read, or has another content than expected.
    #[error("{path}: cannot read {what} in PEM form: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The cause. It quotes nothing of the file: the configuration may name another file by mistake.
        reason: String,
    },
    /// A file has no item of the expected kind.
    #[error("{path}: holds no {what}", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
    },
    /// The certificate and the key do not match, or are of an unsupported kind.
    #[error("{path}: {reason}", path = path.display())]
    Certificate {
        /// The certificate's file.
        path: PathBuf,
        /// The cause.
        reason: rustls::Error,
    },
    /// The root certificates cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: rustls::server::VerifierBuilderError,
    },
}

/// The TLS files of a listener, PEM.
#[derive(Clone, Debug, PartialEq, Eq, Keys)]
pub struct ServerTlsFiles {
    /// The certificate chain, leaf first.
    #[key(existing, example = "server.pem")]
    pub certificate: PathBuf,
    /// The private key.
    #[key(existing, example = "server.key")]
    pub key: PathBuf,
    /// Certificate authorities of client certificates, which are then mandatory.
    #[key(existing)]
    pub client_ca: Option<PathBuf>,
}

impl ServerTlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If the files cannot be read, or certificate and key do not match.
    pub fn read(&self) -> Result<ServerConfig, TlsFileError> {
        let wrong = |reason| TlsFileError::Certificate { path: self.certificate.clone(), reason };
        let builder = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let builder = match &self.client_ca {
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    read_root_certificates(path)?,
                    crypto_provider(),
                )
                .build()
                .map_err(|reason| TlsFileError::Authorities { path: path.clone(), reason })?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        builder
            .with_single_cert(read_certificates(&self.certificate)?, read_private_key(&self.key)?)
            .map_err(wrong)
    }
}

/// The cause of a PEM error. The library's own text quotes lines of the file.
fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it holds none".to_owned(),
        pem::Error::MissingSectionEnd { .. } => "an END line is missing".to_owned(),
        pem::Error::Base64Decode(_) => "the text between BEGIN and END is no base64".to_owned(),
        _ => "it is not well formed".to_owned(),
    }
}

/// Reads the certificates of a file, at least one.
///
/// # Errors
/// If the file cannot be read, or has no certificate.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let what = "certificates";
    let file = |error| TlsFileError::File { path: path.to_owned(), what, reason: reason(&error) };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if found.is_empty() {
        return Err(TlsFileError::Empty { path: path.to_owned(), what });
    }
    Ok(found)
}

/// Reads the private key of a file.
///
/// # Errors
/// If the file cannot be read, or has no key.
pub fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsFileError::File {
        path: path.to_owned(),
        what: "a private key",
        reason: reason(&error),
    })
}

/// Reads the root certificates of a file, at least one that can be used.
///
/// # Errors
/// If the file cannot be read, or has no usable certificate.
pub fn read_root_certificates(path: &Path) -> Result<Arc<RootCertStore>, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        // A bundle may hold certificates of obsolete kinds; one of them does not make the others useless.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(TlsFileError::Empty { path: path.to_owned(), what: "usable certificates" });
    }
    Ok(Arc::new(roots))
}

/// The cryptography provider of all TLS connections.
pub fn crypto_provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
