//! Number pools for Redis clients: redis-cli, redis-benchmark and Python's library against the real binary.

use crate::redis::config;
use anyhow::{Context, Result, ensure};
use behaviour_tests::pools::{SCRIPT as LEGACY_SCRIPT, legacy_state};
use behaviour_tests::test_daemon::{HASH, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, Peer, until};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// The script is never run; only its SHA-1 matters.
const SCRIPT: &str = "return redis.call('HGET', KEYS[1] .. ':numstate', ARGV[2])";

struct Pools {
    port: u16,
    config: TestDaemonConfig,
}

impl Pools {
    /// A Redis listener with further keys of `[redis]` and further tables.
    fn new(fixture: &Fixture, keys: &str) -> Result<Self> {
        let port = free_port()?;
        let mut config = config(fixture)?;
        config.tables(&format!("[redis]\nlisten = [\"127.0.0.1:{port}\"]\n{keys}"));
        Ok(Self { port, config })
    }

    fn start(&self) -> Result<TestDaemon> {
        self.config.start()
    }

    fn python(&self, protocol: u8) -> Result<Python> {
        Ok(Python(Peer::python("pools.py", &json!({ "port": self.port, "protocol": protocol }))?))
    }

    fn python_as(&self, username: &Value, password: &str) -> Result<Python> {
        let options = json!({ "port": self.port, "username": username, "password": password });
        Ok(Python(Peer::python("pools.py", &options)?))
    }

    /// Output of redis-cli.
    fn cli(&self, words: &[&str]) -> Result<String> {
        self.cli_with(&[], words)
    }

    fn cli_with(&self, options: &[&str], words: &[&str]) -> Result<String> {
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &self.port.to_string()]).args(options).args(words);
        let output = cli.output().context("redis-cli; if it is missing, run: cargo xtask setup")?;
        let reply = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8(reply)?.trim_end().to_owned())
    }

    /// Sends lines of words in one batch with `redis-cli --pipe`.
    fn pipe(&self, lines: impl Iterator<Item = String>) -> Result<String> {
        let mut cli = Command::new("redis-cli")
            .args(["-p", &self.port.to_string(), "--pipe"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let text = lines.fold(String::new(), |all, line| all + &line + "\r\n");
        cli.stdin.take().context("no input")?.write_all(text.as_bytes())?;
        Ok(String::from_utf8(cli.wait_with_output()?.stdout)?)
    }

    fn benchmark(&self, options: &[&str], words: &[&str]) -> Result<String> {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "--csv"])
            .args(options)
            .args(words)
            .output()
            .context("redis-benchmark; if it is missing, run: cargo xtask setup")?;
        ensure!(output.status.success(), "redis-benchmark: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Python's library.
struct Python(Peer);

impl Python {
    fn ask(&mut self, action: &Value) -> Result<Value> {
        self.0.send_action(action)?;
        let mut done = self.0.expect("done")?;
        Ok(done.get_mut("answer").map(Value::take).unwrap_or(done))
    }

    fn run(&mut self, line: &str) -> Result<Value> {
        let words: Vec<&str> = line.split(' ').collect();
        self.ask(&json!({ "do": words }))
    }

    fn script(&mut self, key: &str, arguments: &[&str]) -> Result<Value> {
        self.ask(&json!({ "script": SCRIPT, "key": key, "arguments": arguments }))
    }
}

#[test]
fn cluster_libraries_find_a_cluster_of_one_node() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "scripts = \"any\"\n")?;
    let _appliance = pools.start()?;
    let sum = pools.cli(&["SCRIPT", "LOAD", SCRIPT])?;
    let options = json!({ "port": pools.port, "protocol": 2, "cluster": true });
    let python = Peer::python("pools.py", &options)?;
    let node = Peer::node("cluster.js", &json!({ "port": pools.port }))?;
    let place = format!("127.0.0.1:{}", pools.port);
    for (mut client, pool) in [(Python(python), "one"), (Python(node), "two")] {
        let key = format!("{{{pool}}}");
        let states = format!("{key}:numstate");
        let mut script = |event: &[&str]| {
            let words = [&["EVALSHA", sum.as_str(), "1", key.as_str()], event].concat();
            client.ask(&json!({ "do": words }))
        };
        for event in [&["add", "123456"][..], &["reg", "123456"], &["call"], &["hangup", "123456"]] {
            let reply = script(event)?;
            let wanted = if event == ["call"] { "123456" } else { "1" };
            assert_eq!(reply, wanted, "{event:?}");
        }
        let state = client.ask(&json!({ "do": ["HGET", states, "123456"] }))?;
        assert_eq!(state, legacy_state("idle+up"));
        let idle = client.ask(&json!({ "do": ["LRANGE", format!("{key}:idle:up"), "0", "-1"] }))?;
        assert_eq!(idle, json!(["123456"]));
        let taken = client.ask(&json!({ "do": ["POOL.CALL", pool] }))?;
        assert_eq!(taken, json!("123456"));
        if pool == "two" {
            assert_eq!(client.ask(&json!({ "slots": null }))?, json!([[place], [place]]));
        }
    }
    let slot = pools.cli(&["CLUSTER", "KEYSLOT", "{one}:numstate"])?;
    assert_eq!(pools.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot])?, "1");
    Ok(())
}

