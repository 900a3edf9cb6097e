//! `[redis]`, `[[redis.account]]`, `[pools]` and `[[pool]]`.

use ::pools::{RedisAccountOptions, RedisOptions, RedisPermissions};
use configuration::Section;
use engine::PoolLimits;
use model::{PoolName, PoolSettings, Strategy};
use resp::{ClusterNode, RespLimits, ScriptSha1};
use std::collections::HashSet;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The listener for Redis clients.
#[derive(Debug, Clone)]
pub(crate) struct RedisListener {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) options: RedisOptions,
}

/// A configured pool.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredPool {
    pub(crate) name: PoolName,
    pub(crate) settings: PoolSettings,
}

/// Maximum quarantine of a number: a year.
const LONGEST_QUARANTINE: Duration = Duration::from_secs(366 * 86_400);

pub(super) fn limits(section: &Section<'_>) -> PoolLimits {
    let known = PoolLimits::default();
    let limits = PoolLimits {
        numbers: section.number("max-numbers", known.numbers as u64, 1..=1_000_000_000) as usize,
        history: section.number("history", known.history, 0..=1_000_000_000_000),
        ..known
    };
    section.finish();
    limits
}

/// Reads all `[[pool]]`.
pub(super) fn pools(sections: &[Section<'_>]) -> Vec<ConfiguredPool> {
    let mut names = HashSet::new();
    let pools = sections.iter().filter_map(|section| {
        let pool = pool(section)?;
        if !names.insert(pool.name.clone()) {
            section.error("name", format!("{:?} is also the name of another pool", pool.name.as_str()));
        }
        Some(pool)
    });
    pools.collect()
}

fn pool(section: &Section<'_>) -> Option<ConfiguredPool> {
    let name = section.required("name", "\"support\"");
    let strategies = Strategy::ALL.map(|strategy| (strategy.as_str(), strategy));
    let settings = PoolSettings {
        strategy: section.choice("strategy", Strategy::default(), &strategies),
        quarantine: section.duration("quarantine", Duration::ZERO),
    };
    if settings.quarantine > LONGEST_QUARANTINE {
        section.error("quarantine", "is longer than a year");
    }
    section.finish();
    if name.is_empty() {
        return None;
    }
    match name.parse() {
        Ok(name) => Some(ConfiguredPool { name, settings }),
        Err(error) => {
            let error: model::ParsePoolNameError = error;
            section.error("name", error.to_string());
            None
        }
    }
}

pub(super) fn redis(section: &Section<'_>) -> RedisListener {
    let listen = addresses(section);
    let accounts: Vec<_> = section.sections("account").iter().map(account).collect();
    let mut names = HashSet::new();
    for (section, account) in section.sections("account").iter().zip(&accounts) {
        if !account.name.is_empty() && !names.insert(&account.name) {
            section.error("name", format!("{:?} is also the name of another account", account.name));
        }
    }
    if accounts.is_empty()
        && let Some(open) = listen.iter().find(|address| !address.ip().is_loopback())
    {
        let what = format!(
            "{open} is reachable from other machines, and without [[redis.account]] all clients have all permissions: add \
             accounts, or listen on 127.0.0.1"
        );
        section.error("listen", what);
    }
    let (scripts, any_script) = scripts(section);
    let known = RedisOptions::default();
    let connections = section.number("connections", known.connections as u64, 1..=1_000_000) as usize;
    let options = RedisOptions {
        scripts,
        any_script,
        plain_replies: section.flag("plain-replies", false),
        announce: announce(section),
        accounts,
        connections,
        unauthenticated_connections: super::unidentified_connections(
            section,
            "unauthenticated-connections",
            connections,
        ),
        connections_per_address: section.number(
            "connections-per-address",
            known.connections_per_address as u64,
            1..=1_000_000,
        ) as usize,
        login_timeout: section.duration("login-timeout", known.login_timeout),
        stall_timeout: section.duration("stall-timeout", known.stall_timeout),
        limits: RespLimits {
            pipelined: section.number("pipelined", known.limits.pipelined as u64, 1..=1_000_000) as usize,
            output_buffer: section.size("output-buffer", known.limits.output_buffer as u64) as usize,
            ..known.limits
        },
        ..known
    };
    section.finish();
    RedisListener { listen, options }
}

fn addresses(section: &Section<'_>) -> Vec<SocketAddr> {
    if !section.has("listen") {
        section.error("listen", "is missing; write for example listen = [\"127.0.0.1:6379\"]");
    }
    let mut addresses = Vec::new();
    for text in section.texts("listen").unwrap_or_default() {
        match text.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => {
                let what = format!("{text:?} must be address:port such as \"127.0.0.1:6379\"");
                section.error("listen", what);
            }
        }
    }
    addresses
}

