//! Applies configuration changes while traffic flows. Only differences are touched.

use crate::config::{Config, PluginSource};
use crate::core_handle::{self, CoreHandle};
use crate::logging::LogControl;
use crate::notices::WantedNotices;
use crate::opt_out::KeywordRules;
use crate::partitions::PartitionMap;
use crate::peer_roles::PeerRoles;
use crate::text_encryption::TextKeyRetention;
use admin::AttentionLimits;
use arc_swap::ArcSwap;
use archive::Archive;
use business::Business;
use configuration::{ConfigProblem, Keys as _};
use engine::{EngineAnswer, Event, PeerSettings};
use links::{Links, ListenerError, PreparedListeners};
use model::{Directory, PeerId, PoolAnswer, PoolRequest, TenantTree};
use parking_lot::Mutex;
use plugin_peers::PluginPeers;
use pools::RedisServer;
use ports::{EventSink as _, HttpListenerLimits, LinkRegistry};
use serde_json::Value;
use shell::ShellServer;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use store::{Store, StoreError};

/// Settings that are read repeatedly and can change at any time.
#[derive(Debug, Default)]
pub(crate) struct TunableSettings {
    free_space_watermark: AtomicU64,
    retention_ms: AtomicU64,
    attention: Mutex<AttentionLimits>,
    plugin_sources: Mutex<Arc<[PluginSource]>>,
}

impl TunableSettings {
    pub(crate) fn of(config: &Config) -> Self {
        let tuning = Self::default();
        tuning.set(config);
        tuning
    }

    fn set(&self, config: &Config) {
        self.free_space_watermark.store(config.appliance.free_space_watermark, Relaxed);
        let retention = u64::try_from(config.engine.finished_retention.as_millis()).unwrap_or(u64::MAX);
        self.retention_ms.store(retention, Relaxed);
        *self.attention.lock() = config.attention;
        *self.plugin_sources.lock() = config.plugins.sources.as_slice().into();
    }

    /// Minimum free disk space in octets; below it, submissions are refused.
    pub(crate) fn free_space_watermark(&self) -> u64 {
        self.free_space_watermark.load(Relaxed)
    }

    /// The sources of plugins.
    pub(crate) fn plugin_sources(&self) -> Arc<[PluginSource]> {
        self.plugin_sources.lock().clone()
    }

    /// How long finished messages are kept without an archive.
    pub(crate) fn retention(&self) -> Duration {
        Duration::from_millis(self.retention_ms.load(Relaxed))
    }
}

impl admin::AttentionLimitsSource for TunableSettings {
    fn attention_limits(&self) -> AttentionLimits {
        *self.attention.lock()
    }
}

