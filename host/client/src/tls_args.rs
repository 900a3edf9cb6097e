//! TLS arguments: trusted authorities and the client's own certificate.

use crate::contexts::ContextSettings;
use crate::error::ClientError;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The trusted authorities of Debian-based systems.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// TLS arguments of commands.
#[derive(Debug, Clone, Args)]
pub(crate) struct TlsArgs {
    /// PEM file with the appliance's certificate or its authority. Default: SWITCHYARD_CA, or the authorities that the system
    /// trusts. A self-signed certificate is tls/certificate.pem in the appliance's data folder.
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file with a client certificate and its key, for an appliance that requires one. Default:
    /// SWITCHYARD_CLIENT_CERTIFICATE.
    #[arg(long, global = true, value_name = "FILE")]
    client_certificate: Option<PathBuf>,
}

fn read_pem(path: &Path) -> Result<Vec<PemItem<'static>>, ClientError> {
    let wrong = |why: String| ClientError::Certificate { path: path.to_owned(), why };
    let octets = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let read: Result<Vec<_>, _> = parse_pem(&octets).collect();
    read.map_err(|error| wrong(error.to_string()))
}

fn read_certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let certificates = read_pem(path)?.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() {
        return Err(ClientError::Certificate {
            path: path.to_owned(),
            why: "contains no certificate".to_owned(),
        });
    }
    Ok(certificates)
}

/// The certificate authorities of a PEM file; without a file, the authorities that the system trusts.
///
/// # Errors
/// [`ClientError::Certificate`] if the file cannot be read or has no certificate.
pub fn root_certificates(ca: Option<&Path>) -> Result<RootCerts, ClientError> {
    let system = Path::new(SYSTEM_AUTHORITIES);
    match ca.or_else(|| system.exists().then_some(system)) {
        Some(path) => Ok(RootCerts::Specific(Arc::new(read_certificates(path)?))),
        None => Ok(RootCerts::WebPki),
    }
}

impl TlsArgs {
    /// The files: the authority, and the client certificate.
    pub(crate) fn paths(self) -> (Option<PathBuf>, Option<PathBuf>) {
        (self.ca, self.client_certificate)
    }

    /// The TLS configuration for a URL; `None` without HTTPS. Files that are not given come from the context or the
    /// environment.
    pub(crate) fn config(
        self,
        url: &str,
        context: Option<&ContextSettings>,
    ) -> Result<Option<TlsConfig>, ClientError> {
        if !url.starts_with("https:") {
            return Ok(None);
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_context =
            |file: fn(&ContextSettings) -> &Option<PathBuf>| context.and_then(|one| file(one).clone());
        let ca = self.ca.or_else(|| of_context(|one| &one.ca)).or_else(|| set("SWITCHYARD_CA"));
        let roots = root_certificates(ca.as_deref())?;
        let certificate = self.client_certificate.or_else(|| of_context(|one| &one.client_certificate));
        let client_certificate = match certificate.or_else(|| set("SWITCHYARD_CLIENT_CERTIFICATE")) {
            Some(path) => Some(client_certificate(&path)?),
            None => None,
        };
        Ok(Some(TlsConfig::builder().root_certs(roots).client_cert(client_certificate).build()))
    }
}

fn client_certificate(path: &Path) -> Result<ClientCert, ClientError> {
    let (mut chain, mut key): (Vec<Certificate<'static>>, Option<PrivateKey<'static>>) = (Vec::new(), None);
    for item in read_pem(path)? {
        match item {
            PemItem::Certificate(certificate) => chain.push(certificate),
            PemItem::PrivateKey(private) => key = Some(private),
            _ => {}
        }
    }
    match key {
        Some(key) if !chain.is_empty() => Ok(ClientCert::new_with_certs(&chain, key)),
        _ => {
            let why = "must contain a certificate and its private key".to_owned();
            Err(ClientError::Certificate { path: path.to_owned(), why })
        }
    }
}
