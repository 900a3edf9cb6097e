//! The lookup `number-portability` with an independent DNS server (PyPI `dnslib`): ported numbers take another route,
//! each number is queried once, and messages survive a silent server and a crash.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, Peer, RawConnection, bind, steps, until};
use serde_json::{Value, json};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};

const SUBMIT_SM: u32 = 0x0000_0004;
const DELIVER_SM: u32 = 0x0000_0005;
const ENQUIRE_LINK: u32 = 0x0000_0015;
const RESPONSE: u32 = 0x8000_0000;

const POLICY: &str = "[[source]]\nenum = \"e164.arpa\"\n\n[[network]]\nname = \"south\"\nmcc = \"262\"\nmnc = \"03\"\n\
                      line-type = \"mobile\"\nrn = [\"49D003\"]\n";
/// Messages to ported numbers go to `south`, all others to `north`.
const ROUTES: &str = "note attribute ported\nnote attribute mnc\nwhen ported yes south\nforward north";

const PORTED: &str = "4915112345678";
const OWN: &str = "4915187654321";
const ABSENT: &str = "4915100000000";
const LONG: &str = "4915133333333";

fn server() -> Result<(Peer, u16)> {
    let records = json!({
        PORTED: "tel:+4915112345678;npdi;rn=+49D003",
        OWN: "tel:+4915187654321;npdi",
        LONG: "tel:+4915133333333;npdi;rn=+49D003;spn=long",
    });
    let mut server = Peer::python("enum_server.py", &json!({ "records": records }))?;
    let port = server.expect("ready")?["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    Ok((server, port.context("no port")?))
}

fn config(fixture: &Fixture, lookup: &str) -> Result<TestDaemonConfig> {
    let mut config = fixture.config()?;
    config.account("acme", "").account("north", "").account("south", "").archive("sqlite:archive.db");
    config.tables(&format!("[lookup]\n{lookup}\n"));
    Ok(config)
}

/// Binds the lookup, with this timeout of the DNS server. It imports `http`, which the document does not use and the binding does not grant.
fn bind_plugins(fixture: &Fixture, appliance: &TestDaemon, port: u16, timeout_ms: u64) -> Result<()> {
    let lookup = fixture.component("number_portability")?;
    let dns =
        json!({ "servers": [format!("127.0.0.1:{port}")], "zones": ["e164.arpa"], "timeout-ms": timeout_ms });
    bind(appliance, "lookup", "number-portability", &lookup, POLICY, &json!({ "grants": { "dns": dns } }))?;
    bind(appliance, "router", "examiner", &fixture.component("test_examiner")?, ROUTES, &json!({}))?;
    Ok(())
}

fn connect(appliance: &TestDaemon, account: &str) -> Result<RawConnection> {
    let mut link = RawConnection::connect(appliance.smpp())?;
    ensure!(link.bind(account, PASSWORD)? == 0, "{account} is not bound");
    Ok(link)
}

/// Submits a message (SMPP 3.4 §4.4.1); returns its id.
fn submit(esme: &mut RawConnection, sequence: u32, to: &str, text: &str) -> Result<String> {
    let mut body = b"\0\x01\x01100\0\x01\x01".to_vec();
    body.extend(to.as_bytes());
    body.extend(b"\0\0\0\0\0\0\0\0\0\0");
    body.push(u8::try_from(text.len())?);
    body.extend(text.as_bytes());
    esme.send_pdu(SUBMIT_SM, sequence, &body)?;
    let (id, status, _, body) = esme.receive()?;
    ensure!((id, status) == (SUBMIT_SM | RESPONSE, 0), "{id:#x}, status {status:#x}");
    Ok(String::from_utf8(body.strip_suffix(&[0]).context("no NUL behind the id")?.to_vec())?)
}

/// Takes the next message.
fn take(link: &mut RawConnection) -> Result<String> {
    let (mut id, mut sequence, mut body) = (0, 0, Vec::new());
    while id != DELIVER_SM {
        (id, _, sequence, body) = link.receive()?;
        ensure!(id == DELIVER_SM || id == ENQUIRE_LINK, "{id:#x}");
        if id == ENQUIRE_LINK {
            link.send_pdu(ENQUIRE_LINK | RESPONSE, sequence, &[])?;
        }
    }
    link.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn finished(appliance: &TestDaemon, id: &str) -> Result<Value> {
    let path = format!("/v1/messages/{id}");
    until("the message has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    appliance.get(&path)
}

fn silence(server: &mut Peer, on: bool) -> Result<()> {
    server.send_action(&json!({ "do": "silence", "on": on }))?;
    server.expect("silence").map(drop)
}

/// Number of queries per number.
fn counts(server: &mut Peer) -> Result<Value> {
    server.send_action(&json!({ "do": "count" }))?;
    Ok(server.expect("count")?["numbers"].take())
}

#[test]
fn messages_to_ported_numbers_take_another_route() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut server, port) = server()?;
    let appliance = config(&fixture, "timeout = \"60s\"")?.start()?;
    bind_plugins(&fixture, &appliance, port, 5_000)?;
    let mut esme = connect(&appliance, "acme")?;
    let (mut north, mut south) = (connect(&appliance, "north")?, connect(&appliance, "south")?);

    let first = submit(&mut esme, 2, PORTED, "ported")?;
    ensure!(take(&mut south)?.contains("ported"));
    let trace = finished(&appliance, &first)?;
    let lookup = &trace["lookup"];
    ensure!(lookup["plugin"] == "number-portability" && lookup["result"] == "found", "{trace:#}");
    ensure!(lookup["cached"] == false && lookup["note"] == "ENUM in e164.arpa", "{trace:#}");
    let known = json!({ "mcc": "262", "mnc": "03", "ported": "yes", "line-type": "mobile", "rn": "49D003" });
    ensure!(lookup["attributes"] == known, "{trace:#}");
    ensure!(steps(&trace).iter().any(|step| step.contains("(lookup)")), "{trace:#}");

    // The answer is cached: the message is routed at once.
    let second = submit(&mut esme, 3, PORTED, "again")?;
    ensure!(take(&mut south)?.contains("again"));
    let trace = finished(&appliance, &second)?;
    ensure!(trace["lookup"]["cached"] == true && trace["lookup"]["attributes"] == known, "{trace:#}");

    submit(&mut esme, 4, OWN, "own")?;
    ensure!(take(&mut north)?.contains("own"));
    let unknown = submit(&mut esme, 5, ABSENT, "absent")?;
    ensure!(take(&mut north)?.contains("absent"));
    let trace = finished(&appliance, &unknown)?;
    ensure!(trace["lookup"]["result"] == "unknown", "{trace:#}");
    // This answer comes by TCP.
    submit(&mut esme, 6, LONG, "long")?;
    ensure!(take(&mut south)?.contains("long"));
    // A name is not a number.
    submit(&mut esme, 7, "Shop", "no number")?;
    ensure!(take(&mut north)?.contains("no number"));

    let asked = counts(&mut server)?;
    ensure!(asked == json!({ PORTED: 1, OWN: 1, ABSENT: 1, LONG: 2 }), "{asked}");
    ensure!(appliance.metric("switchyard_lookup_cache_hits_total")? == 1.0);
    ensure!(appliance.metric("switchyard_lookup_questions_total")? == 4.0);

    // A preview asks the cache, and the plugin for a number that is not cached.
    let explain = |to: &str| {
        appliance.ask(
            "POST",
            "/v1/explain",
            json!({ "origin": "acme", "destination": to }).to_string().as_bytes(),
        )
    };
    let cached = explain(PORTED)?.to_string();
    ensure!(cached.contains("mnc=03") && cached.contains("(cached)") && cached.contains("south"), "{cached}");
    let new = explain("4915199999999")?.to_string();
    ensure!(new.contains("unknown (in no source)") && new.contains("north"), "{new}");

    // Other plugins may answer otherwise: the cache is empty after a change.
    bind_plugins(&fixture, &appliance, port, 4_000)?;
    submit(&mut esme, 8, PORTED, "anew")?;
    ensure!(take(&mut south)?.contains("anew"));
    ensure!(counts(&mut server)?[PORTED] == 2);
    Ok(())
}

#[test]
fn a_hundred_messages_to_a_new_number_ask_once_and_survive_a_crash() -> Result<()> {
    const MESSAGES: u32 = 100;
    let fixture = Fixture::new()?;
    let (mut server, port) = server()?;
    silence(&mut server, true)?;
    let mut appliance = config(&fixture, "timeout = \"10m\"")?.start()?;
    bind_plugins(&fixture, &appliance, port, 30_000)?;
    let mut esme = connect(&appliance, "acme")?;
    let mut ids = Vec::new();
    for number in 0..MESSAGES {
        ids.push(submit(&mut esme, number + 2, PORTED, &format!("message {number}"))?);
    }
    server.expect("asked")?;
    ensure!(counts(&mut server)? == json!({ PORTED: 1 }));
    let trace = appliance.get(&format!("/v1/messages/{}", ids[0]))?;
    ensure!(trace["state"] == "awaiting-lookup", "{trace:#}");
    ensure!(trace["waiting_for"].to_string().contains("awaits the lookup of its number"), "{trace:#}");
    let metrics = appliance.metrics()?;
    let gauge = metrics.iter().find(|(name, _)| name == "switchyard_lookups{what=\"messages\"}");
    ensure!(gauge.is_some_and(|(_, value)| *value == f64::from(MESSAGES)), "{gauge:?}");

    appliance = appliance.kill()?.start()?;
    server.expect("asked")?;
    silence(&mut server, false)?;
    // The query of the first run had no answer; the query of the second run is repeated after its timeout.
    bind_plugins(&fixture, &appliance, port, 1_000)?;
    let mut south = connect(&appliance, "south")?;
    for _ in 0..MESSAGES {
        ensure!(take(&mut south)?.contains("message "));
    }
    for id in &ids {
        let trace = finished(&appliance, id)?;
        ensure!(trace["lookup"]["attributes"]["mnc"] == "03", "{trace:#}");
    }
    Ok(())
}

#[test]
fn without_an_answer_a_message_is_routed_without_attributes_or_rejected() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut server, port) = server()?;
    silence(&mut server, true)?;
    let appliance = config(&fixture, "timeout = \"500ms\"\nretry-after = \"50ms\"")?.start()?;
    bind_plugins(&fixture, &appliance, port, 100)?;
    let (mut esme, mut north) = (connect(&appliance, "acme")?, connect(&appliance, "north")?);
    let id = submit(&mut esme, 2, PORTED, "nobody knows")?;
    ensure!(take(&mut north)?.contains("nobody knows"));
    let trace = finished(&appliance, &id)?;
    ensure!(trace["lookup"]["result"] == "failed" && trace["lookup"]["attributes"] == json!({}), "{trace:#}");
    ensure!(trace["lookup"]["note"] == "ENUM in e164.arpa: no answer in time", "{trace:#}");
    ensure!(appliance.metric("switchyard_lookup_failures_total")? == 1.0);
    appliance.stop()?;

    let strict = config(&fixture, "timeout = \"500ms\"\nretry-after = \"50ms\"\non-failure = \"reject\"")?;
    let appliance = strict.start()?;
    let mut esme = connect(&appliance, "acme")?;
    let id = submit(&mut esme, 2, PORTED, "nobody knows")?;
    let trace = finished(&appliance, &id)?;
    ensure!(
        trace["state"] == "rejected" && trace.to_string().contains("could not be looked up"),
        "{trace:#}"
    );
    Ok(())
}

