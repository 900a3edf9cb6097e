//! Mutual TLS between nodes. Each has a certificate of its own making, and publishes its digest in etcd: whoever may write
//! there is a node.

use crate::ReplicationError;
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

    /// The settings of a listener that only nodes can use: those whose certificates have a digest that `is_known`.
    pub(crate) fn server_config(&self, is_known: DigestCheck) -> Result<ServerConfig, ReplicationError> {
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

/// Whether a digest is that of a node's certificate.
pub(crate) type DigestCheck = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Takes a certificate by its digest: no authority signs it, and its names and dates say nothing.
struct NodeVerifier {
    is_known: DigestCheck,
    provider: Arc<CryptoProvider>,
}

impl std::fmt::Debug for NodeVerifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeVerifier").finish_non_exhaustive()
    }
}

impl NodeVerifier {
    fn new(is_known: DigestCheck) -> Self {
        Self { is_known, provider: ports::crypto_provider() }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if (self.is_known)(&crate::state::sha256_hex(certificate)) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// Signature checks for the two verifier traits of rustls: the peer must have the key of its certificate.
macro_rules! signature_methods {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signature, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
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

    signature_methods!();
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

    signature_methods!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, ServerConnection};

    fn certificate(folder: &tempfile::TempDir) -> NodeCertificate {
        NodeCertificate::open(folder.path(), [127, 0, 0, 1].into()).unwrap()
    }

    /// Whether both sides complete the handshake.
    fn shake_hands(server: ServerConfig, client: ClientConfig) -> bool {
        let name = ServerName::try_from("192.0.2.1").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut octets = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut octets).unwrap();
            }
            server.read_tls(&mut octets.as_slice()).unwrap();
            if server.process_new_packets().is_err() {
                return false;
            }
            let mut octets = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut octets).unwrap();
            }
            client.read_tls(&mut octets.as_slice()).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn nodes_know_each_other_by_digest_and_nobody_else() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [a, b, stranger] = folders.each_ref().map(certificate);
        assert_eq!(certificate(&folders[0]).sha256(), a.sha256(), "it is kept");
        let nodes = [a.sha256().to_owned(), b.sha256().to_owned()];
        let listener = |of: &NodeCertificate| {
            let nodes = nodes.clone();
            of.server_config(Box::new(move |sha256| nodes.iter().any(|node| node == sha256))).unwrap()
        };
        let to = |from: &NodeCertificate, to: &NodeCertificate| {
            from.client_config(to.sha256().to_owned()).unwrap()
        };
        assert!(shake_hands(listener(&a), to(&b, &a)));
        assert!(!shake_hands(listener(&a), to(&stranger, &a)), "a client that is no node");
        assert!(!shake_hands(listener(&stranger), to(&b, &a)), "a server that is another one");
        let without = ClientConfig::builder_with_provider(ports::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(NodeVerifier::new(Box::new(|_| true))))
            .with_no_client_auth();
        assert!(!shake_hands(listener(&a), without), "a client without a certificate");
    }
}