/// Parses `host:port`; an IPv6 address needs brackets.
fn announce(section: &Section<'_>) -> Option<ClusterNode> {
    let text = section.text("announce")?;
    let node = text.rsplit_once(':').and_then(|(host, port)| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().ok()?.to_string(),
            None => host.to_owned(),
        };
        let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._".contains(&octet);
        let fits = inner.is_some() || (!host.is_empty() && host.len() <= 253 && host.bytes().all(plain));
        fits.then_some(ClusterNode { host, port })
    });
    if node.is_none() {
        section.error("announce", format!("{text:?} must be host:port such as \"10.0.0.5:6379\""));
    }
    node
}

/// Reads a list of SHA-1 sums, or the keyword `any`.
fn scripts(section: &Section<'_>) -> (Vec<ScriptSha1>, bool) {
    if section.is_text("scripts") {
        let any = section.text("scripts").is_some_and(|word| word == "any");
        if !any {
            section.error("scripts", "must be a list of SHA-1 sums, or \"any\" for every script");
        }
        return (Vec::new(), any);
    }
    let mut sums = Vec::new();
    for text in section.texts("scripts").unwrap_or_default() {
        match ScriptSha1::parse(text.as_bytes()) {
            Some(sum) => sums.push(sum),
            None => {
                section.error("scripts", format!("{text:?} is not a SHA-1 sum of 40 hexadecimal digits"));
            }
        }
    }
    (sums, false)
}

