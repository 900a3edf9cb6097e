//! Reads and validates the configuration. Every error names its line, its key and a remedy.
//!
//! Each key is declared once: here, or with the options of the crate that uses it.

mod branch_limits;
mod daemon;
mod descriptors;
mod http;
mod pace;
#[cfg(test)]
mod pace_tests;
#[cfg(test)]
mod partition_tests;
mod partitions;
mod peers;
mod plugin_sources;
mod plugins;
#[cfg(test)]
mod pool_tests;
mod privacy;
mod queues;
#[cfg(test)]
mod reference;
mod roles;
mod tenants;
mod unique_names;

use self::daemon::{
    ApplianceKeys, ArchiveSettings, EngineKeys, ManagementKeys, Numbering, PoolKeys, PoolLimitKeys,
};
pub(crate) use self::daemon::{ConfiguredPool, ManagementMode};
pub(crate) use self::http::HttpTlsMode;
use self::http::{BusinessListener, CallbackListener, HttpKeys};
use self::pace::{PaceBucketKeys, SendWindowKeys};
pub(crate) use self::partitions::OtherPartitions;
use self::partitions::{PartitionAccount, PartitionAccountKind, RemoteAccount};
use self::peers::{Account, Gateway, Network, RedisListener, SHELL, ShellSettings};
pub(crate) use self::peers::{Peer, PluginPeer, SHELL as SHELL_PEER};
pub(crate) use self::plugin_sources::{PluginSource, SourceError};
pub(crate) use self::plugins::FirstBinding;
use self::plugins::{BindingKeys, HomeKeys, LookupKeys, RouterKeys};
pub(crate) use self::plugins::{OnLookupFailure, PluginKeys};
use self::privacy::PrivacyKeys;
use self::queues::UNASSIGNED_PEER;
use self::tenants::TenantKeys;
use self::unique_names::check_unique;
use crate::logging::LogSettings;
use crate::opt_out::OptOutKeywords;
use crate::telemetry::TelemetrySettings;
use admin::AttentionLimits;
use cluster::ClusterOptions;
use configuration::{ConfigProblem, Diagnostics, Key, Keys, Section, SourceLines};
use engine::{PaceSettings, PeerSettings, Settings};
use events::{CdrOptions, EventSinkOptions};
use hooks::OnFault;
use links::ListenerKind;
use model::{Directory, Hook, PeerId};
use numbering::NumberPlan;
use redaction::RedactionKeys;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use store::{Store, StoreError};

/// The configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {source}. Name the file with --config")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not valid TOML or contains invalid values.
    #[error("{}", problem_lines(.path, .problems))]
    Invalid {
        /// The path of the file.
        path: PathBuf,
        /// All problems.
        problems: Vec<ConfigProblem>,
    },
}

