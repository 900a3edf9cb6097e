//! Another system that knows subscribers, asked over HTTP.

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

/// What it was asked: by which way, and about which number.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

#[derive(Clone)]
struct Desk {
    asked: Asked,
    shut: watch::Receiver<BTreeSet<String>>,
}

/// A running directory. Everybody is a subscriber of its; it can be asked by several ways, and each of them can be shut:
/// who asks by one that is shut is heard, and waits.
#[derive(Debug)]
pub struct Directory {
    address: SocketAddr,
    asked: Asked,
    shut: watch::Sender<BTreeSet<String>>,
    /// Ends with it.
    _runtime: Runtime,
}

impl Directory {
    /// Listens on a free port of loopback.
    pub fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let asked = Asked::default();
        let (shut, seen) = watch::channel(BTreeSet::new());
        let desk = Desk { asked: asked.clone(), shut: seen };
        let router = Router::new().route("/{way}/{number}", routing::get(answer)).with_state(desk);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, asked, shut, _runtime: runtime })
    }

    /// Where all its ways begin: what a binding grants.
    pub fn place(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The policy document of `http-resolver` that asks by this way, and after no answer again after a while.
    pub fn document(&self, way: &str, again: &str) -> String {
        format!("url = \"{}{way}/{{msisdn}}\"\ntry-again = \"{again}\"\n", self.place())
    }

    /// From now on, who asks by this way waits.
    pub fn shut(&self, way: &str) {
        self.shut.send_if_modified(|shut| shut.insert(way.to_owned()));
    }

    /// Those who wait are answered.
    pub fn open(&self, way: &str) {
        self.shut.send_if_modified(|shut| shut.remove(way));
    }

    /// How often it was asked by a way.
    pub fn asked_by(&self, way: &str) -> usize {
        self.asked.lock().iter().filter(|(by, _)| by == way).count()
    }

    /// How often it was asked about each number, by whatever way.
    pub fn asked_about(&self) -> BTreeMap<String, usize> {
        let mut numbers = BTreeMap::new();
        for (_, number) in &*self.asked.lock() {
            *numbers.entry(number.clone()).or_default() += 1;
        }
        numbers
    }
}

async fn answer(State(mut desk): State<Desk>, Path((way, number)): Path<(String, String)>) -> Json<Value> {
    desk.asked.lock().push((way.clone(), number.clone()));
    // An error is the end of the directory, and of whoever asks it.
    let _ = desk.shut.wait_for(|shut| !shut.contains(&way)).await;
    let last = number.get(number.len().saturating_sub(10)..).unwrap_or_default();
    Json(json!({ "imsi": format!("00101{last:0>10}") }))
}
