//! State files of older formats, and a file of a newer format.

use crate::older::{self, ACCEPTED, FIRST};
use anyhow::{Context, Result};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, until};
use serde_json::json;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

/// An appliance with the accounts and peers of the older files, started on one of these files.
fn config(fixture: &Fixture, format: u8, upstream: SocketAddr) -> Result<TestDaemonConfig> {
    let mut config =
        TestDaemonConfig::new(fixture.binary(), &fixture.folder().join(format!("format-{format}")))?;
    config.account("acme", "").peer("upstream", upstream, "").native("upstream");
    std::fs::create_dir_all(config.data())?;
    older::write(&config.data().join("switchyard.redb"), format)?;
    Ok(config)
}

fn state(appliance: &TestDaemon, number: u64) -> Result<String> {
    let trace = appliance.get(&format!("/v1/messages/{}?body=1", FIRST + number))?;
    let id = FIRST + number;
    assert_eq!(trace["body"], format!("text of message {id}"), "{trace}");
    assert_eq!(trace["destination"], format!("86130{id}"), "{trace}");
    assert_eq!((&trace["source"], &trace["origin"]), (&json!("Switchyard"), &json!("acme")), "{trace}");
    assert_eq!(trace["accepted_at"], ACCEPTED, "{trace}");
    assert_eq!(trace["routing"]["note"], "everything upstream", "{trace}");
    Ok(trace["state"].as_str().context("no state")?.to_owned())
}

#[test]
fn messages_in_files_of_all_formats_are_recovered() -> Result<()> {
    let fixture = Fixture::new()?;
    for format in [1, 2, 3, 4] {
        let upstream = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let appliance = config(&fixture, format, upstream)?.start()?;
        assert_eq!(appliance.logged("recovered", "messages"), Some(6), "format {format}");
        let expected = ["queued", "deferred", "uncertain", "uncertain", "responded", "deferred", "delivered"];
        for (number, expected) in (0..).zip(expected) {
            assert_eq!(state(&appliance, number)?, expected, "format {format}, message {number}");
        }
        if format >= 2 {
            assert_eq!(appliance.get("/v1/opt-outs")?["stopped"][0]["sender"], "10655", "format {format}");
        }
        // The file has the current format now, and waiting messages are sent.
        let appliance = appliance.kill()?.start()?;
        let sink = Sink::start_at(upstream, SinkOptions::default(), &Arc::new(Tally::new(100)))?;
        until("the first message is sent", || Ok(sink.message_count() == 1))?;
        let message = json!({ "account": "acme", "from": "10655", "to": "8613000000001", "text": "x" });
        let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
        let id: u64 = sent["id"].as_str().context("no id")?.parse()?;
        assert_eq!(id, FIRST + 7, "format {format}: ids go on after those in the file");
        until("the new message is sent", || Ok(sink.message_count() == 2))?;
    }
    Ok(())
}

#[test]
fn a_file_of_a_newer_format_is_refused_and_unchanged() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let config = config(&fixture, 4, nobody)?;
    let path = config.data().join("switchyard.redb");
    {
        let database = redb::Database::open(&path)?;
        let transaction = database.begin_write()?;
        transaction.open_table(redb::TableDefinition::<&str, u64>::new("meta"))?.insert("format", 200)?;
        transaction.commit()?;
    }
    let output = Command::new(fixture.binary()).arg("serve").arg("--config").arg(config.write()?).output()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(words.contains("has record format 200") && words.contains("start the newer version"), "{words}");
    // redb may have opened it; its contents are unchanged.
    let database = redb::Database::open(&path)?;
    let read = redb::ReadableDatabase::begin_read(&database)?;
    let meta = read.open_table(redb::TableDefinition::<&str, u64>::new("meta"))?;
    assert_eq!(meta.get("format")?.map(|format| format.value()), Some(200));
    Ok(())
}
