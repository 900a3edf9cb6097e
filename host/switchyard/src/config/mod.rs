//! The configuration file: read and checked as a whole, every error with its line, its key and what to do.

mod business;
mod gsm;
pub(crate) mod plugins;
pub(crate) mod pools;
mod read;
mod sgip;
pub(crate) mod shell;

use self::business::{Archive, Door};
pub(crate) use self::gsm::Network;
use self::plugins::Plugins;
use crate::opt_out::Keywords;
use doors::SourceRules;
use engine::{PeerSettings, Settings, Uncertainty};
use links::{
    AccountOptions, BindMode, BindModes, ClientTls, GatewayOptions, ListenerOptions, LongText, MessageIdForm,
    PeerOptions, Secret, ServerTls, SgipListenerOptions,
};
use model::{Directory, ErrorClass, PeerId};
use numbering::Plans;
use read::{Problem, Problems, Section, line_of};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It cannot be read.
    #[error("{path}: {source}. Name the file with --config")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no TOML, or says what cannot be.
    #[error("{}", .problems.iter().map(|problem| format!("{}: {problem}", .path.display())).collect::<Vec<_>>().join("\n"))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Everything that was found.
        problems: Vec<Problem>,
    },
}

/// The whole configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) data: PathBuf,
    pub(crate) watermark: u64,
    pub(crate) drain: Duration,
    pub(crate) http: SocketAddr,
    pub(crate) token_file: PathBuf,
    pub(crate) retention: Duration,
    pub(crate) store_cache: usize,
    pub(crate) link_threads: usize,
    pub(crate) listeners: Vec<ListenerOptions>,
    pub(crate) sgip_listeners: Vec<SgipListenerOptions>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) networks: Vec<Network>,
    pub(crate) numbering: Option<Plans>,
    pub(crate) plugins: Plugins,
    pub(crate) business: Option<Door>,
    pub(crate) shell: Option<shell::Shell>,
    pub(crate) archive: Archive,
    pub(crate) opt_out: Vec<Keywords>,
    pub(crate) redis: Option<pools::Door>,
    pub(crate) pools: Vec<pools::Pool>,
    pub(crate) settings: Settings,
}

/// An account: its links' options and its queue's.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) links: AccountOptions,
    pub(crate) queue: PeerSettings,
    /// Its calls and pushes, where it is a business system.
    pub(crate) business: Option<::business::AccountOptions>,
}

/// A peer: its links' options and its queue's, with names that are yet to be numbered.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) links: PeerOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) group: Option<String>,
    pub(crate) default_account: Option<String>,
}

/// A gateway: its links' options and its queue's.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) links: GatewayOptions,
    pub(crate) queue: PeerSettings,
    pub(crate) default_account: Option<String>,
}

/// Peers and accounts have their numbers only once the store has given them; until then they all have this one.
const UNNUMBERED: PeerId = PeerId(u32::MAX);

