//! Sections of the daemon itself: appliance, API, log, engine, archive and plugins.

use super::endpoints::ServerTlsConfig;
use super::values::{DurationConfig, FilePathConfig, ListenAddressConfig, SizeConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The daemon itself.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApplianceConfig {
    /// The SMPP system_id of this appliance. Default: SWITCHYARD.
    #[schemars(length(min = 1, max = 15))]
    pub name: Option<String>,
    /// The data directory. Set in the file only; the API cannot change it.
    pub data: FilePathConfig,
    /// Minimum free disk space. Below it, submissions are refused and delivery continues. Default: 512MiB.
    pub free_space_watermark: Option<SizeConfig>,
    /// Maximum time that a shutdown waits for outstanding responses. Default: 10s.
    pub shutdown_timeout: Option<DurationConfig>,
    /// Number of network threads. Default: the number of processors, at most 8.
    #[schemars(range(min = 1, max = 256))]
    pub link_threads: Option<u64>,
}

/// How the configuration is managed.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ManagementConfig {
    /// Default: `api`.
    pub mode: Option<ManagementModeConfig>,
}

/// How the configuration is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManagementModeConfig {
    /// Over the API; the file is read at the first start only.
    Api,
    /// By the file, which is read at each start and at SIGHUP; the API is read-only.
    File,
}

/// The admin API and console.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpConfig {
    /// The listening address. Default: 127.0.0.1:8080.
    pub listen: Option<ListenAddressConfig>,
    /// TLS: `own` for a self-signed certificate, or certificate files. Default: `own`, except on loopback addresses.
    pub tls: Option<HttpTlsConfig>,
    /// Disables TLS on an address that is not loopback.
    pub unencrypted: Option<bool>,
    /// The file of the root token, which is generated at the first start. Default: `token` in the data directory.
    pub token_file: Option<FilePathConfig>,
    /// Maximum number of connections. Default: 1000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Maximum number of connections per IP address (IPv6: per /64 network). Default: 200.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address: Option<u64>,
    /// Maximum number of unauthenticated connections; a new one replaces the oldest. Default: a quarter of
    /// `connections`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unauthenticated_connections: Option<u64>,
    /// Maximum time for a request head and for an idle connection. Default: 30s.
    pub head_timeout: Option<DurationConfig>,
    /// Maximum time for a request body, in addition to 1 s per KiB. Default: 30s.
    pub body_timeout: Option<DurationConfig>,
    /// How long audit log entries are kept, at least 30d. Default: 400d.
    pub audit_retention: Option<DurationConfig>,
}

/// The TLS certificate of an HTTP listener.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HttpTlsConfig {
    /// A self-signed certificate.
    Own(SelfSignedConfig),
    /// Certificate files.
    Files(ServerTlsConfig),
}

/// A self-signed certificate, generated at the first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SelfSignedConfig {
    /// A self-signed certificate.
    Own,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LogConfig {
    /// The log filter, in the form of `PUT /v1/log`, for example `info,links=debug`. Default: `info`.
    pub level: Option<String>,
    /// The log format. Default: `text`.
    pub format: Option<LogFormatConfig>,
}

/// Thresholds of `GET /v1/attention`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AttentionConfig {
    /// Maximum age of the oldest message in a queue. Default: 10m.
    pub queue_age: Option<DurationConfig>,
    /// Maximum age of the oldest message for an account without links. Default: 1h.
    pub unbound_account: Option<DurationConfig>,
    /// Maximum number of messages waiting to be archived. Default: 100000.
    pub archive_backlog: Option<u64>,
    /// How long an automatic rollback of a plugin is reported. Default: 1h.
    pub plugin_event: Option<DurationConfig>,
}

/// OpenTelemetry traces of messages.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetryConfig {
    /// The OTLP/HTTP endpoint of the collector, for example `http://127.0.0.1:4318`.
    pub otlp: String,
    /// One message in this many is traced. Default: 100.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub one_in: Option<u64>,
}

/// The log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormatConfig {
    /// Plain text lines.
    Text,
    /// One JSON object per line.
    Json,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineConfig {
    /// Memory for the content of waiting messages. Default: 64MiB.
    pub body_cache: Option<SizeConfig>,
    /// Memory for pages of the store. Default: 256MiB.
    pub store_cache: Option<SizeConfig>,
    /// How long finished messages are kept if there is no archive. Default: 3d.
    pub finished_retention: Option<DurationConfig>,
    /// How long a DLR that matches no message is kept. Default: 1h.
    pub orphan_dlr_retention: Option<DurationConfig>,
    /// How long idempotency keys are kept. Default: 1d.
    pub idempotency_retention: Option<DurationConfig>,
    /// The digits of a country code. Numbers with and without it denote the same subscriber.
    #[schemars(regex(pattern = "^[0-9]{0,4}$"))]
    pub country: Option<String>,
}

