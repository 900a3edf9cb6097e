//! What the branch of a tenant may do together: messages a day.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, Fixture, noon_zone};
use serde_json::{Value, json};
use std::sync::Arc;

/// Basic credentials of the account `one`.
const ONE: &str = "Basic b25lOnNlY3JldA==";
/// ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;

/// The status of a submission over HTTP by the account `one`.
fn call(appliance: &TestDaemon) -> Result<u16> {
    let url = format!("http://{}/v1/messages", appliance.config().business());
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = agent.post(url).header("authorization", ONE).header("content-type", "application/json");
    let reply = request.send(json!({ "to": "8613012345678", "text": "hello" }).to_string())?;
    Ok(reply.status().as_u16())
}

/// A tenant as a caller sees it.
fn tenant(caller: &AdminClient, name: &str) -> Result<Value> {
    let shown = caller.ask("GET", "/v1/tenants", None)?.json()?;
    let found = shown.as_array().into_iter().flatten().find(|one| one["name"] == name);
    found.cloned().with_context(|| format!("{name} is not in {shown}"))
}

fn accepted(caller: &AdminClient, name: &str) -> Result<Value> {
    Ok(tenant(caller, name)?["messages_per_day"]["accepted"].clone())
}

#[test]
fn the_messages_of_a_day_of_a_branch_are_counted_through_a_kill() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let zone = noon_zone()?;
    let mut config = fixture.config()?;
    config
        .peer("upstream", sink.address(), "dlrs = false")
        .business_account("one", "tenant = \"shop\"\nsource = { default = \"10655\" }", "")
        .account("two", &format!("tenant = \"north\"\nmessages-per-day = 3\nzone = \"{zone}\""))
        .account("three", "tenant = \"south\"")
        .tables(&format!(
            "[[tenant]]\nname = \"north\"\nmessages-per-day = 5\nzone = \"{zone}\"\n\
             [[tenant]]\nname = \"shop\"\nparent = \"north\"\nrate = 1000.0\n\
             [[tenant]]\nname = \"south\"\n"
        ));
    let appliance = config.start()?;
    let root = AdminClient::root(&appliance)?;
    let mut two = Probe::bind(appliance.smpp(), "two", PASSWORD, "4917", false)?;
    for number in 1..=3 {
        ensure!(two.submit(number)?.is_ok(), "{number}");
    }
    assert_eq!(two.submit(4)?.err(), Some(THROTTLED), "the account's own messages are used up");
    assert_eq!(call(&appliance)? / 100, 2);
    assert_eq!(accepted(&root, "north")?, 4);
    let accounts = root.ask("GET", "/v1/accounts", None)?.json()?;
    assert_eq!(accounts[2]["messages_per_day"]["accepted"], 3, "{accounts}");
    assert_eq!(accounts[0]["messages_per_day"], Value::Null, "{accounts}");
    let token = root.make_token("ci@shop", &json!({ "role": "viewer", "tenant": "shop" }))?;

    let appliance = appliance.kill()?.start()?;
    let root = AdminClient::root(&appliance)?;
    assert_eq!(accepted(&root, "north")?, 4, "what was accepted counts after the kill");
    assert_eq!(call(&appliance)? / 100, 2, "the fifth of the branch");
    assert_eq!(call(&appliance)?, 429, "the sixth of the branch");
    let mut two = Probe::bind(appliance.smpp(), "two", PASSWORD, "4917", false)?;
    assert_eq!(two.submit(5)?.err(), Some(THROTTLED));
    let mut three = Probe::bind(appliance.smpp(), "three", PASSWORD, "4917", false)?;
    ensure!(three.submit(6)?.is_ok(), "an account of another branch");
    let refusals = root.ask("GET", "/v1/refusals", None)?.text;
    ensure!(refusals.contains("quota-exceeded"), "{refusals}");

    let north = tenant(&root, "north")?;
    let quota = &north["messages_per_day"];
    assert_eq!((&quota["limit"], &quota["accepted"]), (&json!(5), &json!(5)), "{north}");
    assert_eq!(tenant(&root, "shop")?["messages_per_day"], Value::Null);
    assert_eq!(tenant(&root, "shop")?["rate"], 1000.0);
    // A tenant sees its own branch, not what its parent has.
    let shop = AdminClient::anonymous(&appliance).with_token(&token)?;
    let shown = shop.ask("GET", "/v1/tenants", None)?;
    ensure!(shown.status == 200 && !shown.text.contains("north"), "{}", shown.text);

    // A larger amount takes effect at once, and what was accepted counts.
    let document = appliance.get("/v1/configuration")?;
    let version = format!("\"{}\"", document["version"]);
    let change = json!({ "tenant": { "north": { "messages-per-day": 6 } } });
    let changed = root.with_header("if-match", &version).ask("PATCH", "/v1/configuration", Some(&change))?;
    ensure!(changed.status == 200, "{} {}", changed.status, changed.text);
    assert_eq!((call(&appliance)? / 100, call(&appliance)?), (2, 429));
    Ok(())
}
