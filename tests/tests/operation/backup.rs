//! Backups under traffic, and the contents of a restored appliance.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A daemon with some of every kind of state; its peer is `upstream`.
fn config(fixture: &Fixture, name: &str, upstream: SocketAddr) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join(name))?;
    // The peer's uncertain messages are sent again; restored ones must not be.
    config.account("acme", "window = 1000").peer(
        "upstream",
        upstream,
        "dlrs = false\nwindow = 100\nuncertain = \"send-again\"",
    );
    config.native("upstream");
    Ok(config)
}

fn get(appliance: &TestDaemon, path: &str) -> Result<ureq::Body> {
    let url = format!("http://{}{path}", appliance.config().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call();
    Ok(asked.with_context(|| format!("GET {path}"))?.into_body())
}

fn back_up(appliance: &TestDaemon, to: &Path) -> Result<()> {
    let octets = get(appliance, "/v1/backup")?.with_config().limit(1 << 30).read_to_vec()?;
    Ok(std::fs::write(to, octets)?)
}

/// Runs `switchyard restore`; returns whether it succeeds, and its output.
fn restore(fixture: &Fixture, file: &Path, data: &Path, more: &[&str]) -> Result<(bool, String)> {
    let mut command = Command::new(fixture.binary());
    let output = command.arg("restore").arg(file).arg("--data").arg(data).args(more).output()?;
    let words = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
}

/// All state in addition to messages, as shown by the API.
fn other_state(appliance: &TestDaemon) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for path in [
        "/v1/pools/calls",
        "/v1/pools/calls/numbers",
        "/v1/pools/calls/history",
        "/v1/ledger/acme",
        "/v1/ledger/acme/operations",
        "/v1/plugins",
        "/v1/tables",
        "/v1/opt-outs",
    ] {
        all.push(appliance.get(path)?);
    }
    Ok(all)
}

fn fill(fixture: &Fixture, appliance: &TestDaemon) -> Result<()> {
    appliance.ask("PUT", "/v1/pools/calls", b"{\"strategy\":\"longest-idle\"}")?;
    let events = json!([{ "event": "add", "number": "100" }, { "event": "add", "number": "101" }]);
    appliance.ask("POST", "/v1/pools/calls/events", events.to_string().as_bytes())?;
    for (key, operation) in [("open", json!({ "credit": 10 })), ("fund", json!({ "fund": 5_000_000 }))] {
        let mut operation = operation;
        (operation["actor"], operation["reason"]) = (json!("ann"), json!("invoice 7"));
        let (status, reply) = appliance.ledger("acme", key, &operation)?;
        ensure!(status == 200, "{operation}: {status} {reply}");
    }
    appliance.ask("PUT", "/v1/tables/prefixes?kind=prefix", b"49,germany\n86,china\n")?;
    let stop = json!({ "sender": "10655", "subscriber": "8613000000001", "stop": true });
    appliance.ask("POST", "/v1/opt-outs", stop.to_string().as_bytes())?;
    appliance.ask("PUT", "/v1/plugins/prefix-router", &fixture.component("prefix_router")?)?;
    Ok(())
}

#[test]
fn a_backup_under_traffic_is_restored() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = config(&fixture, "first", nobody)?.start()?;
    fill(&fixture, &appliance)?;
    let before = other_state(&appliance)?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.push(esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
    }
    let tally = Arc::new(Tally::new(2_000_000));
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    options.connections = 1;
    let source = Source::start(&options, &tally)?;
    until("traffic", || Ok(tally.accepted_count() > 500))?;
    let accepted_before = tally.accepted_count() + 20;
    let file = fixture.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    until("traffic continues", || Ok(tally.accepted_count() + 20 > accepted_before + 500))?;
    source.stop();
    source.join()?;
    let accepted_after = tally.accepted_count() + 20;
    let last: u64 =
        esme.submit(99)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?.parse()?;
    let leftovers = std::fs::read_dir(appliance.config().data())?.flatten();
    let leftovers: Vec<_> =
        leftovers.filter(|entry| entry.file_name().to_string_lossy().starts_with("backup-")).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    assert!(appliance.stop()?.0.success());

    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let second = config(&fixture, "second", sink.address())?;
    let (done, words) = restore(&fixture, &file, &second.data(), &[])?;
    assert!(done, "{words}");
    let appliance = second.start()?;
    assert_eq!(other_state(&appliance)?, before);

    // It contains all messages accepted before the backup and none accepted later, and sends nothing by itself.
    let queue = |doing: &str| -> Result<u64> {
        let queues = appliance.get("/v1/queues")?;
        let queue = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == "upstream");
        queue.and_then(|queue| queue[doing].as_u64()).with_context(|| format!("{queues}"))
    };
    let uncertain = queue("uncertain")?;
    assert!(
        (accepted_before..=accepted_after).contains(&uncertain),
        "{accepted_before} {uncertain} {accepted_after}"
    );
    assert_eq!(queue("queued")?, 0);
    assert!(
        words.contains(&format!("{uncertain} messages wait; {uncertain} of them may have been sent")),
        "{words}"
    );
    for id in &ids {
        assert_eq!(appliance.get(&format!("/v1/messages/{id}"))?["state"], "uncertain", "message {id}");
    }
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let new: u64 = esme.submit(99)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?.parse()?;
    assert!(new > last, "id {new} was used before, up to {last}");
    until("the new message arrives", || Ok(sink.message_count() > 0))?;
    assert_eq!(sink.message_count(), 1, "only the new message is sent");

    // An admin settles the uncertain ones.
    let settle = |id: &str, remedy: &str| {
        appliance.ask(
            "POST",
            &format!("/v1/messages/{id}/settle"),
            json!({ "remedy": remedy }).to_string().as_bytes(),
        )
    };
    settle(&ids[0], "send-again")?;
    until("it arrives", || Ok(sink.message_count() == 2))?;
    settle(&ids[1], "give-up")?;
    appliance.wait_until(TIMEOUT, &format!("/v1/messages/{}", ids[1]), |trace| trace["finished"] == true)?;

    // It is an ordinary data directory: it survives a kill.
    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.get(&format!("/v1/messages/{}", ids[2]))?["state"], "uncertain");
    assert_eq!(other_state(&appliance)?, before);
    assert_eq!(sink.message_count(), 2);
    Ok(())
}

