//! An HLR: old ones know no short messages, new ones route them by name.

use super::control::{self, Control, ControlReport};
use super::hlr_link;
use super::subscribers::Subscribers;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How an HLR works.
#[derive(Debug, Clone)]
pub struct HlrOptions {
    /// Who is in it.
    pub subscribers: Subscribers,
    /// The service centre to which it routes phones' short messages, as OsmoHLR does from 1.8 on. `None`: it says nothing to
    /// short messages, and knows no short question on its control interface, as OsmoHLR 1.5 does.
    pub centre: Option<String>,
    /// How long an answer of the control interface takes.
    pub delay: Duration,
}

impl HlrOptions {
    /// An old one with these subscribers.
    pub fn new(subscribers: Subscribers) -> Self {
        Self { subscribers, centre: None, delay: Duration::ZERO }
    }
}

/// An HLR's own name.
pub(super) const NAME: &str = "HLR-1";

/// What all connections of an HLR share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: HlrOptions,
    /// Who is connected under which name: how to write to it.
    routes: Mutex<HashMap<String, Arc<Route>>>,
    /// Where each subscriber is: the number of a name, from one on; zero: nowhere.
    places: Vec<AtomicU32>,
    names: Mutex<Vec<String>>,
    pub(super) located: AtomicU64,
    pub(super) messages: AtomicU64,
    /// Connections that were closed for want of a unit id, or lost the race for a name.
    pub(super) refused: AtomicU64,
    pub(super) unrouted: AtomicU64,
    /// Connections that have come to the GSUP port.
    connections: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) frames: mpsc::UnboundedSender<Vec<u8>>,
}

impl Shared {
    /// Takes a name for a connection; false where another one has it.
    pub(super) fn enter(&self, name: &str, route: &Arc<Route>) -> bool {
        let mut routes = self.routes.lock();
        let free = !routes.contains_key(name);
        if free {
            routes.insert(name.to_owned(), Arc::clone(route));
        }
        free
    }

    pub(super) fn leave(&self, name: &str, route: &Arc<Route>) {
        let mut routes = self.routes.lock();
        if routes.get(name).is_some_and(|other| Arc::ptr_eq(other, route)) {
            routes.remove(name);
        }
    }

    pub(super) fn route(&self, name: &str) -> Option<Arc<Route>> {
        self.routes.lock().get(name).cloned()
    }

    /// The subscriber is at this place now.
    pub(super) fn place(&self, subscriber: u64, name: &str) {
        let mut names = self.names.lock();
        let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        self.places[subscriber as usize].store(number as u32 + 1, Relaxed);
    }

    /// Where the subscriber was last.
    pub(super) fn whereabouts(&self, subscriber: u64) -> Option<String> {
        let number = self.places.get(subscriber as usize)?.load(Relaxed).checked_sub(1)?;
        self.names.lock().get(number as usize).cloned()
    }
}

/// A running HLR.
#[derive(Debug)]
pub struct StandInHlr {
    shared: Arc<Shared>,
    control: Arc<Control>,
    gsup: Door,
    ctrl: Door,
    runtime: Runtime,
}

/// A listener that can be closed with all its connections, and opened again at the same place.
#[derive(Debug)]
struct Door {
    address: SocketAddr,
    /// Dropped to close.
    open: Option<(watch::Sender<()>, JoinHandle<()>)>,
}