impl Config {
    /// Reads and checks a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let base = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, base).map_err(|problems| ConfigError::Wrong { path: path.to_owned(), problems })
    }

    /// Reads and checks a document; relative paths in it are taken from `base`.
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, Vec<Problem>> {
        let table = toml::de::DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            vec![Problem { line, key: "TOML".to_owned(), what: error.message().to_owned() }]
        })?;
        let problems = Problems::default();
        let root = Section::root(text, table.get_ref(), &problems);
        let config = Self::read(&root, base);
        root.finish();
        let problems = problems.take();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn read(root: &Section<'_>, base: &Path) -> Self {
        let appliance = root.section("appliance");
        let data = base.join(appliance.required("data", "\"/var/lib/switchyard\""));
        let name = appliance.text("name").unwrap_or_else(|| "SWITCHYARD".to_owned());
        if name.is_empty() || name.len() > 15 || !name.is_ascii() {
            appliance.wrong("name", "must be 1 to 15 ASCII characters: it is our SMPP system_id");
        }
        let watermark = appliance.size("free-space-watermark", 512 << 20);
        let drain = appliance.duration("drain", Duration::from_secs(10));
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) as u64;
        let link_threads = appliance.number("link-threads", threads.min(8), 1..=256) as usize;
        appliance.finish();

        let http = root.section("http");
        let listen = http.text("listen").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
        let http_address = listen.parse().unwrap_or_else(|_| {
            http.wrong(
                "listen",
                format!("is {listen:?}, and must be address:port such as \"127.0.0.1:8080\""),
            );
            SocketAddr::from(([127, 0, 0, 1], 8080))
        });
        let token_file = http.text("token-file").map_or_else(|| data.join("token"), |path| base.join(path));
        http.finish();

        let engine = root.section("engine");
        let body_cache = engine.size("body-cache", 64 << 20) as usize;
        let store_cache = engine.size("store-cache", 256 << 20) as usize;
        let retention = engine.duration("finished-retention", Duration::from_secs(3 * 86_400));
        let known = Settings::default();
        let settings = Settings {
            body_cache,
            receipt_parking: engine.duration("receipt-parking", known.receipt_parking),
            key_retention: engine.duration("key-retention", known.key_retention),
            country: country(&engine),
            pools: pools::limits(&root.section("pools")),
            ..known
        };
        engine.finish();

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
        let business = root.has("business").then(|| business::door(&root.section("business")));
        let shell = root.has("shell").then(|| shell::shell(&root.section("shell"), base));
        let archive = business::archive(&root.section("archive"), &data);
        let opt_out = root.sections("opt-out").iter().map(business::opt_out).collect();
        let plugins = Plugins::read(root, base);
        let redis = root.has("redis").then(|| pools::door(&root.section("redis")));
        let pools = pools::pools(&root.sections("pool"));
        let config = Self {
            name,
            data,
            watermark,
            drain,
            http: http_address,
            token_file,
            retention,
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

    /// Names must be unique, and those that are referred to must exist.
    fn check_names(&self, root: &Section<'_>) {
        let mut seen: HashMap<&str, &str> = HashMap::new();
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
            if let Some(other) = seen.insert(name, kind)
                && !name.is_empty()
            {
                section.wrong(
                    "name",
                    format!("{name:?} is also the name of another {other}; names must differ"),
                );
            }
        }
        if self.shell.is_some()
            && let Some(other) = seen.insert(shell::NAME, "shell")
        {
            let what =
                format!("is the name of another {other}, too; queues and routes could not be told apart");
            root.wrong("shell", what);
        }
        let mut system_ids: HashMap<&[u8], ()> = HashMap::new();
        for (section, account) in accounts.iter().zip(&self.accounts) {
            if system_ids.insert(&account.links.system_id, ()).is_some() {
                section.wrong("system-id", "is also another account's; ESMEs could not be told apart");
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
                section.wrong("default-account", format!("{account:?} is no [[account]]; there are: {list}"));
            }
        }
        for peer in self.numbering.iter().flat_map(Plans::peers) {
            if !seen.contains_key(peer) {
                let what = format!(
                    "sends to {peer:?}, which is no [[peer]], no [[gateway]], no [[gsm]] and no [[account]]"
                );
                root.section("numbering").wrong("document", what);
            }
        }
        for (section, key, peer) in self.plugins.peers() {
            if !seen.contains_key(peer) {
                let what = format!("{peer:?} is no [[peer]], no [[gateway]], no [[gsm]] and no [[account]]");
                root.section(section).wrong(key, what);
            }
        }
    }

    /// All names, in the order of the file.
    pub(crate) fn names(&self) -> Vec<String> {
        let accounts = self.accounts.iter().map(|account| account.links.name.clone());
        let peers = self.peers.iter().map(|peer| peer.links.name.clone());
        let gateways = self.gateways.iter().map(|gateway| gateway.links.name.clone());
        let networks = self.networks.iter().map(|network| network.links.name.clone());
        let shell = self.shell.iter().map(|_| shell::NAME.to_owned());
        accounts.chain(peers).chain(gateways).chain(networks).chain(shell).collect()
    }

    /// Puts the numbers in that the store has given to the names.
    pub(crate) fn number(&mut self, directory: &Directory) {
        let number = |name: &str| directory.id(name).unwrap_or(UNNUMBERED);
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
        // A named group has the number of its first peer.
        let mut groups: HashMap<String, u32> = HashMap::new();
        for peer in &mut self.peers {
            let id = number(&peer.links.name);
            peer.links.peer = id;
            peer.queue.peer = id;
            peer.queue.group = match &peer.group {
                Some(group) => *groups.entry(group.clone()).or_insert(id.0),
                None => id.0,
            };
        }
    }
}