/// A change failed; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error(transparent)]
    Peer(#[from] links::PeerError),
    #[error(transparent)]
    Push(#[from] business::PushError),
    #[error("peer {0}: the system starts no more threads: {1}")]
    PluginPeer(String, std::io::Error),
    #[error("pool {0}: {1}")]
    Pool(String, &'static str),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The components that a configuration change affects.
pub(crate) struct RuntimeComponents {
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) core: CoreHandle,
    pub(crate) wanted_notices: WantedNotices,
    pub(crate) links: Arc<Links>,
    pub(crate) business: Arc<Business>,
    pub(crate) plugin_peers: Arc<PluginPeers>,
    pub(crate) peer_secrets: Arc<hooks::PeerSecrets>,
    pub(crate) peer_roles: Arc<ArcSwap<PeerRoles>>,
    pub(crate) tenants: Arc<ArcSwap<TenantTree>>,
    pub(crate) tenant_lines: Arc<hooks::TenantLines>,
    pub(crate) account_attributes: Arc<hooks::AccountAttributes>,
    pub(crate) keywords: Arc<ArcSwap<KeywordRules>>,
    pub(crate) tuning: Arc<TunableSettings>,
    pub(crate) access: Arc<access::Access>,
    pub(crate) logging: Arc<LogControl>,
    pub(crate) redis: Option<Arc<RedisServer>>,
    pub(crate) archive: Option<Archive>,
    /// `None` if texts are not encrypted.
    pub(crate) text_key_retention: Option<Arc<TextKeyRetention>>,
    /// The server of the local socket, once it is open.
    pub(crate) shell: Option<Arc<ShellServer>>,
    /// The limits of the listeners of `[http]`, `[business]` and `[peer-callbacks]`, once they are open.
    pub(crate) http_limits: Option<HttpListenerLimits>,
    pub(crate) business_limits: Option<HttpListenerLimits>,
    pub(crate) callback_limits: Option<HttpListenerLimits>,
    /// `None` without a cluster.
    pub(crate) partitions: Option<Arc<PartitionMap>>,
    pub(crate) runtime: tokio::runtime::Handle,
}

/// Indexes a list by name.
fn by_name<'a, T>(
    list: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&'a T) -> &'a str,
) -> HashMap<&'a str, &'a T> {
    list.into_iter().map(|item| (name(item), item)).collect()
}

/// The running configuration with all values from `new` that can change without a restart.
pub(super) fn effective(running: &Config, new: &Config) -> Config {
    let mut effective = running.clone();
    effective.take_live(new, false);
    effective.pools_configured.clone_from(&new.pools_configured);
    effective.elsewhere.clone_from(&new.elsewhere);
    effective.take_partition_accounts(new);
    effective.remote_accounts.clone_from(&new.remote_accounts);
    // The links of core networks and of the local socket stay as they are; their queues change.
    for network in &mut effective.networks {
        let mut same = new.networks.iter().filter(|new| new.links.name == network.links.name);
        if let Some(new) = same.find(|new| new.partition == network.partition) {
            network.keys.clone_from(&new.keys);
            network.queue.clone_from(&new.queue);
        }
    }
    if let (Some(shell), Some(new)) = (&mut effective.shell, &new.shell) {
        shell.queue.clone_from(&new.queue);
    }
    if let (Some(redis), Some(old)) = (&mut effective.redis, &running.redis)
        && redis.options.accounts.is_empty()
        && redis.listen.iter().any(|address| !address.ip().is_loopback())
    {
        // The listener stays reachable from other machines until the next start, so it must keep its accounts.
        redis.options.accounts.clone_from(&old.options.accounts);
    }
    effective
}

fn problem(kind: &str, index: usize, key: &str, message: String) -> ConfigProblem {
    let pointer = format!("/{kind}/{index}/{key}");
    ConfigProblem { line: None, key: format!("{kind}[{index}].{key}"), pointer, message, allowed: None }
}

/// The index of a named item in a list of the document.
fn index(document: &Value, kind: &str, name: &str) -> usize {
    let list = document.get(kind).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().position(|item| item.get("name").and_then(Value::as_str) == Some(name)).unwrap_or(0)
}

/// Finds problems that would make the change fail, before anything is changed.
pub(super) fn check(document: &Value, running: &Config, new: &Config) -> Vec<ConfigProblem> {
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
        if let Some(Err(error)) = listener.tls().map(links::ServerTlsFiles::read) {
            let index = index(document, "listener", listener.name());
            problems.push(problem("listener", index, "tls", error.to_string()));
        }
    }
    // A component that is replaced at the next start keeps its name until then.
    let networks = running.networks.iter().map(|network| network.links.name.as_str());
    let kept: Vec<&str> = networks.chain(running.shell.as_ref().map(|_| crate::config::SHELL_PEER)).collect();
    let accounts = new.accounts.iter().map(|account| ("account", account.links.name.as_str()));
    let peers = new.peers.iter().map(|peer| ("peer", peer.links.name.as_str()));
    let gateways = new.gateways.iter().map(|gateway| ("gateway", gateway.links.name()));
    let plugin_peers = new.plugin_peers.iter().map(|peer| ("plugin-peer", peer.link.name.as_str()));
    for (kind, name) in accounts.chain(peers).chain(gateways).chain(plugin_peers) {
        if kept.contains(&name) {
            let what =
                format!("{name:?} is used by a component that is removed at the next start; restart first");
            problems.push(problem(kind, index(document, kind, name), "name", what));
        }
    }
    problems
}

/// The problem of a listener that could not be bound.
pub(super) fn listener_problem(document: &Value, error: &ListenerError) -> ConfigProblem {
    let (name, key) = match error {
        ListenerError::Socket { name, .. } => (name.as_str(), "listen"),
        ListenerError::Tls { name, .. } => (name.as_str(), "tls"),
        ListenerError::NameTaken(name) => (name.as_str(), "name"),
        ListenerError::ShuttingDown => ("", "name"),
    };
    problem("listener", index(document, "listener", name), key, error.to_string())
}

impl RuntimeComponents {
    fn registry(&self) -> Arc<LinkRegistry> {
        self.links.registry()
    }

