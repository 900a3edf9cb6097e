//! Doors beside SMPP and SGIP: business systems, the command line, Redis clients; number pools and opt-outs.

use super::house::HttpTls;
use super::words::{FlagOrNumbers, Listen, Network, OrAny, PasswordHash, Rate, Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// The door of business systems.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Business {
    /// Where they call.
    pub listen: Listen,
    /// Octets of the largest call.
    pub request_limit: Option<Size>,
    /// How long a call may wait for the disk.
    pub patience: Option<Time>,
    /// TLS: `own` for a certificate of its own making, or the files of one; no TLS unless said otherwise.
    pub tls: Option<HttpTls>,
    /// Connections at a time; 2000 unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Connections from one address, IPv6 by its network of 64 bits; 500 unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address: Option<u64>,
    /// Connections that have not authenticated: one more displaces the oldest of them; a quarter of all unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unauthenticated_connections: Option<u64>,
    /// How long a request's head may take, and how long a connection may be idle; 30s unless said otherwise.
    pub head_timeout: Option<Time>,
    /// How long a request's body may take, beside a second a KiB; 30s unless said otherwise.
    pub body_timeout: Option<Time>,
}

/// Subscribers on the command line.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Shell {
    /// The socket's path.
    pub socket: String,
    /// Who may connect at all, octal.
    #[schemars(regex(pattern = "^[0-7]+$"))]
    pub mode: Option<String>,
    /// The socket's group.
    pub group: Option<String>,
    /// Connections at a time.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections: Option<u64>,
    /// Connections of one user.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections_per_user: Option<u64>,
    /// Silence after which a connection is closed.
    pub idle: Option<Time>,
    /// How long a request may wait for the disk.
    pub patience: Option<Time>,
    /// Messages a second of one number; no limit unless it is said.
    pub rate: Option<Rate>,
    /// How many may come at once.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub burst: Option<u64>,
    /// The validity of messages.
    pub validity: Option<Time>,
    /// Short messages that a text may take.
    #[schemars(range(min = 1, max = 255))]
    pub parts: Option<u64>,
    /// Messages that may wait for inboxes.
    #[schemars(range(min = 1))]
    pub queue_limit: Option<u64>,
    /// Who may come in.
    pub users: Vec<ShellUser>,
}

/// One who may come in; exactly one of user, uid, group and gid says who.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShellUser {
    /// A user's name.
    pub user: Option<String>,
    /// A user's number.
    #[schemars(range(max = 4_294_967_295_u64))]
    pub uid: Option<u64>,
    /// A group's name.
    pub group: Option<String>,
    /// A group's number.
    #[schemars(range(max = 4_294_967_295_u64))]
    pub gid: Option<u64>,
    /// The numbers that he may act as; `any` for all.
    pub numbers: Option<OrAny>,
    /// What is sent to these numbers is delivered to the inbox. Beside `numbers = "any"`: which numbers that is.
    pub deliver: Option<FlagOrNumbers>,
    /// He sees all messages, without their texts.
    pub operator: Option<bool>,
}

/// The door of Redis clients.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Redis {
    /// Where they connect; without accounts, addresses of this machine only.
    pub listen: Vec<Listen>,
    /// Sums of scripts that are known; `any` for whatever a client loads.
    pub scripts: Option<OrAny>,
    /// Script calls that change something are answered with integers, and states are words such as `idle+up`; otherwise both
    /// have the older system's forms.
    pub plain_replies: Option<bool>,
    /// Where clients of a Redis Cluster find its only node, as "host:port"; left out: where they are connected already.
    pub announce: Option<String>,
    /// Connections at a time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: Option<u64>,
    /// Connections from one address.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_address: Option<u64>,
    /// Connections that have not logged in, where there are accounts: one more displaces the oldest of them; a quarter of all
    /// unless said otherwise.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unauthenticated_connections: Option<u64>,
    /// Requests of a connection that may wait for their answers.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub pipelined: Option<u64>,
    /// Answers that may wait to be taken.
    pub unsent: Option<Size>,
    /// Who takes nothing for so long is cut off.
    pub stall_timeout: Option<Time>,
    /// How long a connection may be nobody's.
    pub login_timeout: Option<Time>,
    /// Who may come in.
    pub account: Option<Vec<RedisAccount>>,
}

/// One who may use number pools.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedisAccount {
    /// Its name; `default` for those who give a password only.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Its password's hash.
    pub password_hash: PasswordHash,
    /// Pools that it may see, `*` standing for any characters; all unless it is said.
    pub pools: Option<Vec<String>>,
    /// What it may do.
    pub rights: Vec<PoolRight>,
    /// Where it may connect from; from anywhere unless said otherwise.
    pub networks: Option<Vec<Network>>,
}

/// What may be done with pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolRight {
    /// To look.
    Read,
    /// To take and give back.
    Call,
    /// To change which numbers there are.
    Manage,
}

/// What all number pools share.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pools {
    /// Numbers in all pools together.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub most_numbers: Option<u64>,
    /// Events that each pool keeps at least.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub history: Option<u64>,
}

/// A number pool.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pool {
    /// Its name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Which number is taken; `longest-idle` unless said otherwise.
    pub strategy: Option<Strategy>,
    /// How long a number rests after a call; not at all unless it is said, a year at most.
    pub quarantine: Option<Time>,
}

/// Which number is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The one that has not been used for longest.
    LongestIdle,
    /// Any.
    Random,
    /// Any, those of more weight more often.
    Weighted,
    /// The one that the caller had last.
    Sticky,
    /// The one that is most like the caller's.
    Nearest,
}

/// Words by which subscribers stop a sender.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptOut {
    /// For people only.
    pub language: Option<String>,
    /// Patterns of the senders' numbers; all unless it is said.
    pub senders: Option<Vec<String>>,
    /// Words that tell a sender to stop.
    #[schemars(length(min = 1))]
    pub stop: Vec<String>,
    /// Words that let it go on.
    pub start: Option<Vec<String>>,
    /// Switched off, they are words like any others.
    pub enabled: Option<bool>,
}