#[test]
fn the_older_system_s_lines_run_as_they_stand() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "scripts = \"any\"\n")?;
    let _appliance = pools.start()?;
    let sum = pools.cli(&["SCRIPT", "LOAD", SCRIPT])?;
    assert_eq!(sum, "a1d52106ff6b8bcd45dcb39fc1781cc0c8dff002");
    let script = |words: &[&str]| pools.cli(&[&["EVALSHA", &sum, "1", "{pool}"], words].concat());
    for (words, reply) in [
        (&["call"][..], ""),
        (&["reg", "123456"], "0"),
        (&["add", "123456"], "1"),
        (&["add", "123456"], "1"),
        (&["call"], ""),
        (&["reg", "123456"], "1"),
        (&["call"], "123456"),
        (&["call"], ""),
        (&["call", "123456"], ""),
        (&["hangup", "123456"], "1"),
        (&["hangup", "123456"], "0"),
        (&["call", "123456"], "123456"),
        (&["unreg", "123456"], "1"),
        (&["hangup", "123456"], "1"),
        (&["reg", "123456"], "1"),
    ] {
        assert_eq!(script(words)?, reply, "{words:?}");
    }
    assert_eq!(pools.cli(&["HGET", "{pool}:numstate", "123456"])?, legacy_state("idle+up"));
    assert_eq!(pools.cli(&["LRANGE", "{pool}:idle:up", "0", "-1"])?, "123456");
    assert_eq!(pools.cli(&["EVAL", SCRIPT, "1", "{pool}", "del", "123456"])?, "1");
    assert_eq!(pools.cli(&["HGET", "{pool}:numstate", "123456"])?, "");
    assert_eq!(pools.cli(&["LRANGE", "{pool}:idle:up", "0", "-1"])?, "");
    Ok(())
}

#[test]
fn a_configured_script_needs_no_load_and_others_are_unknown() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, &format!("scripts = [\"{LEGACY_SCRIPT}\"]\n"))?;
    let _appliance = pools.start()?;
    assert_eq!(pools.cli(&["EVALSHA", LEGACY_SCRIPT, "1", "{pool}", "add", "123456"])?, "1");
    assert_eq!(pools.cli(&["SCRIPT", "EXISTS", LEGACY_SCRIPT])?, "1");
    let unknown = pools.cli(&["EVALSHA", &"a".repeat(40), "1", "{pool}", "call"])?;
    assert_eq!(unknown, "NOSCRIPT No matching script. Please use EVAL.");
    let shown = pools.cli_with(&["--no-raw"], &["EVALSHA", LEGACY_SCRIPT, "1", "{pool}", "reg", "9"])?;
    assert_eq!(shown, "\"0\"", "a client that reads the text of an answer finds one");
    let loaded = pools.cli(&["SCRIPT", "LOAD", SCRIPT])?;
    let refused = pools.cli(&["EVALSHA", &loaded, "1", "{pool}", "call"])?;
    assert!(refused.starts_with("ERR Lua scripts are not executed"), "{refused}");
    Ok(())
}

