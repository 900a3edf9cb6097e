//! Effects of a screen: messages in quarantine, over a crash, until an admin decides; dropped messages; replaced texts.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, RawConnection, bind, steps, until, upload};
use serde_json::{Value, json};

use testkit::test_daemon::{PASSWORD, TestDaemon};

const SUBMIT_SM: u32 = 0x0000_0004;
const DELIVER_SM: u32 = 0x0000_0005;
const RESPONSE: u32 = 0x8000_0000;

const POLICY: &str = r#"
[[rule]]
name = "lottery"
words = "lottery"
then = "quarantine"

[[rule]]
name = "malware"
words = "malware"
then = "drop"
report = "delivered"

[[rule]]
name = "prizes"
words = "prize"
then = "replace"
with = "[removed]"
"#;

/// A submit_sm that asks for a DLR (SMPP 3.4 §4.4.1).
fn submit(text: &str) -> Vec<u8> {
    let head = b"\0\x01\x01100\0\x01\x014917012345678\0\0\0\0\0\0\x01\0\0\0";
    [&head[..], &[text.len() as u8], text.as_bytes()].concat()
}

/// Submits a text; returns the message's id.
fn send(esme: &mut RawConnection, sequence: u32, text: &str) -> Result<String> {
    esme.send_pdu(SUBMIT_SM, sequence, &submit(text))?;
    loop {
        let (id, status, number, body) = esme.receive()?;
        if id == DELIVER_SM {
            esme.send_pdu(DELIVER_SM | RESPONSE, number, &[0])?;
            continue;
        }
        ensure!((id, status) == (SUBMIT_SM | RESPONSE, 0), "{id:#x}, status {status:#x}");
        return Ok(String::from_utf8(body.strip_suffix(&[0]).context("no NUL behind the id")?.to_vec())?);
    }
}

/// Takes the next message or DLR.
fn take(link: &mut RawConnection) -> Result<String> {
    let (id, _, sequence, body) = link.receive()?;
    ensure!(id == DELIVER_SM, "{id:#x}");
    link.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn connect(appliance: &TestDaemon, account: &str) -> Result<RawConnection> {
    let mut link = RawConnection::connect(appliance.smpp())?;
    ensure!(link.bind(account, PASSWORD)? == 0, "{account} is not bound");
    Ok(link)
}

/// Runs a command of the manual and returns its output.
fn switchyard(fixture: &Fixture, appliance: &TestDaemon, arguments: &[&str]) -> Result<String> {
    let output = fixture.command(appliance).args(arguments).output()?;
    let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success(), "{arguments:?}: {printed}");
    Ok(printed)
}

fn screened(fixture: &Fixture, appliance: &TestDaemon) -> Result<String> {
    let firewall = fixture.component("firewall")?;
    bind(appliance, "screen", "firewall", &firewall, POLICY, &json!({}))?;
    let router = fixture.component("test_examiner")?;
    bind(appliance, "router", "examiner", &router, "forward receiver", &json!({}))?;
    upload(appliance, "firewall", &firewall)
}

