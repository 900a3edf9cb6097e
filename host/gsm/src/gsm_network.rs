use crate::absence_monitor::AbsenceMonitor;
use crate::core_network_link::{CoreNetworkLink, EngineHandles};
use crate::hlr_lookup::HlrLookup;
use crate::location_lookups::LocationLookups;
use crate::options::{GsmOptions, GsmRole};
use crate::state::Shared;
use crate::{hlr_connection, proxy};
use api::{CoreNetworkRole, CoreNetworkView};
use capabilities::Hlr;
use gsup::ccm::Identity;
use gsup::{IpaName, IpaNameError};
use parking_lot::Mutex;
use ports::{Acceptor, ConnectionLimiter, EventSink, LinkRegistry, Routing};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Error on the start of a core network.
#[derive(Debug, thiserror::Error)]
pub enum GsmError {
    /// The IPA name of the SMSC is invalid.
    #[error("core network {network:?}: ipa-name: {source}")]
    Name {
        /// Name of the network.
        network: String,
        /// The cause.
        source: IpaNameError,
    },
    /// The address for MSCs cannot be opened.
    #[error("core network {network:?}: listen = \"{address}\": {source}; is another program using it?")]
    Listen {
        /// Name of the network.
        network: String,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
}

/// A core network: one link for the engine, and one connection per MSC or one to the HLR.
pub struct GsmNetwork {
    pub(crate) options: Arc<GsmOptions>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hlr_lookup: Arc<HlrLookup>,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: watch::Sender<Option<Instant>>,
    /// Connections stay open until this sender is dropped.
    alive: watch::Sender<Option<Instant>>,
    link: JoinHandle<()>,
    address: Option<SocketAddr>,
}

impl GsmNetwork {
    /// Creates a network that is not connected yet; its HLR can be queried already. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn new(options: GsmOptions) -> Self {
        let options = Arc::new(options);
        let shared = Arc::new(Shared::default());
        let hlr_lookup = Arc::new(HlrLookup::new(&options, &shared));
        Self { options, shared, hlr_lookup, running: Mutex::default() }
    }

    /// Connects the network. Must be called once, within a tokio runtime.
    ///
    /// # Errors
    /// If the address for MSCs cannot be opened, or the IPA name is invalid.
    pub async fn start(
        &self,
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
        registry: Arc<LinkRegistry>,
    ) -> Result<(), GsmError> {
        let options = &self.options;
        let name_error = |source| GsmError::Name { network: options.name.clone(), source };
        let name: IpaName = options.ipa_name.parse().map_err(name_error)?;
        let (stop, link_stop) = watch::channel(None);
        let (alive, connections_stop) = watch::channel(None);
        let (inputs, input_receiver) = unbounded_channel();
        let shared = self.shared.clone();
        let queries_absent = options.role == GsmRole::Client && options.ctrl.is_some();
        let absence_monitor =
            queries_absent.then(|| AbsenceMonitor::new(self.hlr_lookup.clone(), inputs.downgrade()));
        let location_lookups = LocationLookups::new(self.hlr_lookup.clone(), inputs.downgrade());
        let mut address = None;
        let hlr = options.hlr.clone();
        match options.role {
            GsmRole::Client => {
                let software = concat!("switchyard-", env!("CARGO_PKG_VERSION"));
                let identity = Identity::new(&options.ipa_name, software).map_err(name_error)?;
                let counts = shared.counts.clone();
                tokio::spawn(hlr_connection::run(
                    options.clone(),
                    hlr,
                    identity,
                    counts,
                    inputs,
                    connections_stop,
                ));
            }
            GsmRole::Proxy => {
                let listen = options.listen;
                let listen_error =
                    |source| GsmError::Listen { network: options.name.clone(), address: listen, source };
                let listener = TcpListener::bind(listen).await.map_err(listen_error)?;
                let bound = listener.local_addr().map_err(listen_error)?;
                tracing::info!(network = options.name, address = %bound, "listening for mscs");
                address = Some(bound);
                let name = name.clone();
                let shared = shared.clone();
                let limiter = ConnectionLimiter::new(options.limits(), Arc::default());
                let acceptor = Acceptor::new(&options.name, Arc::new(listener), limiter);
                tokio::spawn(proxy::run(
                    options.clone(),
                    acceptor,
                    hlr,
                    name,
                    shared,
                    inputs,
                    connections_stop,
                ));
            }
        }
        let ports = EngineHandles { core, routing, registry };
        let link =
            CoreNetworkLink::new(options.clone(), name, ports, shared, location_lookups, absence_monitor);
        let link = tokio::spawn(link.run(input_receiver, link_stop));
        *self.running.lock() = Some(Running { stop, alive, link, address });
        Ok(())
    }

    /// The name of the network in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The listen address for MSCs; `None` before the start and for a client.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.lock().as_ref()?.address
    }

    /// Stops accepting messages, waits for messages in flight at most `within`, and closes all connections.
    pub async fn shutdown(&self, within: Duration) {
        let Some(running) = self.running.lock().take() else { return };
        let _ = running.stop.send(Some(Instant::now() + within));
        // The task needs some time to close its link.
        let _ = tokio::time::timeout(within + Duration::from_secs(6), running.link).await;
        drop(running.alive);
    }

    /// The HLR lookup of this network; `None` for a client without a CTRL interface, which has no information about
    /// subscribers.
    #[must_use]
    pub fn hlr(&self) -> Option<Arc<dyn Hlr>> {
        let no_source = self.options.role == GsmRole::Client && self.options.ctrl.is_none();
        (!no_source).then(|| self.hlr_lookup.clone() as Arc<dyn Hlr>)
    }

    /// A snapshot of the network's state for the API and metrics.
    #[must_use]
    pub fn state(&self) -> CoreNetworkView {
        let role = match self.options.role {
            GsmRole::Client => CoreNetworkRole::Client,
            GsmRole::Proxy => CoreNetworkRole::Proxy,
        };
        let counts = &self.shared.counts;
        let connections: Vec<_> = self.shared.connections.lock().values().cloned().collect();
        let ctrl_up = counts.ctrl_up.load(Relaxed);
        let ctrl_down = self.options.ctrl.as_deref().filter(|_| counts.ctrl_failed.load(Relaxed));
        CoreNetworkView {
            faults: counts.observed_faults.faults(role, &connections, ctrl_down),
            connections,
            hlr_answers: self.options.ctrl.is_some().then_some(ctrl_up),
            subscribers_known: self.shared.subscribers.len() as u64,
            ..counts.snapshot(&self.options.name, role)
        }
    }
}
