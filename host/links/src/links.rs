use crate::accounts::Accounts;
use crate::client::{Dialled, dial};
use crate::lines::Lines;
use crate::listener::{Listener, Ready, Spoken};
use crate::sgip::{self, GatewayOptions, SgipListenerOptions, SpOptions};
use crate::shared::{DoorCounts, Doors, Shared};
use crate::state::Records;
use crate::{
    AccountOptions, LinkState, LinksOptions, ListenError, ListenerOptions, PeerError, PeerOptions, clock,
};
use doors::{Core, Hub, LoginLimiter, Routing, Verifier};
use model::PeerId;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;

/// All links of the appliance: listeners, accounts and peers, each of which may come, change and go while the others
/// work on. Its methods must be called inside a tokio runtime.
pub struct Links {
    shared: Arc<Shared>,
    listeners: Mutex<HashMap<String, Listener>>,
    peers: Mutex<HashMap<String, Dialled>>,
    gateways: Mutex<HashMap<String, (Arc<GatewayOptions>, sgip::dial::Dialled)>>,
    sps: Mutex<HashMap<String, (Arc<SpOptions>, sgip::dial::Dialled)>>,
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

/// Listeners that only have to be opened; see [`Links::ready_listeners`].
pub struct ReadyListeners {
    ready: Vec<Ready>,
    /// All that are wanted, those among them that stay as they are.
    names: HashSet<String>,
}

/// What was not finished when the links were shut down.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leftover {
    /// Links that were still there when time was up, by name of account or peer.
    pub links: Vec<String>,
    /// Messages of ours on them that were not answered.
    pub unanswered: u32,
    /// Requests on them that we had not answered.
    pub owed: u32,
}

/// How long links have to take leave when their account, peer or listener goes or changes.
const LEAVE: Duration = Duration::from_secs(10);

