use crate::accounts::Accounts;
use crate::gateway_kind::GatewayKind;
use crate::listener_kind::ListenerKind;
use crate::partition::{PartitionSession, PartitionSessions, dial_home};
use crate::sgip::{self, SgipLink, SpOptions};
use crate::shared::Shared;
use crate::smpp_link::{SmppLink, dial_target};
use crate::sp::state::SpState;
use crate::sp::{self, SpLink};
use crate::{
    LinkAccountOptions, LinkState, LinksOptions, PartitionAccountOptions, PeerOptions, RemotePeerOptions,
};
use cmpp::Cmpp;
use model::PeerId;
use parking_lot::Mutex;
use ports::link::{
    DialedPeer, LinkDeps, LinkLimits, Listener, ListenerCounts, ListenerError, PeerError, PreparedListener,
    dial, serve_node,
};
use ports::{
    ConnectionLimitReached, EventSink, LinkRegistry, LoginLimiter, PassedConnection, PassedInterface,
    PasswordVerifier, Protocol, Routing, Socket, clock,
};
use smgp::Smgp;
use sp_session::SpProtocol as _;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// All links of the appliance: listeners, accounts and peers. Each can be added, changed and removed while the others
/// work. The methods must be called inside a tokio runtime.
pub struct Links {
    shared: Arc<Shared>,
    listeners: Mutex<HashMap<String, Listener<ListenerKind>>>,
    peers: Mutex<HashMap<String, (Arc<PeerOptions>, DialedPeer)>>,
    gateways: Mutex<HashMap<String, (GatewayKind, DialedPeer)>>,
    sps: Mutex<HashMap<String, (Arc<SpOptions>, DialedPeer)>>,
    /// Peers whose home is another partition.
    remote_peers: Mutex<HashMap<String, (RemotePeerOptions, DialedPeer)>>,
    partition_sessions: Arc<PartitionSessions>,
}

/// Listeners that are prepared but not open yet; see [`Links::prepare_listeners`].
pub struct PreparedListeners {
    ready: Vec<PreparedListener<ListenerKind>>,
    /// The names of all configured listeners, including those that do not change.
    names: HashSet<String>,
}

/// Unfinished work at the end of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShutdownLeftover {
    /// Links that were still open at the end, by name of the account or peer.
    pub links: Vec<String>,
    /// Number of messages sent on these links without an answer.
    pub unanswered: u32,
    /// Number of requests received on these links without an answer.
    pub unanswered_in: u32,
}