/// The archive of finished messages.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArchiveConfig {
    /// `sqlite:FILE` (relative to the data directory), `mysql://`, `postgres://`, or `none`. Default:
    /// `sqlite:archive.db`. A password in the URL is write-only; `(unchanged)` in its place keeps it.
    pub url: Option<String>,
    /// A file that contains the URL, instead of `url`.
    pub url_file: Option<FilePathConfig>,
    /// Maximum number of messages per transaction.
    #[schemars(range(min = 1, max = 100_000))]
    pub batch: Option<u64>,
    /// Maximum time that a batch waits for more messages.
    pub linger: Option<DurationConfig>,
    /// Messages accepted longer ago than this are deleted. Default: never.
    pub retention: Option<DurationConfig>,
}

/// The home network.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HomeConfig {
    /// The peer that serves the home network's subscribers. Default: the only `[[gsm]]`.
    pub peer: Option<String>,
}

/// Settings shared by all plugins.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PluginsConfig {
    /// Public keys of trusted authors by name, Base64.
    pub trusted_keys: Option<BTreeMap<String, String>>,
    /// Rejects plugins that are not signed with a trusted key.
    pub require_signature: Option<bool>,
    /// Maximum memory of a plugin instance. Default: 256MiB.
    pub memory: Option<SizeConfig>,
    /// Maximum number of running instances. Default: 256.
    #[schemars(range(min = 8, max = 4096))]
    pub instances: Option<u64>,
    /// Number of threads that call resolvers. Default: 16.
    #[schemars(range(min = 1, max = 256))]
    pub resolver_threads: Option<u64>,
}

/// Adds the keys of a hook's initial binding.
macro_rules! binding_config {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($own)*
            /// The plugin's name.
            pub plugin: Option<String>,
            /// The plugin's component file.
            pub component: Option<FilePathConfig>,
            /// The policy document passed to the plugin.
            pub policy: Option<FilePathConfig>,
            /// The reaction to a fault: `hold`, `reject`, `pass` or, for a router, the name of a peer.
            pub on_fault: Option<String>,
            /// Maximum memory of an instance. Default: 16MiB.
            pub memory: Option<SizeConfig>,
            /// Maximum running time of one call, in milliseconds. Default: 20.
            #[schemars(range(min = 1, max = 10_000))]
            pub deadline_ms: Option<u64>,
            /// Whether an instance is reused. Default: `warm`.
            pub instance: Option<InstanceUseConfig>,
            /// The plugin's grants. Default: none.
            pub grants: Option<GrantsConfig>,
            /// The number of faults after which the previous binding is restored.
            pub tolerance: Option<ToleranceConfig>,
        }
    };
}

binding_config! {
    /// The initial binding of the router.
    pub struct RouterConfig {
        /// How long a message is held after a router fault. Default: 30s.
        pub hold: Option<DurationConfig>,
        /// Sends all messages to this peer without calling a router.
        pub static_peer: Option<String>,
    }
}

binding_config! {
    /// The initial binding of a hook.
    pub struct HookConfig {}
}

/// How plugin instances are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUseConfig {
    /// An instance serves many calls.
    Warm,
    /// An instance serves one call.
    PerCall,
}

/// The grants of a plugin.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GrantsConfig {
    /// Allowed URL prefixes for HTTP requests.
    pub http: Option<Vec<String>>,
    /// Maximum duration of an HTTP request. Default: 2s.
    pub http_timeout: Option<DurationConfig>,
    /// Maximum size of an HTTP response. Default: 256KiB.
    pub http_response_limit: Option<SizeConfig>,
    /// Maximum size of its durable key-value store.
    pub kv: Option<SizeConfig>,
    /// Lookup tables that it may read.
    pub tables: Option<Vec<String>>,
    /// Whether it may query the HLR.
    pub hlr: Option<bool>,
    /// Whether it may use random numbers.
    pub random: Option<bool>,
    /// Its durable counters. All other counters are kept in memory.
    #[schemars(length(max = 32))]
    pub counters: Option<Vec<CounterGrantConfig>>,
}

/// A durable counter.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CounterGrantConfig {
    /// The name by which the plugin refers to it.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The period that it covers.
    pub window: CounterWindowConfig,
    /// The time zone of the period, by IANA name. Default: `UTC`.
    pub zone: Option<String>,
}

/// The period of a durable counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterWindowConfig {
    /// A full hour.
    Hour,
    /// A day, from midnight to midnight.
    Day,
    /// A calendar month.
    Month,
}

/// The fault tolerance of a plugin.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToleranceConfig {
    /// Maximum number of faults within `window`.
    #[schemars(range(max = 100_000))]
    pub faults: Option<u64>,
    /// The window in which faults are counted.
    pub window: Option<DurationConfig>,
}
