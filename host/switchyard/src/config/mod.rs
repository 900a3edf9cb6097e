//! Reads and validates the configuration. Every error has its line, its key and a remedy.

mod attention;
mod business;
mod descriptors;
mod gsm;
pub(crate) mod http;
pub(crate) mod log;
mod peers;
pub(crate) mod plugins;
pub(crate) mod pools;
mod sgip;
pub(crate) mod shell;
mod telemetry;

use self::business::{ArchiveSettings, BusinessListener};
pub(crate) use self::gsm::Network;
use self::peers::{account, error_class, peer, queue};
use self::plugins::PluginSettings;
use crate::opt_out::OptOutKeywords;
use configuration::{ConfigProblem, Diagnostics, Section, SourceLines};
use engine::{PeerSettings, Settings};
use links::{
    GatewayOptions, LinkAccountOptions, ListenerOptions, PeerOptions, ServerTlsFiles, SgipListenerOptions,
};
use model::{Directory, PeerId};
use numbering::NumberPlans;
use ports::HttpLimits;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
        /// The I/O error.
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

/// How the configuration is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManagementMode {
    /// Over the API; the file is read at the first start only.
    Api,
    /// By the file.
    File,
}

/// The whole configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) log: log::LogSettings,
    pub(crate) telemetry: Option<crate::telemetry::TelemetrySettings>,
    pub(crate) data: PathBuf,
    pub(crate) free_space_watermark: u64,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) http: SocketAddr,
    pub(crate) http_tls: http::HttpTlsMode,
    pub(crate) http_limits: HttpLimits,
    pub(crate) token_file: PathBuf,
    pub(crate) audit_retention: Duration,
    pub(crate) finished_retention: Duration,
    pub(crate) attention: admin::AttentionLimits,
    pub(crate) store_cache: usize,
    pub(crate) link_threads: usize,
    pub(crate) listeners: Vec<ListenerOptions>,
    pub(crate) sgip_listeners: Vec<SgipListenerOptions>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) networks: Vec<Network>,
    pub(crate) numbering: Option<NumberPlans>,
    pub(crate) plugins: PluginSettings,
    pub(crate) business: Option<BusinessListener>,
    pub(crate) shell: Option<shell::ShellSettings>,
    pub(crate) archive: ArchiveSettings,
    pub(crate) opt_out: Vec<OptOutKeywords>,
    pub(crate) redis: Option<pools::RedisListener>,
    pub(crate) pools: Vec<pools::ConfiguredPool>,
    pub(crate) settings: Settings,
}

/// An account: options of its links and its queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    pub(crate) links: LinkAccountOptions,
    pub(crate) queue: PeerSettings,
    /// Its HTTP settings, if it is a business system.
    pub(crate) business: Option<::business::BusinessAccountOptions>,
}

/// A peer: options of its links and its queue. Its peer id is assigned later.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Peer {
    pub(crate) links: PeerOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) group: Option<String>,
    pub(crate) default_account: Option<String>,
}

/// A gateway: options of its links and its queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gateway {
    pub(crate) links: GatewayOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) default_account: Option<String>,
}

/// The placeholder of peer ids until the store assigns them.
const UNASSIGNED_PEER: PeerId = PeerId(u32::MAX);

/// The largest integer of TOML.
const MAX_INTEGER: u64 = i64::MAX as u64;

