//! Backups while traffic flows, and what comes out of them.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::{PATIENCE, Stage, until};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A house with something of everything that is kept; its peer is `upstream`.
fn blueprint(stage: &Stage, name: &str, upstream: SocketAddr) -> Result<Blueprint> {
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join(name))?;
    // Its remedy for doubt is to send again: what comes out of a backup must not be, all the same.
    blueprint.account("acme", "window = 1000").peer(
        "upstream",
        upstream,
        "receipts = false\nwindow = 100\nuncertain = \"send-again\"",
    );
    blueprint.native("upstream");
    Ok(blueprint)
}

fn get(appliance: &Appliance, path: &str) -> Result<ureq::Body> {
    let url = format!("http://{}{path}", appliance.blueprint().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call();
    Ok(asked.with_context(|| format!("GET {path}"))?.into_body())
}

fn back_up(appliance: &Appliance, to: &Path) -> Result<()> {
    let octets = get(appliance, "/v1/backup")?.with_config().limit(1 << 30).read_to_vec()?;
    Ok(std::fs::write(to, octets)?)
}

/// What `switchyard restore` does: whether it succeeds, and its words.
fn restore(stage: &Stage, file: &Path, data: &Path, more: &[&str]) -> Result<(bool, String)> {
    let mut command = Command::new(stage.binary());
    let output = command.arg("restore").arg(file).arg("--data").arg(data).args(more).output()?;
    let words = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
}

/// Everything that is kept beside messages, as the API shows it.
fn kept(appliance: &Appliance) -> Result<Vec<Value>> {
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

fn fill(stage: &Stage, appliance: &Appliance) -> Result<()> {
    appliance.ask("PUT", "/v1/pools/calls", b"{\"strategy\":\"longest-idle\"}")?;
    let events = json!([{ "event": "add", "number": "100" }, { "event": "add", "number": "101" }]);
    appliance.ask("POST", "/v1/pools/calls/events", events.to_string().as_bytes())?;
    for (key, operation) in [("open", json!({ "credit": 10 })), ("fund", json!({ "fund": 5_000_000 }))] {
        let mut operation = operation;
        (operation["actor"], operation["reason"]) = (json!("ann"), json!("invoice 7"));
        let (status, told) = appliance.ledger("acme", key, &operation)?;
        ensure!(status == 200, "{operation}: {status} {told}");
    }
    appliance.ask("PUT", "/v1/tables/prefixes?kind=prefix", b"49,germany\n86,china\n")?;
    let stop = json!({ "sender": "10655", "subscriber": "8613000000001", "stop": true });
    appliance.ask("POST", "/v1/opt-outs", stop.to_string().as_bytes())?;
    appliance.ask("PUT", "/v1/plugins/prefix-router", &stage.component("prefix_router")?)?;
    Ok(())
}

#[test]
fn a_backup_that_is_taken_while_traffic_flows_is_restored() -> Result<()> {
    let stage = Stage::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = blueprint(&stage, "first", nobody)?.start()?;
    fill(&stage, &appliance)?;
    let before = kept(&appliance)?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.push(esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
    }
    let tally = Arc::new(Tally::new(2_000_000));
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    options.connections = 1;
    let source = Source::start(&options, &tally)?;
    until("traffic", || Ok(tally.accepted_so_far() > 500))?;
    let accepted_before = tally.accepted_so_far() + 20;
    let file = stage.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    until("traffic goes on", || Ok(tally.accepted_so_far() + 20 > accepted_before + 500))?;
    source.stop();
    source.join()?;
    let accepted_after = tally.accepted_so_far() + 20;
    let last: u64 =
        esme.submit(99)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?.parse()?;
    let leftovers = std::fs::read_dir(appliance.blueprint().data())?.flatten();
    let leftovers: Vec<_> =
        leftovers.filter(|entry| entry.file_name().to_string_lossy().starts_with("backup-")).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    assert!(appliance.stop()?.0.success());

    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let second = blueprint(&stage, "second", sink.address())?;
    let (done, words) = restore(&stage, &file, &second.data(), &[])?;
    assert!(done, "{words}");
    let appliance = second.start()?;
    assert_eq!(kept(&appliance)?, before);

    // All that was accepted before is there, nothing is that was accepted after, and nothing is sent by itself.
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
    assert!(new > last, "id {new} was given out before, up to {last}");
    until("what is new arrives", || Ok(sink.messages_so_far() > 0))?;
    assert_eq!(sink.messages_so_far(), 1, "only what is new is sent");

    // Somebody says what becomes of the others.
    let settle = |id: &str, remedy: &str| {
        appliance.ask(
            "POST",
            &format!("/v1/messages/{id}/settle"),
            json!({ "remedy": remedy }).to_string().as_bytes(),
        )
    };
    settle(&ids[0], "send-again")?;
    until("it arrives", || Ok(sink.messages_so_far() == 2))?;
    settle(&ids[1], "give-up")?;
    appliance.wait_until(PATIENCE, &format!("/v1/messages/{}", ids[1]), |trace| trace["finished"] == true)?;

    // It is an ordinary data directory: after a kill it is as it was.
    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.get(&format!("/v1/messages/{}", ids[2]))?["state"], "uncertain");
    assert_eq!(kept(&appliance)?, before);
    assert_eq!(sink.messages_so_far(), 2);
    Ok(())
}

#[test]
fn what_may_be_sent_twice_is_sent_where_somebody_says_so() -> Result<()> {
    let stage = Stage::without_guests()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = blueprint(&stage, "first", nobody)?.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    for number in 0..5 {
        esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
    }
    let file = stage.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    drop(appliance);
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?;
    let second = blueprint(&stage, "second", sink.address())?;
    let (done, words) = restore(&stage, &file, &second.data(), &["--send-again"])?;
    assert!(done && words.contains("5 messages wait; 0 of them"), "{words}");
    let _appliance = second.start()?;
    until("all arrive", || Ok(sink.messages_so_far() == 5))?;
    Ok(())
}

#[test]
fn a_directory_that_is_in_use_or_not_empty_is_left_alone() -> Result<()> {
    let stage = Stage::without_guests()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let first = blueprint(&stage, "first", nobody)?;
    let data = first.data();
    let appliance = first.start()?;
    let file = stage.folder().join("backup.tar");
    back_up(&appliance, &file)?;
    for more in [&[][..], &["--force"]] {
        let (done, words) = restore(&stage, &file, &data, more)?;
        assert!(!done && words.contains("is in use"), "{words}");
    }
    let token = appliance.token()?;
    assert!(appliance.stop()?.0.success());
    let (done, words) = restore(&stage, &file, &data, &[])?;
    assert!(!done && words.contains("is not empty") && words.contains("--force"), "{words}");

    // A backup that is not whole leaves everything as it is.
    let octets = std::fs::read(&file)?;
    let cut = stage.folder().join("cut.tar");
    std::fs::write(&cut, &octets[..octets.len() * 2 / 3])?;
    let (done, words) = restore(&stage, &cut, &data, &["--force"])?;
    assert!(!done && words.contains("cut off"), "{words}");
    assert_eq!(std::fs::read_to_string(data.join("token"))?.trim(), token);

    std::fs::write(data.join("witness"), "old")?;
    let (done, words) = restore(&stage, &file, &data, &["--force"])?;
    assert!(done && words.contains("what was there before is in"), "{words}");
    let beside: Vec<_> =
        std::fs::read_dir(data.parent().context("no parent")?)?.flatten().map(|entry| entry.path()).collect();
    let aside = beside.iter().find(|path| path.join("witness").exists()).context("what was there is gone")?;
    assert_ne!(aside, &data);
    assert!(!beside.iter().any(|path| path.to_string_lossy().contains("restoring")), "{beside:?}");
    assert_eq!(std::fs::read_to_string(data.join("token"))?.trim(), token);
    assert!(first.start()?.stop()?.0.success());
    Ok(())
}

#[test]
fn one_backup_at_a_time_and_one_that_is_not_read_ends_with_its_reader() -> Result<()> {
    let stage = Stage::without_guests()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let appliance = blueprint(&stage, "first", nobody)?.start()?;
    // More than what fits between a writer and a reader that does not read.
    let rows: String = (0..1_000_000).map(|row| format!("{row:012},value of row {row}\n")).collect();
    appliance.ask("PUT", "/v1/tables/large?kind=exact", rows.as_bytes())?;
    let mut slow = TcpStream::connect(appliance.blueprint().http())?;
    let token = appliance.token()?;
    write!(slow, "GET /v1/backup HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")?;
    let mut head = [0; 64];
    slow.read_exact(&mut head)?;
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    assert_eq!(appliance.request("GET", "/v1/backup", &[])?.0, 409);
    drop(slow);
    let file = stage.folder().join("backup.tar");
    until("the next one is taken", || Ok(back_up(&appliance, &file).is_ok()))?;
    assert!(std::fs::metadata(&file)?.len() > rows.len() as u64);
    let (status, _) = appliance.send("GET", "/v1/backup", &[], &[("authorization", "Bearer x")])?;
    assert_eq!(status, 401);
    Ok(())
}

#[test]
fn what_a_dead_daemon_left_of_a_backup_is_tidied_away() -> Result<()> {
    let stage = Stage::without_guests()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let first = blueprint(&stage, "first", nobody)?;
    let left = first.data().join("backup-dead");
    std::fs::create_dir_all(&left)?;
    std::fs::write(left.join("switchyard.redb"), "half")?;
    let _appliance = first.start()?;
    assert!(!left.exists());
    Ok(())
}
