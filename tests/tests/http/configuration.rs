//! The configuration over HTTP: a change under traffic affects only the named parts, and is applied completely or not
//! at all.

use anyhow::{Context, Result};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{HASH, PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{AdminClient, Fixture, RawConnection, TIMEOUT, steady_traffic, until};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// An account `acme`, a peer `upstream`, and a route to that peer.
fn config(fixture: &Fixture, sink: &Sink) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "window = 100");
    config.peer("upstream", sink.address(), "links = 2\nwindow = 100\ndlrs = false");
    Ok(config)
}

fn version(appliance: &TestDaemon) -> Result<u64> {
    appliance.get("/v1/configuration")?["version"].as_u64().context("no version")
}

/// Status and answer of a change of this version.
fn change(
    appliance: &TestDaemon,
    method: &str,
    query: &str,
    version: u64,
    body: &Value,
) -> Result<(u16, Value)> {
    let tag = format!("\"{version}\"");
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let path = format!("/v1/configuration{query}");
    let (status, text) = appliance.send(method, &path, body.to_string().as_bytes(), &headers)?;
    Ok((status, serde_json::from_str(&text).with_context(|| format!("{status}: {text:.500}"))?))
}

/// A patch that must be accepted.
pub(crate) fn patch(appliance: &TestDaemon, body: &Value) -> Result<Value> {
    let (status, answer) = change(appliance, "PATCH", "", version(appliance)?, body)?;
    anyhow::ensure!(status == 200, "{status}: {answer:#}");
    Ok(answer)
}

/// The number of links to a peer that are bound.
pub(crate) fn bound(appliance: &TestDaemon, peer: &str) -> Result<usize> {
    let links = appliance.get("/v1/links")?;
    let links = links.as_array().context("no list")?;
    Ok(links.iter().filter(|link| link["peer"] == peer && link["phase"] == "bound").count())
}

fn pointers(answer: &Value) -> Vec<(&str, &str)> {
    let changes = answer["changes"].as_array().into_iter().flatten();
    changes.filter_map(|change| Some((change["what"].as_str()?, change["pointer"].as_str()?))).collect()
}

#[test]
fn changes_of_peers_and_accounts_do_not_affect_other_connections() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    until("both links", || Ok(bound(&appliance, "upstream")? == 2))?;
    let binds = sink.report().binds;
    // It does not reconnect: a lost connection is an error at the end.
    let source = Source::start(&steady_traffic(&appliance, "acme"), &tally)?;
    let flows = |tally: &Tally| {
        let before = tally.accepted_count();
        until("traffic", || Ok(tally.accepted_count() > before + 200))
    };
    flows(&tally)?;

    let other_tally = Arc::new(Tally::new(1000));
    let other = Sink::start(SinkOptions::default(), &other_tally)?;
    let second = json!({
        "address": other.address().to_string(), "system-id": "switchyard", "password": PASSWORD, "dlrs": false,
    });
    let added = patch(&appliance, &json!({ "peer": { "second": second } }))?;
    assert_eq!(pointers(&added), [("added", "/peer/second")]);
    assert_eq!(added["restart"], json!([]));
    until("the new peer", || Ok(bound(&appliance, "second")? == 1))?;
    flows(&tally)?;
    let changed = patch(&appliance, &json!({ "peer": { "second": { "links": 3 } } }))?;
    assert_eq!(pointers(&changed), [("added", "/peer/second/links")]);
    until("its links", || Ok(bound(&appliance, "second")? == 3))?;
    let before = other.report().binds;
    patch(&appliance, &json!({ "peer": { "second": { "rate": 50 } } }))?;
    assert_eq!(other.report().binds, before, "a changed rate causes no reconnect");

    let account = json!({ "password-hash": HASH, "sessions": 1 });
    patch(&appliance, &json!({ "account": { "beta": account } }))?;
    let mut beta = RawConnection::connect(appliance.smpp())?;
    assert_eq!(beta.bind("beta", PASSWORD)?, 0);
    flows(&tally)?;
    let removed = patch(&appliance, &json!({ "account": { "beta": null }, "peer": { "second": null } }))?;
    assert_eq!(pointers(&removed), [("removed", "/account/beta"), ("removed", "/peer/second")]);
    beta.until_closed()?;
    until("the peer's links end", || Ok(bound(&appliance, "second")? == 0))?;
    let mut beta = RawConnection::connect(appliance.smpp())?;
    assert_ne!(beta.bind("beta", PASSWORD)?, 0, "a removed account must not bind");
    flows(&tally)?;

    source.stop();
    let report = source.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    assert_eq!(sink.report().binds, binds, "the links of an unchanged peer were re-established");
    let sums = tally.summary();
    assert_eq!((sums.duplicates, sums.unknown), (0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn messages_wait_for_a_removed_peer_until_it_is_added_again() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let port = behaviour_tests::test_daemon::free_port()?;
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "");
    config.peer("upstream", nowhere, "dlrs = false\nretry = [\"1s\"]");
    let appliance = config.start()?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.window, options.count) = (1, 10, Some(50));
    Source::start(&options, &tally)?.join()?;
    let peer = appliance.get("/v1/configuration")?["document"]["peer"][0].clone();
    // The native router names the peer: the router of the file must go first.
    let (status, refused) =
        change(&appliance, "PATCH", "", version(&appliance)?, &json!({ "peer": { "upstream": null } }))?;
    assert_eq!(
        (status, refused["problems"][0]["pointer"].as_str()),
        (422, Some("/router/static-peer")),
        "{refused:#}"
    );
    patch(&appliance, &json!({ "router": null, "peer": { "upstream": null } }))?;
    let queue = |appliance: &TestDaemon| -> Result<Value> {
        let queues = appliance.get("/v1/queues")?;
        Ok(queues
            .as_array()
            .context("no list")?
            .iter()
            .find(|one| one["peer"] == "upstream")
            .cloned()
            .unwrap_or_default())
    };
    until("it is shown as not configured", || Ok(queue(&appliance)?["configured"] == false))?;
    assert_eq!(tally.arrived_count(), 0);
    let mut back = peer;
    back["address"] = sink.address().to_string().into();
    back["password"] = PASSWORD.into();
    patch(&appliance, &json!({ "peer": { "upstream": back } }))?;
    until("all arrive", || Ok(tally.arrived_count() == 50))?;
    Ok(())
}

