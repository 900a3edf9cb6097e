//! Findings that need attention: command line and console show the API's list.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{AdminClient, Fixture, until};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A daemon whose only peer does not listen.
fn start_with_dead_peer(fixture: &Fixture) -> Result<TestDaemon> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "").peer("upstream", address, "dlrs = false");
    config.start()
}

fn codes(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["code"].as_str()).collect()
}

/// `switchyard status --json`: its findings.
fn status(fixture: &Fixture, appliance: &TestDaemon) -> Result<Value> {
    let output = fixture.command(appliance).args(["status", "--json"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&text).with_context(|| format!("{text}"))?;
    Ok(document["attention"].clone())
}

#[test]
fn command_line_and_console_show_the_findings_of_the_api() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = start_with_dead_peer(&fixture)?;
    until("the peer is down", || Ok(codes(&appliance.get("/v1/attention")?) == ["peer-down"]))?;
    let down = appliance.get("/v1/attention")?[0].clone();
    assert_eq!(down["subject"], json!({ "kind": "peer", "name": "upstream" }));
    assert_eq!(down["severity"], "error");
    ensure!(down["since"].is_u64() && down["remedy"].is_string(), "{down}");

    // The messages are too young, until the limit is changed.
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    assert_eq!(codes(&appliance.get("/v1/attention")?), ["peer-down"]);
    let body = json!({ "attention": { "queue-age": "1ms" } }).to_string();
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let (changed, text) = appliance.send("PATCH", "/v1/configuration", body.as_bytes(), &headers)?;
    ensure!(changed == 200, "{text}");
    until("the queue is old", || Ok(codes(&appliance.get("/v1/attention")?) == ["peer-down", "queue-old"]))?;
    appliance.ask("POST", "/v1/drain", b"{}")?;
    let list = appliance.get("/v1/attention")?;
    assert_eq!(codes(&list), ["peer-down", "draining", "queue-old"]);
    assert_eq!(list[2]["text"], "1 message waits for upstream: no link is up");

    assert_eq!(codes(&status(&fixture, &appliance)?), codes(&list));
    let root = AdminClient::root(&appliance)?;
    let admin = AdminClient::anonymous(&appliance).with_session(&json!({ "token": appliance.token()? }))?;
    let page = admin.ask("GET", "/", None)?;
    for text in list.as_array().into_iter().flatten().filter_map(|one| one["text"].as_str()) {
        let beginning = text.split("cannot").next().unwrap_or_default();
        ensure!(page.text.contains(beginning), "{beginning:?} is not on the page: {}", page.text);
    }
    ensure!(page.text.matches("<li class=\"").count() >= 3, "{}", page.text);

    // Viewers see it, accounts do not.
    root.make_user("vera", "only looking, thank you", &json!({ "role": "viewer" }))?;
    root.make_user("support", "only our own messages", &json!({ "role": "account", "account": "acme" }))?;
    for (user, password, status) in
        [("vera", "only looking, thank you", 200), ("support", "only our own messages", 403)]
    {
        let caller = AdminClient::anonymous(&appliance)
            .with_session(&json!({ "user": user, "password": password }))?;
        assert_eq!(caller.ask("GET", "/v1/attention", None)?.status, status, "{user}");
    }
    Ok(())
}
