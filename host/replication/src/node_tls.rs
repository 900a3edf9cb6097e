//! Mutual TLS between nodes. Each has a certificate of its own making, and publishes its digest in etcd: whoever may write
//! there is a node.

use crate::ReplicationError;
use cluster::Cluster;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The certificate of a node, and its key.
#[derive(Debug)]
pub struct NodeCertificate {
    folder: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    sha256: String,
}

impl NodeCertificate {
    /// Reads the certificate in this folder; makes one if there is none. `address` is that of the node's listener.
    ///
    /// # Errors
    /// If the files cannot be read or written.
    pub fn open(folder: &Path, address: IpAddr) -> Result<Self, ReplicationError> {
        let failed = |reason: String| ReplicationError::Certificate { folder: folder.to_owned(), reason };
        let files =
            ports::self_signed_certificate(folder, address).map_err(|error| failed(error.to_string()))?;
        let chain =
            ports::read_certificates(&files.certificate).map_err(|error| failed(error.to_string()))?;
        let key = ports::read_private_key(&files.key).map_err(|error| failed(error.to_string()))?;
        let sha256 =
            chain.first().map(|certificate| crate::state::sha256_hex(certificate)).unwrap_or_default();
        Ok(Self { folder: folder.to_owned(), chain, key, sha256 })
    }

    /// The SHA-256 digest of the certificate (DER) in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    fn failed(&self, reason: &rustls::Error) -> ReplicationError {
        ReplicationError::Certificate { folder: self.folder.clone(), reason: reason.to_string() }
    }

    /// The settings of a listener that only nodes of this cluster can use.
    pub(crate) fn server_config(&self, cluster: Arc<Cluster>) -> Result<ServerConfig, ReplicationError> {
        let is_known = Box::new(move |sha256: &str| cluster.is_node_certificate(sha256));
        ServerConfig::builder_with_provider(ports::crypto_provider())
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_client_cert_verifier(Arc::new(NodeVerifier::new(is_known))))
            .and_then(|builder| builder.with_single_cert(self.chain.clone(), self.key.clone_key()))
            .map_err(|error| self.failed(&error))
    }

    /// The settings of a connection to the node whose certificate has this digest.
    pub(crate) fn client_config(&self, expected: String) -> Result<ClientConfig, ReplicationError> {
        let is_known = Box::new(move |sha256: &str| sha256 == expected);
        ClientConfig::builder_with_provider(ports::crypto_provider())
            .with_safe_default_protocol_versions()
            .map(|builder| {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(NodeVerifier::new(is_known)))
            })
            .and_then(|builder| builder.with_client_auth_cert(self.chain.clone(), self.key.clone_key()))
            .map_err(|error| self.failed(&error))
    }
}

/// Takes a certificate by its digest: no authority signs it, and its names and dates say nothing.
struct NodeVerifier {
    is_known: Box<dyn Fn(&str) -> bool + Send + Sync>,
    provider: Arc<CryptoProvider>,
}

impl std::fmt::Debug for NodeVerifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeVerifier").finish_non_exhaustive()
    }
}

impl NodeVerifier {
    fn new(is_known: Box<dyn Fn(&str) -> bool + Send + Sync>) -> Self {
        Self { is_known, provider: ports::crypto_provider() }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if (self.is_known)(&crate::state::sha256_hex(certificate)) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn check_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn check_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for NodeVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}
