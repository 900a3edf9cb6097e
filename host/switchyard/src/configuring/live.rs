//! From one configuration to another while traffic flows: only what is different is touched.

use crate::config::{Config, Peer};
use crate::core_loop::{self, CoreHandle};
use crate::opt_out::OptOut;
use crate::routing::Parties;
use admin::AttentionLimits;
use arc_swap::ArcSwap;
use business::Business;
use configuration::Problem;
use doors::{Core as _, Hub};
use engine::{Answer, Event, PeerSettings};
use links::{Links, ListenError, ReadyListeners};
use model::{Directory, PeerId, PoolAnswer, PoolRequest};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use store::{Store, StoreError};

/// What is looked at again and again, and may be another each time.
#[derive(Debug, Default)]
pub(crate) struct Tuning {
    watermark: AtomicU64,
    retention_ms: AtomicU64,
    attention: Mutex<AttentionLimits>,
}

impl Tuning {
    pub(crate) fn of(config: &Config) -> Self {
        let tuning = Self::default();
        tuning.set(config);
        tuning
    }

    fn set(&self, config: &Config) {
        self.watermark.store(config.watermark, Relaxed);
        let retention = u64::try_from(config.retention.as_millis()).unwrap_or(u64::MAX);
        self.retention_ms.store(retention, Relaxed);
        *self.attention.lock() = config.attention;
    }

    /// Free octets below which nothing more is accepted.
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark.load(Relaxed)
    }

    /// Limits beyond which something needs attention.
    pub(crate) fn attention(&self) -> AttentionLimits {
        *self.attention.lock()
    }

    /// How long finished messages are kept without an archive.
    pub(crate) fn retention(&self) -> Duration {
        Duration::from_millis(self.retention_ms.load(Relaxed))
    }
}