#[test]
fn all_errors_are_reported_at_once_and_nothing_changes() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let before = appliance.get("/v1/configuration")?;
    let wrong = json!({
        "peer": { "upstream": { "links": 0, "uncertain": "perhaps" }, "new": {} },
        "account": { "acme": { "windw": 5 } },
        "appliance": { "data": "/elsewhere" },
        "listener": { "smpp": { "tls": { "certificate": "none.pem", "key": "none.key" } } },
    });
    let (status, refused) = change(&appliance, "PATCH", "", 1, &wrong)?;
    assert_eq!(status, 422, "{refused:#}");
    let problems = refused["problems"].as_array().context("no problems")?;
    let at = |pointer: &str| problems.iter().find(|problem| problem["pointer"] == pointer);
    for pointer in [
        "/appliance/data",
        "/peer/0/links",
        "/peer/0/uncertain",
        "/peer/1/address",
        "/account/0/windw",
        "/listener/0/tls/certificate",
        "/listener/0/tls/key",
    ] {
        assert!(at(pointer).is_some(), "{pointer} is not in {refused:#}");
    }
    assert_eq!(at("/peer/0/links").context("links")?["allowed"], "1 to 256");
    let validated = appliance.send(
        "POST",
        "/v1/configuration/validate",
        wrong.to_string().as_bytes(),
        &[("content-type", "application/merge-patch+json")],
    )?;
    let validated: Value = serde_json::from_str(&validated.1)?;
    assert_eq!((validated["valid"].as_bool(), &validated["problems"]), (Some(false), &refused["problems"]));
    assert_eq!(appliance.get("/v1/configuration")?, before);
    // A port that another program uses: detected before anything is changed.
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let two = json!({
        "listener": { "other": { "listen": taken.local_addr()?.to_string() } }, "account": { "acme": { "rate": 5 } },
    });
    let (status, refused) = change(&appliance, "PATCH", "", 1, &two)?;
    assert_eq!(
        (status, refused["problems"][0]["pointer"].as_str()),
        (422, Some("/listener/1/listen")),
        "{refused:#}"
    );
    assert_eq!(appliance.get("/v1/configuration")?, before);
    drop(taken);
    assert_eq!(change(&appliance, "PATCH", "", 1, &two)?.0, 200);
    Ok(())
}