/// Maximum size of a file that a key refers to, in octets.
const MAX_FILE_OCTETS: u64 = 1 << 20;

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
        let diagnostics = Diagnostics::new(lines);
        let root = Section::root(&diagnostics, document);
        let config = Self::read(&root, base);
        root.finish();
        drop(root);
        let problems = diagnostics.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn read(root: &Section<'_>, base: &Path) -> Self {
        let appliance = root.section("appliance");
        let data = base.join(appliance.required("data", "\"/var/lib/switchyard\""));
        let name = appliance.text("name").unwrap_or_else(|| "SWITCHYARD".to_owned());
        if name.is_empty() || name.len() > 15 || !name.is_ascii() {
            appliance.error("name", "must be 1 to 15 ASCII characters: it is the SMPP system_id");
        }
        let free_space_watermark = appliance.size("free-space-watermark", 512 << 20);
        let shutdown_timeout = appliance.duration("shutdown-timeout", Duration::from_secs(10));
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) as u64;
        let link_threads = appliance.number("link-threads", threads.min(8), 1..=256) as usize;
        appliance.finish();

        // The mode was read before; this only validates it.
        mode(root);

        let http = root.section("http");
        let listen = http.text("listen").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
        let http_address = listen.parse().unwrap_or_else(|_| {
            let allowed = "address:port such as \"127.0.0.1:8080\"";
            http.invalid("listen", format!("is {listen:?}"), allowed);
            SocketAddr::from(([127, 0, 0, 1], 8080))
        });
        let token_file = http.text("token-file").map_or_else(|| data.join("token"), |path| base.join(path));
        let http_tls = http::admin_tls(&http, base, http_address);
        let http_limits = http::limits(&http, HttpLimits::new(1_000, 200), http::RESERVED_CONNECTIONS);
        let audit_retention = http::audit_retention(&http);
        http.finish();

        let engine = root.section("engine");
        let body_cache = engine.size("body-cache", 64 << 20) as usize;
        let store_cache = engine.size("store-cache", 256 << 20) as usize;
        let finished_retention = engine.duration("finished-retention", Duration::from_secs(3 * 86_400));
        let known = Settings::default();
        let settings = Settings {
            body_cache,
            orphan_dlr_retention: engine.duration("orphan-dlr-retention", known.orphan_dlr_retention),
            idempotency_key_retention: engine
                .duration("idempotency-retention", known.idempotency_key_retention),
            country: country(&engine),
            pools: pools::limits(&root.section("pools")),
            ..known
        };
        engine.finish();

        let attention = attention::attention(&root.section("attention"));
        let log = log::log(&root.section("log"));
        let telemetry = root.has("telemetry").then(|| telemetry::telemetry(&root.section("telemetry")));
        let mut listeners = Vec::new();
        let mut sgip_listeners = Vec::new();
        for section in root.sections("listener") {
            match listener(&section, base) {
                Listener::Smpp(options) => listeners.push(options),
                Listener::Sgip(options) => sgip_listeners.push(options),
            }
        }
        let accounts: Vec<_> =
            root.sections("account").iter().map(|section| account(section, base)).collect();
        let peers: Vec<_> = root.sections("peer").iter().map(|section| peer(section, base)).collect();
        let gateways: Vec<_> =
            root.sections("gateway").iter().map(|section| sgip::gateway(section, base)).collect();
        let numbering = gsm::numbering(root, base);
        let networks: Vec<_> =
            root.sections("gsm").iter().map(|section| gsm::network(section, numbering.as_ref())).collect();
        let business = root.has("business").then(|| business::listener(&root.section("business"), base));
        let shell = root.has("shell").then(|| shell::shell(&root.section("shell"), base));
        let archive = business::archive(&root.section("archive"), base, &data);
        let opt_out = root.sections("opt-out").iter().map(business::opt_out).collect();
        let plugins = PluginSettings::read(root, base);
        let redis = root.has("redis").then(|| pools::redis(&root.section("redis")));
        let pools = pools::pools(&root.sections("pool"));
        let config = Self {
            name,
            log,
            telemetry,
            data,
            free_space_watermark,
            shutdown_timeout,
            http: http_address,
            http_tls,
            http_limits,
            token_file,
            audit_retention,
            finished_retention,
            attention,
            store_cache,
            link_threads,
            listeners,
            sgip_listeners,
            accounts,
            peers,
            gateways,
            networks,
            numbering,
            plugins,
            business,
            shell,
            archive,
            opt_out,
            redis,
            pools,
            settings,
        };
        config.check_names(root);
        config
    }

    /// Checks that names are unique and that references exist.
    fn check_names(&self, root: &Section<'_>) {
        let mut kinds: HashMap<&str, &str> = HashMap::new();
        let accounts = root.sections("account");
        let peers = root.sections("peer");
        let gateways = root.sections("gateway");
        let networks = root.sections("gsm");
        for (section, name, kind) in (accounts.iter().zip(&self.accounts))
            .map(|(section, account)| (section, &account.links.name, "account"))
            .chain(peers.iter().zip(&self.peers).map(|(section, peer)| (section, &peer.links.name, "peer")))
            .chain(
                gateways
                    .iter()
                    .zip(&self.gateways)
                    .map(|(section, gateway)| (section, &gateway.links.name, "gateway")),
            )
            .chain(
                networks
                    .iter()
                    .zip(&self.networks)
                    .map(|(section, network)| (section, &network.links.name, "core network")),
            )
        {
            if let Some(other) = kinds.insert(name, kind)
                && !name.is_empty()
            {
                section.error(
                    "name",
                    format!("{name:?} is also the name of another {other}; names must differ"),
                );
            }
        }
        if self.shell.is_some()
            && let Some(other) = kinds.insert(shell::NAME, "shell")
        {
            let what = format!("is also the name of another {other}; names must differ");
            root.error("shell", what);
        }
        let mut names: HashMap<&str, ()> = HashMap::new();
        let mut addresses: HashMap<SocketAddr, ()> = HashMap::new();
        let smpp = self.listeners.iter().map(|listener| (listener.name.as_str(), listener.listen));
        let sgip = self.sgip_listeners.iter().map(|listener| (listener.name.as_str(), listener.listen));
        let listeners: HashMap<&str, SocketAddr> = smpp.chain(sgip).collect();
        for section in root.sections("listener") {
            let Some(name) = section.text("name") else { continue };
            let Some((name, address)) = listeners.get_key_value(name.as_str()) else { continue };
            if names.insert(name, ()).is_some() {
                section.error("name", format!("{name:?} is also the name of another listener"));
            } else if address.port() != 0 && addresses.insert(*address, ()).is_some() {
                section.error("listen", format!("{address} is also another listener's"));
            }
        }
        let mut system_ids: HashMap<&[u8], ()> = HashMap::new();
        for (section, account) in accounts.iter().zip(&self.accounts) {
            if system_ids.insert(&account.links.system_id, ()).is_some() {
                section.error("system-id", "is also the system_id of another account");
            }
        }
        let known_accounts: Vec<&str> =
            self.accounts.iter().map(|account| account.links.name.as_str()).collect();
        let defaults = peers.iter().zip(self.peers.iter().map(|peer| &peer.default_account));
        let defaults =
            defaults.chain(gateways.iter().zip(self.gateways.iter().map(|gateway| &gateway.default_account)));
        let defaults =
            defaults.chain(networks.iter().zip(self.networks.iter().map(|network| &network.default_account)));
        for (section, default) in defaults {
            if let Some(account) = default
                && !known_accounts.contains(&account.as_str())
            {
                let list = known_accounts.join(", ");
                section.error(
                    "default-account",
                    format!("{account:?} is not an [[account]]; known are: {list}"),
                );
            }
        }
        for peer in self.numbering.iter().flat_map(NumberPlans::peers) {
            if !kinds.contains_key(peer) {
                let what = format!(
                    "sends to {peer:?}, which is not a [[peer]], [[gateway]], [[gsm]] or [[account]]"
                );
                root.section("numbering").error("document", what);
            }
        }
        for (section, key, peer) in self.plugins.peers() {
            if !kinds.contains_key(peer) {
                let what = format!("{peer:?} is not a [[peer]], [[gateway]], [[gsm]] or [[account]]");
                root.section(section).error(key, what);
            }
        }
    }

    /// A one-line summary.
    pub(crate) fn summary(&self) -> String {
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        [
            many(self.listeners.len() + self.sgip_listeners.len(), "listener"),
            many(self.accounts.len(), "account"),
            many(self.peers.len(), "peer"),
            many(self.gateways.len(), "gateway"),
        ]
        .join(", ")
    }

    /// The names of all peers, in the order of the document.
    pub(crate) fn names(&self) -> Vec<String> {
        let accounts = self.accounts.iter().map(|account| account.links.name.clone());
        let peers = self.peers.iter().map(|peer| peer.links.name.clone());
        let gateways = self.gateways.iter().map(|gateway| gateway.links.name.clone());
        let networks = self.networks.iter().map(|network| network.links.name.clone());
        let shell = self.shell.iter().map(|_| shell::NAME.to_owned());
        accounts.chain(peers).chain(gateways).chain(networks).chain(shell).collect()
    }

    /// Assigns peer ids: known names keep theirs, new names get one from the store.
    pub(crate) fn assign_peer_ids(&mut self, store: &Store) -> Result<Directory, StoreError> {
        let directory = store.directory(&self.names())?;
        let number = |name: &str| directory.id(name).unwrap_or(UNASSIGNED_PEER);
        for account in &mut self.accounts {
            let id = number(&account.links.name);
            account.links.peer = id;
            account.queue.peer = id;
            account.queue.group = id.0;
            if let Some(business) = &mut account.business {
                business.peer = id;
            }
        }
        for gateway in &mut self.gateways {
            let id = number(&gateway.links.name);
            gateway.links.peer = id;
            gateway.queue.peer = id;
            gateway.queue.group = id.0;
        }
        for network in &mut self.networks {
            let id = number(&network.links.name);
            network.links.peer = id;
            network.queue.peer = id;
            network.queue.group = id.0;
        }
        if let Some(shell) = &mut self.shell {
            let id = number(shell::NAME);
            shell.options.peer = id;
            shell.queue.peer = id;
            shell.queue.group = id.0;
        }
        for peer in &mut self.peers {
            let id = number(&peer.links.name);
            peer.links.peer = id;
            peer.queue.peer = id;
        }
        let names = self.names();
        let group = |name: &String| self.peers.iter().find(|peer| peer.links.name == *name)?.group.as_deref();
        let members: Vec<_> = names.iter().map(|name| (number(name), group(name))).collect();
        let groups = store.groups(&members)?;
        for peer in &mut self.peers {
            let named = peer.group.as_ref().and_then(|group| groups.get(group));
            peer.queue.group = named.copied().unwrap_or(peer.queue.peer.0);
        }
        Ok(directory)
    }
}

