//! An external subscriber directory over HTTP.

use anyhow::Result;
use axum::extract::{Path, State};
use axum::{Json, Router, routing};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Received requests: path and number.
type RequestLog = Arc<Mutex<Vec<(String, String)>>>;

#[derive(Clone)]
struct DirectoryState {
    requests: RequestLog,
    blocked: watch::Receiver<BTreeSet<String>>,
}

/// A running directory that finds every number. It has several paths, each of which can be blocked: requests to a
/// blocked path wait.
#[derive(Debug)]
pub struct Directory {
    address: SocketAddr,
    requests: RequestLog,
    blocked: watch::Sender<BTreeSet<String>>,
    /// Ends with the directory.
    _runtime: Runtime,
}

impl Directory {
    /// Listens on a free loopback port.
    pub fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let requests = RequestLog::default();
        let (blocked, seen) = watch::channel(BTreeSet::new());
        let state = DirectoryState { requests: requests.clone(), blocked: seen };
        let router = Router::new().route("/{way}/{number}", routing::get(answer)).with_state(state);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, requests, blocked, _runtime: runtime })
    }

    /// The base URL, which a binding grants.
    pub fn base_url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// A policy document of `http-resolver` that uses this path, and retries after this time without an answer.
    pub fn policy(&self, way: &str, again: &str) -> String {
        format!("url = \"{}{way}/{{msisdn}}\"\ntry-again = \"{again}\"\n", self.base_url())
    }

    /// Blocks a path: its requests wait.
    pub fn block(&self, way: &str) {
        self.blocked.send_if_modified(|blocked| blocked.insert(way.to_owned()));
    }

    /// Unblocks a path: the waiting requests are answered.
    pub fn unblock(&self, way: &str) {
        self.blocked.send_if_modified(|blocked| blocked.remove(way));
    }

    /// Number of requests to a path.
    pub fn request_count(&self, way: &str) -> usize {
        self.requests.lock().iter().filter(|(by, _)| by == way).count()
    }

    /// Number of requests per number, over all paths.
    pub fn requests_by_number(&self) -> BTreeMap<String, usize> {
        let mut numbers = BTreeMap::new();
        for (_, number) in &*self.requests.lock() {
            *numbers.entry(number.clone()).or_default() += 1;
        }
        numbers
    }
}

async fn answer(
    State(mut state): State<DirectoryState>,
    Path((way, number)): Path<(String, String)>,
) -> Json<Value> {
    state.requests.lock().push((way.clone(), number.clone()));
    // An error means that the directory or the client has ended.
    let _ = state.blocked.wait_for(|blocked| !blocked.contains(&way)).await;
    let last = number.get(number.len().saturating_sub(10)..).unwrap_or_default();
    Json(json!({ "imsi": format!("00101{last:0>10}") }))
}