#[test]
fn concurrent_changes_conflict() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let (status, body) = appliance.request("PATCH", "/v1/configuration", b"{}")?;
    assert_eq!(status, 428, "{body}");
    let statuses = std::thread::scope(|scope| {
        let change = |rate: u32| {
            let body = json!({ "account": { "acme": { "rate": rate } } });
            change(&appliance, "PATCH", "", 1, &body).map(|(status, _)| status)
        };
        let threads: Vec<_> = (1..=4).map(|rate| scope.spawn(move || change(rate))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Result<Vec<_>>>()
    })?;
    let mut statuses = statuses;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412]);
    assert_eq!(version(&appliance)?, 2);
    Ok(())
}

#[test]
fn an_unconfirmed_change_is_reverted_also_after_a_kill() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let rate = |appliance: &TestDaemon| -> Result<Value> {
        Ok(appliance.get("/v1/configuration")?["document"]["account"][0]["rate"].clone())
    };
    let wanted = |rate: u32| json!({ "account": { "acme": { "rate": rate } } });
    let (status, answer) = change(&appliance, "PATCH", "?confirm-within=1s&why=try", 1, &wanted(5))?;
    assert_eq!((status, answer["version"].as_u64()), (200, Some(2)), "{answer:#}");
    assert!(answer["reverts-at"].is_u64());
    assert_eq!(change(&appliance, "PATCH", "", 2, &wanted(6))?.0, 409, "one at a time");
    until("it reverts", || Ok(version(&appliance)? == 3))?;
    assert_eq!(rate(&appliance)?, Value::Null);
    let newest = appliance.get("/v1/configuration/versions?limit=1")?;
    assert_eq!(newest["versions"][0]["by"], "switchyard");
    // A confirmed change stays; a withdrawn one is reverted immediately.
    change(&appliance, "PATCH", "?confirm-within=1h", 3, &wanted(7))?;
    appliance.ask("POST", "/v1/configuration/confirm", b"{\"version\":4}")?;
    assert_eq!(appliance.get("/v1/configuration")?["pending"], Value::Null);
    change(&appliance, "PATCH", "?confirm-within=1h", 4, &wanted(8))?;
    appliance.ask("POST", "/v1/configuration/revert", b"{}")?;
    assert_eq!((version(&appliance)?, rate(&appliance)?), (6, json!(7)));
    // A kill before the confirmation.
    change(&appliance, "PATCH", "?confirm-within=1h", 6, &wanted(9))?;
    assert_eq!(rate(&appliance)?, json!(9));
    let appliance = appliance.kill()?.start()?;
    assert_eq!((version(&appliance)?, rate(&appliance)?), (8, json!(7)));
    // A confirmed change survives a kill.
    let appliance = appliance.kill()?.start()?;
    assert_eq!((version(&appliance)?, rate(&appliance)?), (8, json!(7)));
    Ok(())
}

#[test]
fn versions_can_be_compared_and_restored() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let first = appliance.get("/v1/configuration/versions/1")?;
    assert_eq!(first["by"], "file");
    change(&appliance, "PATCH", "?why=more%20links", 1, &json!({ "peer": { "upstream": { "links": 4 } } }))?;
    until("four links", || Ok(bound(&appliance, "upstream")? == 4))?;
    let diff = appliance.get("/v1/configuration/diff?from=1&to=2")?;
    assert_eq!(diff["changes"], json!([{ "pointer": "/peer/upstream/links", "before": 2, "after": 4 }]));
    let (status, back) = change(&appliance, "POST", "/rollback", 2, &json!({ "to": 1, "why": "too many" }))?;
    assert_eq!((status, back["version"].as_u64()), (200, Some(3)), "{back:#}");
    until("two links", || Ok(bound(&appliance, "upstream")? == 2))?;
    let now = appliance.get("/v1/configuration")?;
    assert_eq!(now["document"], first["document"]);
    let listed = appliance.get("/v1/configuration/versions?limit=2")?;
    let whys: Vec<_> =
        listed["versions"].as_array().into_iter().flatten().map(|one| one["why"].clone()).collect();
    assert_eq!(whys, [json!("too many"), json!("more links")]);
    assert_eq!(listed["next"], 2);
    assert_eq!(change(&appliance, "POST", "/rollback", 3, &json!({ "to": 77 }))?.0, 404);
    Ok(())
}