/// Reads how the configuration is managed.
pub(crate) fn mode(root: &Section<'_>) -> ManagementMode {
    let managed = root.section("configuration");
    let mode = managed.choice(
        "mode",
        ManagementMode::Api,
        &[("api", ManagementMode::Api), ("file", ManagementMode::File)],
    );
    managed.finish();
    mode
}

/// The options of a listener, by protocol.
enum Listener {
    Smpp(ListenerOptions),
    Sgip(SgipListenerOptions),
}

/// Reads the digits of a country code.
fn country(section: &Section<'_>) -> String {
    let country = section.text("country").unwrap_or_default();
    if country.len() > 4 || !country.bytes().all(|c| c.is_ascii_digit()) {
        section.error("country", "must be the digits of a country code, such as \"86\"");
    }
    country
}

fn listener(section: &Section<'_>, base: &Path) -> Listener {
    let name = section.required("name", "\"smpp\"");
    let text = section.required("listen", "\"127.0.0.1:2775\"");
    let address = text.parse().unwrap_or_else(|_| {
        if !text.is_empty() {
            section.invalid("listen", format!("is {text:?}"), "address:port such as \"0.0.0.0:2775\"");
        }
        SocketAddr::from(([127, 0, 0, 1], 0))
    });
    if section.choice("protocol", false, &[("smpp", false), ("sgip", true)]) {
        return Listener::Sgip(sgip::listener(section, &name, address));
    }
    let defaults = ListenerOptions::new(&name, address);
    let tls = section.has("tls").then(|| {
        let tls = section.section("tls");
        let file = |key, path: String| existing_file(&tls, key, base, &path);
        let certificate = file("certificate", tls.required("certificate", "\"server.pem\""));
        let key = file("key", tls.required("key", "\"server.key\""));
        let client_ca = tls.text("client-ca").map(|path| existing_file(&tls, "client-ca", base, &path));
        tls.finish();
        ServerTlsFiles { certificate, key, client_ca }
    });
    let connections = section.number("connections", 1000, 1..=1_000_000) as usize;
    let options = ListenerOptions {
        connections,
        connections_per_address: section.number("connections-per-address", 100, 1..=1_000_000) as usize,
        unbound_connections: unidentified_connections(section, "unbound-connections", connections),
        bind_timeout: section.duration("bind-timeout", defaults.bind_timeout),
        inactivity: section.duration("inactivity", defaults.inactivity),
        enquire_interval: section.duration("enquire-interval", defaults.enquire_interval),
        enquire_timeout: section.duration("enquire-timeout", defaults.enquire_timeout),
        partial_timeout: section.duration("partial-timeout", defaults.partial_timeout),
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        tls,
        ..defaults
    };
    section.finish();
    Listener::Smpp(options)
}