/// Maximum time for closing links when their account, peer or listener is removed or changed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Links {
    /// Creates the links without any listener, account or peer.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(
        options: LinksOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
    ) -> Result<Self, getrandom::Error> {
        let limits = LinkLimits {
            write_timeout: options.write_timeout,
            output_limit: options.output_limit,
            close_timeout: options.close_timeout,
        };
        let registry = Arc::new(LinkRegistry::with_limiter(limiter, options.lease.clone()));
        let shared = Shared {
            deps: LinkDeps::new(core, routing, registry, limits),
            accounts: Accounts::default(),
            logins: sgip::bind_authenticator::Logins::default(),
            cmpp: SpState::new(),
            smgp: SpState::new(),
            verifier: PasswordVerifier::new(options.verifications)?,
            options,
        };
        Ok(Self {
            shared: Arc::new(shared),
            listeners: Mutex::default(),
            peers: Mutex::default(),
            gateways: Mutex::default(),
            sps: Mutex::default(),
            remote_peers: Mutex::default(),
            partition_sessions: Arc::default(),
        })
    }

    /// The link registry: dispatches the engine's commands, also for other front ends.
    #[must_use]
    pub fn registry(&self) -> Arc<LinkRegistry> {
        self.shared.deps.registry.clone()
    }

    /// Opens a listener. Returns its address, with the actual port if port 0 was configured.
    ///
    /// # Errors
    /// The address cannot be bound, the TLS files cannot be used, or the name is taken.
    pub async fn listen(&self, options: impl Into<ListenerKind>) -> Result<SocketAddr, ListenerError> {
        if self.shared.deps.is_shutting_down() {
            return Err(ListenerError::ShuttingDown);
        }
        let kind = options.into();
        let settings = kind.settings();
        let name = settings.name.clone();
        if self.listeners.lock().contains_key(&name) {
            return Err(ListenerError::NameTaken(name));
        }
        let listener = self.start(PreparedListener::new(kind, settings, None).await?, None);
        let address = listener.address();
        self.listeners.lock().insert(name, listener);
        Ok(address)
    }

    fn start(
        &self,
        prepared: PreparedListener<ListenerKind>,
        before: Option<Listener<ListenerKind>>,
    ) -> Listener<ListenerKind> {
        let shared = self.shared.clone();
        match prepared.options().clone() {
            ListenerKind::Smpp(options) => {
                let options = Arc::new(options);
                prepared
                    .open(&self.shared.deps, before, move |peer| SmppLink::server(&shared, &options, peer))
            }
            ListenerKind::Sgip(options) => prepared
                .open(&self.shared.deps, before, move |peer| SgipLink::server(&shared, &options, peer)),
            ListenerKind::Cmpp(options) => prepared
                .open(&self.shared.deps, before, move |peer| SpLink::<Cmpp>::server(&shared, &options, peer)),
            ListenerKind::Smgp(options) => prepared
                .open(&self.shared.deps, before, move |peer| SpLink::<Smgp>::server(&shared, &options, peer)),
        }
    }

    /// Prepares the change to exactly these listeners: reads certificates and binds new addresses. The change takes
    /// place when the result is passed to [`Links::set_listeners`]; if it is dropped, nothing has changed.
    ///
    /// # Errors
    /// An address cannot be bound, or TLS files cannot be used.
    pub async fn prepare_listeners(
        &self,
        wanted: &[ListenerKind],
    ) -> Result<PreparedListeners, ListenerError> {
        let (mut ready, mut names) = (Vec::new(), HashSet::new());
        for kind in wanted {
            let settings = kind.settings();
            let listen = settings.listen;
            let (is_open, socket) = {
                let listeners = self.listeners.lock();
                let named = listeners.get(&settings.name);
                // An address may move from one listener to another. Port 0 is never shared.
                let own = named.and_then(|listener| listener.socket_on(listen));
                let others = listeners.values().filter(|_| listen.port() != 0);
                let socket =
                    own.or_else(|| others.into_iter().find_map(|listener| listener.socket_on(listen)));
                (named.is_some_and(|listener| listener.matches(kind)), socket)
            };
            names.insert(settings.name.clone());
            if !is_open {
                ready.push(PreparedListener::new(kind.clone(), settings, socket).await?);
            }
        }
        Ok(PreparedListeners { ready, names })
    }

    /// Opens new listeners, replaces changed ones (their connections stay open), and closes removed ones (their
    /// connections are unbound). Unchanged listeners are not affected.
    pub fn set_listeners(&self, ready: PreparedListeners) {
        if self.shared.deps.is_shutting_down() {
            return;
        }
        let mut listeners = self.listeners.lock();
        for one in ready.ready {
            let name = one.name().to_owned();
            let before = listeners.remove(&name);
            listeners.insert(name, self.start(one, before));
        }
        listeners.retain(|name, listener| {
            let wanted = ready.names.contains(name);
            if !wanted {
                listener.stop(clock::now() + CLOSE_TIMEOUT);
            }
            wanted
        });
    }

    /// Serves a connection that another node has passed on, at the listener of the same name, or else at any listener
    /// of its protocol.
    ///
    /// # Errors
    /// No listener of its protocol is open, or the listener has reached a limit.
    pub fn accept_passed(&self, socket: Socket, connection: PassedConnection) -> Result<(), &'static str> {
        let protocol = match connection.interface {
            PassedInterface::Login(interface) => interface.link_protocol(),
            PassedInterface::Partition => {
                let sessions = self.partition_sessions.clone();
                serve_node(&self.shared.deps, socket, |control| {
                    PartitionSession::new(clock::now(), sessions, control)
                });
                return Ok(());
            }
        };
        let listeners = self.listeners.lock();
        let serves = |listener: &&Listener<ListenerKind>| Some(listener.options().protocol()) == protocol;
        let named = listeners.get(&connection.listener).filter(serves);
        let listener = named.or_else(|| listeners.values().find(serves));
        let listener = listener.ok_or("no listener for its protocol is open")?;
        listener.accept_passed(socket, connection).map_err(ConnectionLimitReached::reason)
    }

    /// Closes a listener and unbinds its connections. Returns whether there was one.
    pub fn close_listener(&self, name: &str) -> bool {
        let Some(listener) = self.listeners.lock().remove(name) else { return false };
        listener.stop(clock::now() + CLOSE_TIMEOUT);
        true
    }

    /// Adds an account, or changes the account of that name. Rate, source rules and validity apply to existing sessions
    /// from their next message on; passwords, networks, bind modes, windows and the session limit apply to new binds.
    ///
    /// If the account has an SGIP address, the SP is dialled; existing connections to it with other options are closed.
    ///
    /// # Errors
    /// The SGIP address is malformed. The SMPP part of the account works nevertheless.
    pub fn set_account(&self, options: LinkAccountOptions) -> Result<(), PeerError> {
        let (name, peer, sp) = (options.name.clone(), options.peer, options.sgip.clone());
        let registry = self.shared.deps.registry.accounts();
        let (cmpp, smgp) = (options.cmpp.clone(), options.smgp.clone());
        let account = self.shared.accounts.set(options, registry, clock::now() + CLOSE_TIMEOUT);
        self.shared.cmpp.set(&account, cmpp.as_ref());
        self.shared.smgp.set(&account, smgp.as_ref());
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
        let dialed = sgip::dial_sp(&self.shared, &name, peer, &sp)?;
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
            self.shared.cmpp.remove(peer);
            self.shared.smgp.remove(peer);
            return true;
        }
        false
    }

    /// Adds a gateway, or changes the gateway of that name: dials it and permits its logins. Does nothing if the
    /// options are unchanged.
    ///
    /// # Errors
    /// The options cannot be used; the old ones stay in effect.
    pub fn set_gateway(&self, options: impl Into<GatewayKind>) -> Result<(), PeerError> {
        let options = options.into();
        let mut gateways = self.gateways.lock();
        let name = options.name().to_owned();
        if gateways.get(&name).is_some_and(|(old, _)| *old == options) {
            return Ok(());
        }
        let dialed = match &options {
            GatewayKind::Sgip(options) => sgip::dial_gateway(&self.shared, options)?,
            GatewayKind::Cmpp(options) => sp::dial_gateway::<Cmpp>(&self.shared, options)?,
            GatewayKind::Smgp(options) => sp::dial_gateway::<Smgp>(&self.shared, options)?,
        };
        let until = clock::now() + CLOSE_TIMEOUT;
        match &options {
            GatewayKind::Sgip(options) => {
                let limits = self.shared.deps.registry.accounts().set(options.peer, None, 1, clock::now());
                self.shared.logins.set_gateway(options, limits);
            }
            GatewayKind::Cmpp(_) | GatewayKind::Smgp(_) => self.shared.logins.remove_gateway(&name, until),
        }
        if let Some((_, old)) = gateways.insert(name, (options, dialed)) {
            old.stop(until);
        }
        Ok(())
    }

    /// Meaning of a code, if the peer is a gateway, an SP, or a peer with another protocol whose home is another partition; the
    /// codes of other peers are those of SMPP.
    #[must_use]
    pub fn result_text(&self, peer: &str, code: u32) -> Option<String> {
        let gateway = self.gateways.lock().get(peer).map(|(options, _)| options.protocol());
        let remote = || self.remote_peers.lock().get(peer)?.0.protocol;
        let sp = || self.sps.lock().contains_key(peer).then_some(Protocol::Sgip);
        match gateway.or_else(remote).or_else(sp)? {
            Protocol::Sgip => u8::try_from(code).ok().map(|code| ::sgip::ResultCode(code).to_string()),
            Protocol::Cmpp => Some(format!("{code}: {}", Cmpp::status_text(code))),
            Protocol::Smgp => Some(format!("{code}: {}", Smgp::status_text(code))),
            Protocol::Http => Some(format!("code {code} of its API")),
            _ => None,
        }
    }

    /// Removes a gateway: closes its connections and refuses its logins. Returns whether there was one.
    pub fn remove_gateway(&self, name: &str) -> bool {
        let Some((_, gateway)) = self.gateways.lock().remove(name) else { return false };
        let until = clock::now() + CLOSE_TIMEOUT;
        self.shared.logins.remove_gateway(name, until);
        gateway.stop(until);
        true
    }

    /// Adds a peer, or changes the peer of that name: its links are unbound while links with the new options come up.
    /// Does nothing if the options are unchanged.
    ///
    /// # Errors
    /// The options cannot be used; the old ones stay in effect.
    pub fn set_peer(&self, options: PeerOptions) -> Result<(), PeerError> {
        let mut peers = self.peers.lock();
        let options = Arc::new(options);
        if peers.get(&options.name).is_some_and(|(old, _)| *old == options) {
            return Ok(());
        }
        let (system_id, peer) = (self.system_id(), options.clone());
        let dialed = dial(&self.shared.deps, dial_target(&options), move |now| {
            SmppLink::client(now, system_id.clone(), peer.clone())
        })?;
        let name = options.name.clone();
        if let Some((_, old)) = peers.insert(name, (options, dialed)) {
            old.stop(clock::now() + CLOSE_TIMEOUT);
        }
        Ok(())
    }

    /// Sets the peers whose home is another partition. The links of removed and changed ones are closed.
    ///
    /// # Errors
    /// If the appliance is shutting down.
    pub fn set_remote_peers(&self, wanted: Vec<RemotePeerOptions>) -> Result<(), PeerError> {
        let mut known = self.remote_peers.lock();
        let until = clock::now() + CLOSE_TIMEOUT;
        known.retain(|_, (old, link)| {
            let stays = wanted.contains(old);
            if !stays {
                link.stop(until);
            }
            stays
        });
        for options in wanted {
            if let Entry::Vacant(place) = known.entry(options.name.clone()) {
                let dialed = dial_home(&self.shared.deps, options.clone())?;
                place.insert((options, dialed));
            }
        }
        Ok(())
    }

    /// Sets the accounts of other partitions, one per partition and peer whose home is here.
    pub fn set_partition_accounts(&self, accounts: Vec<PartitionAccountOptions>) {
        self.partition_sessions.set_accounts(accounts, clock::now() + CLOSE_TIMEOUT);
    }

    /// Removes a peer and closes its links. Returns whether there was one.
    pub fn remove_peer(&self, name: &str) -> bool {
        let Some((_, peer)) = self.peers.lock().remove(name) else { return false };
        peer.stop(clock::now() + CLOSE_TIMEOUT);
        true
    }

    /// Dials a peer or gateway at once if it waits for its next attempt. Returns whether there is such a peer or
    /// gateway.
    pub fn dial_now(&self, name: &str) -> bool {
        self.shared.deps.dial_now(name)
    }

    /// Returns the current options of the account of that name.
    #[must_use]
    pub fn account_options(&self, name: &str) -> Option<Arc<LinkAccountOptions>> {
        self.shared.accounts.options_of(name)
    }

    pub(crate) fn peer_options(&self, name: &str) -> Option<Arc<PeerOptions>> {
        self.peers.lock().get(name).map(|(options, _)| options.clone())
    }

    pub(crate) fn gateway_options(&self, name: &str) -> Option<GatewayKind> {
        self.gateways.lock().get(name).map(|(options, _)| options.clone())
    }

    pub(crate) fn system_id(&self) -> bytes::Bytes {
        self.shared.options.system_id.clone()
    }

    /// Returns every link: bound links of accounts, and links of peers in any phase.
    #[must_use]
    pub fn states(&self) -> Vec<LinkState> {
        self.shared.deps.states()
    }

    /// Refuses new binds and logins, or accepts them again. Existing sessions stay, and peers are still dialed.
    pub fn refuse_new_binds(&self, refuse: bool) {
        self.shared.deps.refuse_logins(refuse);
    }

    /// The counters of all listeners.
    #[must_use]
    pub fn listener_counts(&self) -> ListenerCounts {
        self.shared.deps.listener_counts()
    }

    /// Stops listening and dialling, answers the open requests, unbinds all links and closes them, within the given
    /// time. The engine must keep working, because the answers come from it. Returns the unfinished work.
    pub async fn shutdown(&self, within: Duration) -> ShutdownLeftover {
        let until = clock::now() + within;
        self.shared.deps.shut_down();
        for (_, listener) in self.listeners.lock().drain() {
            listener.stop(until);
        }
        for (_, (_, peer)) in self.peers.lock().drain() {
            peer.stop(until);
        }
        for (_, (_, peer)) in self.remote_peers.lock().drain() {
            peer.stop(until);
        }
        self.partition_sessions.close_all(until);
        for (_, (_, gateway)) in self.gateways.lock().drain() {
            gateway.stop(until);
        }
        for (_, (_, sp)) in self.sps.lock().drain() {
            sp.stop(until);
        }
        if self.shared.deps.wait_for_tasks(within).await {
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
