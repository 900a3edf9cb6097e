//! Front ends other than SMPP and SGIP: business systems, the local socket, Redis clients; number pools and opt-outs.

use super::daemon::HttpTlsConfig;
use super::values::{
    DurationConfig, FlagOrNumbersConfig, ListOrAnyConfig, ListenAddressConfig, NetworkConfig,
    PasswordHashConfig, RateConfig, SizeConfig,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The listener for business systems.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BusinessConfig {
    /// The listening address.
    pub listen: ListenAddressConfig,
    /// Maximum size of a request.
    pub request_limit: Option<SizeConfig>,
    /// Maximum time that a request waits for the commit.
    pub submit_timeout: Option<DurationConfig>,
    /// TLS: `own` for a self-signed certificate, or certificate files. Default: no TLS.
    pub tls: Option<HttpTlsConfig>,
    /// Maximum number of connections. Default: 2000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Maximum number of connections per IP address (IPv6: per /64 network). Default: 500.
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
}

/// The local socket of the `switchyard sms` command.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShellConfig {
    /// The path of the socket.
    pub socket: String,
    /// The permissions of the socket, octal.
    #[schemars(regex(pattern = "^[0-7]+$"))]
    pub mode: Option<String>,
    /// The group of the socket.
    pub group: Option<String>,
    /// Maximum number of connections.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections: Option<u64>,
    /// Maximum number of connections per user.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_per_user: Option<u64>,
    /// Idle time after which a connection is closed.
    pub idle: Option<DurationConfig>,
    /// Maximum time that a request waits for the commit.
    pub submit_timeout: Option<DurationConfig>,
    /// Maximum messages per second and number. Default: no limit.
    pub rate: Option<RateConfig>,
    /// Maximum burst.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub burst: Option<u64>,
    /// The validity of messages.
    pub validity: Option<DurationConfig>,
    /// Maximum number of segments of a text.
    #[schemars(range(min = 1, max = 255))]
    pub max_segments: Option<u64>,
    /// Maximum number of messages queued for inboxes.
    #[schemars(range(min = 1))]
    pub queue_limit: Option<u64>,
    /// Users who may connect.
    pub users: Vec<ShellUserConfig>,
}

/// A user or group who may connect; exactly one of `user`, `uid`, `group` and `gid` must be set.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShellUserConfig {
    /// A user name.
    pub user: Option<String>,
    /// A user ID.
    #[schemars(range(max = 4_294_967_295_u64))]
    pub uid: Option<u64>,
    /// A group name.
    pub group: Option<String>,
    /// A group ID.
    #[schemars(range(max = 4_294_967_295_u64))]
    pub gid: Option<u64>,
    /// Numbers that the user may send from and read; `any` for all.
    pub numbers: Option<ListOrAnyConfig>,
    /// Whether messages to these numbers are delivered to the inbox; with `numbers = "any"`, the numbers to which that
    /// applies.
    pub deliver: Option<FlagOrNumbersConfig>,
    /// Whether the user sees all messages, without their texts.
    pub operator: Option<bool>,
}

/// The listener for Redis clients.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedisConfig {
    /// Listening addresses; without accounts, loopback addresses only.
    pub listen: Vec<ListenAddressConfig>,
    /// SHA-1 sums of the accepted scripts; `any` accepts every script.
    pub scripts: Option<ListOrAnyConfig>,
    /// Whether scripts that change a pool return integers and states are words such as `idle+up`. Otherwise both have
    /// the format of the older system.
    pub plain_replies: Option<bool>,
    /// The "host:port" announced to Redis Cluster clients as the only node. Default: the address they are connected to.
    pub announce: Option<String>,
    /// Maximum number of connections.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Maximum number of connections per IP address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address: Option<u64>,
    /// Maximum number of unauthenticated connections, if there are accounts; a new one replaces the oldest. Default: a
    /// quarter of `connections`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unauthenticated_connections: Option<u64>,
    /// Maximum number of pipelined requests per connection.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub pipelined: Option<u64>,
    /// Maximum size of unsent replies per connection.
    pub output_buffer: Option<SizeConfig>,
    /// A connection that reads nothing for this long is closed.
    pub stall_timeout: Option<DurationConfig>,
    /// Maximum time until a connection must authenticate.
    pub login_timeout: Option<DurationConfig>,
    /// Accounts of Redis clients.
    pub account: Option<Vec<RedisAccountConfig>>,
}

/// An account of a Redis client.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedisAccountConfig {
    /// The account name; `default` for clients that send a password only.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The hash of the password.
    pub password_hash: PasswordHashConfig,
    /// Pools that it may see, with `*` as a wildcard. Default: all.
    pub pools: Option<Vec<String>>,
    /// The account's permissions.
    pub permissions: Vec<PoolPermissionConfig>,
    /// Networks that it may connect from. Default: any.
    pub networks: Option<Vec<NetworkConfig>>,
}

/// A permission on number pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolPermissionConfig {
    /// To read pools.
    Read,
    /// To acquire and release numbers.
    Lease,
    /// To add, change and remove numbers.
    Manage,
}

/// Settings shared by all number pools.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolsConfig {
    /// Maximum number of numbers in all pools together.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_numbers: Option<u64>,
    /// Minimum number of events kept per pool.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub history: Option<u64>,
}

/// A number pool.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolConfig {
    /// The pool's name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// How a number is selected. Default: `longest-idle`.
    pub strategy: Option<PoolStrategyConfig>,
    /// How long a number stays unused after a call; at most a year. Default: 0s.
    pub quarantine: Option<DurationConfig>,
}

/// How a number is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolStrategyConfig {
    /// The number that was idle for longest.
    LongestIdle,
    /// A random number.
    Random,
    /// A random number, by weight.
    Weighted,
    /// The number that the caller had last.
    Sticky,
    /// The number that resembles the caller's most.
    Nearest,
}

/// Opt-out keywords.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptOutConfig {
    /// The language, as a comment.
    pub language: Option<String>,
    /// Patterns of the senders' numbers. Default: all.
    pub senders: Option<Vec<String>>,
    /// Keywords that opt out.
    #[schemars(length(min = 1))]
    pub stop: Vec<String>,
    /// Keywords that opt in again.
    pub start: Option<Vec<String>>,
    /// Whether the keywords are active.
    pub enabled: Option<bool>,
}
