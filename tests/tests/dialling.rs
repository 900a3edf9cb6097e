//! Peers that wait to be dialled again, and are dialled at once when an admin says so.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::{PATIENCE, Stage, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// bind_transceiver_resp with ESME_RINVPASWD (0x0E): the appliance waits for a minute at least after it.
const WRONG_PASSWORD: [u8; 16] = [0, 0, 0, 16, 0x80, 0, 0, 9, 0, 0, 0, 0x0E, 0, 0, 0, 1];

/// Takes one connection, and refuses its bind.
fn refuse_one_bind(listener: &TcpListener) -> Result<()> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut rest = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4).min(1_000)];
    socket.read_exact(&mut rest)?;
    let mut answer = WRONG_PASSWORD;
    answer[12..].copy_from_slice(rest.get(8..12).context("a short bind")?);
    Ok(socket.write_all(&answer)?)
}

/// Lines of the log about the end of a link to the peer, or the failure to make one.
fn complaints(appliance: &Appliance) -> Vec<String> {
    let log = appliance.log(10_000);
    let about = |line: &&str| {
        let is_about = ["link closed", "link is down", "refuses", "cannot connect"];
        line.contains("upstream") && is_about.iter().any(|words| line.contains(words))
    };
    log.lines().filter(about).map(str::to_owned).collect()
}

#[test]
fn the_log_tells_of_a_lost_link_once_with_the_peer() -> Result<()> {
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "").peer("upstream", sink.address(), "receipts = false");
    let appliance = blueprint.start()?;
    appliance.wait_until(PATIENCE, "/v1/links", |links| links[0]["phase"] == "bound")?;
    sink.drop_links();
    appliance.wait_for_line(PATIENCE, |line| line.contains("link is down"))?;
    appliance.wait_until(PATIENCE, "/v1/links", |links| links[0]["phase"] == "bound")?;
    let lines = complaints(&appliance);
    ensure!(lines.len() == 1 && lines[0].contains("peer=upstream"), "{lines:#?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_peer_that_is_up_again_is_dialled_on_demand_and_gets_what_waited() -> Result<()> {
    let stage = Stage::without_guests()?;
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "").peer(
        "upstream",
        address,
        "receipts = false\nredial-interval = \"1h\"",
    );
    let appliance = blueprint.start()?;
    refuse_one_bind(&listener)?;
    drop(listener);
    let link = || -> Result<Value> { Ok(appliance.get("/v1/links")?[0].clone()) };
    until("the peer waits", || {
        let link = link()?;
        Ok(link["phase"] == "backing-off" && link["back_off_until"].is_u64())
    })?;
    let lines = complaints(&appliance);
    ensure!(lines.len() == 1 && lines[0].contains("credentials"), "one line tells of it: {lines:#?}");
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    let path = format!("/v1/messages/{}", sent["id"].as_str().context("no id")?);

    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start_at(address, SinkOptions::default(), &tally)?;
    assert_eq!(link()?["phase"], "backing-off", "it was dialled by itself");
    assert_eq!(sink.messages_so_far(), 0);
    let output = stage.command(&appliance).args(["peer", "dial", "upstream"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Half of the time for which it would wait by itself.
    appliance.wait_until(PATIENCE, "/v1/links", |links| links[0]["phase"] == "bound")?;
    appliance.wait_until(PATIENCE, &path, |trace| trace["finished"] == true)?;
    assert_eq!(sink.messages_so_far(), 1);
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
