//! Operating the daemon: drain mode, readiness, the log, test messages, peer tests.

use anyhow::{Context, Result};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, RawConnection, TIMEOUT, until};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

const QUEUE_FULL: u32 = 0x14;
const BIND_FAILED: u32 = 0x0D;
const WRONG_PASSWORD: u32 = 0x0E;

/// All messages go to the peer `upstream`, without a plugin.
fn config(fixture: &Fixture, upstream: SocketAddr) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", upstream, "dlrs = false").native("upstream");
    Ok(config)
}

fn closed_address() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

fn ask(appliance: &TestDaemon, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let octets = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let (status, text) = appliance.request(method, path, &octets)?;
    Ok((status, serde_json::from_str(&text).with_context(|| format!("{method} {path}: {status} {text}"))?))
}

fn readiness(appliance: &TestDaemon) -> Result<(u16, Value)> {
    ask(appliance, "GET", "/v1/ready", &Value::Null)
}

#[test]
fn drain_mode_refuses_new_messages_and_sends_waiting_ones() -> Result<()> {
    let fixture = Fixture::new()?;
    let upstream = closed_address()?;
    let appliance = config(&fixture, upstream)?.start()?;
    assert_eq!(readiness(&appliance)?, (200, json!({ "status": "ready", "reasons": [] })));
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    esme.submit(1)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;

    let (status, drained) = ask(&appliance, "POST", "/v1/drain", &Value::Null)?;
    assert_eq!(status, 200);
    assert_eq!((&drained["draining"], &drained["refuse-binds"]), (&json!(true), &json!(false)), "{drained}");
    assert_eq!((&drained["by"], &drained["remaining"]["waiting"]), (&json!("token"), &json!(1)), "{drained}");
    assert_eq!(readiness(&appliance)?, (503, json!({ "status": "not-ready", "reasons": ["draining"] })));
    assert_eq!(appliance.request("GET", "/v1/health", &[])?.0, 200);
    assert_eq!(esme.submit(2)?, Err(QUEUE_FULL));
    let explained =
        json!({ "origin": "acme", "source": "10655", "destination": "8610000000001", "text": "x" });
    let (_, explained) = ask(&appliance, "POST", "/v1/explain", &explained)?;
    assert_eq!(explained["answer"], "refused: queue full", "{explained}");
    let message = json!({ "account": "acme", "from": "10655", "to": "8610000000003", "text": "x" });
    assert_eq!(ask(&appliance, "POST", "/v1/messages", &message)?.0, 409);

    // Binds are still accepted, until the listener refuses them.
    assert_eq!(RawConnection::connect(appliance.smpp())?.bind("acme", PASSWORD)?, 0);
    let since = drained["since"].clone();
    let (_, drained) = ask(&appliance, "POST", "/v1/drain", &json!({ "refuse-binds": true }))?;
    assert_eq!((&drained["refuse-binds"], &drained["since"]), (&json!(true), &since), "{drained}");
    assert_eq!(RawConnection::connect(appliance.smpp())?.bind("acme", PASSWORD)?, BIND_FAILED);
    assert_eq!(esme.submit(4)?, Err(QUEUE_FULL), "the session that was there stays");

    // Waiting messages are sent as soon as the peer is up.
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start_at(upstream, SinkOptions::default(), &tally)?;
    appliance.wait_until(TIMEOUT, "/v1/drain", |state| {
        state["remaining"] == json!({ "waiting": 0, "in-flight": 0 })
    })?;
    assert_eq!(sink.message_count(), 1);

    let (_, ended) = ask(&appliance, "DELETE", "/v1/drain", &Value::Null)?;
    assert_eq!(
        (&ended["draining"], &ended["since"], &ended["by"]),
        (&json!(false), &json!(null), &json!(null))
    );
    assert_eq!(readiness(&appliance)?.0, 200);
    assert!(esme.submit(5)?.is_ok());
    assert_eq!(RawConnection::connect(appliance.smpp())?.bind("acme", PASSWORD)?, 0);
    until("the last arrives", || Ok(sink.message_count() == 2))?;

    for body in [json!({ "refuse": true }), json!({ "refuse-binds": 1 }), json!("x")] {
        assert_eq!(ask(&appliance, "POST", "/v1/drain", &body)?.0, 400, "{body}");
    }
    Ok(())
}