    /// Assigns peer ids, making new names durable.
    pub(super) fn assign_peer_ids(&self, config: &mut Config) -> Result<(), StoreError> {
        self.directory.store(Arc::new(config.assign_peer_ids(&self.store)?));
        Ok(())
    }

    /// Binds new listening addresses; nothing has changed yet.
    pub(super) fn bind_listeners(&self, new: &Config) -> Result<PreparedListeners, ListenerError> {
        self.runtime.block_on(self.links.prepare_listeners(&new.listeners))
    }

    /// Changes the daemon from one configuration to another. Unchanged parts are not touched.
    ///
    /// The engine gets a peer before its links come up; links are closed before the engine removes their peer. If a
    /// step fails, all steps are undone.
    pub(super) fn apply(
        &self,
        from: &Config,
        to: &Config,
        listeners: PreparedListeners,
    ) -> Result<(), ApplyError> {
        let _inside = self.runtime.enter();
        let applied = self.apply_changes(from, to);
        if let Err(error) = applied {
            tracing::error!(%error, "configuration change failed, undoing it");
            if let Err(error) = self.apply_changes(to, from) {
                // All expected failures were checked before.
                tracing::error!(%error, "undoing the configuration change failed; a restart loads the last version");
            }
            return Err(error);
        }
        self.links.set_listeners(listeners);
        Ok(())
    }

    fn apply_changes(&self, from: &Config, to: &Config) -> Result<(), ApplyError> {
        let queues = changed_queues(from, to);
        let pace = to.pace_settings();
        let pace = (pace != from.pace_settings()).then_some(Event::Pace(pace));
        self.core.push(pace.into_iter().chain(queues.into_iter().map(Event::Peer)).collect());
        self.peer_roles.store(Arc::new(to.peer_roles(&self.directory.load())));
        let tenants = Arc::new(to.tenant_tree());
        to.set_tenant_rates(&tenants, self.registry().accounts());
        let directory = self.directory.load();
        self.tenant_lines.publish(&tenants, |account| directory.id(account));
        self.tenants.store(tenants);
        self.account_attributes.publish(to.account_attributes());
        self.peer_secrets.publish(to.peer_secrets());
        self.tuning.set(to);
        if let Some(partitions) = &self.partitions {
            partitions.set(&to.elsewhere);
        }
        self.front_ends(from, to);
        if from.opt_out != to.opt_out {
            self.keywords.store(Arc::new(KeywordRules::new(&to.opt_out)));
        }
        self.accounts(from, to)?;
        if from.partition_accounts != to.partition_accounts {
            self.links.set_partition_accounts(to.partition_account_options());
        }
        self.links.set_remote_peers(to.remote_peer_options())?;
        let known = by_name(from.gateways_here(), |gateway| gateway.links.name());
        for gateway in to.gateways_here() {
            let before = known.get(gateway.links.name());
            if before.is_none_or(|before| before.links != gateway.links) {
                self.links.set_gateway(gateway.links.clone())?;
            }
        }
        let known = by_name(from.peers_here(), |peer| &peer.links.name);
        for peer in to.peers_here() {
            let before = known.get(peer.links.name.as_str());
            if before.is_none_or(|before| before.links != peer.links) {
                self.links.set_peer(peer.links.clone())?;
            }
        }
        let known = by_name(from.plugin_peers_here(), |peer| &peer.link.name);
        for peer in to.plugin_peers_here() {
            let before = known.get(peer.link.name.as_str());
            if before.is_none_or(|before| before.link != peer.link) {
                let set = self.plugin_peers.set_peer(peer.link.clone());
                set.map_err(|error| ApplyError::PluginPeer(peer.link.name.clone(), error))?;
            }
        }
        self.pools(from, to)?;
        self.remove(from, to);
        Ok(())
    }