#[test]
fn messages_wait_in_quarantine_over_a_crash_until_an_admin_decides() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("receiver", "");
    let mut appliance = config.start()?;
    screened(&fixture, &appliance)?;
    let mut esme = connect(&appliance, "acme")?;
    let released = send(&mut esme, 2, "the LOTTERY is open")?;
    let purged = send(&mut esme, 3, "a lottery again")?;
    let clean = send(&mut esme, 4, "hello")?;

    appliance = appliance.kill()?.start()?;
    let page = appliance.get("/v1/quarantine")?;
    let listed = page["messages"].as_array().context("no list")?;
    let ids: Vec<&str> = listed.iter().filter_map(|message| message["id"].as_str()).collect();
    ensure!(ids == [&released, &purged], "{page:#}");
    ensure!(listed[0]["note"].to_string().contains("lottery"), "{page:#}");
    let metrics = appliance.metrics()?;
    let gauge = metrics.iter().find(|(name, _)| name == "switchyard_quarantine_messages");
    ensure!(gauge.is_some_and(|(_, value)| *value == 2.0), "{gauge:?}");
    let trace = appliance.get(&format!("/v1/messages/{released}"))?;
    ensure!(trace["state"] == "quarantined" && trace["screening"]["plugin"] == "firewall", "{trace:#}");
    let table = switchyard(&fixture, &appliance, &["quarantine", "list", "--origin", "acme"])?;
    ensure!(table.contains(&released) && table.contains(&purged), "{table}");

    let mut receiver = connect(&appliance, "receiver")?;
    ensure!(take(&mut receiver)?.contains("hello"), "{clean} goes its way");
    let printed = switchyard(&fixture, &appliance, &["quarantine", "release", &released])?;
    ensure!(printed == "1 message released\n", "{printed}");
    ensure!(take(&mut receiver)?.contains("the LOTTERY is open"), "it is sent as it was submitted");
    let printed = switchyard(&fixture, &appliance, &["quarantine", "purge", "--origin", "acme"])?;
    ensure!(printed == "1 message purged\n", "{printed}");
    let path = format!("/v1/messages/{purged}");
    until("the purged message has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    let trace = appliance.get(&path)?;
    ensure!(trace["state"] == "rejected", "{trace:#}");
    ensure!(steps(&trace).iter().any(|step| step.contains("purged from quarantine, by ")), "{trace:#}");
    let audit = appliance.get("/v1/audit")?.to_string();
    ensure!(audit.contains("1 messages of acme purged from quarantine, 0 skipped"), "{audit}");
    Ok(())
}

#[test]
fn a_dropped_message_is_reported_and_a_replaced_text_keeps_what_was_submitted() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("receiver", "").archive("sqlite:archive.db");
    let appliance = config.start()?;
    let version = screened(&fixture, &appliance)?;
    let (mut receiver, mut esme) = (connect(&appliance, "receiver")?, connect(&appliance, "acme")?);

    let dropped = send(&mut esme, 2, "get malware here")?;
    let dlr = take(&mut esme)?;
    ensure!(dlr.contains(&dropped) && dlr.contains("stat:DELIVRD"), "{dlr}");
    let replaced = send(&mut esme, 3, "your prize waits")?;
    let taken = take(&mut receiver)?;
    ensure!(taken.contains("your [removed] waits"), "{taken}");

    for id in [&dropped, &replaced] {
        until("it is archived", || {
            let found = appliance.get("/v1/history?limit=10")?.to_string();
            Ok(found.contains(id.as_str()))
        })?;
    }
    let trace = appliance.get(&format!("/v1/messages/{replaced}"))?;
    let screening = &trace["screening"];
    ensure!(screening["text_replaced"] == true && screening["submitted_body"] == Value::Null, "{trace:#}");
    let trace = appliance.get(&format!("/v1/messages/{replaced}?body=1"))?;
    ensure!(trace["screening"]["submitted_body"] == "your prize waits", "{trace:#}");
    ensure!(trace["body"] == "your [removed] waits", "{trace:#}");
    let trace = appliance.get(&format!("/v1/messages/{dropped}"))?;
    ensure!(trace["routing"]["verdict"] == "drop, reported as delivered", "{trace:#}");

    // A replay shows which messages another policy would have stopped.
    let policy = "[[rule]]\nname = \"a\"\nwords = \"malware\"\nthen = \"quarantine\"\n";
    let request = json!({
        "hook": "screen", "plugin": "firewall", "version": version, "policy": policy, "last": 100,
    });
    let started = appliance.ask("POST", "/v1/replays", request.to_string().as_bytes())?;
    let path = format!("/v1/replays/{}", started["id"].as_str().context("no id")?);
    until("the replay has ended", || Ok(appliance.get(&path)?["state"] != "running"))?;
    let report = appliance.get(&path)?["report"].clone();
    ensure!(report["messages"] == 2 && report["same"] == 1, "{report:#}");
    let differences = report.to_string();
    ensure!(differences.contains("drop, reported as delivered"), "{report:#}");
    ensure!(differences.contains("quarantine"), "{report:#}");
    Ok(())
}