#[test]
fn a_drained_daemon_stops_normally_and_starts_without_drain_mode() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture, closed_address()?)?.start()?;
    appliance.ask("POST", "/v1/drain", b"{}")?;
    let (status, config) = appliance.stop()?;
    assert!(status.success(), "{status}");
    let appliance = config.start()?;
    assert_eq!(appliance.get("/v1/drain")?["draining"], false);
    assert_eq!(readiness(&appliance)?.0, 200);
    Ok(())
}

#[test]
fn concurrent_drain_requests_leave_a_consistent_state() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture, closed_address()?)?.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    for round in 0..10 {
        let (drained, ended) = std::thread::scope(|scope| {
            let drain = scope.spawn(|| appliance.ask("POST", "/v1/drain", b"{}"));
            let end = scope.spawn(|| appliance.ask("DELETE", "/v1/drain", &[]));
            (drain.join(), end.join())
        });
        for answer in [drained, ended] {
            answer.map_err(|_| anyhow::anyhow!("a request panicked"))??;
        }
        let draining = appliance.get("/v1/drain")?["draining"] == true;
        assert_eq!(esme.submit(round)?.is_err(), draining, "round {round}");
        assert_eq!(readiness(&appliance)?.0 == 503, draining, "round {round}");
    }
    Ok(())
}

#[test]
fn the_log_level_can_be_changed_at_run_time() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture, closed_address()?)?;
    config.tables("[log]\nlevel = \"info,links=warn\"\n");
    let appliance = config.start()?;
    assert_eq!(appliance.get("/v1/log")?, json!({ "level": "info,links=warn" }));
    let send = || -> Result<String> {
        let message = json!({ "account": "acme", "from": "10655", "to": "8610000000003", "text": "x" });
        let (status, sent) = ask(&appliance, "POST", "/v1/messages", &message)?;
        assert_eq!(status, 201, "{sent}");
        Ok(sent["id"].as_str().context("no id")?.to_owned())
    };
    let set = |level: &str| ask(&appliance, "PUT", "/v1/log", &json!({ "level": level }));
    assert_eq!(set("warn")?, (200, json!({ "level": "warn" })));
    let quiet = send()?;
    assert_eq!(set("info,engine=debug")?, (200, json!({ "level": "info,engine=debug" })));
    let loud = send()?;
    let line = |id: &str| format!("id={id}");
    appliance.wait_for_line(TIMEOUT, |text| {
        text.contains("test message accepted") && text.contains(&line(&loud))
    })?;
    let log = appliance.log(1000);
    assert!(!log.contains(&line(&quiet)), "{log}");

    for wrong in ["verbose", "", "info,links=loud"] {
        let (status, problem) = set(wrong)?;
        assert_eq!(
            (status, &problem["problems"][0]["pointer"]),
            (422, &json!("/level")),
            "{wrong}: {problem}"
        );
    }
    assert_eq!(appliance.get("/v1/log")?, json!({ "level": "info,engine=debug" }));
    assert_eq!(ask(&appliance, "PUT", "/v1/log", &json!({ "lvl": "info" }))?.0, 400);
    Ok(())
}

#[test]
fn the_log_can_be_json() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture, closed_address()?)?;
    config.tables("[log]\nformat = \"json\"\n");
    let appliance = config.launch()?;
    appliance.wait_for_line(TIMEOUT, |line| {
        serde_json::from_str::<Value>(line).is_ok_and(|line| line["fields"]["message"] == "ready")
    })?;
    let log = appliance.log(1000);
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        assert!(
            line["timestamp"].is_string() && line["level"].is_string() && line["target"].is_string(),
            "{line}"
        );
    }
    let mut wrong = self::config(&fixture, closed_address()?)?;
    wrong.tables("[log]\nformat = \"xml\"\nlevel = \"verbose\"\n");
    let (content, words) = wrong.check()?;
    assert!(!content && words.contains("log.format") && words.contains("log.level: \"verbose\""), "{words}");
    Ok(())
}

