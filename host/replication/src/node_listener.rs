use crate::{NodeCertificate, ReplicationError, SharedFiles, passed_request};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cluster::{Cluster, Exchange};
use parking_lot::Mutex;
use ports::{
    HttpLimits, HttpListener, PassedApi, PassedConnection, RequestClassifier, ServerCertificate, Socket,
};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

/// Connections of nodes: some for files, and those with passed-on requests and logins.
const MAX_CONNECTIONS: usize = 512;
/// Connections of clients that other nodes pass on.
const MAX_PASSED: usize = 10_000;
/// Octets that are read and sent at once.
const CHUNK: usize = 256 << 10;

/// Writes a snapshot of the tables into a file of a folder, which goes when it is dropped. It may block.
pub type SnapshotSource = Box<dyn Fn() -> Result<(TempDir, PathBuf), String> + Send + Sync>;

/// Gives files and snapshots to the other nodes, over mutual TLS.
///
/// `GET /files/SHA256` is a file of the shared state, `GET /snapshot` the tables of the leader. `GET /connection` becomes the
/// connection of a client of another node, and what is below `/business` and `/admin` is a request of one.
pub struct NodeListener {
    files: Arc<SharedFiles>,
    passed_handlers: Mutex<Option<PassedHandlers>>,
    passed: Arc<Semaphore>,
    snapshot_source: Mutex<Option<Arc<SnapshotSource>>>,
    /// Permit for one snapshot at a time, since two could fill the disk.
    snapshot: tokio::sync::Mutex<()>,
}

/// The verification of its certificate has identified the node.
struct Nodes;

impl RequestClassifier for Nodes {
    fn is_identified(&self, _: &HeaderMap) -> bool {
        true
    }

    fn is_always_answered(&self, _: &str) -> bool {
        false
    }
}

impl NodeListener {
    /// Opens the listener and publishes where it is. `host` is the host of this node in URLs, for a listener on all
    /// addresses. Must be called within a tokio runtime; it serves until that ends.
    ///
    /// # Errors
    /// If the address cannot be bound, or the certificate cannot be used.
    pub async fn open(
        listen: SocketAddr,
        host: &str,
        certificate: &NodeCertificate,
        cluster: &Arc<Cluster>,
        files: Arc<SharedFiles>,
    ) -> Result<Arc<Self>, ReplicationError> {
        let known = cluster.clone();
        let is_known = Box::new(move |sha256: &str| known.is_node_certificate(sha256));
        let settings = ServerCertificate::fixed(certificate.server_config(is_known)?);
        let limits = HttpLimits::new(MAX_CONNECTIONS, MAX_CONNECTIONS);
        let opened = HttpListener::open("cluster", listen, Some(settings), limits, Arc::default()).await;
        let listener = opened.map_err(|source| ReplicationError::File {
            path: PathBuf::from(format!("[cluster] listen = \"{listen}\"")),
            source,
        })?;
        let address = listener.address();
        let address = match address.ip().is_unspecified() {
            true => format!("{host}:{}", address.port()),
            false => address.to_string(),
        };
        tracing::info!(address, "listener for nodes open");
        cluster.set_exchange(Exchange { address, certificate: certificate.sha256().to_owned() });
        let nodes = Arc::new(Self {
            files,
            passed_handlers: Mutex::default(),
            passed: Arc::new(Semaphore::new(MAX_PASSED)),
            snapshot_source: Mutex::default(),
            snapshot: tokio::sync::Mutex::default(),
        });
        let router = Router::new()
            .route("/files/{sha256}", get(serve_file))
            .route("/snapshot", get(serve_snapshot))
            .route("/connection", get(handle_connection))
            .fallback(handle_request)
            .with_state(nodes.clone());
        tokio::spawn(listener.serve(router, Arc::new(Nodes)));
        Ok(nodes)
    }

    /// Gives snapshots from now on: this node leads.
    pub fn serve_snapshots(&self, take: SnapshotSource) {
        *self.snapshot_source.lock() = Some(Arc::new(take));
    }

    /// Takes from now on what other nodes pass on: this node leads.
    pub fn serve_passed(&self, handlers: PassedHandlers) {
        *self.passed_handlers.lock() = Some(handlers);
    }
}

