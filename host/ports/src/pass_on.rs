//! Passing on: connections and requests of another partition of the cluster go to its leader.

use crate::{LoginInterface, Protocol, Socket};
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy, split};

/// Time for one direction of a passed-on connection after the other has ended, so that the last answers arrive.
const LINGER: Duration = Duration::from_secs(10);

/// An attempt to reach the leader of another partition. It fails if the partition has no leader.
pub type Passing<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// The interface of a connection between nodes of two partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedInterface {
    /// A client has connected to this interface.
    Login(LoginInterface),
    /// The node itself connects, with submit attempts of its partition.
    Partition,
}

impl PassedInterface {
    /// The interface's name between nodes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Login(interface) => interface.name(),
            Self::Partition => Protocol::Partition.name(),
        }
    }
}

/// A connection that one node passes on to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedConnection {
    /// The interface to which the client has connected.
    pub interface: PassedInterface,
    /// The name of the listener to which the client has connected.
    pub listener: String,
    /// The address of the client.
    pub remote: SocketAddr,
    /// The address to which the client has connected, for protocols whose answers contain it.
    pub local: Option<SocketAddr>,
    /// Whether the client uses TLS.
    pub tls: bool,
}

/// Extension of a request that was passed on, so that it is not passed on again.
#[derive(Debug, Clone, Copy)]
pub struct PassedOnMarker;

/// The API to which a request is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedApi {
    /// The API of business systems.
    Business,
    /// The admin API.
    Admin,
    /// Callbacks of plugin peers.
    PeerCallbacks,
}

/// Access to the leaders of the other partitions.
pub trait PassOn: fmt::Debug + Send + Sync + 'static {
    /// The partition of this process.
    fn partition(&self) -> u8;

    /// The other partitions that have nodes or accounts, in order.
    fn other_partitions(&self) -> Vec<u8>;

    /// The partition of the account with this login name; `None` if it is the partition of this process, or the name is unknown.
    fn elsewhere(&self, interface: LoginInterface, name: &[u8]) -> Option<u8>;

    /// The configured partition of a number pool; `None` if it is the partition of this process, or the pool is not configured.
    fn pool_elsewhere(&self, pool: &str) -> Option<u8>;

    /// The home of the plugin peer with this name that has callbacks; `None` if it is the partition of this process, or there is no such
    /// peer.
    fn callbacks_elsewhere(&self, peer: &str) -> Option<u8>;

    /// The name and URL of the node that leads a partition, for error texts; `None` if it has no leader.
    fn leader(&self, partition: u8) -> Option<String>;

    /// Opens a connection to the leader of a partition, for a client's connection.
    fn connect(&self, partition: u8, connection: PassedConnection) -> Passing<Socket>;

    /// Sends a client's request to the leader of a partition.
    fn request(
        &self,
        partition: u8,
        api: PassedApi,
        remote: SocketAddr,
        request: Request<Bytes>,
    ) -> Passing<Response<Body>>;
}

/// The first request of a connection, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstRequest {
    /// More octets are needed.
    Incomplete,
    /// The client logs in with this name.
    Login(LoginInterface, Bytes),
    /// Any other request, which this node serves.
    Other,
}

/// Moves octets between two connections until both directions have ended, or ten seconds after the first has ended. When
/// `closing` is ready, nothing more is read from the client, and the leader's last answers are still sent.
pub async fn splice(client: Socket, leader: Socket, closing: impl Future<Output = ()>) {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_leader, mut to_leader) = split(leader);
    let forth = async {
        tokio::select! {
            _ = copy(&mut from_client, &mut to_leader) => {}
            () = closing => {}
        }
        let _ = to_leader.shutdown().await;
    };
    let back = async {
        let _ = copy(&mut from_leader, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::pin!(forth, back);
    tokio::select! {
        () = &mut forth => drop(tokio::time::timeout(LINGER, back).await),
        () = &mut back => drop(tokio::time::timeout(LINGER, forth).await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, Socket::Plain(listener.accept().await.unwrap().0))
    }

    #[tokio::test]
    async fn a_spliced_connection_carries_everything_both_ways_and_ends_with_either_side() {
        let ((mut client, there), (mut leader, here)) = (pair().await, pair().await);
        let spliced = tokio::spawn(splice(there, here, pending()));
        let many = vec![7; 1 << 20];
        let sent = many.clone();
        let sending = tokio::spawn(async move {
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            answer
        });
        let mut got = Vec::new();
        leader.read_to_end(&mut got).await.unwrap();
        assert!(got == many);
        leader.write_all(b"answer").await.unwrap();
        drop(leader);
        assert_eq!(sending.await.unwrap(), b"answer");
        spliced.await.unwrap();
    }

    #[tokio::test]
    async fn a_spliced_connection_that_is_closed_still_carries_the_last_answers() {
        let ((mut client, there), (mut leader, here)) = (pair().await, pair().await);
        let spliced = tokio::spawn(splice(there, here, ready(())));
        let mut requests = Vec::new();
        leader.read_to_end(&mut requests).await.unwrap();
        leader.write_all(b"answer").await.unwrap();
        drop(leader);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
        spliced.await.unwrap();
    }
}
