use crate::accounts::Accounts;
use crate::dialer::{DialedPeer, dial};
use crate::link_record::LinkRecords;
use crate::listener::{Listener, ListenerKind, PreparedListener};
use crate::sgip::{self, GatewayOptions, SpOptions};
use crate::shared::{BindCounters, ListenerCounts, Shared};
use crate::{LinkAccountOptions, LinkState, LinksOptions, ListenerError, PeerError, PeerOptions, clock};
use model::PeerId;
use parking_lot::Mutex;
use ports::{EventSink, LinkRegistry, LogLimiter, LoginLimiter, PasswordVerifier, Routing};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;

/// All links of the appliance: listeners, accounts and peers. Each may be added, changed and removed while the others
/// work. Its methods must be called inside a tokio runtime.
pub struct Links {
    shared: Arc<Shared>,
    listeners: Mutex<HashMap<String, Listener>>,
    peers: Mutex<HashMap<String, DialedPeer>>,
    gateways: Mutex<HashMap<String, (Arc<GatewayOptions>, sgip::dialer::DialedNode)>>,
    sps: Mutex<HashMap<String, (Arc<SpOptions>, sgip::dialer::DialedNode)>>,
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

/// Listeners that are ready to be opened; see [`Links::prepare_listeners`].
pub struct PreparedListeners {
    ready: Vec<PreparedListener>,
    /// The names of all configured listeners, including those that do not change.
    names: HashSet<String>,
}

/// What remained when the links were shut down.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShutdownLeftover {
    /// Links that were still open when the time was over, by name of account or peer.
    pub links: Vec<String>,
    /// Messages sent on them that were not answered.
    pub unanswered: u32,
    /// Requests received on them that were not answered.
    pub unanswered_in: u32,
}

