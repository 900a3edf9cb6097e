//! The house itself: the appliance, its API, engine, archive and plugins.

use super::parties::ServerTls;
use super::words::{File, Listen, Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The appliance itself.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Appliance {
    /// Our SMPP system_id; SWITCHYARD unless said otherwise.
    #[schemars(length(min = 1, max = 15))]
    pub name: Option<String>,
    /// The folder of everything that the appliance keeps. The file's own: it is not changed over the API.
    pub data: File,
    /// Free space below which submissions are refused and delivery goes on; 512MiB unless said otherwise.
    pub free_space_watermark: Option<Size>,
    /// How long a shutdown waits for answers; 10s unless said otherwise.
    pub drain: Option<Time>,
    /// Threads for connections; as many as there are processors, at most 8, unless said otherwise.
    #[schemars(range(min = 1, max = 256))]
    pub link_threads: Option<u64>,
}

/// Who says how the appliance is configured.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Managed {
    /// `api`, unless said otherwise.
    pub mode: Option<Mode>,
}

/// Who says how the appliance is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The API; the file is for the first start.
    Api,
    /// The file: it is read at each start and at SIGHUP, and the API only shows it.
    File,
}

/// The admin's API and console.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Http {
    /// Where it is; 127.0.0.1:8080 unless said otherwise.
    pub listen: Option<Listen>,
    /// TLS: `own` for a certificate of its own making, or the files of one; `own` unless said otherwise, where it is not on
    /// loopback.
    pub tls: Option<HttpTls>,
    /// No TLS, although it is not on loopback.
    pub unencrypted: Option<bool>,
    /// The file of the token that is made at the first start; `token` in the data folder unless said otherwise.
    pub token_file: Option<File>,
    /// Connections at a time; 1000 unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Connections from one address, IPv6 by its network of 64 bits; 200 unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address: Option<u64>,
    /// Connections that have not authenticated: one more displaces the oldest of them; a quarter of all unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unauthenticated_connections: Option<u64>,
    /// How long a request's head may take, and how long a connection may be idle; 30s unless said otherwise.
    pub head_timeout: Option<Time>,
    /// How long a request's body may take, beside a second a KiB; 30s unless said otherwise.
    pub body_timeout: Option<Time>,
    /// How long a line of the audit log is kept, 30d at least; 400d unless said otherwise.
    pub audit_retention: Option<Time>,
}

/// With which certificate the admin's door speaks TLS.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HttpTls {
    /// One of the appliance's own making.
    Own(Own),
    /// That of these files.
    Files(ServerTls),
}

/// The appliance's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Own {
    /// The appliance's own.
    Own,
}

/// What is logged, and in which form.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Log {
    /// From which level on, as `PUT /v1/log` takes it: `info,links=debug`, say; `info` unless said otherwise.
    pub level: Option<String>,
    /// Lines for people or for programs; `text` unless said otherwise.
    pub format: Option<LogFormat>,
}

/// Limits beyond which `GET /v1/attention` tells of something.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Attention {
    /// Age of the oldest queued message of a queue; 10m unless said otherwise.
    pub queue_age: Option<Time>,
    /// The same for an account that has no link; 1h unless said otherwise.
    pub unbound_account: Option<Time>,
    /// Messages that wait to be archived; 100000 unless said otherwise.
    pub archive_backlog: Option<u64>,
    /// How long an automatic rollback of a plugin is told; 1h unless said otherwise.
    pub plugin_event: Option<Time>,
}

/// Traces of messages, for a collector of OpenTelemetry's.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Telemetry {
    /// Where the collector takes OTLP over HTTP: `http://127.0.0.1:4318`, say.
    pub otlp: String,
    /// One message of so many is traced; 100 unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub one_in: Option<u64>,
}

/// In which form is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Engine {
    /// Content of waiting messages that is held in memory; 64MiB unless said otherwise.
    pub body_cache: Option<Size>,
    /// Memory for pages of the store; 256MiB unless said otherwise.
    pub store_cache: Option<Size>,
    /// How long finished messages are kept where there is no archive; 3d unless said otherwise.
    pub finished_retention: Option<Time>,
    /// How long a receipt that matches nothing is kept; 1h unless said otherwise.
    pub receipt_parking: Option<Time>,
    /// How long calls may be repeated under their keys; 1d unless said otherwise.
    pub key_retention: Option<Time>,
    /// Digits of a country code: numbers with and without it are the same subscriber.
    #[schemars(regex(pattern = "^[0-9]{0,4}$"))]
    pub country: Option<String>,
}