impl StandInHlr {
    /// Starts it on free ports of loopback.
    pub fn start(options: HlrOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stand-in-hlr")
            .enable_all()
            .build()?;
        let places = (0..options.subscribers.count).map(|_| AtomicU32::new(0)).collect();
        let control = Arc::new(Control::default());
        let shared = Arc::new(Shared {
            options,
            routes: Mutex::default(),
            places,
            names: Mutex::default(),
            located: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unrouted: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let closed = || Door { address: nowhere, open: None };
        let mut hlr = Self { shared, control, gsup: closed(), ctrl: closed(), runtime };
        hlr.come_back()?;
        Ok(hlr)
    }

    /// Where it takes GSUP.
    pub fn gsup(&self) -> SocketAddr {
        self.gsup.address
    }

    /// Where it takes questions.
    pub fn ctrl(&self) -> SocketAddr {
        self.ctrl.address
    }

    /// Closes everything: it listens no more, and what is connected is cut.
    pub fn die(&mut self) {
        self.close_gsup();
        self.close_ctrl();
    }

    /// Closes GSUP only.
    pub fn close_gsup(&mut self) {
        close(&mut self.gsup, &self.runtime);
    }

    /// Closes the control interface only.
    pub fn close_ctrl(&mut self) {
        close(&mut self.ctrl, &self.runtime);
    }

    /// Opens what is closed, where it was.
    pub fn come_back(&mut self) -> Result<()> {
        if self.gsup.open.is_none() {
            let listener = self.runtime.block_on(TcpListener::bind(self.gsup.address));
            let listener = listener.with_context(|| format!("listening on {}", self.gsup.address))?;
            self.gsup.address = listener.local_addr()?;
            let (sender, closed) = watch::channel(());
            let shared = Arc::clone(&self.shared);
            let task = self.runtime.spawn(serve(listener, closed, move |stream| {
                let shared = Arc::clone(&shared);
                shared.connections.fetch_add(1, Relaxed);
                async move { hlr_link::serve(stream, &shared).await }
            }));
            self.gsup.open = Some((sender, task));
        }
        if self.ctrl.open.is_none() {
            let listener = self.runtime.block_on(TcpListener::bind(self.ctrl.address));
            let listener = listener.with_context(|| format!("listening on {}", self.ctrl.address))?;
            self.ctrl.address = listener.local_addr()?;
            let (sender, closed) = watch::channel(());
            let (shared, control) = (Arc::clone(&self.shared), Arc::clone(&self.control));
            let task = self.runtime.spawn(serve(listener, closed, move |stream| {
                let (shared, control) = (Arc::clone(&shared), Arc::clone(&control));
                async move { control::serve(stream, &shared, &control).await }
            }));
            self.ctrl.open = Some((sender, task));
        }
        Ok(())
    }

    /// Whether somebody is connected under this name, and is routed to.
    pub fn is_connected(&self, name: &str) -> bool {
        self.shared.route(name).is_some()
    }

    /// What it was asked.
    pub fn questions(&self) -> ControlReport {
        self.control.report()
    }

    /// Connections that have come to the GSUP port.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Relaxed)
    }

    /// Location updates that it has answered well.
    pub fn located(&self) -> u64 {
        self.shared.located.load(Relaxed)
    }

    /// GSUP messages that have come.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Relaxed)
    }

    /// Connections without a unit id, and those whose name another one had.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }

    /// Messages for somebody who was not connected.
    pub fn unrouted(&self) -> u64 {
        self.shared.unrouted.load(Relaxed)
    }
}

fn close(door: &mut Door, runtime: &Runtime) {
    if let Some((sender, task)) = door.open.take() {
        drop(sender);
        // It ends when it sees that the sender is gone; the listener is closed then.
        let _ = runtime.block_on(task);
    }
}

/// Takes connections until the door is closed, and ends those that it has taken.
async fn serve<F, Fut>(listener: TcpListener, mut closed: watch::Receiver<()>, each: F)
where
    F: Fn(tokio::net::TcpStream) -> Fut,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    loop {
        tokio::select! {
            taken = listener.accept() => {
                let Ok((stream, _)) = taken else { return };
                let mut closed = closed.clone();
                let link = each(stream);
                tokio::spawn(async move {
                    tokio::select! {
                        // What ends a connection shows at the other end.
                        _ = link => {}
                        _ = closed.changed() => {}
                    }
                });
            }
            _ = closed.changed() => return,
        }
    }
}
