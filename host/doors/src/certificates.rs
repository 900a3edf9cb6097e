//! Certificates, keys and authorities, as doors and peers have them in files.

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// A file cannot be read, or is not what it should be.
    #[error("{path}: cannot read {what} in PEM form: {reason}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong, without a word of the file: it may be another file that was named by mistake.
        reason: String,
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
}

/// The files of a door that is locked by TLS, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificate chain, ours first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities whose client certificates are demanded; no client certificate is asked for without it.
    pub client_ca: Option<PathBuf>,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or do not go together.
    pub fn read(&self) -> Result<ServerConfig, TlsFileError> {
        let wrong = |reason| TlsFileError::Certificate { path: self.certificate.clone(), reason };
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let builder = match &self.client_ca {
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities(path)?, provider())
                    .build()
                    .map_err(|reason| TlsFileError::Authorities { path: path.clone(), reason })?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        builder.with_single_cert(certificates(&self.certificate)?, private_key(&self.key)?).map_err(wrong)
    }
}

/// What is wrong with a PEM file. The library's own words quote lines of it.
fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it holds none".to_owned(),
        pem::Error::MissingSectionEnd { .. } => "an END line is missing".to_owned(),
        pem::Error::Base64Decode(_) => "the text between BEGIN and END is no base64".to_owned(),
        _ => "it is not well formed".to_owned(),
    }
}

/// The certificates of a file, one at least.
///
/// # Errors
/// When it cannot be read, or holds none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let what = "certificates";
    let file = |error| TlsFileError::File { path: path.to_owned(), what, reason: reason(&error) };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if found.is_empty() {
        return Err(TlsFileError::Empty { path: path.to_owned(), what });
    }
    Ok(found)
}

/// The private key of a file.
///
/// # Errors
/// When it cannot be read, or holds none.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsFileError::File {
        path: path.to_owned(),
        what: "a private key",
        reason: reason(&error),
    })
}

/// The authorities of a file, one at least that can be used.
///
/// # Errors
/// When it cannot be read, or holds none.
pub fn authorities(path: &Path) -> Result<Arc<RootCertStore>, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        // A bundle may hold authorities of kinds that nobody uses any more; one bad one does not spoil the rest.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(TlsFileError::Empty { path: path.to_owned(), what: "usable authorities" });
    }
    Ok(Arc::new(roots))
}

/// What does the arithmetic of TLS.
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