    /// Changes the limits and settings of listeners that stay open, and of the log and the audit log.
    fn front_ends(&self, from: &Config, to: &Config) {
        if let Some(limits) = &self.http_limits {
            limits.set(to.http.limits());
        }
        self.access.set_audit_retention(to.http.audit_retention);
        if let (Some(limits), Some(business)) = (&self.business_limits, &to.business) {
            limits.set(business.limits());
            self.business.set_options(business.options.clone());
        }
        if let (Some(limits), Some(callbacks)) = (&self.callback_limits, &to.peer_callbacks) {
            limits.set(callbacks.limits());
        }
        if let (Some(server), Some(redis)) = (&self.redis, &to.redis) {
            server.set_options(redis.options.clone());
        }
        if let Some(archive) = &self.archive {
            archive.set_options(to.archive.options);
            archive.set_text_retention(to.text_retention());
        }
        if let Some(retention) = &self.text_key_retention {
            retention.configure(to);
        }
        if let (Some(server), Some(shell)) = (&self.shell, &to.shell)
            && from.shell.as_ref().is_none_or(|from| from.options != shell.options)
        {
            server.set_options(shell.options.clone());
        }
        if from.log.level != to.log.level
            && let Err(error) = self.logging.set(&to.log.level)
        {
            tracing::error!(%error, level = to.log.level, "changing the log level failed");
        }
    }

    fn accounts(&self, from: &Config, to: &Config) -> Result<(), ApplyError> {
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

    fn pools(&self, from: &Config, to: &Config) -> Result<(), ApplyError> {
        for pool in &to.pools_configured {
            if from
                .pools_configured
                .iter()
                .any(|known| known.name == pool.name && known.settings == pool.settings)
            {
                continue;
            }
            let (name, request) = (pool.name.clone(), PoolRequest::Configure(pool.settings));
            let configure = |reply| Event::Pool { pool: name, request, by: "configuration".into(), reply };
            match core_handle::request(&self.core, &self.registry(), configure) {
                Some(EngineAnswer::Pool(PoolAnswer::Pool(_))) => {}
                Some(EngineAnswer::Pool(PoolAnswer::TooMany)) => {
                    let what = "the maximum number of pools is reached";
                    return Err(ApplyError::Pool(pool.name.to_string(), what));
                }
                _ => return Err(ApplyError::Pool(pool.name.to_string(), "the engine does not answer")),
            }
        }
        Ok(())
    }

    /// Removes components that the new configuration no longer contains, and links to what has another home now.
    fn remove(&self, from: &Config, to: &Config) {
        let accounts = by_name(&to.accounts, |account| &account.links.name);
        let gateways = by_name(to.gateways_here(), |gateway| gateway.links.name());
        let peers = by_name(to.peers_here(), |peer| &peer.links.name);
        let plugin_peers = by_name(to.plugin_peers_here(), |peer| &peer.link.name);
        for account in from.accounts.iter().filter(|old| !accounts.contains_key(&*old.links.name)) {
            self.business.remove_account(&account.links.name);
            self.links.remove_account(&account.links.name);
        }
        for gateway in from.gateways_here().filter(|old| !gateways.contains_key(old.links.name())) {
            self.links.remove_gateway(gateway.links.name());
        }
        for peer in from.peers_here().filter(|old| !peers.contains_key(&*old.links.name)) {
            self.links.remove_peer(&peer.links.name);
        }
        for peer in from.plugin_peers_here().filter(|old| !plugin_peers.contains_key(&*old.link.name)) {
            self.plugin_peers.remove_peer(&peer.link.name);
        }
        // A name may have moved to another section; its queue stays.
        let left = queues(to);
        let removed = queues(from).into_keys().filter(|peer| !left.contains_key(peer));
        self.core.push(removed.map(Event::PeerRemoved).collect());
    }
}

/// All queues whose settings can change, by peer.
fn queues(config: &Config) -> HashMap<PeerId, &PeerSettings> {
    let accounts = config.accounts.iter().map(|account| &account.queue);
    let peers = config.peers.iter().map(|peer| &peer.queue);
    let gateways = config.gateways.iter().map(|gateway| &gateway.queue);
    let plugin_peers = config.plugin_peers.iter().map(|peer| &peer.queue);
    let networks = config.networks.iter().map(|network| &network.queue);
    let shell = config.shell.iter().map(|shell| &shell.queue);
    let of_partitions = config.partition_accounts.iter().map(|account| &account.queue);
    let remote = config.remote_accounts.iter().map(|account| &account.queue);
    let accounts = accounts.chain(of_partitions).chain(remote);
    let queues = accounts.chain(peers).chain(gateways).chain(plugin_peers).chain(networks).chain(shell);
    queues.map(|queue| (queue.peer, queue)).collect()
}

fn changed_queues(from: &Config, to: &Config) -> Vec<PeerSettings> {
    let known = queues(from);
    let queues_to = queues(to).into_iter();
    queues_to.filter(|(peer, queue)| known.get(peer) != Some(queue)).map(|(_, queue)| queue.clone()).collect()
}