#[test]
fn plain_replies_are_integers_and_words() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, &format!("scripts = [\"{LEGACY_SCRIPT}\"]\nplain-replies = true\n"))?;
    let _appliance = pools.start()?;
    let shown = pools.cli_with(&["--no-raw"], &["EVALSHA", LEGACY_SCRIPT, "1", "{pool}", "add", "123456"])?;
    assert_eq!(shown, "(integer) 1");
    assert_eq!(pools.cli(&["HGET", "{pool}:numstate", "123456"])?, "idle+down");
    Ok(())
}

#[test]
fn redis_cli_works() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "")?;
    let _appliance = pools.start()?;
    assert_eq!(pools.cli(&["PING"])?, "PONG");
    assert_eq!(pools.cli(&["COMMAND", "COUNT"])?, "36");
    let docs = pools.cli(&["COMMAND", "DOCS", "POOL.CALL"])?;
    assert!(docs.contains("Leases a number of a pool"), "{docs}");
    assert_eq!(pools.cli(&["GET", "x"])?, "ERR unknown command 'GET', with args beginning with: 'x'");
    assert_eq!(pools.cli(&["POOL.ADD", "p", "1", "2", "3", "WEIGHT", "2"])?, "3");
    assert_eq!(pools.cli(&["POOL.REG", "p", "1", "2", "3"])?, "3");
    let held = pools.cli(&["POOL.CALL", "p", "HOLDER", "ann", "LEASE", "600000", "TICKET"])?;
    let (number, ticket) = held.split_once('\n').context("no ticket")?;
    assert_eq!(number, "1");
    // A map of the newer protocol, as redis-cli shows it on a terminal.
    let shown = pools.cli_with(&["-3", "--no-raw"], &["POOL.SHOW", "p", "1"])?;
    for line in
        ["\"state\" => \"busy+up\"", "\"holder\" => \"ann\"", &format!("\"ticket\" => (integer) {ticket}")]
    {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert_eq!(pools.cli(&["POOL.HANGUP", "p", "1", "TICKET", ticket])?, "1");
    let info = pools.cli(&["INFO"])?;
    assert!(info.contains(&format!("tcp_port:{}", pools.port)) && info.contains("numbers_given:1"), "{info}");
    let piped = pools.pipe((10..20_010).map(|number| format!("POOL.ADD many {number}")))?;
    assert!(piped.contains("errors: 0, replies: 20000"), "{piped}");
    assert_eq!(pools.cli(&["HLEN", "{many}:numstate"])?, "20000");
    Ok(())
}

#[test]
fn redis_benchmark_runs_and_every_call_gets_a_different_number() -> Result<()> {
    const CALLS: usize = 20_000;
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, &format!("scripts = [\"{LEGACY_SCRIPT}\"]\n"))?;
    let appliance = pools.start()?;
    pools.pipe(
        (0..CALLS).flat_map(|number| [format!("POOL.ADD p {number}"), format!("POOL.REG p {number}")]),
    )?;
    let calls = CALLS.to_string();
    for options in [["-c", "50", "-P", "16"], ["-c", "5", "-P", "1"]] {
        let reply = pools.benchmark(&[&options[..], &["-n", "1000"]].concat(), &["PING"])?;
        assert!(reply.contains("PING"), "{reply}");
    }
    let call = ["EVALSHA", LEGACY_SCRIPT, "1", "{p}", "call"];
    pools.benchmark(&["-c", "50", "-P", "16", "-n", &calls], &call)?;
    let info = pools.cli(&["INFO", "pools"])?;
    assert!(
        info.contains(&format!("numbers={CALLS},idle_up=0,idle_down=0,busy_up={CALLS},busy_down=0")),
        "{info}"
    );
    let stats = pools.cli(&["INFO", "stats"])?;
    assert!(stats.contains(&format!("numbers_given:{CALLS}\r\ncalls_without_a_number:0")), "{stats}");
    drop(appliance);
    Ok(())
}