fn problem_lines(path: &Path, problems: &[ConfigProblem]) -> String {
    let lines = problems.iter().map(|problem| format!("{}: {problem}", path.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The whole configuration.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::complete)]
pub(crate) struct Config {
    /// The daemon itself.
    pub(crate) appliance: ApplianceKeys,
    /// How the configuration is managed. Set in the file only; the API cannot change it.
    #[key(restart = "it is read from the file, before the configuration is selected")]
    configuration: ManagementKeys,
    /// The admin API and console.
    pub(crate) http: HttpKeys,
    /// The cluster that this node belongs to. Set in the file only; the API cannot change it.
    pub(crate) cluster: Option<ClusterOptions>,
    /// The log.
    pub(crate) log: LogSettings,
    /// Thresholds of `GET /v1/attention`.
    #[key(live = "takes effect at once")]
    pub(crate) attention: AttentionLimits,
    /// OpenTelemetry traces of messages.
    #[key(restart = "a message is traced from its first event to its last")]
    pub(crate) telemetry: Option<TelemetrySettings>,
    /// Listeners for ESMEs, SPs and gateways.
    #[key(
        name = "listener",
        named,
        live = "applies to new connections; existing ones stay unchanged",
        added = "is opened",
        removed = "is closed, and its connections are unbound"
    )]
    pub(crate) listeners: Vec<ListenerKind>,
    /// Tenants: customers who have a branch of accounts and users of their own.
    #[key(
        name = "tenant",
        named,
        live = "takes effect at once",
        removed = "its users no longer see anything"
    )]
    pub(crate) tenants: Vec<TenantKeys>,
    /// Accounts that submit messages.
    #[key(
        name = "account",
        named,
        live = "applies from its next bind on",
        added = "may connect",
        removed = "its connections are unbound; its queue stays"
    )]
    pub(crate) accounts: Vec<Account>,
    /// SMSCs that the appliance connects to over SMPP.
    #[key(
        name = "peer",
        named,
        live = "its links reconnect one after the other",
        added = "is connected to",
        removed = "its links are closed; its queue stays, and is sent if the peer is configured again"
    )]
    pub(crate) peers: Vec<Peer>,
    /// Gateways of Chinese operators that the appliance connects to, over SGIP, CMPP or SMGP.
    #[key(
        name = "gateway",
        named,
        live = "its links reconnect one after the other",
        added = "is connected to",
        removed = "its links are closed; its queue stays, and is sent if the peer is configured again"
    )]
    pub(crate) gateways: Vec<Gateway>,
    /// Peers whose protocol a plugin implements, for example an HTTP API.
    #[key(
        name = "plugin-peer",
        named,
        live = "its link is opened again",
        added = "is served by the binding of the hook `peer` that names it",
        removed = "its link is closed; its queue stays, and is sent if the peer is configured again"
    )]
    pub(crate) plugin_peers: Vec<PluginPeer>,
    /// The listener for callbacks of plugin peers.
    pub(crate) peer_callbacks: Option<CallbackListener>,
    /// GSM core networks for which the appliance is the SMSC.
    #[key(name = "gsm", named, restart = "MSCs and HLR keep state for their connections to a core network")]
    pub(crate) networks: Vec<Network>,
    /// The number plans.
    #[key(restart = "the core networks and the shell read the number plans at the start")]
    numbering: Option<Numbering>,
    /// Systems that receive events about messages: acceptance, submit attempts, DLRs and final states.
    #[key(
        name = "event-sink",
        named,
        restart = "its position in the journal is read before the journal is opened"
    )]
    pub(crate) event_sinks: Vec<EventSinkOptions>,
    /// Files with one record for each message that has reached a final state.
    #[key(name = "cdr", named, restart = "its position in the journal is read before the journal is opened")]
    pub(crate) cdrs: Vec<CdrOptions>,
    /// The listener for business systems (HTTP and XML-RPC).
    pub(crate) business: Option<BusinessListener>,
    /// The local socket of the `switchyard sms` command.
    #[key(restart = "the socket and the inboxes of the users are set up at the start")]
    pub(crate) shell: Option<ShellSettings>,
    /// The listener for Redis clients that use number pools.
    pub(crate) redis: Option<RedisListener>,
    /// Settings shared by all number pools.
    #[key(restart = "they limit the recovery of the pools")]
    pools: PoolLimitKeys,
    /// Number pools. At every start and change, each pool is created, or set to these settings.
    #[key(
        named,
        live = "the pool is configured at once",
        removed = "the pool and its numbers stay; DELETE /v1/pools/NAME removes it"
    )]
    pool: Vec<PoolKeys>,
    /// Limits that accounts and peers share by name.
    #[key(
        name = "pace-bucket",
        named,
        live = "takes effect at once",
        removed = "messages that wait for it continue"
    )]
    pub(crate) pace_buckets: Vec<PaceBucketKeys>,
    /// Hours in which messages may be sent; accounts and peers share them by name.
    #[key(
        name = "send-window",
        named,
        live = "takes effect at once",
        removed = "messages that wait for it continue"
    )]
    pub(crate) send_windows: Vec<SendWindowKeys>,
    /// Opt-out keywords.
    #[key(live = "applies from the next message on")]
    pub(crate) opt_out: Vec<OptOutKeywords>,
    /// The archive of finished messages.
    #[key(restart = "the archive is opened at the start, and its messages stay where they are")]
    pub(crate) archive: ArchiveSettings,
    /// Encryption of texts.
    pub(crate) privacy: PrivacyKeys,
    /// Settings that all `redact` rules share.
    #[key(restart = "event sinks, CDR files and the archive read it at the start")]
    redaction: RedactionKeys,
    /// The initial binding of the screen, which decides whether a message may pass.
    screen: BindingKeys,
    /// The initial binding of the lookup, which finds out facts about a message's number, and the settings of
    /// lookups.
    pub(crate) lookup: LookupKeys,
    /// The initial binding of the router. Later bindings are set over `/v1/hooks`.
    pub(crate) router: RouterKeys,
    /// The initial binding of the resolver, which finds the subscriber of a number.
    resolver: BindingKeys,
    /// The initial binding of the delivery policy, which decides the next step after a failed attempt.
    delivery_policy: BindingKeys,
    /// The initial binding of the receipt policy, which decides the next step after a DLR, or if none arrives.
    receipt: BindingKeys,
    /// The initial binding of the biller, which prices messages.
    biller: BindingKeys,
    /// The home network.
    #[key(restart = "the hooks read it at the start")]
    pub(crate) home: HomeKeys,
    /// Settings shared by all plugins.
    #[key(restart = "the plugin runtime reserves memory and threads at the start")]
    pub(crate) plugins: PluginKeys,
    /// The engine.
    pub(crate) engine: EngineKeys,
    #[key(skip)]
    pub(crate) pools_configured: Vec<ConfiguredPool>,
    #[key(skip)]
    pub(crate) first_bindings: Vec<FirstBinding>,
    /// The accounts of other partitions. All other fields have accounts of this partition only.
    #[key(skip)]
    pub(crate) elsewhere: OtherPartitions,
    /// The accounts of other partitions at peers whose home is here.
    #[key(skip)]
    pub(crate) partition_accounts: Vec<PartitionAccount>,
    /// Accounts of other partitions for which MO messages arrive here.
    #[key(skip)]
    pub(crate) remote_accounts: Vec<RemoteAccount>,
}