#[test]
fn secrets_are_accepted_and_never_shown() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let secrets = ["pEer-s3cret", "pUsh-s3cret", "gAte-s3cret", "uRl-s3cret"];
    let added = patch(
        &appliance,
        &json!({
            "peer": { "b": { "address": "localhost:1", "system-id": "us", "password": secrets[0] } },
            "business": { "listen": appliance.config().business().to_string() },
            "account": { "c": { "password-hash": HASH, "business": {
                "push": { "url": format!("http://user:{}@localhost:1/x", secrets[3]), "secret": secrets[1] },
            } } },
            "gateway": { "d": { "address": "localhost:1", "node": 1, "login-password": secrets[2] } },
        }),
    )?;
    // Changed once more, so that they occur in a difference as well.
    patch(&appliance, &json!({ "peer": { "b": { "password": "another-s3cret" } } }))?;
    let (_, wrong) = change(
        &appliance,
        "PATCH",
        "",
        3,
        &json!({ "peer": { "b": { "password": "wrong-s3cret", "x": 1 } } }),
    )?;
    let mut shown_texts = vec![added.to_string(), wrong.to_string(), appliance.log(1000)];
    for path in
        ["", "/versions", "/versions/2", "/versions/3", "/diff?from=1&to=2", "/diff?from=2&to=3", "/file"]
    {
        let (status, text) = appliance.request("GET", &format!("/v1/configuration{path}"), &[])?;
        assert_eq!(status, 200, "{path}: {text}");
        shown_texts.push(text);
    }
    for text in &shown_texts {
        assert!(!text.contains("s3cret") && !text.contains("$argon2"), "{text}");
    }
    // The masked value means "unchanged": the peer's link still binds with the original password.
    let shown = appliance.get("/v1/configuration")?["document"].clone();
    assert_eq!(shown["peer"][0]["password"], "(unchanged)");
    let (status, same) = change(&appliance, "PUT", "", 3, &shown)?;
    assert_eq!((status, pointers(&same).len(), same["version"].as_u64()), (200, 0, Some(3)), "{same:#}");
    let (status, text) = appliance.request("GET", "/v1/configuration/schema", &[])?;
    assert_eq!(status, 200);
    let schema: Value = serde_json::from_str(&text)?;
    let peer = &schema["properties"]["peer"]["items"]["properties"];
    assert_eq!((&peer["password"]["writeOnly"], &peer["links"]["maximum"]), (&true.into(), &256.into()));
    Ok(())
}

#[test]
fn changes_that_need_a_restart_are_marked_and_used_at_the_next_start() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let wanted = json!({ "appliance": { "name": "ANOTHER" }, "account": { "acme": { "rate": 7 } } });
    let checked = appliance.send(
        "POST",
        "/v1/configuration/validate",
        wanted.to_string().as_bytes(),
        &[("content-type", "application/merge-patch+json")],
    )?;
    let checked: Value = serde_json::from_str(&checked.1)?;
    assert_eq!((&checked["valid"], &checked["restart"]), (&json!(true), &json!(["/appliance/name"])));
    let answer = patch(&appliance, &wanted)?;
    assert_eq!(answer["restart"], json!(["/appliance/name"]));
    assert_eq!(appliance.get("/v1/configuration")?["restart"], json!(["/appliance/name"]));
    assert_eq!(appliance.get("/v1/status")?["name"], "SWITCHYARD");
    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.get("/v1/status")?["name"], "ANOTHER");
    let now = appliance.get("/v1/configuration")?;
    assert_eq!((&now["restart"], &now["version"]), (&json!([]), &json!(2)));
    Ok(())
}

/// The answer to `AUTH` with the right password on a new connection.
fn redis_login(address: SocketAddr, name: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("AUTH {name} {PASSWORD}\r\n").as_bytes())?;
    let mut answer = [0; 200];
    let count = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}

