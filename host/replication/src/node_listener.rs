use crate::{NodeCertificate, ReplicationError, SharedFiles};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cluster::{Cluster, Exchange};
use parking_lot::Mutex;
use ports::{HttpLimits, HttpListener, RequestClassifier, ServerCertificate};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

/// Connections of nodes: a cluster has a handful.
const MAX_CONNECTIONS: usize = 64;
/// Octets that are read and sent at once.
const CHUNK: usize = 256 << 10;

/// Writes a snapshot of the tables into a file of a folder, which goes when it is dropped. It may block.
pub type TakeSnapshot = Box<dyn Fn() -> Result<(TempDir, PathBuf), String> + Send + Sync>;

/// Gives files and snapshots to the other nodes, over mutual TLS.
///
/// `GET /files/SHA256` is a file of the shared state, `GET /snapshot` the tables of the leader.
pub struct NodeListener {
    files: Arc<SharedFiles>,
    take_snapshot: Mutex<Option<Arc<TakeSnapshot>>>,
    /// One snapshot at a time: two could fill the disk.
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
            take_snapshot: Mutex::default(),
            snapshot: tokio::sync::Mutex::default(),
        });
        let router = Router::new()
            .route("/files/{sha256}", get(give_file))
            .route("/snapshot", get(give_snapshot))
            .with_state(nodes.clone());
        tokio::spawn(listener.serve(router, Arc::new(Nodes)));
        Ok(nodes)
    }

    /// Gives snapshots from now on: this node leads.
    pub fn give_snapshots(&self, take: TakeSnapshot) {
        *self.take_snapshot.lock() = Some(Arc::new(take));
    }
}

async fn give_file(State(nodes): State<Arc<NodeListener>>, UrlPath(sha256): UrlPath<String>) -> Response {
    let Some(path) = nodes.files.find(&sha256) else { return StatusCode::NOT_FOUND.into_response() };
    match tokio::fs::File::open(&path).await {
        Ok(file) => stream(file, ()).await,
        Err(error) => failed(&error.to_string()),
    }
}

async fn give_snapshot(State(nodes): State<Arc<NodeListener>>) -> Response {
    let take = nodes.take_snapshot.lock().clone();
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
    tracing::warn!(reason, "a node asked for a file that cannot be given");
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
