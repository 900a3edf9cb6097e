//! A simulated HLR: old versions know no short messages, new ones route them by name.

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

/// Options of an HLR.
#[derive(Debug, Clone)]
pub struct HlrOptions {
    /// Its subscribers.
    pub subscribers: Subscribers,
    /// The SMSC to which it routes mobile-originated messages, as OsmoHLR does since 1.8. `None`: it does not answer short messages
    /// and does not know the short form of a query on the control interface, like OsmoHLR 1.5.
    pub centre: Option<String>,
    /// Delay of the answers of the control interface.
    pub delay: Duration,
}

impl HlrOptions {
    /// Options of an old HLR, which does not route short messages, with these subscribers.
    pub fn new(subscribers: Subscribers) -> Self {
        Self { subscribers, centre: None, delay: Duration::ZERO }
    }
}

/// The HLR's own name.
pub(super) const NAME: &str = "HLR-1";

/// State shared by all connections of an HLR.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: HlrOptions,
    /// Connected nodes by name, and how to write to them.
    routes: Mutex<HashMap<String, Arc<Route>>>,
    /// Location of each subscriber: index of a name plus one; zero: none.
    locations: Vec<AtomicU32>,
    names: Mutex<Vec<String>>,
    pub(super) located: AtomicU64,
    pub(super) messages: AtomicU64,
    /// Connections that were closed because they had no unit id or their name was in use.
    pub(super) refused: AtomicU64,
    pub(super) unrouted: AtomicU64,
    /// Connections accepted on the GSUP port.
    connections: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) frames: mpsc::UnboundedSender<Vec<u8>>,
}

impl Shared {
    /// Registers a name for a connection; false if the name is in use.
    pub(super) fn register(&self, name: &str, route: &Arc<Route>) -> bool {
        let mut routes = self.routes.lock();
        let free = !routes.contains_key(name);
        if free {
            routes.insert(name.to_owned(), Arc::clone(route));
        }
        free
    }

    pub(super) fn unregister(&self, name: &str, route: &Arc<Route>) {
        let mut routes = self.routes.lock();
        if routes.get(name).is_some_and(|other| Arc::ptr_eq(other, route)) {
            routes.remove(name);
        }
    }

    pub(super) fn route(&self, name: &str) -> Option<Arc<Route>> {
        self.routes.lock().get(name).cloned()
    }

    /// Sets the location of a subscriber.
    pub(super) fn set_location(&self, subscriber: u64, name: &str) {
        let mut names = self.names.lock();
        let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        self.locations[subscriber as usize].store(number as u32 + 1, Relaxed);
    }

    /// The last known location of a subscriber.
    pub(super) fn location(&self, subscriber: u64) -> Option<String> {
        let number = self.locations.get(subscriber as usize)?.load(Relaxed).checked_sub(1)?;
        self.names.lock().get(number as usize).cloned()
    }
}

/// A running HLR.
#[derive(Debug)]
pub struct SimulatedHlr {
    shared: Arc<Shared>,
    control: Arc<Control>,
    gsup: GsmListener,
    ctrl: GsmListener,
    runtime: Runtime,
}

/// A listener that can be closed with all its connections and reopened on the same port.
#[derive(Debug)]
struct GsmListener {
    address: SocketAddr,
    /// Dropped to close the listener.
    open: Option<(watch::Sender<()>, JoinHandle<()>)>,
}

impl SimulatedHlr {
    /// Starts the HLR on free loopback ports.
    pub fn start(options: HlrOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stand-in-hlr")
            .enable_all()
            .build()?;
        let locations = (0..options.subscribers.count).map(|_| AtomicU32::new(0)).collect();
        let control = Arc::new(Control::default());
        let shared = Arc::new(Shared {
            options,
            routes: Mutex::default(),
            locations,
            names: Mutex::default(),
            located: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unrouted: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let closed = || GsmListener { address: nowhere, open: None };
        let mut hlr = Self { shared, control, gsup: closed(), ctrl: closed(), runtime };
        hlr.restart()?;
        Ok(hlr)
    }

    /// Address of the GSUP listener.
    pub fn gsup(&self) -> SocketAddr {
        self.gsup.address
    }

    /// Address of the control interface.
    pub fn ctrl(&self) -> SocketAddr {
        self.ctrl.address
    }

    /// Closes both listeners and all connections.
    pub fn stop(&mut self) {
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

    /// Reopens the closed listeners on their ports.
    pub fn restart(&mut self) -> Result<()> {
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

    /// Whether a node is connected under this name.
    pub fn is_connected(&self, name: &str) -> bool {
        self.shared.route(name).is_some()
    }

    /// Counts of the control interface.
    pub fn control_report(&self) -> ControlReport {
        self.control.report()
    }

    /// Connections accepted on the GSUP port.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Relaxed)
    }

    /// Location updates answered positively.
    pub fn located(&self) -> u64 {
        self.shared.located.load(Relaxed)
    }

    /// GSUP messages received.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Relaxed)
    }

    /// Connections without a unit id, or with a name that was in use.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }

    /// Messages for nodes that were not connected.
    pub fn unrouted(&self) -> u64 {
        self.shared.unrouted.load(Relaxed)
    }
}

fn close(listener: &mut GsmListener, runtime: &Runtime) {
    if let Some((sender, task)) = listener.open.take() {
        drop(sender);
        // The task ends when the sender is dropped, and closes the listener.
        let _ = runtime.block_on(task);
    }
}

/// Accepts connections until the listener is closed, then ends them.
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
                        // The other side notices that the connection ended.
                        _ = link => {}
                        _ = closed.changed() => {}
                    }
                });
            }
            _ = closed.changed() => return,
        }
    }
}