/// Reads the limit of unidentified connections; the default is a quarter of all.
fn unidentified_connections(section: &Section<'_>, key: &'static str, connections: usize) -> usize {
    let default = ports::ConnectionLimits::default_unidentified(connections) as u64;
    section.number(key, default, 1..=connections as u64) as usize
}

fn existing_file(section: &Section<'_>, key: &'static str, base: &Path, path: &str) -> PathBuf {
    let full = base.join(path);
    if !path.is_empty()
        && let Err(error) = open_regular_file(&full)
    {
        section.error(key, format!("{}: {error}", full.display()));
    }
    full
}

/// Opens a regular file. Pipes and devices are refused because reading them may not end.
fn open_regular_file(path: &Path) -> io::Result<std::fs::File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    std::fs::File::open(path)
}

/// Reads a file that a key refers to: a secret, a URL, a number plan.
fn read_text_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular_file(path)?.take(MAX_FILE_OCTETS + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_OCTETS {
        return Err(io::Error::other(format!("is larger than {MAX_FILE_OCTETS} octets")));
    }
    Ok(text)
}

fn system_id(section: &Section<'_>, key: &'static str, value: &str) {
    if value.len() > 15 || !value.is_ascii() {
        section.error(key, format!("{value:?} must be at most 15 ASCII characters, as SMPP requires"));
    }
}

fn address(section: &Section<'_>, key: &'static str, address: &str) {
    let good =
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !address.is_empty() && !good {
        section.invalid(key, format!("is {address:?}"), "host:port");
    }
}

/// Reads a secret from the document or from a separate file.
fn secret(section: &Section<'_>, key: &'static str, file_key: &'static str, base: &Path) -> String {
    match (section.text(key), section.text(file_key)) {
        (Some(_), Some(_)) => {
            section.error(file_key, format!("is set together with {key}; keep one of them"));
            String::new()
        }
        (Some(secret), None) => secret,
        (None, Some(file)) => match read_text_file(&base.join(&file)) {
            Ok(secret) => secret.trim_end_matches(['\n', '\r']).to_owned(),
            Err(error) => {
                section.error(file_key, format!("{file}: {error}"));
                String::new()
            }
        },
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