#[test]
fn python_works_with_both_protocol_versions() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "scripts = \"any\"\n")?;
    let _appliance = pools.start()?;
    for protocol in [2, 3] {
        let mut python = pools.python(protocol)?;
        // The library calls by SHA-1, gets NOSCRIPT, and loads the text.
        assert_eq!(python.script("{py}", &["add", "123456"])?, "1");
        assert_eq!(python.script("{py}", &["call"])?, Value::Null);
        assert_eq!(python.script("{py}", &["reg", "123456"])?, "1");
        assert_eq!(python.script("{py}", &["call"])?, "123456");
        assert_eq!(python.run("HGET {py}:numstate 123456")?, legacy_state("busy+up"));
        let piped = json!({ "pipeline": [
            ["POOL.HANGUP", "py", "123456"], ["POOL.CALL", "py"], ["POOL.CALL", "py"], ["PING"], ["NOTHING"],
            ["LRANGE", "{py}:idle:up", "0", "-1"], ["POOL.LIST"],
        ] });
        let answers = python.ask(&piped)?;
        assert_eq!(answers[1], "123456");
        assert_eq!(
            answers[2]["text"],
            "NONUMBER all numbers of the pool that are up are busy; no lease has an end"
        );
        assert!(
            answers[4]["text"].as_str().is_some_and(|text| text.contains("unknown command")),
            "{answers}"
        );
        assert_eq!((&answers[5], &answers[6]), (&json!([]), &json!(["py"])));
        // The library's pipelines are transactions by default.
        let done = python.ask(&json!({ "transaction": [
            ["POOL.HANGUP", "py", "123456"], ["POOL.CALL", "py"], ["POOL.CALL", "py"], ["POOL.LIST"],
        ] }))?;
        assert_eq!((&done[0], &done[1], &done[3]), (&json!(1), &json!("123456"), &json!(["py"])), "{done}");
        assert!(done[2]["text"].as_str().is_some_and(|text| text.starts_with("NONUMBER")), "{done}");
        let aborted =
            python.ask(&json!({ "transaction": [["POOL.HANGUP", "py", "123456"], ["NOTHING"]] }))?;
        assert!(aborted.to_string().contains("unknown command"), "{aborted}");
        assert_eq!(
            python.run("HGET {py}:numstate 123456")?,
            legacy_state("busy+up"),
            "nothing of it was done"
        );
        let info = python.ask(&json!({ "info": "pools" }))?;
        assert_eq!((&info["pools"], &info["pool0"]["busy_up"]), (&json!(1), &json!(1)), "{info}");
        let known = python.ask(&json!({ "command": null }))?;
        assert_eq!(known["count"], 36);
        assert_eq!(known["pools"].as_array().map(Vec::len), Some(11));
        assert_eq!(python.script("{py}", &["del", "123456"])?, "1");
        python.ask(&json!({ "close": null }))?;
        assert_eq!(python.run("PING")?, true);
    }
    Ok(())
}

#[test]
fn a_large_pool_is_listed_completely() -> Result<()> {
    const MOST: u64 = 50_000;
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "")?;
    let _appliance = pools.start()?;
    let mut python = pools.python(3)?;
    let numbers: Vec<String> = (1_000_000..1_000_000 + MOST).map(|number| number.to_string()).collect();
    let add = |part: &[String]| [&["POOL.ADD".to_owned(), "p".to_owned()], part].concat();
    let adds: Vec<Vec<String>> = numbers.chunks(1000).map(add).collect();
    assert_eq!(python.ask(&json!({ "pipeline": adds }))?, json!(vec![1000; 50]));
    python.run("POOL.REG p 1000000 1000001")?;
    let states = python.ask(&json!({ "states": "p" }))?;
    let expected = json!({ "count": MOST, "kinds": { legacy_state("idle+up"): 2, legacy_state("idle+down"): MOST - 2 }, "first": "1000000" });
    assert_eq!(states, expected);
    Ok(())
}