#[test]
fn limits_and_accounts_of_open_listeners_change_without_a_restart() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, &sink)?;
    let redis = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let business = config.business();
    config.tables(&format!(
        "[redis]\nlisten = [\"{redis}\"]\n[[redis.account]]\nname = \"ann\"\npassword-hash = \"{HASH}\"\n\
         permissions = [\"read\"]\n[business]\nlisten = \"{business}\"\n"
    ));
    let appliance = config.start()?;
    assert!(redis_login(redis, "ann")?.starts_with("+OK"));
    assert!(redis_login(redis, "bob")?.starts_with("-WRONGPASS"));
    let bob = json!({ "password-hash": HASH, "permissions": ["read"] });
    let wanted = json!({
        "redis": { "account": { "ann": null, "bob": bob }, "connections": 500 },
        "business": { "connections": 1 },
        "http": { "audit-retention": "30d", "connections": 100 },
        "log": { "level": "debug" },
        "archive": { "retention": "30d", "batch": 100 },
    });
    let answer = patch(&appliance, &wanted)?;
    assert_eq!(answer["restart"], json!([]), "{answer:#}");
    assert!(redis_login(redis, "ann")?.starts_with("-WRONGPASS"));
    assert!(redis_login(redis, "bob")?.starts_with("+OK"));
    assert_eq!(appliance.get("/v1/log")?["level"], "debug");
    // Of two connections without a login, the second displaces the first.
    let mut first = TcpStream::connect(business)?;
    first.set_read_timeout(Some(TIMEOUT))?;
    let _second = TcpStream::connect(business)?;
    assert_eq!(first.read(&mut [0; 10])?, 0);
    let answer = patch(&appliance, &json!({ "redis": { "listen": ["127.0.0.1:1"] } }))?;
    assert_eq!(answer["restart"], json!(["/redis/listen"]));
    Ok(())
}

#[test]
fn validation_reads_no_files_and_is_in_the_audit_log() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let root = AdminClient::root(&appliance)?;
    let secret = fixture.folder().join("a-secret");
    std::fs::write(&secret, "nobody may see this\n")?;
    let body = json!({ "archive": { "url-file": secret } });
    let place = "/v1/configuration/validate";
    let viewer = AdminClient::anonymous(&appliance)
        .with_token(&root.make_token("viewer", &json!({ "role": "viewer" }))?);
    assert_eq!(viewer.ask("POST", place, Some(&body))?.status, 403);
    let reply = root.ask("POST", place, Some(&body))?;
    let json = reply.json()?;
    let pointers: Vec<_> =
        json["problems"].as_array().into_iter().flatten().filter_map(|one| one["pointer"].as_str()).collect();
    assert!(pointers.contains(&"/archive/url-file"), "{}", reply.text);
    assert!(!reply.text.contains("nobody may"), "{}", reply.text);
    let log = root.ask("GET", "/v1/audit?limit=10&what=/v1/configuration/validate", None)?.json()?;
    let statuses: Vec<_> =
        log["entries"].as_array().into_iter().flatten().map(|entry| entry["status"].clone()).collect();
    assert_eq!(statuses, [json!(200), json!(403)], "{log:#}");
    Ok(())
}

#[test]
fn in_file_mode_the_file_is_read_at_sighup_and_the_api_is_read_only() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, &sink)?;
    config.tables("[configuration]\nmode = \"file\"\n");
    let appliance = config.start()?;
    until("two links", || Ok(bound(&appliance, "upstream")? == 2))?;
    let (status, refused) =
        change(&appliance, "PATCH", "", 1, &json!({ "peer": { "upstream": { "links": 1 } } }))?;
    assert_eq!(status, 409);
    let path = fixture.folder().join("appliance/switchyard.toml");
    assert!(refused["detail"].as_str().is_some_and(|words| words.contains("switchyard.toml")), "{refused:#}");
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(&path, text.replace("links = 2", "links = 5"))?;
    appliance.hang_up()?;
    until("five links", || Ok(bound(&appliance, "upstream")? == 5))?;
    assert_eq!(appliance.get("/v1/configuration")?["by"], "file");
    let good = version(&appliance)?;
    // An invalid file changes nothing, and its error is located.
    std::fs::write(&path, text.replace("links = 2", "links = 5000"))?;
    appliance.hang_up()?;
    appliance.wait_for_line(TIMEOUT, |line| line.contains("links: is 5000, and must be 1 to 256"))?;
    assert_eq!((version(&appliance)?, bound(&appliance, "upstream")?), (good, 5));
    Ok(())
}

#[test]
fn a_changed_listener_keeps_its_connections() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let source = Source::start(&steady_traffic(&appliance, "acme"), &tally)?;
    until("traffic", || Ok(tally.accepted_count() > 200))?;
    patch(&appliance, &json!({ "listener": { "smpp": { "connections": 500 } } }))?;
    let port = behaviour_tests::test_daemon::free_port()?;
    let elsewhere = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    patch(&appliance, &json!({ "listener": { "smpp": { "listen": elsewhere.to_string() } } }))?;
    let mut raw = RawConnection::connect(elsewhere)?;
    assert_eq!(raw.bind("acme", PASSWORD)?, 0);
    until("the old address is free", || Ok(std::net::TcpListener::bind(appliance.smpp()).is_ok()))?;
    let before = tally.accepted_count();
    until("traffic on the old connections", || Ok(tally.accepted_count() > before + 200))?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    Ok(())
}