#[test]
fn a_replay_repeats_lookups_without_the_server() -> Result<()> {
    let fixture = Fixture::new()?;
    let (server, port) = server()?;
    let appliance = config(&fixture, "timeout = \"60s\"")?.start()?;
    bind_plugins(&fixture, &appliance, port, 5_000)?;
    let mut esme = connect(&appliance, "acme")?;
    let (mut north, mut south) = (connect(&appliance, "north")?, connect(&appliance, "south")?);
    let mut ids = Vec::new();
    // The second message to the ported number has the cached answer, which is that of the first.
    for (sequence, to, link) in [(2, PORTED, &mut south), (3, OWN, &mut north)] {
        ids.push(submit(&mut esme, sequence, to, "a text")?);
        take(link)?;
    }
    ids.push(submit(&mut esme, 4, PORTED, "again")?);
    take(&mut south)?;
    ids.push(submit(&mut esme, 5, ABSENT, "absent")?);
    take(&mut north)?;
    for id in &ids {
        finished(&appliance, id)?;
    }
    until("all messages are archived", || {
        let archive = appliance.get("/v1/archive")?;
        Ok(archive["archived"].as_u64() >= Some(4) && archive["backlog"] == 0)
    })?;
    drop(server);

    let binding = appliance.get("/v1/hooks/lookup")?["live"]["chain"][0].clone();
    let replay = |policy: &str| -> Result<Value> {
        let request = json!({
            "hook": "lookup", "plugin": "number-portability", "version": binding["version"], "policy": policy,
            "grants": binding["grants"],
        });
        let started = appliance.ask("POST", "/v1/replays", request.to_string().as_bytes())?;
        let path = format!("/v1/replays/{}", started["id"].as_str().context("no id")?);
        until("the replay has ended", || Ok(appliance.get(&path)?["state"] != "running"))?;
        Ok(appliance.get(&path)?["report"].clone())
    };
    let same = replay(POLICY)?;
    ensure!(same["messages"] == 3 && same["same"] == 3 && same["exact"] == 3, "{same:#}");
    let other = replay(&POLICY.replace("line-type = \"mobile\"\n", ""))?;
    ensure!(other["messages"] == 3 && other["same"] == 2 && other["exact"] == 3, "{other:#}");
    let elsewhere = replay(&POLICY.replace("e164.arpa", "e164.example"))?;
    ensure!(elsewhere["exact"] == 0, "no answer of that tree is recorded: {elsewhere:#}");
    Ok(())
}