impl Links {
    /// No links yet.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(
        options: LinksOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn Core>,
        routing: Arc<dyn Routing>,
    ) -> Result<Self, getrandom::Error> {
        let (alive, ended) = mpsc::channel(1);
        let shared = Shared {
            core,
            routing,
            hub: Arc::new(Hub::new()),
            accounts: Accounts::default(),
            logins: sgip::listen::Logins::default(),
            records: Records::default(),
            limiter,
            verifier: Verifier::new(options.verifications)?,
            doors: Doors::default(),
            connections: Arc::default(),
            full: AtomicBool::new(false),
            lines: Lines::new(clock::now()),
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

    /// Where the core's commands are to go, and where other doors can get answers.
    #[must_use]
    pub fn hub(&self) -> Arc<Hub> {
        self.shared.hub.clone()
    }

    /// Opens a listener. Gives back its address, which tells the port where port 0 was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened on, its TLS files cannot be used, or its name is taken.
    pub async fn listen(&self, options: ListenerOptions) -> Result<SocketAddr, ListenError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(ListenError::ShuttingDown) };
        if self.listeners.lock().contains_key(&options.name) {
            return Err(ListenError::Twice(options.name));
        }
        self.open(Spoken::Smpp(options), alive).await
    }

    async fn open(&self, spoken: Spoken, alive: mpsc::Sender<()>) -> Result<SocketAddr, ListenError> {
        let listener = Ready::new(spoken, None).await?.open(&self.shared, alive, None);
        let address = listener.address;
        self.listeners.lock().insert(listener.spoken.name().to_owned(), listener);
        Ok(address)
    }

    /// Makes everything ready for these listeners and no others: certificates are read, addresses that nobody listens on yet
    /// are bound. Nothing has changed until they are given to [`Links::set_listeners`]; dropped, they change nothing.
    ///
    /// # Errors
    /// When an address cannot be listened on, or TLS files cannot be used.
    pub async fn ready_listeners(
        &self,
        smpp: &[ListenerOptions],
        sgip: &[SgipListenerOptions],
    ) -> Result<ReadyListeners, ListenError> {
        let smpp = smpp.iter().cloned().map(Spoken::Smpp);
        let wanted: Vec<Spoken> = smpp.chain(sgip.iter().cloned().map(Spoken::Sgip)).collect();
        let mut ready = Vec::new();
        for spoken in &wanted {
            let (is_open, socket) = {
                let listeners = self.listeners.lock();
                let named = listeners.get(spoken.name());
                // An address may go from one listener to another; any port (0) is only ever one's own.
                let own = named.and_then(|listener| listener.socket_on(spoken.listen()));
                let others = listeners.values().filter(|_| spoken.listen().port() != 0);
                let socket = own
                    .or_else(|| others.into_iter().find_map(|listener| listener.socket_on(spoken.listen())));
                (named.is_some_and(|listener| listener.is(spoken)), socket)
            };
            if !is_open {
                ready.push(Ready::new(spoken.clone(), socket).await?);
            }
        }
        Ok(ReadyListeners { ready, names: wanted.iter().map(|one| one.name().to_owned()).collect() })
    }

    /// Opens listeners that are new, exchanges those that have changed, whose connections stay, and closes those that are not
    /// wanted any more, whose connections are unbound. The rest is not touched.
    pub fn set_listeners(&self, ready: ReadyListeners) {
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
                listener.stop(clock::now() + LEAVE);
            }
            wanted
        });
    }

    /// Closes a listener and unbinds its connections. Says whether there was one.
    pub fn close_listener(&self, name: &str) -> bool {
        let Some(listener) = self.listeners.lock().remove(name) else { return false };
        listener.stop(clock::now() + LEAVE);
        true
    }

    /// Adds an account, or changes the one of that name. Rate, source rules and validity count for sessions that exist
    /// from their next message on; passwords, networks, modes, windows and the session limit for new binds.
    ///
    /// Its SGIP side, if it has one, is dialled; connections to it with other options are taken down.
    ///
    /// # Errors
    /// When its SGIP address is none; its other side works then.
    pub fn set_account(&self, options: AccountOptions) -> Result<(), PeerError> {
        let (name, peer, sp) = (options.name.clone(), options.peer, options.sgip.clone());
        let account = self.shared.accounts.set(options, self.shared.hub.rates(), clock::now() + LEAVE);
        let Some(sp) = sp.map(Arc::new) else {
            self.forget_sp(&name, peer);
            return Ok(());
        };
        self.shared.logins.set_sp(&account, &sp);
        let mut sps = self.sps.lock();
        if sps.get(&name).is_some_and(|(old, _)| *old == sp) {
            return Ok(());
        }
        if let Some((_, old)) = sps.remove(&name) {
            old.stop(clock::now() + LEAVE);
        }
        if sp.address.is_empty() {
            return Ok(());
        }
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let dialled = sgip::dial::sp(&self.shared, &name, peer, &sp, &alive)?;
        sps.insert(name, (sp, dialled));
        Ok(())
    }

    fn forget_sp(&self, name: &str, peer: PeerId) {
        self.shared.logins.remove_sp(peer);
        if let Some((_, old)) = self.sps.lock().remove(name) {
            old.stop(clock::now() + LEAVE);
        }
    }

    /// Removes an account and unbinds its sessions. Says whether there was one.
    pub fn remove_account(&self, name: &str) -> bool {
        if let Some(peer) = self.shared.accounts.remove(name, clock::now() + LEAVE) {
            self.forget_sp(name, peer);
            return true;
        }
        false
    }

    /// Opens a listener for SGIP. Gives back its address, which tells the port where port 0 was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened on, or its name is taken.
    pub async fn listen_sgip(&self, options: SgipListenerOptions) -> Result<SocketAddr, ListenError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(ListenError::ShuttingDown) };
        if self.listeners.lock().contains_key(&options.name) {
            return Err(ListenError::Twice(options.name));
        }
        self.open(Spoken::Sgip(options), alive).await
    }

    /// Dials a gateway and lets it log in, or changes the one of that name. Nothing happens when nothing has changed.
    ///
    /// # Errors
    /// When the options cannot work; what ran before goes on then.
    pub fn set_gateway(&self, options: GatewayOptions) -> Result<(), PeerError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let mut gateways = self.gateways.lock();
        let options = Arc::new(options);
        if gateways.get(&options.name).is_some_and(|(old, _)| *old == options) {
            return Ok(());
        }
        let dialled = sgip::dial::gateway(&self.shared, &options, &alive)?;
        self.shared.logins.set_gateway(&options);
        if let Some((_, old)) = gateways.insert(options.name.clone(), (options, dialled)) {
            old.stop(clock::now() + LEAVE);
        }
        Ok(())
    }

    /// Whether a peer is a gateway or an SP.
    pub fn speaks_sgip(&self, name: &str) -> bool {
        self.gateways.lock().contains_key(name) || self.sps.lock().contains_key(name)
    }

    /// Takes a gateway's connections down and lets it log in no more. Says whether there was one.
    pub fn remove_gateway(&self, name: &str) -> bool {
        let Some((_, gateway)) = self.gateways.lock().remove(name) else { return false };
        self.shared.logins.remove_gateway(name);
        gateway.stop(clock::now() + LEAVE);
        true
    }

    /// Dials a peer, or changes the one of that name: its links are taken down in good order while those with the new
    /// options come up. Nothing happens when nothing has changed.
    ///
    /// # Errors
    /// When the options cannot work; what ran before goes on then.
    pub fn set_peer(&self, options: PeerOptions) -> Result<(), PeerError> {
        let Some(alive) = self.shared.alive.lock().clone() else { return Err(PeerError::ShuttingDown) };
        let mut peers = self.peers.lock();
        if peers.get(&options.name).is_some_and(|old| *old.options == options) {
            return Ok(());
        }
        let name = options.name.clone();
        let dialled = dial(&self.shared, options, &alive)?;
        if let Some(old) = peers.insert(name, dialled) {
            old.stop(clock::now() + LEAVE);
        }
        Ok(())
    }

    /// Takes a peer's links down and dials it no more. Says whether there was one.
    pub fn remove_peer(&self, name: &str) -> bool {
        let Some(peer) = self.peers.lock().remove(name) else { return false };
        peer.stop(clock::now() + LEAVE);
        true
    }

    /// Dials a peer or a gateway at once, where it waits to be dialled again. Says whether there is one that is dialled.
    pub fn dial_now(&self, name: &str) -> bool {
        self.shared.records.dial_now(name)
    }

    /// The options of an account of that name, as they are now.
    #[must_use]
    pub fn account_options(&self, name: &str) -> Option<Arc<AccountOptions>> {
        self.shared.accounts.named(name)
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

    /// Every link: those of accounts that are bound, and those of peers in whatever phase.
    #[must_use]
    pub fn states(&self) -> Vec<LinkState> {
        self.shared.records.show()
    }

    /// Refuses new binds and logins, or lets them in again. Sessions that are there stay, and peers are dialled as ever.
    pub fn refuse_binds(&self, refuse: bool) {
        self.shared.full.store(refuse, Relaxed);
    }

    /// What happened at the listeners so far.
    #[must_use]
    pub fn doors(&self) -> DoorCounts {
        let doors = &self.shared.doors;
        DoorCounts {
            connections: self.shared.connections.accepted.load(Relaxed),
            turned_away: self.shared.connections.turned_away(),
            binds: doors.binds.load(Relaxed),
            binds_refused: doors.binds_refused.load(Relaxed),
            handshakes_failed: doors.handshakes_failed.load(Relaxed),
        }
    }

    /// Stops listening and dialling, answers what is owed, unbinds everyone and closes, within the time given. The core
    /// must go on working meanwhile: answers come from it. Says what was left when time was up.
    pub async fn shutdown(&self, within: Duration) -> Leftover {
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
        // Links close at `until` at the latest; a moment more for their last words to the engine.
        let patience = within + self.shared.options.leave_timeout;
        let all = tokio::time::timeout(patience, ended.recv()).await.is_ok();
        if all {
            return Leftover::default();
        }
        let states = self.states();
        Leftover {
            unanswered: states.iter().map(|state| state.in_flight).sum(),
            owed: states.iter().map(|state| state.unanswered_in).sum(),
            links: states.into_iter().map(|state| state.name).collect(),
        }
    }
}
