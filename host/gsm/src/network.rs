use crate::absent::Absent;
use crate::desk::{Desk, EnginePorts, Shared};
use crate::options::{GsmOptions, Role};
use crate::register::Register;
use crate::state::GsmState;
use crate::whereabouts::Whereabouts;
use crate::{client, proxy};
use capabilities::Hlr;
use doors::{Acceptor, Core, Hub, Places, Routing};
use gsup::ccm::Identity;
use gsup::{Name, NameError};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A core network that cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum GsmError {
    /// Its place among MSCs and HLR has a name that an HLR does not take.
    #[error("core network {network:?}: ipa-name: {source}")]
    Name {
        /// The network.
        network: String,
        /// What is wrong.
        source: NameError,
    },
    /// The address for MSCs.
    #[error("core network {network:?}: listen = \"{address}\": {source}; is another program using it?")]
    Listen {
        /// The network.
        network: String,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// A core network: one link for the engine, as many connections as there are MSCs (or one to the HLR).
pub struct Network {
    pub(crate) options: Arc<GsmOptions>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) register: Arc<Register>,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: watch::Sender<Option<Instant>>,
    /// Connections live until it is dropped.
    alive: watch::Sender<Option<Instant>>,
    desk: JoinHandle<()>,
    address: Option<SocketAddr>,
}

impl Network {
    /// A network that is not yet connected; its HLR can be asked. To be called inside a tokio runtime.
    #[must_use]
    pub fn new(options: GsmOptions) -> Self {
        let options = Arc::new(options);
        let shared = Arc::new(Shared::default());
        let register = Arc::new(Register::new(&options, &shared));
        Self { options, shared, register, running: Mutex::default() }
    }

    /// Connects. To be called inside a tokio runtime, once.
    ///
    /// # Errors
    /// When MSCs cannot be listened for, or our name is none.
    pub async fn start(
        &self,
        core: Arc<dyn Core>,
        routing: Arc<dyn Routing>,
        hub: Arc<Hub>,
    ) -> Result<(), GsmError> {
        let options = &self.options;
        let wrong = |source| GsmError::Name { network: options.name.clone(), source };
        let name: Name = options.ipa_name.parse().map_err(wrong)?;
        let (stop, stopping) = watch::channel(None);
        let (alive, living) = watch::channel(None);
        let (inputs, taken) = unbounded_channel();
        let shared = self.shared.clone();
        let asks = matches!(options.role, Role::Client { .. }) && options.ctrl.is_some();
        let absent = asks.then(|| Absent::new(self.register.clone(), inputs.downgrade()));
        let whereabouts = Whereabouts::new(self.register.clone(), inputs.downgrade());
        let mut address = None;
        match &options.role {
            Role::Client { hlr } => {
                let software = concat!("switchyard-", env!("CARGO_PKG_VERSION"));
                let identity = Identity::new(&options.ipa_name, software).map_err(wrong)?;
                let counts = shared.counts.clone();
                tokio::spawn(client::run(options.clone(), hlr.clone(), identity, counts, inputs, living));
            }
            Role::Proxy { listen, hlr } => {
                let failed =
                    |source| GsmError::Listen { network: options.name.clone(), address: *listen, source };
                let listener = TcpListener::bind(listen).await.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                tracing::info!(network = options.name, address = %bound, "listening for MSCs");
                address = Some(bound);
                let (hlr, name) = (hlr.clone(), name.clone());
                let shared = shared.clone();
                let places = Places::new(options.limits, Arc::default());
                let acceptor = Acceptor::new(&options.name, Arc::new(listener), places);
                tokio::spawn(proxy::run(options.clone(), acceptor, hlr, name, shared, inputs, living));
            }
        }
        let ports = EnginePorts { core, routing, hub };
        let desk = Desk::new(options.clone(), name, ports, shared, whereabouts, absent);
        let desk = tokio::spawn(desk.run(taken, stopping));
        *self.running.lock() = Some(Running { stop, alive, desk, address });
        Ok(())
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Where MSCs connect to, once it is known.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.lock().as_ref()?.address
    }

    /// Takes nothing new, waits for what is on its way, and leaves; at most so long.
    pub async fn shutdown(&self, within: Duration) {
        let Some(running) = self.running.lock().take() else { return };
        let _ = running.stop.send(Some(Instant::now() + within));
        // A moment more for its last words to the engine.
        let _ = tokio::time::timeout(within + Duration::from_secs(6), running.desk).await;
        drop(running.alive);
    }

    /// Who stands behind a number, as this network knows it; `None` where nothing can be known: a client sees no
    /// signalling, and has no CTRL interface to ask.
    #[must_use]
    pub fn hlr(&self) -> Option<Arc<dyn Hlr>> {
        let blind = matches!(self.options.role, Role::Client { .. }) && self.options.ctrl.is_none();
        (!blind).then(|| self.register.clone() as Arc<dyn Hlr>)
    }

    /// What an admin sees of it.
    #[must_use]
    pub fn state(&self) -> GsmState {
        let role = match self.options.role {
            Role::Client { .. } => "client",
            Role::Proxy { .. } => "proxy",
        };
        let counts = &self.shared.counts;
        let connections: Vec<_> = self.shared.connections.lock().values().cloned().collect();
        let ctrl_up = counts.ctrl_up.load(Relaxed);
        let is_proxy = matches!(self.options.role, Role::Proxy { .. });
        let ctrl_down = self.options.ctrl.as_deref().filter(|_| counts.ctrl_failed.load(Relaxed));
        GsmState {
            faults: counts.observed.faults(is_proxy, &connections, ctrl_down),
            connections,
            ctrl: self.options.ctrl.is_some().then_some(ctrl_up),
            subscribers: self.shared.subscribers.len() as u64,
            ..counts.show(&self.options.name, role)
        }
    }
}