/// What a listener speaks.
enum Listener {
    Smpp(ListenerOptions),
    Sgip(SgipListenerOptions),
}

/// Digits of a country code.
fn country(section: &Section<'_>) -> String {
    let country = section.text("country").unwrap_or_default();
    if country.len() > 4 || !country.bytes().all(|c| c.is_ascii_digit()) {
        section.wrong("country", "must be the digits of a country code, such as \"86\"");
    }
    country
}

fn listener(section: &Section<'_>, base: &Path) -> Listener {
    let name = section.required("name", "\"smpp\"");
    let text = section.required("listen", "\"127.0.0.1:2775\"");
    let address = text.parse().unwrap_or_else(|_| {
        if !text.is_empty() {
            section
                .wrong("listen", format!("is {text:?}, and must be address:port such as \"0.0.0.0:2775\""));
        }
        SocketAddr::from(([127, 0, 0, 1], 0))
    });
    if section.choice("protocol", false, &[("smpp", false), ("sgip", true)]) {
        return Listener::Sgip(sgip::listener(section, &name, address));
    }
    let defaults = ListenerOptions::new(&name, address);
    let tls = section.has("tls").then(|| {
        let tls = section.section("tls");
        let file = |key, path: String| existing(&tls, key, base, &path);
        let certificate = file("certificate", tls.required("certificate", "\"server.pem\""));
        let key = file("key", tls.required("key", "\"server.key\""));
        let client_ca = tls.text("client-ca").map(|path| existing(&tls, "client-ca", base, &path));
        tls.finish();
        ServerTls { certificate, key, client_ca }
    });
    let options = ListenerOptions {
        connections: section.number("connections", 1000, 1..=1_000_000) as usize,
        connections_per_address: section.number("connections-per-address", 100, 1..=1_000_000) as usize,
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

fn existing(section: &Section<'_>, key: &'static str, base: &Path, path: &str) -> PathBuf {
    let full = base.join(path);
    if !path.is_empty()
        && let Err(error) = std::fs::File::open(&full)
    {
        section.wrong(key, format!("{}: {error}", full.display()));
    }
    full
}

fn system_id(section: &Section<'_>, key: &'static str, value: &str) {
    if value.len() > 15 || !value.is_ascii() {
        section.wrong(key, format!("{value:?} is not at most 15 ASCII characters, as SMPP wants it"));
    }
}

fn account(section: &Section<'_>, base: &Path) -> Account {
    let name = section.required("name", "\"acme\"");
    let id = section.text("system-id").unwrap_or_else(|| name.clone());
    system_id(section, if section.has("system-id") { "system-id" } else { "name" }, &id);
    let hash = section.required("password-hash", "\"$argon2id$...\" (made by: switchyard hash-password)");
    if !hash.is_empty() && doors::check_password_hash(&hash).is_err() {
        section.wrong("password-hash", "is no argon2 hash; make one with: switchyard hash-password");
    }
    let mut links = AccountOptions::new(&name, UNNUMBERED, &hash);
    links.system_id = bytes::Bytes::from(id.into_bytes());
    if let Some(modes) = section.texts("bind") {
        for mode in &modes {
            if !["transmitter", "receiver", "transceiver"].contains(&mode.as_str()) {
                section.wrong("bind", format!("{mode:?} is not transmitter, receiver or transceiver"));
            }
        }
        let has = |word: &str| modes.iter().any(|mode| mode == word);
        links.bind = BindModes {
            transmitter: has("transmitter"),
            receiver: has("receiver"),
            transceiver: has("transceiver"),
        };
    }
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => links.networks.push(network),
            Err(error) => section.wrong("networks", error.to_string()),
        }
    }
    links.rate = section.rate("rate");
    let burst = links.rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    links.burst = section.number("burst", burst, 1..=10_000_000) as u32;
    links.window = section.number("window", 100, 1..=100_000) as usize;
    links.deliver_window = section.number("deliver-window", 100, 1..=100_000) as usize;
    links.sessions = section.number("sessions", 10, 1..=100_000) as usize;
    links.validity = section.duration("validity", links.validity);
    if section.has("source") {
        let source = section.section("source");
        let default = source.text("default").map(|text| {
            if text.len() > 20 {
                source.wrong("default", "is longer than 20 characters");
            }
            let numeric = text.bytes().all(|c| c.is_ascii_digit());
            let (ton, npi) = if numeric { (0, 1) } else { (5, 0) };
            let ton = source.number("ton", ton, 0..=7) as u8;
            let npi = source.number("npi", npi, 0..=18) as u8;
            model::Address::new(ton, npi, text.as_bytes())
        });
        links.source = SourceRules { allow: source.texts("allow").unwrap_or_default(), default };
        source.finish();
    }
    let mut queue = PeerSettings::new(UNNUMBERED);
    queue.addressee = true;
    queue.receipts = false;
    queue.uncertainty = Uncertainty::SendAgain;
    queue.queue_limit = section.number("queue-limit", 1_000_000, 1..=u64::MAX);
    queue.part_receipts = section.choice("reports", false, &[("merged", false), ("per-part", true)]);
    queue.opt_out = section.flag("opt-out", true);
    if section.has("sgip") {
        links.sgip = Some(sgip::sp(&section.section("sgip"), &name, base));
    }
    let business =
        section.has("business").then(|| business::account(&section.section("business"), &links, base));
    section.finish();
    Account { links, queue, business }
}