#[test]
fn two_hundred_changes_under_load_lose_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(4_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    until("both links", || Ok(bound(&appliance, "upstream")? == 2))?;
    let binds = sink.report().binds;
    let source = Source::start(&steady_traffic(&appliance, "acme"), &tally)?;
    let (other_tally, second) = (Arc::new(Tally::new(1000)), "second");
    let other = Sink::start(SinkOptions::default(), &other_tally)?;
    let mut at = version(&appliance)?;
    for turn in 0_u32..200 {
        let peer = json!({ "address": other.address().to_string(), "system-id": "us", "password": PASSWORD, "links": 1 + turn % 3 });
        let wanted = match turn % 5 {
            0 => json!({ "peer": { second: peer } }),
            1 => json!({ "account": { "extra": { "password-hash": HASH, "rate": 1 + turn } } }),
            2 => {
                json!({ "peer": { second: { "links": 2 + turn % 4 } }, "opt-out": [{ "stop": [format!("STOP{turn}")] }] })
            }
            3 => {
                json!({ "account": { "extra": null }, "pool": { "numbers": { "quarantine": format!("{turn}s") } } })
            }
            _ => json!({ "peer": { second: null } }),
        };
        let (status, answer) = change(&appliance, "PATCH", "", at, &wanted)?;
        anyhow::ensure!(status == 200, "turn {turn}: {status} {answer:#}");
        at = answer["version"].as_u64().context("no version")?;
    }
    source.stop();
    let report = source.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    assert_eq!(sink.report().binds, binds, "the links of an unchanged peer were re-established");
    let sums = tally.summary();
    assert_eq!((sums.duplicates, sums.unknown, sums.unanswered), (0, 0, 0), "{sums:?}");
    assert!(at >= 200, "{at}");
    Ok(())
}

#[test]
fn a_changed_initial_file_is_reported_and_ignored() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    patch(&appliance, &json!({ "account": { "acme": { "rate": 7 } } }))?;
    let path = fixture.folder().join("appliance/switchyard.toml");
    let binary = fixture.binary();
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(&path, text.replace("links = 2", "links = 3"))?;
    // Written directly: `TestDaemonConfig` would select file mode.
    let mut process = std::process::Command::new(binary)
        .args(["serve", "--config"])
        .arg(&path)
        .env("NO_COLOR", "1")
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let lines = std::io::BufReader::new(process.stderr.take().context("no standard error")?);
    let mut is_reported = false;
    for line in std::io::BufRead::lines(lines) {
        let line = line?;
        is_reported |= line.contains("switchyard config apply");
        if line.contains(": ready ") {
            break;
        }
    }
    process.kill()?;
    process.wait()?;
    assert!(is_reported, "the changed file was not reported");
    Ok(())
}

#[test]
fn a_failed_first_start_stores_nothing_and_the_corrected_file_is_used() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let config = config(&fixture, &sink)?;
    let path = config.write()?;
    let serve = || -> Result<std::process::Child> {
        Ok(std::process::Command::new(fixture.binary())
            .args(["serve", "--config"])
            .arg(&path)
            .env("NO_COLOR", "1")
            .stderr(std::process::Stdio::piped())
            .spawn()?)
    };
    let taken = std::net::TcpListener::bind(config.smpp())?;
    let failed = serve()?.wait_with_output()?;
    assert!(!failed.status.success());
    drop(taken);
    let text = std::fs::read_to_string(&path)?;
    std::fs::write(&path, text.replace("links = 2", "links = 3"))?;
    let mut process = serve()?;
    let lines = std::io::BufReader::new(process.stderr.take().context("no standard error")?);
    let mut ready = false;
    for line in std::io::BufRead::lines(lines) {
        ready = line?.contains(": ready ");
        if ready {
            break;
        }
    }
    process.kill()?;
    process.wait()?;
    assert!(ready, "the second start fails");
    let check =
        std::process::Command::new(fixture.binary()).args(["check", "--config"]).arg(&path).output()?;
    let printed = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(printed.contains("this file is the same as the active version 1"), "{printed}");
    Ok(())
}