#[test]
fn a_test_message_is_delivered() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, sink.address())?;
    config.account("shop", "[account.source]\ndefault = \"10655\"\nallow = [\"10655*\"]\n");
    let appliance = config.start()?;
    let send = |message: Value| ask(&appliance, "POST", "/v1/messages", &message);
    let (status, sent) = send(json!({ "account": "shop", "to": "+4915112345678", "text": "Grüße, 你好" }))?;
    assert_eq!(status, 201, "{sent}");
    let id = sent["id"].as_str().context("no id")?;
    until("it arrives", || Ok(sink.message_count() == 1))?;
    let trace = appliance
        .wait_until(TIMEOUT, &format!("/v1/messages/{id}?body=1"), |trace| trace["finished"] == true)?;
    assert_eq!((&trace["state"], &trace["origin"]), (&json!("relayed"), &json!("shop")), "{trace}");
    assert_eq!((&trace["source"], &trace["body"]), (&json!("10655"), &json!("Grüße, 你好")), "{trace}");

    let right = json!({ "account": "shop", "from": "106551", "to": "8610000000003", "text": "x" });
    let with = |key: &str, value: Value| {
        let mut message = right.clone();
        message[key] = value;
        send(message)
    };
    assert_eq!(with("account", json!("nobody"))?.0, 404);
    for (key, value) in [
        ("from", json!("4711")),
        ("from", json!("a name that is too long")),
        ("to", json!("nobody")),
        ("to", json!("12")),
        ("text", json!("")),
        ("text", json!("x".repeat(2000))),
    ] {
        let (status, problem) = with(key, value.clone())?;
        let pointer = format!("/{key}");
        assert_eq!(
            (status, problem["problems"][0]["pointer"].as_str()),
            (422, Some(pointer.as_str())),
            "{value}: {problem}"
        );
    }
    assert_eq!(with("to", json!(7))?.0, 400);
    assert_eq!(with("colour", json!("red"))?.0, 400);
    assert_eq!(send(right)?.0, 201);
    until("and no other", || Ok(sink.message_count() == 2))?;
    let (status, _) = appliance.send("POST", "/v1/messages", b"{}", &[("authorization", "Bearer x")])?;
    assert_eq!(status, 401);
    Ok(())
}

fn steps(tried: &Value) -> Vec<(&str, bool)> {
    let steps = tried["steps"].as_array().into_iter().flatten();
    steps.map(|step| (step["what"].as_str().unwrap_or_default(), step["ok"] == true)).collect()
}

/// A peer that refuses every bind.
fn start_refusing_peer() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut stream in listener.incoming().flatten() {
            let mut header = [0; 16];
            if stream.read_exact(&mut header).is_err() {
                continue;
            }
            let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
            let mut body = vec![0; length as usize - 16];
            let _ = stream.read_exact(&mut body);
            let mut answer = Vec::new();
            for word in [17, 0x8000_0009, WRONG_PASSWORD] {
                answer.extend_from_slice(&u32::to_be_bytes(word));
            }
            answer.extend_from_slice(&header[12..16]);
            answer.push(0);
            let _ = stream.write_all(&answer);
        }
    });
    Ok(address)
}

