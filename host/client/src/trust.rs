//! Whom the command line trusts over HTTPS, and what it shows of itself.

use crate::ClientError;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// Where Debian and its like keep the authorities that the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Certificates.
#[derive(Debug, Clone, Args)]
pub(crate) struct Trust {
    /// A file with the appliance's certificate, or its authority's, in PEM form; SWITCHYARD_CA otherwise, or what the system
    /// trusts. The appliance's own certificate is tls/certificate.pem in its data folder.
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A file with a certificate and its key in PEM form, for an appliance that asks for one; SWITCHYARD_CLIENT_CERTIFICATE
    /// otherwise.
    #[arg(long, global = true, value_name = "FILE")]
    client_certificate: Option<PathBuf>,
}

fn items(path: &Path) -> Result<Vec<PemItem<'static>>, ClientError> {
    let wrong = |why: String| ClientError::Certificate { path: path.to_owned(), why };
    let octets = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let read: Result<Vec<_>, _> = parse_pem(&octets).collect();
    read.map_err(|error| wrong(error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let certificates = items(path)?.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() {
        return Err(ClientError::Certificate {
            path: path.to_owned(),
            why: "holds no certificate".to_owned(),
        });
    }
    Ok(certificates)
}

impl Trust {
    /// What is needed for this address; nothing without HTTPS.
    pub(crate) fn config(self, url: &str) -> Result<Option<TlsConfig>, ClientError> {
        if !url.starts_with("https:") {
            return Ok(None);
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let roots = match self.ca.or_else(|| set("SWITCHYARD_CA")) {
            Some(path) => RootCerts::Specific(Arc::new(certificates(&path)?)),
            None if Path::new(SYSTEM_AUTHORITIES).exists() => {
                RootCerts::Specific(Arc::new(certificates(Path::new(SYSTEM_AUTHORITIES))?))
            }
            None => RootCerts::WebPki,
        };
        let own = match self.client_certificate.or_else(|| set("SWITCHYARD_CLIENT_CERTIFICATE")) {
            Some(path) => Some(own(&path)?),
            None => None,
        };
        Ok(Some(TlsConfig::builder().root_certs(roots).client_cert(own).build()))
    }
}

fn own(path: &Path) -> Result<ClientCert, ClientError> {
    let (mut chain, mut key): (Vec<Certificate<'static>>, Option<PrivateKey<'static>>) = (Vec::new(), None);
    for item in items(path)? {
        match item {
            PemItem::Certificate(certificate) => chain.push(certificate),
            PemItem::PrivateKey(private) => key = Some(private),
            _ => {}
        }
    }
    match key {
        Some(key) if !chain.is_empty() => Ok(ClientCert::new_with_certs(&chain, key)),
        _ => {
            let why = "must hold a certificate and its private key, one below the other".to_owned();
            Err(ClientError::Certificate { path: path.to_owned(), why })
        }
    }
}