/// A change could not be made; everything is as it was.
#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    #[error(transparent)]
    Peer(#[from] links::PeerError),
    #[error(transparent)]
    Push(#[from] business::PushError),
    #[error("pool {0}: {1}")]
    Pool(String, &'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All that a change of the configuration reaches.
pub(crate) struct Live {
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) core: CoreHandle,
    pub(crate) links: Arc<Links>,
    pub(crate) business: Arc<Business>,
    pub(crate) parties: Arc<ArcSwap<Parties>>,
    pub(crate) keywords: Arc<ArcSwap<OptOut>>,
    pub(crate) tuning: Arc<Tuning>,
    pub(crate) runtime: tokio::runtime::Handle,
}

/// Things of one kind by name.
fn by_name<T>(list: &[T], name: impl Fn(&T) -> &str) -> HashMap<&str, &T> {
    list.iter().map(|item| (name(item), item)).collect()
}

/// The configuration with everything from `new` that can be changed while traffic flows, and the rest as it is.
pub(super) fn effective(running: &Config, new: &Config) -> Config {
    Config {
        watermark: new.watermark,
        drain: new.drain,
        retention: new.retention,
        attention: new.attention,
        listeners: new.listeners.clone(),
        sgip_listeners: new.sgip_listeners.clone(),
        accounts: new.accounts.clone(),
        peers: new.peers.clone(),
        gateways: new.gateways.clone(),
        opt_out: new.opt_out.clone(),
        pools: new.pools.clone(),
        ..running.clone()
    }
}

fn problem(kind: &str, index: usize, key: &str, what: String) -> Problem {
    let pointer = format!("/{kind}/{index}/{key}");
    Problem { line: None, key: format!("{kind}[{index}].{key}"), pointer, what, allowed: None }
}

/// Where in the document's list something of this name stands.
fn index(document: &Value, kind: &str, name: &str) -> usize {
    let list = document.get(kind).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().position(|item| item.get("name").and_then(Value::as_str) == Some(name)).unwrap_or(0)
}

/// What would fail, found out before anything is touched.
pub(super) fn check(document: &Value, running: &Config, new: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let known = by_name(&running.peers, |peer| &peer.links.name);
    for (index, peer) in new.peers.iter().enumerate() {
        if known.get(peer.links.name.as_str()).is_some_and(|known| known.links.tls == peer.links.tls) {
            continue;
        }
        let host = peer.links.address.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Some(Err(error)) = peer.links.tls.as_ref().map(|tls| tls.check(host)) {
            problems.push(problem("peer", index, "tls", error.to_string()));
        }
    }
    for listener in &new.listeners {
        if let Some(Err(error)) = listener.tls.as_ref().map(links::ServerTls::read) {
            let index = index(document, "listener", &listener.name);
            problems.push(problem("listener", index, "tls", error.to_string()));
        }
    }
    // What is only exchanged at the next start keeps its name until then.
    let networks = running.networks.iter().map(|network| network.links.name.as_str());
    let kept: Vec<&str> =
        networks.chain(running.shell.as_ref().map(|_| crate::config::shell::NAME)).collect();
    let accounts = new.accounts.iter().map(|account| ("account", account.links.name.as_str()));
    let peers = new.peers.iter().map(|peer| ("peer", peer.links.name.as_str()));
    let gateways = new.gateways.iter().map(|gateway| ("gateway", gateway.links.name.as_str()));
    for (kind, name) in accounts.chain(peers).chain(gateways) {
        if kept.contains(&name) {
            let what =
                format!("{name:?} is the name of something that goes at the next start only; start first");
            problems.push(problem(kind, index(document, kind, name), "name", what));
        }
    }
    problems
}

/// What is wrong with a listener that could not be made ready.
pub(super) fn not_ready(document: &Value, error: &ListenError) -> Problem {
    let (name, key) = match error {
        ListenError::Socket { name, .. } => (name.as_str(), "listen"),
        ListenError::Tls { name, .. } => (name.as_str(), "tls"),
        ListenError::Twice(name) => (name.as_str(), "name"),
        ListenError::ShuttingDown => ("", "name"),
    };
    problem("listener", index(document, "listener", name), key, error.to_string())
}

impl Live {
    fn hub(&self) -> Arc<Hub> {
        self.links.hub()
    }

    /// Makes names durable that are new, and puts the numbers in.
    pub(super) fn number(&self, config: &mut Config) -> Result<(), StoreError> {
        self.directory.store(Arc::new(config.number(&self.store)?));
        Ok(())
    }

    /// Binds what is to be listened on; nothing has changed yet.
    pub(super) fn ready(&self, new: &Config) -> Result<ReadyListeners, ListenError> {
        self.runtime.block_on(self.links.ready_listeners(&new.listeners, &new.sgip_listeners))
    }

    /// Goes from one configuration to another. What is there in both is not touched.
    ///
    /// The engine knows a peer before its links come up, and its links are told to go before the engine forgets it. When a
    /// step fails, everything goes back.
    pub(super) fn go(&self, from: &Config, to: &Config, ready: ReadyListeners) -> Result<(), LiveError> {
        let _inside = self.runtime.enter();
        let done = self.forth(from, to);
        if let Err(error) = done {
            tracing::error!(%error, "a change of the configuration failed; what was changed is taken back");
            if let Err(error) = self.forth(to, from) {
                // What can fail has been checked before; this is for what nobody thought of.
                tracing::error!(%error, "taking it back failed, too: a restart brings the last version");
            }
            return Err(error);
        }
        self.links.set_listeners(ready);
        Ok(())
    }

    fn forth(&self, from: &Config, to: &Config) -> Result<(), LiveError> {
        let queues = changed_queues(from, to);
        self.core.push(queues.into_iter().map(Event::Peer).collect());
        self.parties.store(Arc::new(Parties::of(to, &self.directory.load())));
        self.tuning.set(to);
        if from.opt_out != to.opt_out {
            self.keywords.store(Arc::new(OptOut::new(&to.opt_out)));
        }
        self.accounts(from, to)?;
        let known = by_name(&from.gateways, |gateway| &gateway.links.name);
        for gateway in &to.gateways {
            let before = known.get(gateway.links.name.as_str());
            if before.is_none_or(|before| before.links != gateway.links) {
                self.links.set_gateway(gateway.links.clone())?;
            }
        }
        let known = by_name(&from.peers, |peer| &peer.links.name);
        for peer in &to.peers {
            if known.get(peer.links.name.as_str()).is_none_or(|before| before.links != peer.links) {
                self.links.set_peer(peer.links.clone())?;
            }
        }
        self.pools(from, to)?;
        self.remove(from, to);
        Ok(())
    }

    fn accounts(&self, from: &Config, to: &Config) -> Result<(), LiveError> {
        let known = by_name(&from.accounts, |account| &account.links.name);
        for account in &to.accounts {
            let before = known.get(account.links.name.as_str());
            if before.is_none_or(|before| before.links != account.links) {
                self.links.set_account(account.links.clone())?;
            }
            match &account.business {
                Some(options) if before.is_none_or(|before| before.business.as_ref() != Some(options)) => {
                    self.business.set_account(options.clone())?;
                }
                None if before.is_some_and(|before| before.business.is_some()) => {
                    self.business.remove_account(&account.links.name);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn pools(&self, from: &Config, to: &Config) -> Result<(), LiveError> {
        for pool in &to.pools {
            if from.pools.iter().any(|known| known.name == pool.name && known.settings == pool.settings) {
                continue;
            }
            let (name, request) = (pool.name.clone(), PoolRequest::Configure(pool.settings));
            let configure = |reply| Event::Pool { pool: name, request, by: "configuration".into(), reply };
            match core_loop::ask(&self.core, &self.hub(), configure) {
                Some(Answer::Pool(PoolAnswer::Pool(_))) => {}
                Some(Answer::Pool(PoolAnswer::TooMany)) => {
                    let what = "the appliance has as many pools as it takes";
                    return Err(LiveError::Pool(pool.name.to_string(), what));
                }
                _ => return Err(LiveError::Pool(pool.name.to_string(), "the engine does not answer")),
            }
        }
        Ok(())
    }

    /// Takes away what is not in the configuration any more.
    fn remove(&self, from: &Config, to: &Config) {
        let accounts = by_name(&to.accounts, |account| &account.links.name);
        let gateways = by_name(&to.gateways, |gateway| &gateway.links.name);
        let peers = by_name(&to.peers, |peer: &Peer| &peer.links.name);
        for account in from.accounts.iter().filter(|old| !accounts.contains_key(old.links.name.as_str())) {
            self.business.remove_account(&account.links.name);
            self.links.remove_account(&account.links.name);
        }
        for gateway in from.gateways.iter().filter(|old| !gateways.contains_key(old.links.name.as_str())) {
            self.links.remove_gateway(&gateway.links.name);
        }
        for peer in from.peers.iter().filter(|old| !peers.contains_key(old.links.name.as_str())) {
            self.links.remove_peer(&peer.links.name);
        }
        // A name may have gone from one kind to another: who is still something keeps the queue.
        let left = queues(to);
        let gone = queues(from).into_keys().filter(|peer| !left.contains_key(peer));
        self.core.push(gone.map(Event::PeerGone).collect());
    }
}

/// All queues whose settings can be changed, by peer.
fn queues(config: &Config) -> HashMap<PeerId, &PeerSettings> {
    let accounts = config.accounts.iter().map(|account| &account.queue);
    let peers = config.peers.iter().map(|peer| &peer.queue);
    let gateways = config.gateways.iter().map(|gateway| &gateway.queue);
    accounts.chain(peers).chain(gateways).map(|queue| (queue.peer, queue)).collect()
}

fn changed_queues(from: &Config, to: &Config) -> Vec<PeerSettings> {
    let known = queues(from);
    let wanted = queues(to).into_iter();
    wanted.filter(|(peer, queue)| known.get(peer) != Some(queue)).map(|(_, queue)| queue.clone()).collect()
}