/// Where finished messages go.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Archive {
    /// `sqlite:FILE` in the data folder, `mysql://`, `postgres://`, or `none`; `sqlite:archive.db` unless said otherwise. The
    /// password in it is never given back; `(unchanged)` in its place keeps it.
    pub url: Option<String>,
    /// A file with the URL in it, instead.
    pub url_file: Option<File>,
    /// Messages of one transaction.
    #[schemars(range(min = 1, max = 100_000))]
    pub batch: Option<u64>,
    /// How long a batch waits for company.
    pub linger: Option<Time>,
    /// What was accepted longer ago is deleted; nothing is, unless this is said.
    pub keep: Option<Time>,
}

/// Who serves our own subscribers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Home {
    /// The peer's name; the only core network there is, unless said otherwise.
    pub peer: Option<String>,
}

/// What all plugins share.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plugins {
    /// Public keys of authors by name, Base64.
    pub trusted_keys: Option<BTreeMap<String, String>>,
    /// Only what one of them has signed is taken.
    pub require_signature: Option<bool>,
    /// The most memory that any plugin may be given; 256MiB unless said otherwise.
    pub memory: Option<Size>,
    /// Instances at work at a time; 256 unless said otherwise.
    #[schemars(range(min = 8, max = 4096))]
    pub instances: Option<u64>,
    /// Questions to resolvers at a time; 16 unless said otherwise.
    #[schemars(range(min = 1, max = 256))]
    pub resolver_threads: Option<u64>,
}

/// Adds the keys of a hook's first binding.
macro_rules! binding {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
            /// The plugin's name.
            pub plugin: Option<String>,
            /// Its component.
            pub component: Option<File>,
            /// The document that it is given.
            pub policy: Option<File>,
            /// What a fault of its means: `hold`, `reject`, `pass`, or, for a router, the name of a peer.
            pub on_fault: Option<String>,
            /// Memory of one instance; 16MiB unless said otherwise.
            pub memory: Option<Size>,
            /// Milliseconds of running time for one question; 20 unless said otherwise.
            #[schemars(range(min = 1, max = 10_000))]
            pub deadline_ms: Option<u64>,
            /// Whether an instance answers one question or many; `warm` unless said otherwise.
            pub instance: Option<InstanceUse>,
            /// What it may use; nothing unless it is said.
            pub grants: Option<Grants>,
            /// How many faults it may have before what was bound before is bound again.
            pub tolerance: Option<Tolerance>,
        }
    };
}

binding! {
    /// The first binding of routers.
    pub struct Router {
        /// How long a message is held whose router failed; 30s unless said otherwise.
        pub hold: Option<Time>,
        /// All messages go to this peer, and no router is asked.
        pub native: Option<String>,
    }
}

binding! {
    /// The first binding of a hook.
    pub struct Hook {}
}

/// How instances are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// For many questions.
    Warm,
    /// For one.
    PerCall,
}

/// What a plugin may use.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grants {
    /// Prefixes of URLs that it may ask.
    pub http: Option<Vec<String>>,
    /// How long an answer may take; 2s unless said otherwise.
    pub http_timeout: Option<Time>,
    /// How long an answer may be; 256KiB unless said otherwise.
    pub http_answer: Option<Size>,
    /// How much it may keep, durably.
    pub kv: Option<Size>,
    /// Tables of the appliance that it may read.
    pub tables: Option<Vec<String>>,
    /// Whether it may ask the home location register.
    pub hlr: Option<bool>,
    /// Whether it is given random numbers.
    pub random: Option<bool>,
    /// Its durable counters. All others are in memory.
    #[schemars(length(max = 32))]
    pub counters: Option<Vec<CounterGrant>>,
}

/// A durable counter.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CounterGrant {
    /// The name that the plugin calls it by.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The period that it counts.
    pub window: CounterWindow,
    /// The time zone of the period, by its name in the IANA database; `UTC` unless said otherwise.
    pub zone: Option<String>,
}

/// The period of a durable counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterWindow {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From the first day of a month to that of the next.
    Month,
}

/// How many faults a plugin may have.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tolerance {
    /// So many ...
    #[schemars(range(max = 100_000))]
    pub faults: Option<u64>,
    /// ... within this time.
    pub window: Option<Time>,
}
