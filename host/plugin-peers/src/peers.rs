use crate::callbacks;
use crate::counts::PeerCounts;
use crate::link::PeerLink;
use crate::options::PluginPeerOptions;
use crate::plugins::PeerPlugins;
use crate::workers::Workers;
use axum::Router;
use parking_lot::{Mutex, RwLock};
use ports::{EngineClient, EventSink, LinkRegistry, LogLimiter, Protocol, RateLimiter, Routing};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// Maximum number of callbacks of one peer at a time.
const CONCURRENT_CALLBACKS: usize = 32;
/// Maximum time for the calls of a removed or changed peer to return.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The peers whose protocols plugins implement. The methods must be called within a tokio runtime.
pub struct PluginPeers {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) plugins: Arc<dyn PeerPlugins>,
    pub(crate) engine_client: EngineClient,
    peers: RwLock<HashMap<String, Arc<RunningPeer>>>,
}

/// A configured peer.
pub(crate) struct RunningPeer {
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<PluginPeerOptions>,
    pub(crate) callback_rate: Mutex<RateLimiter>,
    pub(crate) callback_permits: Arc<Semaphore>,
    pub(crate) log: LogLimiter,
    pub(crate) counts: Arc<PeerCounts>,
    stop: watch::Sender<Option<Instant>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    pub(crate) fn peer(&self, name: &str) -> Option<Arc<RunningPeer>> {
        self.peers.read().get(name).cloned()
    }
}

impl PluginPeers {
    /// Creates the set without peers.
    #[must_use]
    pub fn new(
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
        registry: Arc<LinkRegistry>,
        plugins: Arc<dyn PeerPlugins>,
    ) -> Self {
        let engine_client = EngineClient::open_for(&registry, Protocol::Http);
        let peers = RwLock::default();
        Self { shared: Arc::new(Shared { core, routing, registry, plugins, engine_client, peers }) }
    }

    /// Adds or changes a peer. A changed peer gets a new link at once; calls of the old link have ten seconds to return.
    ///
    /// # Errors
    /// The system starts no more threads; nothing has changed.
    pub fn set_peer(&self, options: PluginPeerOptions) -> io::Result<()> {
        let (key, name): (String, Arc<str>) = (options.name.clone(), options.name.as_str().into());
        let workers = Workers::start(&name, options.window)?;
        let counts = self.shared.peer(&key).map(|before| before.counts.clone()).unwrap_or_default();
        let options = Arc::new(options);
        let (stop, signal) = watch::channel(None);
        let link = PeerLink {
            core: self.shared.core.clone(),
            registry: self.shared.registry.clone(),
            plugins: self.shared.plugins.clone(),
            options: options.clone(),
            name: name.clone(),
            workers,
            log: LogLimiter::default(),
            counts: counts.clone(),
        };
        let rate = options.callback_rate;
        let peer = RunningPeer {
            name,
            options,
            callback_rate: Mutex::new(RateLimiter::new(f64::from(rate), rate, Instant::now())),
            callback_permits: Arc::new(Semaphore::new(CONCURRENT_CALLBACKS)),
            log: LogLimiter::default(),
            counts,
            stop,
            task: Mutex::new(Some(tokio::spawn(link.run(signal)))),
        };
        if let Some(before) = self.shared.peers.write().insert(key, Arc::new(peer)) {
            before.stop.send_replace(Some(Instant::now() + STOP_TIMEOUT));
        }
        Ok(())
    }

    /// Removes a peer: its link ends, and its callbacks are refused. Returns whether it existed.
    pub fn remove_peer(&self, name: &str) -> bool {
        let Some(peer) = self.shared.peers.write().remove(name) else { return false };
        peer.stop.send_replace(Some(Instant::now() + STOP_TIMEOUT));
        true
    }

    /// Whether a peer of this name is configured.
    #[must_use]
    pub fn has_peer(&self, name: &str) -> bool {
        self.shared.peers.read().contains_key(name)
    }

    /// The figures of all peers, by name, without the plugins that serve them.
    #[must_use]
    pub fn states(&self) -> Vec<api::PluginPeerView> {
        let peers = self.shared.peers.read();
        let view = |peer: &Arc<RunningPeer>| peer.counts.view(&peer.name, peer.options.window);
        let mut states: Vec<_> = peers.values().map(view).collect();
        states.sort_by(|one, other| one.peer.cmp(&other.peer));
        states
    }

    /// The routes of callbacks.
    pub fn router(&self) -> Router {
        callbacks::router(self.shared.clone())
    }

    /// Ends all links within the given time. The core must keep running meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        let until = Instant::now() + within;
        let peers: Vec<Arc<RunningPeer>> = self.shared.peers.write().drain().map(|(_, peer)| peer).collect();
        for peer in &peers {
            peer.stop.send_replace(Some(until));
        }
        for peer in peers {
            let task = peer.task.lock().take();
            if let Some(task) = task {
                let _ = task.await;
            }
        }
        self.shared.engine_client.close();
    }
}
