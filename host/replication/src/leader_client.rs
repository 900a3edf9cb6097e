use crate::node_client::client_of;
use crate::{NodeCertificate, passed_request};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Request, Response, header};
use cluster::{Exchange, innermost_cause};
use parking_lot::Mutex;
use ports::{PassedApi, PassedConnection, Socket};
use reqwest::{Client, StatusCode};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A leader that sends nothing for so long is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that concern one connection only.
const HOP_BY_HOP_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
];

/// Passes connections and requests on to the leaders of other partitions.
#[derive(Debug)]
pub struct LeaderClient {
    certificate: NodeCertificate,
    /// By the certificate of the other node.
    clients: Mutex<HashMap<String, Client>>,
}

impl LeaderClient {
    /// A client that shows this certificate.
    #[must_use]
    pub fn new(certificate: NodeCertificate) -> Self {
        Self { certificate, clients: Mutex::default() }
    }

    fn client(&self, exchange: &Exchange) -> io::Result<Client> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&exchange.certificate) {
            return Ok(client.clone());
        }
        let client = client_of(&self.certificate, exchange, ANSWER_TIMEOUT).map_err(io::Error::other)?;
        clients.insert(exchange.certificate.clone(), client.clone());
        Ok(client)
    }

    /// Opens a connection to a leader, for one of a client.
    ///
    /// # Errors
    /// If the node cannot be reached, or does not take it.
    pub async fn connect(&self, exchange: &Exchange, connection: &PassedConnection) -> io::Result<Socket> {
        let mut request = self
            .client(exchange)?
            .get(format!("https://{}/connection", exchange.address))
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, passed_request::UPGRADE);
        for (name, value) in passed_request::headers_of(connection) {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| failed(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(io::Error::other(format!("{} answered {}", exchange.address, response.status())));
        }
        Ok(Socket::Passed(Box::new(response.upgrade().await.map_err(|error| failed(&error))?)))
    }

    /// Gives a request of a client to a leader. It is sent once.
    ///
    /// # Errors
    /// If the node cannot be reached, or does not answer: then it is not known what it has done.
    pub async fn request(
        &self,
        exchange: &Exchange,
        api: PassedApi,
        remote: SocketAddr,
        request: Request<Bytes>,
    ) -> io::Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("https://{}{}{path}", exchange.address, passed_request::prefix(api));
        let mut headers = head.headers;
        for name in HOP_BY_HOP_HEADERS.into_iter().chain([passed_request::REMOTE]) {
            headers.remove(name);
        }
        let request = self
            .client(exchange)?
            .request(head.method, url)
            .headers(headers)
            .header(passed_request::REMOTE, remote.to_string())
            .body(body);
        let response = request.send().await.map_err(|error| failed(&error))?;
        let mut answer = Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            *headers = response.headers().clone();
            for name in HOP_BY_HOP_HEADERS {
                headers.remove(name);
            }
        }
        answer.body(Body::from_stream(response.bytes_stream())).map_err(io::Error::other)
    }
}

fn failed(error: &reqwest::Error) -> io::Error {
    io::Error::other(innermost_cause(error))
}
