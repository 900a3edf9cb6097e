//! Connections to message brokers, with or without TLS.

use crate::EventsError;
use crate::options::EventSinkOptions;
use crate::transport::SendError;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

/// Both directions of a connection.
pub(crate) trait ServerStream: Read + Write + Send {}
impl<T: Read + Write + Send> ServerStream for T {}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl ServerAddress {
    /// Host and port of a URL. `port` is the default port.
    pub(crate) fn from_url(url: &str, port: u16) -> Self {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            // The colon is not part of an IPv6 address.
            Some((host, given)) if !host.contains(':') || host.ends_with(']') => {
                (host, given.parse().unwrap_or(port))
            }
            _ => (authority, port),
        };
        Self { host: host.trim_matches(['[', ']']).to_owned(), port }
    }

    /// An error that names the address.
    pub(crate) fn failed(&self, error: &dyn std::fmt::Display) -> SendError {
        SendError(format!("{}:{}: {error}", self.host, self.port))
    }

    /// Connects. `timeout` also applies to each later read and write.
    pub(crate) fn connect(&self, timeout: Duration) -> Result<TcpStream, SendError> {
        let failed = |error: std::io::Error| self.failed(&error);
        let addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?;
        let mut last = std::io::Error::other("the name has no address");
        let mut socket = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(connected) => {
                    socket = Some(connected);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let socket = socket.ok_or(last).map_err(failed)?;
        let prepared = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(timeout)));
        prepared.and_then(|()| socket.set_write_timeout(Some(timeout))).map_err(failed)?;
        Ok(socket)
    }

    /// Wraps a connection with TLS; the handshake happens with the first write.
    pub(crate) fn secure(
        &self,
        socket: TcpStream,
        config: &Arc<ClientConfig>,
    ) -> Result<Box<dyn ServerStream>, SendError> {
        let name = ServerName::try_from(self.host.clone()).map_err(|error| self.failed(&error))?;
        let client = ClientConnection::new(config.clone(), name).map_err(|error| self.failed(&error))?;
        Ok(Box::new(StreamOwned::new(client, socket)))
    }
}

/// TLS configuration with the sink's certificate authority, or the authorities of the system.
pub(crate) fn tls_config(options: &EventSinkOptions) -> Result<ClientConfig, EventsError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let path = options.ca.clone().unwrap_or_else(|| "/etc/ssl/certs/ca-certificates.crt".into());
    let failed = |what: String| EventsError::Roots { sink: options.name.clone(), path: path.clone(), what };
    let mut roots = rustls::RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&path).map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("has no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| failed(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_perhaps_a_port() {
        for (url, host, port) in [
            ("nats://bus.example", "bus.example", 7),
            ("amqps://bus.example:5671/orders", "bus.example", 5671),
            ("amqp://[2001:db8::7]:99/", "2001:db8::7", 99),
            ("tls://[2001:db8::7]", "2001:db8::7", 7),
        ] {
            assert_eq!(
                ServerAddress::from_url(url, 7),
                ServerAddress { host: host.to_owned(), port },
                "{url}"
            );
        }
    }
}