/// The declarations of all keys.
pub(crate) fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(Config::keys)
}

/// A parsed configuration file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) document: Value,
    pub(crate) lines: SourceLines,
    /// The folder to which relative paths refer.
    pub(crate) base: PathBuf,
}

impl ConfigFile {
    /// Reads a file without validating its keys.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let (document, lines) = configuration::from_toml(&text)
            .map_err(|problems| ConfigError::Invalid { path: path.to_owned(), problems })?;
        let base = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { document, lines, base })
    }
}

impl Config {
    /// Reads and validates a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = ConfigFile::load(path)?;
        Self::from_document(&file.document, Some(file.lines), &file.base)
            .map_err(|problems| ConfigError::Invalid { path: path.to_owned(), problems })
    }

    /// Reads and validates TOML text; relative paths refer to `base`.
    #[cfg(test)]
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, Vec<ConfigProblem>> {
        let (document, lines) = configuration::from_toml(text)?;
        Self::from_document(&document, Some(lines), base)
    }

    /// Validates a document; relative paths refer to `base`.
    pub(crate) fn from_document(
        document: &Value,
        lines: Option<SourceLines>,
        base: &Path,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let diagnostics = Diagnostics::new(lines, base);
        let config = Self::read_table(&Section::root(&diagnostics, document));
        let problems = diagnostics.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Computes values that depend on several keys; checks that names are unique and that references exist.
    fn complete(&mut self, root: &Section<'_>) {
        let plans = self.numbering.as_ref().and_then(|numbering| numbering.plans.as_ref());
        for (section, network) in root.sections("gsm").iter().zip(&mut self.networks) {
            network.find_plan(section, plans);
        }
        self.archive.resolve(&root.section("archive"), &self.appliance.data);
        self.bound_cdr_folders(root);
        if self.cluster.is_some() && self.archive.url.as_deref().is_some_and(|url| url.starts_with("sqlite:"))
        {
            let what = "is a file of this machine: in a cluster, name a mysql:// or postgres:// server that all nodes reach, or \"none\"";
            root.section("archive").error("url", what);
        }
        let partition = self.partition();
        let pools = self.pool.iter().filter(|pool| pool.partition == partition);
        self.pools_configured = pools.filter_map(PoolKeys::pool).collect();
        check_unique(&root.sections("pool"), self.pool.iter().map(|pool| &*pool.name), "pool");
        let bindings = [
            (Hook::Router, "router", &self.router.binding),
            (Hook::Screen, "screen", &self.screen),
            (Hook::Lookup, "lookup", &self.lookup.binding),
            (Hook::Resolver, "resolver", &self.resolver),
            (Hook::DeliveryPolicy, "delivery-policy", &self.delivery_policy),
            (Hook::Receipt, "receipt", &self.receipt),
            (Hook::Biller, "biller", &self.biller),
        ];
        self.first_bindings =
            bindings.map(|(hook, key, binding)| binding.first_binding(hook, &root.section(key))).into();
        self.first_bindings.extend(self.plugin_peers.iter().map(|peer| {
            let mut first = peer.plugin.first_binding(Hook::Peer, OnFault::Hold);
            first.binding.peers = vec![peer.link.name.clone()];
            first
        }));
        self.check_names(root);
        self.set_redaction_key(root);
        self.set_branch_limits();
        let encrypts = self.accounts.iter().map(|account| account.encrypt_texts);
        let sections = root.sections("account");
        let accounts = encrypts.zip(&sections);
        self.privacy.check_encryption(&root.section("privacy"), accounts, self.cluster.is_some());
        self.check_partitions(root);
        // Last, because the sections of the document contain the accounts of all partitions.
        self.move_remote_accounts();
    }

    /// The peers, gateways and so on in the document: kind, section and name.
    fn peer_sections<'a>(&'a self, root: &Section<'a>) -> Vec<(&'static str, Section<'a>, &'a str)> {
        let names = |key, kind, names: Vec<&'a str>| {
            root.sections(key).into_iter().zip(names).map(move |(section, name)| (kind, section, name))
        };
        let accounts = self.accounts.iter().map(|account| &*account.links.name).collect();
        let peers = self.peers.iter().map(|peer| &*peer.links.name).collect();
        let gateways = self.gateways.iter().map(|gateway| gateway.links.name()).collect();
        let networks = self.networks.iter().map(|network| &*network.links.name).collect();
        let plugin_peers = self.plugin_peers.iter().map(|peer| &*peer.link.name).collect();
        names("account", "account", accounts)
            .chain(names("peer", "peer", peers))
            .chain(names("gateway", "gateway", gateways))
            .chain(names("plugin-peer", "plugin peer", plugin_peers))
            .chain(names("gsm", "core network", networks))
            .collect()
    }

    /// Checks that names are unique and that references exist.
    fn check_names(&self, root: &Section<'_>) {
        let mut kinds: HashMap<&str, &str> = HashMap::new();
        for (kind, section, name) in self.peer_sections(root) {
            if let Some(other) = kinds.insert(name, kind)
                && !name.is_empty()
            {
                let what = format!("{name:?} is also the name of another {other}; names must differ");
                section.error("name", what);
            }
        }
        if self.shell.is_some()
            && let Some(other) = kinds.insert(SHELL, "shell")
        {
            root.error("shell", format!("is also the name of another {other}; names must differ"));
        }
        let mut addresses: HashMap<SocketAddr, ()> = HashMap::new();
        let sections = root.sections("listener");
        check_unique(&sections, self.listeners.iter().map(ListenerKind::name), "listener");
        for (section, address) in sections.iter().zip(self.listeners.iter().map(ListenerKind::listen)) {
            if address.port() != 0 && addresses.insert(address, ()).is_some() {
                section.error("listen", format!("{address} is also another listener's"));
            }
        }
        let mut system_ids: HashMap<&[u8], ()> = HashMap::new();
        for (section, account) in root.sections("account").iter().zip(&self.accounts) {
            if system_ids.insert(&account.links.system_id, ()).is_some() {
                section.error("system-id", "is also the system_id of another account");
            }
        }
        let known_accounts: Vec<&str> = self.accounts.iter().map(|account| &*account.links.name).collect();
        for (_, section, _) in self.peer_sections(root) {
            if let Some(account) = section.text("default-account")
                && !known_accounts.contains(&&*account)
            {
                let list = known_accounts.join(", ");
                let what = format!("{account:?} is not an [[account]]; known are: {list}");
                section.error("default-account", what);
            }
        }
        self.check_tenants(root, &kinds);
        self.check_sinks(root, &known_accounts);
        check_unique(
            &root.sections("pace-bucket"),
            self.pace_buckets.iter().map(|one| &*one.name),
            "pace bucket",
        );
        check_unique(
            &root.sections("send-window"),
            self.send_windows.iter().map(|one| &*one.name),
            "send window",
        );
        let buckets: Vec<&str> = self.pace_buckets.iter().map(|one| &*one.name).collect();
        let windows: Vec<&str> = self.send_windows.iter().map(|one| &*one.name).collect();
        for (_, section, _) in self.peer_sections(root) {
            pace::check_references(&section, &buckets, &windows);
        }
        let plans = self.numbering.iter().filter_map(|numbering| numbering.plans.as_ref());
        for peer in plans.flat_map(numbering::NumberPlans::peers) {
            if !kinds.contains_key(peer) {
                let what = format!(
                    "sends to {peer:?}, which is not a [[peer]], [[gateway]], [[plugin-peer]], [[gsm]] or [[account]]"
                );
                root.section("numbering").error("document", what);
            }
        }
        let faults = self.first_bindings.iter().filter_map(|first| match &first.binding.on_fault {
            OnFault::Peer(peer) => Some((first.hook.name(), "on-fault", peer)),
            OnFault::Hold | OnFault::Reject | OnFault::Pass => None,
        });
        let static_peer = self.router.static_peer.iter().map(|peer| ("router", "static-peer", peer));
        let home = self.home.peer.iter().map(|peer| ("home", "peer", peer));
        for (section, key, peer) in faults.chain(static_peer).chain(home) {
            if !kinds.contains_key(peer.as_str()) {
                let what = format!(
                    "{peer:?} is not a [[peer]], [[gateway]], [[plugin-peer]], [[gsm]] or [[account]]"
                );
                root.section(section).error(key, what);
            }
        }
    }

    /// Sets the hash key of the rules that need it.
    fn set_redaction_key(&mut self, root: &Section<'_>) {
        let key = self.redaction.hash_key();
        let archive = std::iter::once((root.section("archive"), &mut self.archive.redact.numbers));
        let sinks = self.event_sinks.iter_mut().map(|sink| &mut sink.redact);
        let cdrs = self.cdrs.iter_mut().map(|cdr| &mut cdr.redact);
        let places = archive
            .chain(root.sections("event-sink").into_iter().zip(sinks))
            .chain(root.sections("cdr").into_iter().zip(cdrs));
        for (section, rules) in places {
            if let Err(problem) = rules.set_key(key.clone()) {
                section.error("redact", problem);
            }
        }
    }

    /// Checks event sinks and CDR files; their names must differ.
    fn check_sinks(&self, root: &Section<'_>, known_accounts: &[&str]) {
        let sinks = self.event_sinks.iter().map(|sink| (&*sink.name, &sink.accounts));
        let cdrs = self.cdrs.iter().map(|cdr| (&*cdr.name, &cdr.accounts));
        let mut sections = root.sections("event-sink");
        sections.extend(root.sections("cdr"));
        check_unique(
            &sections,
            sinks.clone().chain(cdrs.clone()).map(|(name, _)| name),
            "event sink or CDR file",
        );
        for (section, (_, accounts)) in sections.iter().zip(sinks.chain(cdrs)) {
            if let Some(account) = accounts.iter().find(|name| !known_accounts.contains(&name.as_str())) {
                let list = known_accounts.join(", ");
                section.error("accounts", format!("{account:?} is not an [[account]]; known are: {list}"));
            }
        }
    }

    /// Checks that the folders of CDR files are inside the folder that the configuration file allows.
    fn bound_cdr_folders(&mut self, root: &Section<'_>) {
        let own = self.appliance.data.join("cdr");
        let allowed = self.configuration.cdr_root.clone().unwrap_or_else(|| own.clone());
        for (section, cdr) in root.sections("cdr").iter().zip(&mut self.cdrs) {
            let Some(folder) = &mut cdr.folder else { continue };
            let full = allowed.join(&*folder);
            if full.components().all(|part| part != Component::ParentDir)
                && (full.starts_with(&allowed) || full.starts_with(&own))
            {
                *folder = full.to_string_lossy().into_owned();
                continue;
            }
            let what = format!(
                "must be below {}, without `..`; to allow another place, set `cdr-root` of [configuration] in the file of the \
                 configuration, and restart",
                allowed.display()
            );
            section.error("folder", what);
        }
    }

    /// Settings of the engine as a whole.
    pub(crate) fn engine_settings(&self) -> Settings {
        Settings {
            lookup_timeout: self.lookup.timeout,
            lookup_retry_after: self.lookup.retry_after,
            lookups_in_flight: self.plugins.lookup_threads,
            ..self.engine.settings(&self.pools)
        }
    }

    /// Pace buckets, send windows and day quotas.
    pub(crate) fn pace_settings(&self) -> PaceSettings {
        PaceSettings {
            buckets: self.pace_buckets.iter().filter_map(|bucket| bucket.settings.clone()).collect(),
            windows: self.send_windows.iter().filter_map(|window| window.settings.clone()).collect(),
            day_quotas: self.day_quotas(),
        }
    }

    /// The number plan of the local socket.
    pub(crate) fn default_plan(&self) -> Option<&NumberPlan> {
        let plans = self.numbering.as_ref()?.plans.as_ref()?;
        plans.get(plans.default_name())
    }

    /// The file of the root token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.http.token_file.clone().unwrap_or_else(|| self.appliance.data.join("token"))
    }

    /// A one-line summary.
    pub(crate) fn summary(&self) -> String {
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        [
            many(self.listeners.len(), "listener"),
            many(self.accounts.len(), "account"),
            many(self.peers.len(), "peer"),
            many(self.gateways.len(), "gateway"),
        ]
        .join(", ")
    }

    /// The attributes of accounts for plugins.
    pub(crate) fn account_attributes(&self) -> HashMap<PeerId, BTreeMap<String, String>> {
        let with_attributes = self.accounts.iter().filter(|account| !account.attributes.is_empty());
        with_attributes.map(|account| (account.links.peer, account.attributes.clone())).collect()
    }

    /// The names of all peers, in the order of the document; then those of the accounts of other partitions.
    pub(crate) fn names(&self) -> Vec<String> {
        let accounts = self.accounts.iter().map(|account| account.links.name.clone());
        let peers = self.peers.iter().map(|peer| peer.links.name.clone());
        let gateways = self.gateways.iter().map(|gateway| gateway.links.name().to_owned());
        let networks = self.networks.iter().map(|network| network.links.name.clone());
        let shell = self.shell.iter().map(|_| SHELL.to_owned());
        let plugin_peers = self.plugin_peers.iter().map(|peer| peer.link.name.clone());
        // Routes name them, too: without `mo-partitions`, a message to an account of another partition has no route here.
        let elsewhere = self.elsewhere.names.keys().cloned();
        let of_partitions = self.partition_accounts.iter().map(|account| account.links.name.clone());
        let here = accounts.chain(peers).chain(gateways).chain(plugin_peers).chain(networks).chain(shell);
        here.chain(elsewhere).chain(of_partitions).collect()
    }

    /// The secrets of plugin peers, by peer.
    pub(crate) fn peer_secrets(&self) -> HashMap<String, BTreeMap<String, String>> {
        let secrets = |peer: &PluginPeer| (peer.link.name.clone(), peer.link.secrets_by_name());
        self.plugin_peers.iter().map(secrets).collect()
    }

    /// Text retention of accounts, by name; without accounts whose texts are kept as long as the messages.
    pub(crate) fn text_retention(&self) -> BTreeMap<String, Duration> {
        let kept = |account: &Account| Some((account.links.name.clone(), account.text_retention?));
        let of_partitions = self.partition_accounts.iter();
        let of_partitions =
            of_partitions.filter_map(|account| Some((account.links.name.clone(), account.text_retention?)));
        self.accounts.iter().filter_map(kept).chain(of_partitions).collect()
    }

    /// Assigns peer ids: known names keep theirs, new names get one from the store.
    pub(crate) fn assign_peer_ids(&mut self, store: &Store) -> Result<Directory, StoreError> {
        let mut directory = store.directory(&self.names())?;
        directory.set_pace_names(
            self.pace_buckets.iter().map(|bucket| bucket.name.as_str().into()),
            self.send_windows.iter().map(|window| window.name.as_str().into()),
        );
        let number = |name: &str| directory.id(name).unwrap_or(UNASSIGNED_PEER);
        let assign = |name: &str, peer: &mut PeerId, queue: &mut PeerSettings| {
            *peer = number(name);
            (queue.peer, queue.group) = (*peer, peer.0);
        };
        for Account { links, queue, business, .. } in &mut self.accounts {
            assign(&links.name, &mut links.peer, queue);
            if let Some(business) = business {
                business.peer = links.peer;
            }
        }
        for Gateway { links, queue, .. } in &mut self.gateways {
            let mut peer = links.peer();
            assign(links.name(), &mut peer, queue);
            links.set_peer(peer);
        }
        for Network { links, queue, .. } in &mut self.networks {
            assign(&links.name, &mut links.peer, queue);
        }
        for PluginPeer { link, queue, .. } in &mut self.plugin_peers {
            assign(&link.name, &mut link.peer, queue);
        }
        for Peer { links, queue, .. } in &mut self.peers {
            assign(&links.name, &mut links.peer, queue);
        }
        for PartitionAccount { links, queue, kind, .. } in &mut self.partition_accounts {
            assign(&links.name, &mut links.account, queue);
            links.peer = number(&links.peer_name);
            queue.alerts_of = (*kind == PartitionAccountKind::CoreNetwork).then_some(links.peer);
        }
        for RemoteAccount { links, queue } in &mut self.remote_accounts {
            assign(&links.name, &mut links.peer, queue);
        }
        if let Some(ShellSettings { options, queue, .. }) = &mut self.shell {
            assign(SHELL, &mut options.peer, queue);
        }
        let names = self.names();
        let group = |name: &String| self.peers.iter().find(|peer| peer.links.name == *name)?.group.as_deref();
        let members: Vec<_> = names.iter().map(|name| (number(name), group(name))).collect();
        let groups = store.groups(&members)?;
        for peer in &mut self.peers {
            if let Some(group) = peer.group.as_ref().and_then(|group| groups.get(group)) {
                peer.queue.group = *group;
            }
        }
        Ok(directory)
    }
}

/// Reads the keys that are needed before the configuration is selected: the data directory and the mode.
pub(crate) fn bootstrap(root: &Section<'_>) -> (PathBuf, ManagementMode) {
    let appliance = ApplianceKeys::read_keys(&root.section("appliance"));
    (appliance.data, ManagementKeys::read_keys(&root.section("configuration")).mode)
}

#[cfg(test)]
mod tests;