fn account(section: &Section<'_>) -> RedisAccountOptions {
    let name = section.required("name", "\"dialler\"");
    if !name.is_empty() && (name.len() > 100 || !name.bytes().all(|octet| octet.is_ascii_graphic())) {
        section.error("name", "must be 1 to 100 printable ASCII characters without spaces");
    }
    let password_hash =
        section.required("password-hash", "\"$argon2id$...\" (created with: switchyard hash-password)");
    if !password_hash.is_empty() && ports::check_password_hash(&password_hash).is_err() {
        section.error("password-hash", "is not an argon2 hash; create one with: switchyard hash-password");
    }
    let pools = section.texts("pools").unwrap_or_else(|| vec!["*".to_owned()]);
    let mut permissions = RedisPermissions::default();
    if !section.has("permissions") {
        section.error(
            "permissions",
            "is missing; write for example permissions = [\"read\", \"lease\", \"manage\"]",
        );
    }
    for right in section.texts("permissions").unwrap_or_default() {
        match right.as_str() {
            "read" => permissions.read = true,
            "lease" => permissions.lease = true,
            "manage" => permissions.manage = true,
            _ => section.error("permissions", format!("{right:?} is not read, lease or manage")),
        }
    }
    let mut networks = Vec::new();
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let error: ports::ParseIpNetworkError = error;
                section.error("networks", error.to_string());
            }
        }
    }
    section.finish();
    RedisAccountOptions { name, password_hash, pools, permissions, networks }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use model::Strategy;
    use std::path::Path;
    use std::time::Duration;

    fn parse(text: &str) -> Result<Config, Vec<String>> {
        let text = format!("[appliance]\ndata = \"/nowhere\"\n{text}");
        Config::parse(&text, Path::new("/nowhere"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn all_keys_are_read() {
        let config = parse(
            r#"[redis]
listen = ["0.0.0.0:6379", "[::1]:0"]
scripts = ["0123456789abcdef0123456789ABCDEF01234567"]
plain-replies = true
announce = "[fd00::5]:6380"
connections = 7
connections-per-address = 3
login-timeout = "5s"
[[redis.account]]
name = "default"
password-hash = "$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c"
pools = ["support*"]
permissions = ["read", "lease"]
networks = ["10.0.0.0/8"]
[pools]
max-numbers = 1000
history = 5
[[pool]]
name = "support-line"
strategy = "sticky"
quarantine = "30s"
[[pool]]
name = "other"
"#,
        )
        .unwrap();
        let listener = config.redis.unwrap();
        assert_eq!(listener.listen.len(), 2);
        let announced = listener.options.announce.as_ref().map(|node| (node.host.as_str(), node.port));
        assert_eq!(announced, Some(("fd00::5", 6380)));
        assert_eq!((listener.options.connections, listener.options.connections_per_address), (7, 3));
        assert_eq!((listener.options.scripts.len(), listener.options.any_script), (1, false));
        assert!(listener.options.plain_replies);
        assert_eq!(listener.options.login_timeout, Duration::from_secs(5));
        let account = &listener.options.accounts[0];
        let permissions = account.permissions;
        assert_eq!(
            (account.pools.as_slice(), account.networks.len()),
            (["support*".to_owned()].as_slice(), 1)
        );
        assert_eq!((permissions.read, permissions.lease, permissions.manage), (true, true, false));
        assert_eq!((config.settings.pools.numbers, config.settings.pools.history), (1000, 5));
        assert_eq!(config.pools[0].settings.strategy, Strategy::Sticky);
        assert_eq!(config.pools[0].settings.quarantine, Duration::from_secs(30));
        assert_eq!(config.pools[1].settings, model::PoolSettings::default());
    }

    #[test]
    fn redis_is_off_by_default() {
        assert!(parse("").unwrap().redis.is_none());
        let listener =
            parse("[redis]\nlisten = [\"127.0.0.1:0\"]\nscripts = \"any\"\n").unwrap().redis.unwrap();
        assert!(
            listener.options.any_script
                && listener.options.accounts.is_empty()
                && !listener.options.plain_replies
        );
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let text = r#"[redis]
listen = ["10.0.0.1:6379", "6379"]
scripts = ["abc"]
[pools]
max-numbers = 0
[[pool]]
name = "a b"
strategy = "best"
[[pool]]
name = "twice"
[[pool]]
name = "twice"
quarantine = "400d"
"#;
        assert_eq!(
            parse(text).unwrap_err(),
            [
                "line 4: redis.listen: \"6379\" must be address:port such as \"127.0.0.1:6379\"",
                "line 4: redis.listen: 10.0.0.1:6379 is reachable from other machines, and without [[redis.account]] all clients have all permissions: add accounts, or listen on 127.0.0.1",
                "line 5: redis.scripts: \"abc\" is not a SHA-1 sum of 40 hexadecimal digits",
                "line 7: pools.max-numbers: is 0, and must be 1 to 1000000000",
                "line 9: pool[0].name: \"a b\" cannot be the name of a pool: expected 1 to 100 octets of UTF-8 without spaces, control characters, braces and slashes, such as support-line",
                "line 10: pool[0].strategy: is \"best\", and must be one of: longest-idle, random, weighted, sticky, nearest",
                "line 14: pool[2].name: \"twice\" is also the name of another pool",
                "line 15: pool[2].quarantine: is longer than a year",
            ]
        );
        let text = r#"[redis]
scripts = "all"
[[redis.account]]
name = "a b"
password-hash = "secret"
permissions = ["write"]
networks = ["x"]
[[redis.account]]
name = "c"
"#;
        assert_eq!(
            parse(text).unwrap_err(),
            [
                "line 3: redis.listen: is missing; write for example listen = [\"127.0.0.1:6379\"]",
                "line 4: redis.scripts: must be a list of SHA-1 sums, or \"any\" for every script",
                "line 6: redis.account[0].name: must be 1 to 100 printable ASCII characters without spaces",
                "line 7: redis.account[0].password-hash: is not an argon2 hash; create one with: switchyard hash-password",
                "line 8: redis.account[0].permissions: \"write\" is not read, lease or manage",
                "line 9: redis.account[0].networks: \"x\" is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1",
                "line 10: redis.account[1].password-hash: is missing; write for example password-hash = \"$argon2id$...\" (created with: switchyard hash-password)",
                "line 10: redis.account[1].permissions: is missing; write for example permissions = [\"read\", \"lease\", \"manage\"]",
            ]
        );
    }
}