#[test]
fn accounts_have_permissions() -> Result<()> {
    let account = |name: &str, pools: &str, permissions: &str| {
        format!(
            "[[redis.account]]\nname = {name:?}\npassword-hash = {HASH:?}\npools = {pools}\npermissions = {permissions}\n"
        )
    };
    let keys = [
        account("default", "[\"*\"]", "[\"read\", \"lease\", \"manage\"]"),
        account("ann", "[\"support*\"]", "[\"read\", \"lease\"]"),
    ]
    .concat();
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, &keys)?;
    let _appliance = pools.start()?;
    assert_eq!(pools.cli(&["POOL.LIST"])?, "NOAUTH Authentication required.");
    let secret = ["-a", "secret", "--no-auth-warning"];
    assert_eq!(pools.cli_with(&secret, &["POOL.ADD", "support-1", "7"])?, "1");
    assert_eq!(pools.cli_with(&secret, &["POOL.ADD", "sales", "8"])?, "1");
    let mut ann = pools.python_as(&json!("ann"), "secret")?;
    assert_eq!(ann.run("POOL.LIST")?, json!(["support-1"]));
    assert_eq!(ann.run("HGET {support-1}:numstate 7")?, legacy_state("idle+down"));
    let refused = ann.run("HGET {sales}:numstate 8")?;
    assert_eq!(
        (&refused["error"], &refused["text"]),
        (&json!("NoPermissionError"), &json!("No permissions to access a key"))
    );
    let refused = ann.run("POOL.REG support-1 7")?;
    assert_eq!(refused["text"], "User ann has no permissions to run the 'pool.reg' command");
    let mut wrong = pools.python_as(&json!("ann"), "wrong")?;
    let refused = wrong.run("PING")?;
    assert_eq!(refused["error"], "AuthenticationError", "{refused}");
    let mut default = pools.python_as(&Value::Null, "secret")?;
    assert_eq!(default.run("POOL.REG support-1 7")?, 1);
    Ok(())
}

#[test]
fn acknowledged_requests_survive_a_crash() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools =
        Pools::new(&fixture, "[[pool]]\nname = \"cool\"\nstrategy = \"sticky\"\nquarantine = \"5s\"\n")?;
    let appliance = pools.start()?;
    let mut python = pools.python(2)?;
    let answers = python.ask(&json!({ "pipeline": [
        ["POOL.ADD", "p", "1", "2", "3", "4"], ["POOL.REG", "p", "3", "1", "2"],
        ["POOL.CALL", "p", "HOLDER", "ann", "REASON", "sale"], ["POOL.UNREG", "p", "3"], ["POOL.DEL", "p", "4"],
        ["POOL.CREATE", "made", "QUARANTINE", "7"], ["POOL.CREATE", "cool", "QUARANTINE", "9"],
    ] }))?;
    assert_eq!(answers, json!([4, 3, "3", 1, 1, "OK", "OK"]));
    let shown = python.run("POOL.SHOW p 3")?;
    drop(appliance.kill()?);
    let appliance = pools.start()?;
    let mut python = pools.python(2)?;
    assert_eq!(python.run("POOL.SHOW p 3")?, shown);
    assert_eq!(python.run("LRANGE {p}:idle:up 0 -1")?, json!(["1", "2"]));
    assert_eq!(python.run("HGET {p}:numstate 4")?, Value::Null);
    assert_eq!(python.run("POOL.LIST")?, json!(["cool", "made", "p"]));
    assert_eq!(
        python.run("POOL.CALL p 3")?["text"],
        "FAIL the number is busy+down, which does not allow the operation"
    );
    let quarantine = |shown: &Value| {
        let words = shown.as_array()?;
        words.get(words.iter().position(|word| word == "quarantine_ms")? + 1).cloned()
    };
    assert_eq!(quarantine(&python.run("POOL.SHOW made")?), Some(json!(7)));
    // In file mode every start uses the file.
    assert_eq!(quarantine(&python.run("POOL.SHOW cool")?), Some(json!(5000)));
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    Ok(())
}

#[test]
fn at_shutdown_clients_are_answered_and_disconnected() -> Result<()> {
    let fixture = Fixture::new()?;
    let pools = Pools::new(&fixture, "")?;
    let appliance = pools.start()?;
    let mut idle = pools.python(2)?;
    assert_eq!(idle.run("PING")?, true);
    idle.run("POOL.CREATE none")?;
    // A busy client does not delay the stop.
    let mut busy = Command::new("redis-benchmark")
        .args(["-p", &pools.port.to_string(), "-c", "4", "-P", "16", "-n", "100000000", "-q"])
        .args(["POOL.CALL", "none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    until("calls come", || Ok(!pools.cli(&["INFO", "stats"])?.contains("calls_without_a_number:0")))?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    // redis-benchmark ends when the server stops.
    busy.kill()?;
    busy.wait()?;
    Ok(())
}