#[test]
fn a_peer_can_be_tested_whether_it_is_up_or_down() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, sink.address())?;
    config.peer("down", closed_address()?, "").peer("strict", start_refusing_peer()?, "");
    let appliance = config.start()?;
    let links = |phase: &str| -> Result<usize> {
        let links = appliance.get("/v1/links")?;
        let links = links.as_array().into_iter().flatten();
        Ok(links.filter(|link| link["peer"] == "upstream" && link["phase"] == phase).count())
    };
    until("the link is up", || Ok(links("bound")? == 1))?;
    let binds = sink.report().binds;

    let tried = appliance.ask("POST", "/v1/peers/upstream/test", &[])?;
    assert_eq!(tried["ok"], true, "{tried}");
    assert_eq!(
        steps(&tried),
        [("resolve", true), ("connect", true), ("bind", true), ("unbind", true)],
        "{tried}"
    );
    assert!(
        tried["steps"][0]["detail"].as_str().is_some_and(|detail| detail.contains("127.0.0.1")),
        "{tried}"
    );
    assert!(
        tried["steps"][2]["detail"].as_str().is_some_and(|detail| detail.contains("transceiver")),
        "{tried}"
    );
    assert!(tried["steps"].as_array().into_iter().flatten().all(|step| step["ms"].is_u64()), "{tried}");
    assert_eq!(sink.report().binds, binds + 1);
    assert_eq!(links("bound")?, 1, "the existing link is not affected");

    let tried = appliance.ask("POST", "/v1/peers/down/test", &[])?;
    assert_eq!(
        (&tried["ok"], steps(&tried)),
        (&json!(false), vec![("resolve", true), ("connect", false)]),
        "{tried}"
    );
    let tried = appliance.ask("POST", "/v1/peers/strict/test", &[])?;
    assert_eq!(steps(&tried).last(), Some(&("bind", false)), "{tried}");
    let detail = tried["steps"][2]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("RINVPASWD") || detail.contains("password"), "{tried}");

    // The password is not shown.
    assert!(!tried.to_string().contains(PASSWORD), "{tried}");
    assert_eq!(appliance.request("POST", "/v1/peers/nobody/test", &[])?.0, 404);
    assert_eq!(appliance.request("POST", "/v1/peers/acme/test", &[])?.0, 404);
    Ok(())
}

/// A collector of traces: returns the received requests.
fn collector() -> Result<(SocketAddr, std::sync::mpsc::Receiver<(String, Value)>)> {
    use std::io::{BufRead as _, Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = std::io::BufReader::new(stream);
            let (mut first, mut length) = (String::new(), 0);
            if reader.read_line(&mut first).is_err() {
                continue;
            }
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let _ = reader
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
            let _ = sender.send((first, serde_json::from_slice(&body).unwrap_or_default()));
        }
    });
    Ok((address, receiver))
}

#[test]
fn traces_are_exported_without_numbers_and_texts() -> Result<()> {
    let fixture = Fixture::new()?;
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?;
    let (address, traces) = collector()?;
    let mut config = config(&fixture, sink.address())?;
    config.tables(&format!("[telemetry]\notlp = \"http://{address}\"\none-in = 1\n"));
    let appliance = config.start()?;
    let message =
        json!({ "account": "acme", "from": "10655", "to": "8610000000003", "text": "secret words" });
    let (_, sent) = ask(&appliance, "POST", "/v1/messages", &message)?;
    let id: u64 = sent["id"].as_str().context("no id")?.parse()?;
    let (first, reply) = traces.recv_timeout(TIMEOUT)?;
    assert!(first.starts_with("POST /v1/traces "), "{first}");
    let resource = &reply["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "switchyard", "{reply:#}");
    let spans = resource["scopeSpans"][0]["spans"].as_array().context("no spans")?;
    let names: Vec<_> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["message", "commit", "attempt"], "{reply:#}");
    for span in spans {
        assert!(
            span["traceId"].as_str().is_some_and(|trace| trace.ends_with(&format!("{id:016x}"))),
            "{reply:#}"
        );
        let nanos = |key: &str| -> Result<u64> { Ok(span[key].as_str().context("no time")?.parse()?) };
        assert!(nanos("startTimeUnixNano")? <= nanos("endTimeUnixNano")?, "{reply:#}");
    }
    assert_eq!(spans[2]["parentSpanId"], spans[0]["spanId"]);
    let reply = reply.to_string();
    assert!(!reply.contains("secret words") && !reply.contains("8610000000003"), "{reply}");
    Ok(())
}