/// Takes the connection of a client over. Other connections than those of nodes cannot get here.
type ConnectionHandler = Arc<dyn Fn(Socket, PassedConnection) -> Result<(), &'static str> + Send + Sync>;

/// The handlers of passed-on connections and requests.
#[derive(Clone)]
pub struct PassedHandlers {
    /// Serves a connection; or says why it cannot.
    pub connection: ConnectionHandler,
    /// Answers requests of business systems.
    pub business: Router,
    /// Answers requests of admins.
    pub admin: Router,
    /// Answers callbacks of plugin peers.
    pub peer_callbacks: Router,
}

async fn handle_connection(State(nodes): State<Arc<NodeListener>>, mut request: Request) -> Response {
    let Some(PassedHandlers { connection: handle, .. }) = nodes.passed_handlers.lock().clone() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "this node does not lead").into_response();
    };
    let Some(connection) = passed_request::connection_of(request.headers()) else {
        return (StatusCode::BAD_REQUEST, "the headers of a passed-on connection are missing")
            .into_response();
    };
    let Ok(permit) = nodes.passed.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many passed-on connections").into_response();
    };
    let upgraded = ports::upgrade(&mut request);
    tokio::spawn(async move {
        let result = match upgraded.await {
            Ok(socket) => {
                handle(Socket::Passed(Box::new(PassedSocket { socket, _permit: permit })), connection)
            }
            Err(error) => {
                tracing::debug!(%error, "a passed-on connection ended at once");
                Ok(())
            }
        };
        if let Err(reason) = result {
            tracing::warn!(reason, "a passed-on connection was refused");
        }
    });
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, passed_request::UPGRADE)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

async fn handle_request(State(nodes): State<Arc<NodeListener>>, mut request: Request) -> Response {
    let Some(handlers) = nodes.passed_handlers.lock().clone() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "this node does not lead").into_response();
    };
    let Some(api) = passed_request::unwrap(&mut request) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let router = match api {
        PassedApi::Business => handlers.business,
        PassedApi::Admin => handlers.admin,
        PassedApi::PeerCallbacks => handlers.peer_callbacks,
    };
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A passed-on connection, which counts as long as it is open.
#[derive(Debug)]
struct PassedSocket {
    socket: Socket,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for PassedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for PassedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

async fn serve_file(State(nodes): State<Arc<NodeListener>>, UrlPath(sha256): UrlPath<String>) -> Response {
    let Some(path) = nodes.files.find(&sha256) else { return StatusCode::NOT_FOUND.into_response() };
    match tokio::fs::File::open(&path).await {
        Ok(file) => stream(file, ()).await,
        Err(error) => failed(&error.to_string()),
    }
}

async fn serve_snapshot(State(nodes): State<Arc<NodeListener>>) -> Response {
    let take = nodes.snapshot_source.lock().clone();
    let Some(take) = take else { return StatusCode::NOT_FOUND.into_response() };
    let _alone = nodes.snapshot.lock().await;
    let taken = tokio::task::spawn_blocking(move || take()).await;
    let (folder, path) = match taken {
        Ok(Ok(taken)) => taken,
        Ok(Err(reason)) => return failed(&reason),
        Err(_) => return failed("the snapshot failed"),
    };
    match tokio::fs::File::open(&path).await {
        Ok(file) => stream(file, folder).await,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(reason: &str) -> Response {
    tracing::warn!(reason, "cannot send a file that another node requested");
    (StatusCode::INTERNAL_SERVER_ERROR, reason.to_owned()).into_response()
}

/// Sends a file; `kept` is kept until it is sent.
async fn stream(mut file: tokio::fs::File, kept: impl Send + 'static) -> Response {
    let length = match file.seek(std::io::SeekFrom::End(0)).await {
        Ok(length) => length,
        Err(error) => return failed(&error.to_string()),
    };
    if let Err(error) = file.rewind().await {
        return failed(&error.to_string());
    }
    let chunks = futures_util::stream::unfold((file, kept), |(mut file, kept)| async {
        let mut chunk = Vec::with_capacity(CHUNK);
        match (&mut file).take(CHUNK as u64).read_to_end(&mut chunk).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(Bytes::from(chunk)), (file, kept))),
            Err(error) => Some((Err(error), (file, kept))),
        }
    });
    ([(header::CONTENT_LENGTH, length)], Body::from_stream(chunks)).into_response()
}
