use ports::IpNetwork;
use resp::{ClusterNode, RespLimits, ScriptSha1};
use std::time::Duration;

/// Permissions of an account for the pools that it may see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedisPermissions {
    /// Read pools and numbers.
    pub read: bool,
    /// Lease, renew and release numbers.
    pub lease: bool,
    /// Create and remove pools, add and remove numbers, set numbers up and down.
    pub manage: bool,
}

impl RedisPermissions {
    /// All permissions.
    pub const ALL: Self = Self { read: true, lease: true, manage: true };
}

/// An account for Redis clients.
#[derive(Debug, Clone)]
pub struct RedisAccountOptions {
    /// The name; `default` is used by clients that send only a password.
    pub name: String,
    /// Hash of the password, argon2 in PHC format.
    pub password_hash: String,
    /// Patterns of the visible pools; `*` matches anything.
    pub pools: Vec<String>,
    /// The permissions for these pools.
    pub permissions: RedisPermissions,
    /// Networks from which the account may log in; empty for any.
    pub networks: Vec<IpNetwork>,
}

/// Options of the Redis server.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// SHA-1 sums of the scripts that implement the pool state machine.
    pub scripts: Vec<ScriptSha1>,
    /// Treat any loaded script as such a script.
    pub any_script: bool,
    /// Answer changes by scripts with integers, and states with words such as `idle+up`.
    pub plain_replies: bool,
    /// The address announced to cluster clients; `None` for the local address of the connection.
    pub announce: Option<ClusterNode>,
    /// The accounts. Without accounts, every client may do everything.
    pub accounts: Vec<RedisAccountOptions>,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections from one address.
    pub connections_per_address: usize,
    /// Maximum number of unauthenticated connections, if there are accounts; a further one displaces the oldest.
    pub unauthenticated_connections: usize,
    /// Timeout for the login, if there are accounts.
    pub login_timeout: Duration,
    /// Time after which a client that reads no answers is disconnected.
    pub stall_timeout: Duration,
    /// Limits per connection.
    pub limits: RespLimits,
    /// Maximum number of concurrent password verifications.
    pub verifications: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            scripts: Vec::new(),
            any_script: false,
            plain_replies: false,
            announce: None,
            accounts: Vec::new(),
            connections: 10_000,
            connections_per_address: 1_000,
            unauthenticated_connections: 2_500,
            login_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            // Clients send a whole pipeline before they read the first answer, so all answers must fit.
            limits: RespLimits { output_buffer: 32 << 20, ..RespLimits::default() },
            verifications: 2,
        }
    }
}
