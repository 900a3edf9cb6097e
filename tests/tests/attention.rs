//! What needs attention: the API's list, which the command line and the console show.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, free_port};
use behaviour_tests::{Stage, Visitor, until};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// An appliance whose only peer does not listen.
fn with_a_dead_peer(stage: &Stage) -> Result<Appliance> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "").peer("upstream", address, "receipts = false");
    blueprint.start()
}

fn codes(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["code"].as_str()).collect()
}

/// `switchyard status --json`, its list of findings.
fn status(stage: &Stage, appliance: &Appliance) -> Result<Value> {
    let output = stage.command(appliance).args(["status", "--json"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&text).with_context(|| format!("{text}"))?;
    Ok(document["attention"].clone())
}

#[test]
fn the_command_line_and_the_console_show_the_list_of_the_api() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = with_a_dead_peer(&stage)?;
    until("the peer is down", || Ok(codes(&appliance.get("/v1/attention")?) == ["peer-down"]))?;
    let down = appliance.get("/v1/attention")?[0].clone();
    assert_eq!(down["subject"], json!({ "kind": "peer", "name": "upstream" }));
    assert_eq!(down["severity"], "error");
    ensure!(down["since"].is_u64() && down["remedy"].is_string(), "{down}");

    // What waits is young, until the limit is another.
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    assert_eq!(codes(&appliance.get("/v1/attention")?), ["peer-down"]);
    let wish = json!({ "attention": { "queue-age": "1ms" } }).to_string();
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let (changed, text) = appliance.send("PATCH", "/v1/configuration", wish.as_bytes(), &headers)?;
    ensure!(changed == 200, "{text}");
    until("the queue is old", || Ok(codes(&appliance.get("/v1/attention")?) == ["peer-down", "queue-old"]))?;
    appliance.ask("POST", "/v1/drain", b"{}")?;
    let list = appliance.get("/v1/attention")?;
    assert_eq!(codes(&list), ["peer-down", "draining", "queue-old"]);
    assert_eq!(list[2]["text"], "1 message waits for upstream: no link is up");

    assert_eq!(codes(&status(&stage, &appliance)?), codes(&list));
    let house = Visitor::house(&appliance)?;
    let admin = Visitor::nobody(&appliance).logged_in(&json!({ "token": appliance.token()? }))?;
    let page = admin.ask("GET", "/", None)?;
    for text in list.as_array().into_iter().flatten().filter_map(|one| one["text"].as_str()) {
        let beginning = text.split("cannot").next().unwrap_or_default();
        ensure!(page.text.contains(beginning), "{beginning:?} is not on the page: {}", page.text);
    }
    ensure!(page.text.matches("<li class=\"").count() >= 3, "{}", page.text);

    // Viewers see it, accounts do not.
    house.make_user("vera", "only looking, thank you", &json!({ "role": "viewer" }))?;
    house.make_user("desk", "only our own messages", &json!({ "role": "account", "account": "acme" }))?;
    for (user, password, status) in
        [("vera", "only looking, thank you", 200), ("desk", "only our own messages", 403)]
    {
        let visitor =
            Visitor::nobody(&appliance).logged_in(&json!({ "user": user, "password": password }))?;
        assert_eq!(visitor.ask("GET", "/v1/attention", None)?.status, status, "{user}");
    }
    Ok(())
}
