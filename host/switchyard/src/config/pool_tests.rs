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
    let listener = config.redis.clone().unwrap();
    assert_eq!(listener.listen.len(), 2);
    let announced = listener.options.announce.as_ref().map(|node| (node.host.as_str(), node.port));
    assert_eq!(announced, Some(("fd00::5", 6380)));
    assert_eq!((listener.options.connections, listener.options.connections_per_address), (7, 3));
    assert!(matches!(&listener.options.scripts, ::pools::AcceptedScripts::Listed(sums) if sums.len() == 1));
    assert!(listener.options.plain_replies);
    assert_eq!(listener.options.login_timeout, Duration::from_secs(5));
    let account = &listener.options.accounts[0];
    let permissions = account.permissions;
    assert_eq!((account.pools.as_slice(), account.networks.len()), (["support*".to_owned()].as_slice(), 1));
    assert_eq!((permissions.read, permissions.lease, permissions.manage), (true, true, false));
    let limits = config.engine_settings().pools;
    assert_eq!((limits.numbers, limits.history), (1000, 5));
    assert_eq!(config.pools_configured[0].settings.strategy, Strategy::Sticky);
    assert_eq!(config.pools_configured[0].settings.quarantine, Duration::from_secs(30));
    assert_eq!(config.pools_configured[1].settings, model::PoolSettings::default());
}

#[test]
fn redis_is_off_by_default() {
    assert!(parse("").unwrap().redis.is_none());
    let listener = parse("[redis]\nlisten = [\"127.0.0.1:0\"]\nscripts = \"any\"\n").unwrap().redis.unwrap();
    assert!(
        listener.options.scripts == ::pools::AcceptedScripts::Any
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
            "line 8: redis.account[0].permissions: has \"write\", and must be any of: read, lease, manage",
            "line 9: redis.account[0].networks: \"x\" is not a network: expected an address with an optional prefix length, such as 10.0.0.0/8 or ::1",
            "line 10: redis.account[1].password-hash: is missing; write for example password-hash = \"$argon2id$...\" (created with: switchyard hash-password)",
            "line 10: redis.account[1].permissions: is missing; write for example permissions = [\"read\", \"lease\", \"manage\"]",
        ]
    );
}
