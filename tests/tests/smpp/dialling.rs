//! Peers that wait for the next connection attempt are dialled immediately on request.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// bind_transceiver_resp with ESME_RINVPASWD (0x0E): the daemon waits for at least a minute after it.
const WRONG_PASSWORD: [u8; 16] = [0, 0, 0, 16, 0x80, 0, 0, 9, 0, 0, 0, 0x0E, 0, 0, 0, 1];

/// Accepts one connection and refuses its bind.
fn refuse_one_bind(listener: &TcpListener) -> Result<()> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut rest = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4).min(1_000)];
    socket.read_exact(&mut rest)?;
    let mut answer = WRONG_PASSWORD;
    answer[12..].copy_from_slice(rest.get(8..12).context("a short bind")?);
    Ok(socket.write_all(&answer)?)
}

/// Log lines about a lost or failed link to the peer.
fn complaints(appliance: &TestDaemon) -> Vec<String> {
    let log = appliance.log(10_000);
    let about = |line: &&str| {
        let is_about = ["link closed", "link down", "bind refused", "cannot connect"];
        line.contains("upstream") && is_about.iter().any(|words| line.contains(words))
    };
    log.lines().filter(about).map(str::to_owned).collect()
}

#[test]
fn a_lost_link_is_logged_once_with_its_peer() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "").peer("upstream", sink.address(), "dlrs = false");
    let appliance = config.start()?;
    appliance.wait_until(TIMEOUT, "/v1/links", |links| links[0]["phase"] == "bound")?;
    sink.drop_links();
    appliance.wait_for_line(TIMEOUT, |line| line.contains("link down"))?;
    appliance.wait_until(TIMEOUT, "/v1/links", |links| links[0]["phase"] == "bound")?;
    until("the log reports it", || Ok(!complaints(&appliance).is_empty()))?;
    let lines = complaints(&appliance);
    ensure!(lines.len() == 1 && lines[0].contains("peer=upstream"), "{lines:#?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_peer_is_dialled_on_demand_and_gets_waiting_messages() -> Result<()> {
    let fixture = Fixture::new()?;
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "").peer(
        "upstream",
        address,
        "dlrs = false\nredial-interval = \"1h\"",
    );
    let appliance = config.start()?;
    refuse_one_bind(&listener)?;
    drop(listener);
    let link = || -> Result<Value> { Ok(appliance.get("/v1/links")?[0].clone()) };
    until("the peer waits", || {
        let link = link()?;
        Ok(link["phase"] == "backing-off" && link["back_off_until"].is_u64())
    })?;
    until("the log reports it", || Ok(!complaints(&appliance).is_empty()))?;
    let lines = complaints(&appliance);
    ensure!(lines.len() == 1 && lines[0].contains("bind refused"), "one line reports it: {lines:#?}");
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    let path = format!("/v1/messages/{}", sent["id"].as_str().context("no id")?);

    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start_at(address, SinkOptions::default(), &tally)?;
    assert_eq!(link()?["phase"], "backing-off", "it was dialled by itself");
    assert_eq!(sink.message_count(), 0);
    let output = fixture.command(&appliance).args(["peer", "dial", "upstream"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Without the request, it would wait longer than this timeout.
    appliance.wait_until(TIMEOUT, "/v1/links", |links| links[0]["phase"] == "bound")?;
    appliance.wait_until(TIMEOUT, &path, |trace| trace["finished"] == true)?;
    assert_eq!(sink.message_count(), 1);
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
