use configuration::{HostPort, KeyFormat, KeyValue, Keys, Section, Shape, Word, Words, list_or_word};
use ports::{ConnectionLimits, IpNetwork, PasswordHashKey};
use resp::{ClusterNode, RespLimits, ScriptSha1};
use std::net::Ipv6Addr;
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

impl KeyValue for RedisPermissions {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        let mut permissions = Self::default();
        for permission in section.key::<Vec<Permission>>(&Words(Permission::WORDS), key)? {
            match permission {
                Permission::Read => permissions.read = true,
                Permission::Lease => permissions.lease = true,
                Permission::Manage => permissions.manage = true,
            }
        }
        Some(permissions)
    }

    fn shape() -> Shape {
        KeyFormat::<Vec<Permission>>::shape(&Words(Permission::WORDS))
    }

    fn empty() -> Self {
        Self::default()
    }
}

/// A permission in the configuration.
#[derive(Clone, Copy, Word)]
enum Permission {
    /// To read pools.
    Read,
    /// To acquire and release numbers.
    Lease,
    /// To add, change and remove numbers.
    Manage,
}

/// An account for Redis clients.
#[derive(Debug, Clone, PartialEq, Keys)]
pub struct RedisAccountOptions {
    /// The account name; `default` for clients that send a password only.
    #[key(example = "dialler", check = account_name)]
    pub name: String,
    /// The hash of the password.
    #[key(format = PasswordHashKey, secret, example = "$argon2id$...", hint = "created with: switchyard hash-password")]
    pub password_hash: String,
    /// Pools that it may see, with `*` as a wildcard.
    #[key(default = ["*"], default_as = "all", reference = "pool")]
    pub pools: Vec<String>,
    /// The account's permissions.
    #[key(example = ["read", "lease", "manage"], was = "rights")]
    pub permissions: RedisPermissions,
    /// Networks that it may connect from.
    #[key(default_as = "any")]
    pub networks: Vec<IpNetwork>,
}

impl RedisAccountOptions {
    /// Whether the account may see the pool with this name.
    #[must_use]
    pub fn can_see(&self, pool: &str) -> bool {
        self.pools.iter().any(|pattern| ports::matches_wildcard(pattern.as_bytes(), pool.as_bytes()))
    }
}

fn account_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > 100 || !name.bytes().all(|octet| octet.is_ascii_graphic()) {
        return Err("must be 1 to 100 printable ASCII characters without spaces".to_owned());
    }
    Ok(())
}

/// The scripts that are treated as implementations of the pool state machine.
#[derive(Debug, Clone, PartialEq)]
pub enum AcceptedScripts {
    /// Scripts with these SHA-1 sums.
    Listed(Vec<ScriptSha1>),
    /// Every script.
    Any,
}

impl KeyValue for AcceptedScripts {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        if section.is_text(key) {
            let is_any = section.text(key).is_some_and(|word| word == "any");
            if !is_any {
                section.error(key, "must be a list of SHA-1 sums, or \"any\" for every script");
            }
            return is_any.then_some(Self::Any);
        }
        let sums = section.items(key, |text| {
            let wrong = || format!("{text:?} is not a SHA-1 sum of 40 hexadecimal digits");
            ScriptSha1::parse(text.as_bytes()).ok_or_else(wrong)
        });
        sums.map(Self::Listed)
    }

    fn shape() -> Shape {
        list_or_word("any", "Every script.")
    }

    fn empty() -> Self {
        Self::Listed(Vec::new())
    }
}

/// The address announced to clients as `host:port`; an IPv6 address needs brackets.
struct Announce;

impl KeyFormat<ClusterNode> for Announce {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<ClusterNode> {
        let text = section.text(key)?;
        let node = cluster_node(&text);
        if node.is_none() {
            section.error(key, format!("{text:?} must be host:port such as \"10.0.0.5:6379\""));
        }
        node
    }

    fn shape(&self) -> Shape {
        HostPort.shape()
    }
}

fn cluster_node(text: &str) -> Option<ClusterNode> {
    let (host, port) = text.rsplit_once(':')?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok()?.to_string(),
        None => host.to_owned(),
    };
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._".contains(&octet);
    let fits = inner.is_some() || (!host.is_empty() && host.len() <= 253 && host.bytes().all(plain));
    fits.then_some(ClusterNode { host, port })
}

/// Options of the Redis server.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "applies to new connections; open ones keep their accounts and limits")]
pub struct RedisOptions {
    /// SHA-1 sums of the accepted scripts; `any` accepts every script.
    pub scripts: AcceptedScripts,
    /// Whether scripts that change a pool return integers, and states are words, for example `idle+up`. Otherwise, both
    /// have the format of the older system.
    #[key(default = false)]
    pub plain_replies: bool,
    /// The "host:port" announced to Redis Cluster clients as the only node.
    #[key(format = Announce, default_as = "the address they are connected to")]
    pub announce: Option<ClusterNode>,
    /// Accounts of Redis clients. Without accounts, every client may do everything.
    #[key(name = "account", named)]
    pub accounts: Vec<RedisAccountOptions>,
    /// Maximum number of connections.
    #[key(range = 1..=1_000_000, default = 10_000)]
    pub connections: usize,
    /// Maximum number of connections per IP address.
    #[key(range = 1..=1_000_000, default = 1_000)]
    pub connections_per_address: usize,
    /// Maximum number of unauthenticated connections, if there are accounts; a new one replaces the oldest.
    #[key(range = 1..=1_000_000, at_most = connections, default_as = "a quarter of `connections`",
        default_with = ConnectionLimits::default_unidentified(connections))]
    pub unauthenticated_connections: usize,
    /// Maximum time until a connection must authenticate.
    #[key(default = "30s")]
    pub login_timeout: Duration,
    /// A connection that reads nothing for this long is closed.
    #[key(default = "60s")]
    pub stall_timeout: Duration,
    /// Maximum number of pipelined requests per connection.
    #[key(range = 1..=1_000_000, default = 4096)]
    pub pipelined: usize,
    /// Maximum size of unsent replies per connection. Clients send a whole pipeline before they read the first reply, so
    /// all replies must fit.
    #[key(size, default = "32MiB", was = "unsent")]
    pub output_buffer: usize,
    /// Maximum number of concurrent password verifications.
    #[key(skip = 2)]
    pub verifications: usize,
}

impl RedisOptions {
    /// The limits of a connection.
    pub(crate) fn limits(&self) -> RespLimits {
        let (pipelined, output_buffer) = (self.pipelined, self.output_buffer);
        RespLimits { pipelined, output_buffer, ..RespLimits::default() }
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self::defaults()
    }
}
