//! `[redis]`, `[[redis.account]]`, `[pools]` and `[[pool]]`.

use ::pools::{AccountOptions, DoorOptions, Rights};
use configuration::Section;
use engine::PoolLimits;
use model::{PoolName, PoolSettings, Strategy};
use resp::{Limits, Node, Sum};
use std::collections::HashSet;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The door of Redis clients.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) options: DoorOptions,
}

/// A pool whose settings are said in the file.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) name: PoolName,
    pub(crate) settings: PoolSettings,
}

/// The longest rest of a number: a year.
const LONGEST_QUARANTINE: Duration = Duration::from_secs(366 * 86_400);

pub(super) fn limits(section: &Section<'_>) -> PoolLimits {
    let known = PoolLimits::default();
    let limits = PoolLimits {
        numbers: section.number("most-numbers", known.numbers as u64, 1..=1_000_000_000) as usize,
        history: section.number("history", known.history, 0..=1_000_000_000_000),
        ..known
    };
    section.finish();
    limits
}

/// All `[[pool]]`.
pub(super) fn pools(sections: &[Section<'_>]) -> Vec<Pool> {
    let mut names = HashSet::new();
    let pools = sections.iter().filter_map(|section| {
        let pool = pool(section)?;
        if !names.insert(pool.name.clone()) {
            section.wrong("name", format!("{:?} is also the name of another pool", pool.name.as_str()));
        }
        Some(pool)
    });
    pools.collect()
}

fn pool(section: &Section<'_>) -> Option<Pool> {
    let name = section.required("name", "\"support\"");
    let strategies = Strategy::ALL.map(|strategy| (strategy.as_str(), strategy));
    let settings = PoolSettings {
        strategy: section.choice("strategy", Strategy::default(), &strategies),
        quarantine: section.duration("quarantine", Duration::ZERO),
    };
    if settings.quarantine > LONGEST_QUARANTINE {
        section.wrong("quarantine", "is longer than a year");
    }
    section.finish();
    if name.is_empty() {
        return None;
    }
    match name.parse() {
        Ok(name) => Some(Pool { name, settings }),
        Err(error) => {
            let error: model::ParsePoolNameError = error;
            section.wrong("name", error.to_string());
            None
        }
    }
}

pub(super) fn door(section: &Section<'_>) -> Door {
    let listen = addresses(section);
    let accounts: Vec<_> = section.sections("account").iter().map(account).collect();
    let mut names = HashSet::new();
    for (section, account) in section.sections("account").iter().zip(&accounts) {
        if !account.name.is_empty() && !names.insert(&account.name) {
            section.wrong("name", format!("{:?} is also the name of another account", account.name));
        }
    }
    if accounts.is_empty()
        && let Some(open) = listen.iter().find(|address| !address.ip().is_loopback())
    {
        let what = format!(
            "{open} can be reached from other machines, and without a [[redis.account]] everybody may do everything: add \
             accounts, or listen on 127.0.0.1"
        );
        section.wrong("listen", what);
    }
    let (scripts, any_script) = scripts(section);
    let known = DoorOptions::default();
    let connections = section.number("connections", known.connections as u64, 1..=1_000_000) as usize;
    let options = DoorOptions {
        scripts,
        any_script,
        plain_replies: section.flag("plain-replies", false),
        announce: announce(section),
        accounts,
        connections,
        unauthenticated_connections: super::unbound_connections(
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
        limits: Limits {
            pipelined: section.number("pipelined", known.limits.pipelined as u64, 1..=1_000_000) as usize,
            unsent: section.size("unsent", known.limits.unsent as u64) as usize,
            ..known.limits
        },
        ..known
    };
    section.finish();
    Door { listen, options }
}

fn addresses(section: &Section<'_>) -> Vec<SocketAddr> {
    if !section.has("listen") {
        section.wrong("listen", "is missing; write for example listen = [\"127.0.0.1:6379\"]");
    }
    let mut addresses = Vec::new();
    for text in section.texts("listen").unwrap_or_default() {
        match text.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => {
                let what = format!("{text:?} must be address:port such as \"127.0.0.1:6379\"");
                section.wrong("listen", what);
            }
        }
    }
    addresses
}

/// `host:port`, an IPv6 address in brackets.
fn announce(section: &Section<'_>) -> Option<Node> {
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
        fits.then_some(Node { host, port })
    });
    if node.is_none() {
        section.wrong("announce", format!("{text:?} must be host:port such as \"10.0.0.5:6379\""));
    }
    node
}

/// A list of sums, or the word `any`.
fn scripts(section: &Section<'_>) -> (Vec<Sum>, bool) {
    if section.is_text("scripts") {
        let any = section.text("scripts").is_some_and(|word| word == "any");
        if !any {
            section
                .wrong("scripts", "must be a list of SHA-1 sums, or \"any\": whatever script a client loads");
        }
        return (Vec::new(), any);
    }
    let mut sums = Vec::new();
    for text in section.texts("scripts").unwrap_or_default() {
        match Sum::parse(text.as_bytes()) {
            Some(sum) => sums.push(sum),
            None => {
                section.wrong(
                    "scripts",
                    format!("{text:?} is no SHA-1 sum: 40 hexadecimal digits are expected"),
                );
            }
        }
    }
    (sums, false)
}