fn error_class(word: &str) -> Option<ErrorClass> {
    Some(match word {
        "temporary" => ErrorClass::Temporary,
        "permanent" => ErrorClass::Permanent,
        "throttled" => ErrorClass::Throttled,
        "queue-full" => ErrorClass::QueueFull,
        "absent" => ErrorClass::Absent,
        "memory-full" => ErrorClass::MemoryFull,
        _ => return None,
    })
}

fn address(section: &Section<'_>, key: &'static str, address: &str) {
    let good =
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !address.is_empty() && !good {
        section.wrong(key, format!("is {address:?}, and must be host:port"));
    }
}

/// A secret that stands in the file, or in a file of its own.
fn secret(section: &Section<'_>, key: &'static str, file_key: &'static str, base: &Path) -> String {
    match (section.text(key), section.text(file_key)) {
        (Some(_), Some(_)) => {
            section.wrong(file_key, format!("stands beside {key}; keep one of them"));
            String::new()
        }
        (Some(secret), None) => secret,
        (None, Some(file)) => match std::fs::read_to_string(base.join(&file)) {
            Ok(secret) => secret.trim_end_matches(['\n', '\r']).to_owned(),
            Err(error) => {
                section.wrong(file_key, format!("{file}: {error}"));
                String::new()
            }
        },
        (None, None) => String::new(),
    }
}

/// How messages for a peer or a gateway are handled.
fn queue(section: &Section<'_>, uncertain: Uncertainty, remedies: &[(&str, Uncertainty)]) -> PeerSettings {
    let mut queue = PeerSettings::new(UNNUMBERED);
    queue.rate = section.rate("rate");
    let burst = queue.rate.map_or(1, |rate| (rate / 10.0).ceil().max(1.0) as u64);
    queue.burst = section.number("burst", burst, 1..=10_000_000) as u32;
    queue.queue_limit = section.number("queue-limit", queue.queue_limit, 1..=u64::MAX);
    queue.receipts = section.flag("receipts", true);
    queue.receipt_limit = section.duration("receipt-limit", queue.receipt_limit);
    queue.uncertainty = section.choice("uncertain", uncertain, remedies);
    queue.uncertain_limit = section.duration("uncertain-limit", queue.uncertain_limit);
    if let Some(retry) = section.durations("retry") {
        queue.retry = retry;
    }
    queue.max_attempts = section.number("max-attempts", 0, 0..=10_000) as u16;
    queue
}