/// The time that links have to close when their account, peer or listener is removed or changed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Links {
    /// Creates the links without any listener, account or peer.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(
        options: LinksOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
    ) -> Result<Self, getrandom::Error> {
        let (alive, ended) = mpsc::channel(1);
        let shared = Shared {
            core,
            routing,
            registry: Arc::new(LinkRegistry::new()),
            accounts: Accounts::default(),
            logins: sgip::bind_authenticator::Logins::default(),
            records: LinkRecords::default(),
            limiter,
            verifier: PasswordVerifier::new(options.verifications)?,
            bind_counters: BindCounters::default(),
            connections: Arc::default(),
            refuse_binds: AtomicBool::new(false),
            log: LogLimiter::default(),
            alive: Mutex::new(Some(alive)),
            options,
        };
        Ok(Self {
            shared: Arc::new(shared),
            listeners: Mutex::default(),
            peers: Mutex::default(),
            gateways: Mutex::default(),
            sps: Mutex::default(),
            ended: tokio::sync::Mutex::new(ended),
        })
    }

    /// The link registry: dispatches the engine's commands, also for other front ends.
    #[must_use]
    pub fn registry(&self) -> Arc<LinkRegistry> {
        self.shared.registry.clone()
    }

    /// Opens a listener. Returns its address, which tells the port if port 0 was configured.
    ///
    /// # Errors
    /// If the address cannot be bound, the TLS files cannot be used, or the name is taken.
    pub async fn listen(&self, options: impl Into<ListenerKind>) -> Result<SocketAddr, ListenerError> {
        let kind = options.into();
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(ListenerError::ShuttingDown) };
        if self.listeners.lock().contains_key(kind.name()) {
            return Err(ListenerError::NameTaken(kind.name().to_owned()));
        }
        let listener = PreparedListener::new(kind, None).await?.open(&self.shared, alive, None);
        let address = listener.address;
        self.listeners.lock().insert(listener.kind.name().to_owned(), listener);
        Ok(address)
    }

    /// Prepares the change to exactly these listeners: reads certificates and binds new addresses. Nothing changes
    /// until the result is passed to [`Links::set_listeners`]; if it is dropped, nothing has changed.
    ///
    /// # Errors
    /// If an address cannot be bound, or TLS files cannot be used.
    pub async fn prepare_listeners(
        &self,
        wanted: &[ListenerKind],
    ) -> Result<PreparedListeners, ListenerError> {
        let mut ready = Vec::new();
        for kind in wanted {
            let (is_open, socket) = {
                let listeners = self.listeners.lock();
                let named = listeners.get(kind.name());
                // An address may move from one listener to another. Port 0 is never shared.
                let own = named.and_then(|listener| listener.socket_on(kind.listen()));
                let others = listeners.values().filter(|_| kind.listen().port() != 0);
                let socket =
                    own.or_else(|| others.into_iter().find_map(|listener| listener.socket_on(kind.listen())));
                (named.is_some_and(|listener| listener.matches(kind)), socket)
            };
            if !is_open {
                ready.push(PreparedListener::new(kind.clone(), socket).await?);
            }
        }
        Ok(PreparedListeners { ready, names: wanted.iter().map(|one| one.name().to_owned()).collect() })
    }

    /// Opens new listeners, replaces changed ones (their connections stay open), and closes listeners that are not
    /// configured any more (their connections are unbound). The others are not affected.
    pub fn set_listeners(&self, ready: PreparedListeners) {
        let Some(alive) = self.shared.alive.lock().clone() else { return };
        let mut listeners = self.listeners.lock();
        for one in ready.ready {
            let name = one.name().to_owned();
            let before = listeners.remove(&name);
            listeners.insert(name, one.open(&self.shared, alive.clone(), before));
        }
        listeners.retain(|name, listener| {
            let wanted = ready.names.contains(name);
            if !wanted {
                listener.stop(clock::now() + CLOSE_TIMEOUT);
            }
            wanted
        });
    }

    /// Closes a listener and unbinds its connections. Returns whether there was one.
    pub fn close_listener(&self, name: &str) -> bool {
        let Some(listener) = self.listeners.lock().remove(name) else { return false };
        listener.stop(clock::now() + CLOSE_TIMEOUT);
        true
    }

    /// Adds an account, or changes the one of that name. Rate, source rules and validity apply to existing sessions
    /// from their next message on; passwords, networks, bind modes, windows and the session limit apply to new binds.
    ///
    /// If the account has an SGIP side with an address, the SP is dialed; connections to it with other options are
    /// closed.
    ///
    /// # Errors
    /// If the SGIP address is malformed; the SMPP side of the account works nevertheless.
    pub fn set_account(&self, options: LinkAccountOptions) -> Result<(), PeerError> {
        let (name, peer, sp) = (options.name.clone(), options.peer, options.sgip.clone());
        let account =
            self.shared.accounts.set(options, self.shared.registry.rates(), clock::now() + CLOSE_TIMEOUT);
        let Some(sp) = sp.map(Arc::new) else {
            self.remove_sp_links(&name, peer);
            return Ok(());
        };
        self.shared.logins.set_sp(&account, &sp);
        let mut sps = self.sps.lock();
        if sps.get(&name).is_some_and(|(old, _)| *old == sp) {
            return Ok(());
        }
        if let Some((_, old)) = sps.remove(&name) {
            old.stop(clock::now() + CLOSE_TIMEOUT);
        }
        if sp.address.is_empty() {
            return Ok(());
        }
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let dialed = sgip::dialer::sp(&self.shared, &name, peer, &sp, &alive)?;
        sps.insert(name, (sp, dialed));
        Ok(())
    }

    fn remove_sp_links(&self, name: &str, peer: PeerId) {
        self.shared.logins.remove_sp(peer);
        if let Some((_, old)) = self.sps.lock().remove(name) {
            old.stop(clock::now() + CLOSE_TIMEOUT);
        }
    }

    /// Removes an account and unbinds its sessions. Returns whether there was one.
    pub fn remove_account(&self, name: &str) -> bool {
        if let Some(peer) = self.shared.accounts.remove(name, clock::now() + CLOSE_TIMEOUT) {
            self.remove_sp_links(name, peer);
            return true;
        }
        false
    }

    /// Adds a gateway, or changes the one of that name: dials it and lets it log in. Does nothing if the options are
    /// unchanged.
    ///
    /// # Errors
    /// If the options cannot be used; the old ones stay in effect.
    pub fn set_gateway(&self, options: GatewayOptions) -> Result<(), PeerError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let mut gateways = self.gateways.lock();
        let options = Arc::new(options);
        if gateways.get(&options.name).is_some_and(|(old, _)| *old == options) {
            return Ok(());
        }
        let dialed = sgip::dialer::gateway(&self.shared, &options, &alive)?;
        self.shared.logins.set_gateway(&options);
        if let Some((_, old)) = gateways.insert(options.name.clone(), (options, dialed)) {
            old.stop(clock::now() + CLOSE_TIMEOUT);
        }
        Ok(())
    }

    /// Whether the peer is a gateway or an SP.
    pub fn is_sgip(&self, name: &str) -> bool {
        self.gateways.lock().contains_key(name) || self.sps.lock().contains_key(name)
    }

    /// Removes a gateway: closes its connections and refuses its logins. Returns whether there was one.
    pub fn remove_gateway(&self, name: &str) -> bool {
        let Some((_, gateway)) = self.gateways.lock().remove(name) else { return false };
        self.shared.logins.remove_gateway(name);
        gateway.stop(clock::now() + CLOSE_TIMEOUT);
        true
    }

    /// Adds a peer, or changes the one of that name: its links close in an orderly way while links with the new
    /// options come up. Does nothing if the options are unchanged.
    ///
    /// # Errors
    /// If the options cannot be used; the old ones stay in effect.
    pub fn set_peer(&self, options: PeerOptions) -> Result<(), PeerError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let mut peers = self.peers.lock();
        if peers.get(&options.name).is_some_and(|old| *old.options == options) {
            return Ok(());
        }
        let name = options.name.clone();
        let dialed = dial(&self.shared, options, &alive)?;
        if let Some(old) = peers.insert(name, dialed) {
            old.stop(clock::now() + CLOSE_TIMEOUT);
        }
        Ok(())
    }

    /// Removes a peer and closes its links. Returns whether there was one.
    pub fn remove_peer(&self, name: &str) -> bool {
        let Some(peer) = self.peers.lock().remove(name) else { return false };
        peer.stop(clock::now() + CLOSE_TIMEOUT);
        true
    }

    /// Dials a peer or gateway at once if it waits to be dialed again. Returns whether there is one that is dialed.
    pub fn dial_now(&self, name: &str) -> bool {
        self.shared.records.dial_now(name)
    }

    /// Returns the current options of the account of that name.
    #[must_use]
    pub fn account_options(&self, name: &str) -> Option<Arc<LinkAccountOptions>> {
        self.shared.accounts.options_of(name)
    }

    pub(crate) fn peer_options(&self, name: &str) -> Option<Arc<PeerOptions>> {
        self.peers.lock().get(name).map(|peer| peer.options.clone())
    }

    pub(crate) fn gateway_options(&self, name: &str) -> Option<Arc<GatewayOptions>> {
        self.gateways.lock().get(name).map(|(options, _)| options.clone())
    }

    pub(crate) fn system_id(&self) -> bytes::Bytes {
        self.shared.options.system_id.clone()
    }

    /// Returns every link: bound links of accounts, and links of peers in any phase.
    #[must_use]
    pub fn states(&self) -> Vec<LinkState> {
        self.shared.records.snapshot()
    }

    /// Refuses new binds and logins, or accepts them again. Existing sessions stay, and peers are still dialed.
    pub fn refuse_new_binds(&self, refuse: bool) {
        self.shared.refuse_binds.store(refuse, Relaxed);
    }

    /// The counters of all listeners.
    #[must_use]
    pub fn listener_counts(&self) -> ListenerCounts {
        let binds = &self.shared.bind_counters;
        ListenerCounts {
            connections: self.shared.connections.accepted.load(Relaxed),
            turned_away: self.shared.connections.turned_away(),
            binds: binds.binds.load(Relaxed),
            binds_refused: binds.binds_refused.load(Relaxed),
            handshakes_failed: binds.handshakes_failed.load(Relaxed),
        }
    }

    /// Stops listening and dialing, answers the open requests, unbinds all links and closes them, within the given
    /// time. The engine must keep working, because the answers come from it. Returns what remained when the time was
    /// over.
    pub async fn shutdown(&self, within: Duration) -> ShutdownLeftover {
        let until = clock::now() + within;
        self.shared.alive.lock().take();
        for (_, listener) in self.listeners.lock().drain() {
            listener.stop(until);
        }
        for (_, peer) in self.peers.lock().drain() {
            peer.stop(until);
        }
        for (_, (_, gateway)) in self.gateways.lock().drain() {
            gateway.stop(until);
        }
        for (_, (_, sp)) in self.sps.lock().drain() {
            sp.stop(until);
        }
        let mut ended = self.ended.lock().await;
        // Links close at `until` at the latest; their last events to the engine take a moment more.
        let timeout = within + self.shared.options.close_timeout;
        let all = tokio::time::timeout(timeout, ended.recv()).await.is_ok();
        if all {
            return ShutdownLeftover::default();
        }
        let states = self.states();
        ShutdownLeftover {
            unanswered: states.iter().map(|state| state.in_flight).sum(),
            unanswered_in: states.iter().map(|state| state.unanswered_in).sum(),
            links: states.into_iter().map(|state| state.name).collect(),
        }
    }
}