fn account(section: &Section<'_>) -> AccountOptions {
    let name = section.required("name", "\"dialler\"");
    if !name.is_empty() && (name.len() > 100 || !name.bytes().all(|octet| octet.is_ascii_graphic())) {
        section.wrong("name", "must be 1 to 100 printable ASCII characters without spaces");
    }
    let password_hash =
        section.required("password-hash", "\"$argon2id$...\" (made by: switchyard hash-password)");
    if !password_hash.is_empty() && doors::check_password_hash(&password_hash).is_err() {
        section.wrong("password-hash", "is no argon2 hash; make one with: switchyard hash-password");
    }
    let pools = section.texts("pools").unwrap_or_else(|| vec!["*".to_owned()]);
    let mut rights = Rights::default();
    if !section.has("rights") {
        section.wrong("rights", "is missing; write for example rights = [\"read\", \"call\", \"manage\"]");
    }
    for right in section.texts("rights").unwrap_or_default() {
        match right.as_str() {
            "read" => rights.read = true,
            "call" => rights.call = true,
            "manage" => rights.manage = true,
            _ => section.wrong("rights", format!("{right:?} is not read, call or manage")),
        }
    }
    let mut networks = Vec::new();
    for network in section.texts("networks").unwrap_or_default() {
        match network.parse() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let error: doors::ParseNetworkError = error;
                section.wrong("networks", error.to_string());
            }
        }
    }
    section.finish();
    AccountOptions { name, password_hash, pools, rights, networks }
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
    fn everything_that_can_be_said() {
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
rights = ["read", "call"]
networks = ["10.0.0.0/8"]
[pools]
most-numbers = 1000
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
        let door = config.redis.unwrap();
        assert_eq!(door.listen.len(), 2);
        let announced = door.options.announce.as_ref().map(|node| (node.host.as_str(), node.port));
        assert_eq!(announced, Some(("fd00::5", 6380)));
        assert_eq!((door.options.connections, door.options.connections_per_address), (7, 3));
        assert_eq!((door.options.scripts.len(), door.options.any_script), (1, false));
        assert!(door.options.plain_replies);
        assert_eq!(door.options.login_timeout, Duration::from_secs(5));
        let account = &door.options.accounts[0];
        let rights = account.rights;
        assert_eq!(
            (account.pools.as_slice(), account.networks.len()),
            (["support*".to_owned()].as_slice(), 1)
        );
        assert_eq!((rights.read, rights.call, rights.manage), (true, true, false));
        assert_eq!((config.settings.pools.numbers, config.settings.pools.history), (1000, 5));
        assert_eq!(config.pools[0].settings.strategy, Strategy::Sticky);
        assert_eq!(config.pools[0].settings.quarantine, Duration::from_secs(30));
        assert_eq!(config.pools[1].settings, model::PoolSettings::default());
    }

    #[test]
    fn without_a_word_nobody_is_listened_to() {
        assert!(parse("").unwrap().redis.is_none());
        let door = parse("[redis]\nlisten = [\"127.0.0.1:0\"]\nscripts = \"any\"\n").unwrap().redis.unwrap();
        assert!(door.options.any_script && door.options.accounts.is_empty() && !door.options.plain_replies);
    }

    #[test]
    fn what_is_wrong_is_told_at_once() {
        let text = r#"[redis]
listen = ["10.0.0.1:6379", "6379"]
scripts = ["abc"]
[pools]
most-numbers = 0
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
                "line 4: redis.listen: 10.0.0.1:6379 can be reached from other machines, and without a [[redis.account]] everybody may do everything: add accounts, or listen on 127.0.0.1",
                "line 5: redis.scripts: \"abc\" is no SHA-1 sum: 40 hexadecimal digits are expected",
                "line 7: pools.most-numbers: is 0, and must be 1 to 1000000000",
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
rights = ["write"]
networks = ["x"]
[[redis.account]]
name = "c"
"#;
        assert_eq!(
            parse(text).unwrap_err(),
            [
                "line 3: redis.listen: is missing; write for example listen = [\"127.0.0.1:6379\"]",
                "line 4: redis.scripts: must be a list of SHA-1 sums, or \"any\": whatever script a client loads",
                "line 6: redis.account[0].name: must be 1 to 100 printable ASCII characters without spaces",
                "line 7: redis.account[0].password-hash: is no argon2 hash; make one with: switchyard hash-password",
                "line 8: redis.account[0].rights: \"write\" is not read, call or manage",
                "line 9: redis.account[0].networks: \"x\" is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1",
                "line 10: redis.account[1].password-hash: is missing; write for example password-hash = \"$argon2id$...\" (made by: switchyard hash-password)",
                "line 10: redis.account[1].rights: is missing; write for example rights = [\"read\", \"call\", \"manage\"]",
            ]
        );
    }
}