#[test]
fn possible_duplicates_are_sent_only_on_request() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = config(&fixture, "first", nobody)?.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    for number in 0..5 {
        esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
    }
    let file = fixture.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    drop(appliance);
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?;
    let second = config(&fixture, "second", sink.address())?;
    let (done, words) = restore(&fixture, &file, &second.data(), &["--send-again"])?;
    assert!(done && words.contains("5 messages wait; 0 of them"), "{words}");
    let _appliance = second.start()?;
    until("all arrive", || Ok(sink.message_count() == 5))?;
    Ok(())
}

#[test]
fn a_directory_in_use_or_not_empty_is_unchanged() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let first = config(&fixture, "first", nobody)?;
    let data = first.data();
    let appliance = first.start()?;
    let file = fixture.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    for more in [&[][..], &["--force"]] {
        let (done, words) = restore(&fixture, &file, &data, more)?;
        assert!(!done && words.contains("is in use"), "{words}");
    }
    let token = appliance.token()?;
    assert!(appliance.stop()?.0.success());
    let (done, words) = restore(&fixture, &file, &data, &[])?;
    assert!(!done && words.contains("is not empty") && words.contains("--force"), "{words}");

    // An incomplete backup changes nothing.
    let octets = std::fs::read(&file)?;
    let cut = fixture.folder().join("cut.tar");
    std::fs::write(&cut, &octets[..octets.len() * 2 / 3])?;
    let (done, words) = restore(&fixture, &cut, &data, &["--force"])?;
    assert!(!done && words.contains("truncated"), "{words}");
    assert_eq!(std::fs::read_to_string(data.join("token"))?.trim(), token);

    std::fs::write(data.join("witness"), "old")?;
    let (done, words) = restore(&fixture, &file, &data, &["--force"])?;
    assert!(done && words.contains("the previous directory is"), "{words}");
    let beside: Vec<_> =
        std::fs::read_dir(data.parent().context("no parent")?)?.flatten().map(|entry| entry.path()).collect();
    let aside =
        beside.iter().find(|path| path.join("witness").exists()).context("the previous files are missing")?;
    assert_ne!(aside, &data);
    assert!(!beside.iter().any(|path| path.to_string_lossy().contains("restoring")), "{beside:?}");
    assert_eq!(std::fs::read_to_string(data.join("token"))?.trim(), token);
    assert!(first.start()?.stop()?.0.success());
    Ok(())
}

#[test]
fn one_backup_runs_at_a_time_and_ends_with_its_reader() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = config(&fixture, "first", nobody)?.start()?;
    // More than fits into the buffers of a reader that does not read.
    let rows: String = (0..1_000_000).map(|row| format!("{row:012},value of row {row}\n")).collect();
    appliance.ask("PUT", "/v1/tables/large?kind=exact", rows.as_bytes())?;
    let mut slow = TcpStream::connect(appliance.config().http())?;
    let token = appliance.token()?;
    write!(slow, "GET /v1/backup HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")?;
    let mut head = [0; 64];
    slow.read_exact(&mut head)?;
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    assert_eq!(appliance.request("GET", "/v1/backup", &[])?.0, 409);
    drop(slow);
    let file = fixture.folder().join("backup.tar");
    until("the next backup succeeds", || Ok(back_up(&appliance, &file).is_ok()))?;
    assert!(std::fs::metadata(&file)?.len() > rows.len() as u64);
    let (status, _) = appliance.send("GET", "/v1/backup", &[], &[("authorization", "Bearer x")])?;
    assert_eq!(status, 401);
    Ok(())
}

#[test]
fn remains_of_an_interrupted_backup_are_removed() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let first = config(&fixture, "first", nobody)?;
    let left = first.data().join("backup-dead");
    std::fs::create_dir_all(&left)?;
    std::fs::write(left.join("switchyard.redb"), "half")?;
    let _appliance = first.start()?;
    assert!(!left.exists());
    Ok(())
}