fn peer(section: &Section<'_>, base: &Path) -> Peer {
    let name = section.required("name", "\"upstream\"");
    let address = section.required("address", "\"smsc.example.net:2775\"");
    self::address(section, "address", &address);
    let defaults = PeerOptions::new(&name, UNNUMBERED, &address);
    let id = section.text("system-id").unwrap_or_default();
    system_id(section, "system-id", &id);
    let password = secret(section, "password", "password-file", base);
    let tls = section.has("tls").then(|| {
        let tls = section.section("tls");
        let ca = tls.text("ca").map(|path| existing(&tls, "ca", base, &path));
        let server_name = tls.text("server-name");
        let pair = |key: &'static str| tls.text(key).map(|path| existing(&tls, key, base, &path));
        let certificate = match (pair("certificate"), pair("key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                tls.wrong("certificate", "and key go together");
                None
            }
        };
        tls.finish();
        ClientTls { ca, server_name, certificate }
    });
    let version = section.choice("interface-version", 0x34, &[("3.3", 0x33), ("3.4", 0x34), ("5.0", 0x50)]);
    let mut classes = HashMap::new();
    let table = section.section("error-classes");
    for (status, class) in table.pairs() {
        let status = status
            .strip_prefix("0x")
            .map_or_else(|| status.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        match (status, error_class(&class)) {
            (Some(status), Some(class)) => {
                classes.insert(status, class);
            }
            _ => section.wrong(
                "error-classes",
                "maps command_status values such as \"0x45\" to temporary, permanent, throttled, queue-full, absent or memory-full",
            ),
        }
    }
    let links = PeerOptions {
        system_id: bytes::Bytes::from(id.into_bytes()),
        password: Secret(bytes::Bytes::from(password.into_bytes())),
        system_type: bytes::Bytes::from(section.text("system-type").unwrap_or_default().into_bytes()),
        bind: section.choice(
            "bind",
            BindMode::Transceiver,
            &[
                ("transceiver", BindMode::Transceiver),
                ("transmitter", BindMode::Transmitter),
                ("receiver", BindMode::Receiver),
            ],
        ),
        links: section.number("links", 1, 1..=256) as usize,
        window: section.number("window", 10, 1..=100_000) as usize,
        interface_version: version,
        tlvs: section.has("tlvs").then(|| section.flag("tlvs", true)),
        pass_validity: section.flag("pass-validity", defaults.pass_validity),
        enquire_interval: section.duration("enquire-interval", defaults.enquire_interval),
        enquire_timeout: section.duration("enquire-timeout", defaults.enquire_timeout),
        response_timeout: section.duration("response-timeout", defaults.response_timeout),
        message_id: section.choice(
            "message-id",
            MessageIdForm::AsIs,
            &[
                ("as-is", MessageIdForm::AsIs),
                ("hex-to-decimal", MessageIdForm::HexToDecimal),
                ("decimal-to-hex", MessageIdForm::DecimalToHex),
                ("strip-zeros", MessageIdForm::StripZeros),
                ("fold-case", MessageIdForm::FoldCase),
            ],
        ),
        long_text: section.choice(
            "long-text",
            LongText::Payload,
            &[("payload", LongText::Payload), ("udh", LongText::Udh), ("sar", LongText::Sar)],
        ),
        error_classes: classes,
        mo_validity: section.duration("mo-validity", defaults.mo_validity),
        tls,
        ..defaults
    };
    let queue = queue(
        section,
        Uncertainty::AwaitReceipt,
        &[
            ("send-again", Uncertainty::SendAgain),
            ("ask", Uncertainty::Ask),
            ("await-receipt", Uncertainty::AwaitReceipt),
        ],
    );
    let group = section.text("group");
    let default_account = section.text("default-account");
    section.finish();
    Peer { links, queue, group, default_account }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        Config::parse(text, Path::new("/nowhere")).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_sample_is_right() {
        let sample = include_str!("../../switchyard.toml");
        let config = Config::parse(sample, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(config.names(), ["demo", "upstream"]);
    }

    #[test]
    fn every_error_is_told_at_once_with_line_key_and_remedy() {
        let text = r#"[appliance]
name = "a name that is far too long"
dta = "x"

[[account]]
name = "acme"
password-hash = "secret"
bind = ["both"]
networks = ["10.0.0.0/99"]
validity = "two days"
rate = -1

[[peer]]
name = "acme"
address = "nowhere"
windw = 5
default-account = "nobody"
bind = "sideways"

[router]
on-fault = "nowhere"
"#;
        assert_eq!(
            problems(text),
            [
                "line 1: appliance.data: is missing; write for example data = \"/var/lib/switchyard\"",
                "line 2: appliance.name: must be 1 to 15 ASCII characters: it is our SMPP system_id",
                "line 3: appliance.dta: is unknown; did you mean \"data\"?",
                "line 7: account[0].password-hash: is no argon2 hash; make one with: switchyard hash-password",
                "line 8: account[0].bind: \"both\" is not transmitter, receiver or transceiver",
                "line 9: account[0].networks: \"10.0.0.0/99\" is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1",
                "line 10: account[0].validity: is \"two days\", and must be a time such as \"500ms\", \"30s\", \"5m\", \"1h\" or \"2d\"",
                "line 11: account[0].rate: must be above 0 messages a second; leave it out for no limit",
                "line 14: peer[0].name: \"acme\" is also the name of another account; names must differ",
                "line 15: peer[0].address: is \"nowhere\", and must be host:port",
                "line 16: peer[0].windw: is unknown; did you mean \"window\"?",
                "line 17: peer[0].default-account: \"nobody\" is no [[account]]; there are: acme",
                "line 18: peer[0].bind: is \"sideways\", and must be one of: transceiver, transmitter, receiver",
                "line 21: router.on-fault: \"nowhere\" is no [[peer]], no [[gateway]], no [[gsm]] and no [[account]]",
            ]
        );
    }

    #[test]
    fn who_may_use_the_command_line_is_checked() {
        let text = r#"[appliance]
data = "/nowhere"
[[peer]]
name = "shell"
address = "localhost:2775"
system-id = "us"
[shell]
socket = "/run/x.sock"
mode = "rw"
group = "no group of this name"
[[shell.users]]
user = "no user of this name"
numbers = ["16195550123"]
[[shell.users]]
uid = 7
gid = 8
numbers = "all"
[[shell.users]]
uid = 9
numbers = "any"
deliver = true
[[shell.users]]
uid = 10
oprator = true
"#;
        assert_eq!(
            problems(text),
            [
                "line 7: shell: is the name of another peer, too; queues and routes could not be told apart",
                "line 9: shell.mode: is \"rw\", and must be octal, such as \"0660\"",
                "line 10: shell.group: \"no group of this name\" is no group of this system",
                "line 12: shell.users[0].user: \"no user of this name\" is no user of this system",
                "line 13: shell.users[0].numbers: \"16195550123\" is no number: write 3 to 20 digits with a plus sign in front, such as +16195550123",
                "line 14: shell.users[1].user: exactly one of user, uid, group and gid says for whom an entry is",
                "line 17: shell.users[1].numbers: is \"all\", and must be a list of numbers, or \"any\"",
                "line 21: shell.users[2].deliver: goes with numbers = [...]: what is for these is delivered to the inbox",
                "line 22: shell.users[3].numbers: is missing; write for example numbers = [\"+16195550123\"]",
                "line 24: shell.users[3].oprator: is unknown; did you mean \"operator\"?",
            ]
        );
        let right = r#"[appliance]
data = "/nowhere"
[shell]
socket = "x.sock"
[[shell.users]]
uid = 7
numbers = ["+16195550123", "+16195550124"]
deliver = true
[[shell.users]]
gid = 8
numbers = "any"
"#;
        let config = Config::parse(right, Path::new("/etc/switchyard")).unwrap();
        assert_eq!(config.names(), ["shell"]);
        let shell = config.shell.unwrap();
        assert_eq!(shell.options.socket, Path::new("/etc/switchyard/x.sock"));
        assert_eq!((shell.options.mode, shell.options.inboxes().len()), (0o660, 2));
        assert!(shell.queue.addressee);
    }

    #[test]
    fn what_is_no_toml_names_its_line() {
        let found = problems("[appliance]\ndata = \n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("line 2: TOML:"), "{found:?}");
    }
}
