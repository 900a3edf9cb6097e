//! Joint limits of a tenant's branch: messages per day, and payments by the tenant's ledger account.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, Fixture, bind, noon_zone, shipped_policy, until};
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

/// Changes the configuration.
fn patch(root: &AdminClient, change: &Value) -> Result<()> {
    let document = root.ask("GET", "/v1/configuration", None)?.json()?;
    let version = format!("\"{}\"", document["version"]);
    let changed = root.with_header("if-match", &version).ask("PATCH", "/v1/configuration", Some(change))?;
    ensure!(changed.status == 200, "{} {}", changed.status, changed.text);
    Ok(())
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
    // A tenant sees its own branch, not that of its parent.
    let shop = AdminClient::anonymous(&appliance).with_token(&token);
    let shown = shop.ask("GET", "/v1/tenants", None)?;
    ensure!(shown.status == 200 && !shown.text.contains("north"), "{}", shown.text);

    // A larger amount takes effect at once; messages that are already accepted count.
    patch(&root, &json!({ "tenant": { "north": { "messages-per-day": 6 } } }))?;
    assert_eq!((call(&appliance)? / 100, call(&appliance)?), (2, 429));
    Ok(())
}

/// Price of a message by the shipped price list, in millionths.
const PRICE: i64 = 50_000;
/// The answer to a submission that cannot be paid: ESME_RSUBMITFAIL.
const NOT_PAID: u32 = 0x45;

/// A balance operation that succeeds. `key`: its idempotency key.
fn operate(appliance: &TestDaemon, account: &str, key: &str, mut operation: Value) -> Result<()> {
    operation["reason"] = "a test".into();
    let (status, answer) = appliance.ledger(account, key, &operation)?;
    ensure!(status == 200, "{account} {operation}: {status} {answer}");
    Ok(())
}

/// The reserved and the captured amount of a ledger account. The total amount of money must be conserved.
fn charged(appliance: &TestDaemon, account: &str) -> Result<(i64, i64)> {
    let shown = appliance.get(&format!("/v1/ledger/{account}"))?;
    let amount = |name: &str| shown[name].as_i64().with_context(|| format!("no {name} in {shown}"));
    let (reserved, captured) = (amount("reserved")?, amount("captured")?);
    ensure!(amount("balance")? + reserved + captured == amount("funded")?, "not conserved: {shown}");
    Ok((reserved, captured))
}

#[test]
fn a_tenant_is_charged_with_its_branch_and_refuses_what_it_cannot_pay() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config
        .peer("upstream", sink.address(), "dlrs = false\nuncertain = \"send-again\"")
        .account("one", "tenant = \"shop\"")
        .account("two", "tenant = \"north\"")
        .account("three", "")
        .tables(
            "[[tenant]]\nname = \"north\"\ncharged = true\n\
             [[tenant]]\nname = \"shop\"\nparent = \"north\"\n",
        );
    let appliance = config.start()?;
    bind(
        &appliance,
        "biller",
        "prepaid",
        &fixture.component("prepaid")?,
        &shipped_policy("prices")?,
        &json!({}),
    )?;
    for account in ["one", "two", "three"] {
        operate(&appliance, account, account, json!({ "credit": 100 * PRICE }))?;
    }
    let mut one = Probe::bind(appliance.smpp(), "one", PASSWORD, "4917", false)?;
    assert_eq!(one.submit(1)?.err(), Some(NOT_PAID), "the tenant has no ledger account");
    assert_eq!(charged(&appliance, "one")?, (0, 0), "all or nothing");
    operate(&appliance, "north", "north", json!({ "credit": 3 * PRICE }))?;
    let mut two = Probe::bind(appliance.smpp(), "two", PASSWORD, "4917", false)?;
    let mut three = Probe::bind(appliance.smpp(), "three", PASSWORD, "4917", false)?;
    ensure!(one.submit(2)?.is_ok() && two.submit(3)?.is_ok() && one.submit(4)?.is_ok());
    assert_eq!(two.submit(5)?.err(), Some(NOT_PAID), "its own account could pay, the tenant cannot");
    ensure!(three.submit(6)?.is_ok(), "an account without a tenant");
    let sums = |appliance: &TestDaemon| -> Result<[i64; 4]> {
        let sum = |account| charged(appliance, account).map(|(reserved, captured)| reserved + captured);
        Ok([sum("north")?, sum("one")?, sum("two")?, sum("three")?])
    };
    assert_eq!(sums(&appliance)?, [3 * PRICE, 2 * PRICE, PRICE, PRICE]);

    let appliance = appliance.kill()?.start()?;
    assert_eq!(sums(&appliance)?, [3 * PRICE, 2 * PRICE, PRICE, PRICE]);
    until("all are captured", || Ok(charged(&appliance, "north")?.0 + charged(&appliance, "three")?.0 == 0))?;
    assert_eq!(charged(&appliance, "north")?, (0, 3 * PRICE));
    let root = AdminClient::root(&appliance)?;
    assert_eq!(tenant(&root, "north")?["charged"], true);

    operate(&appliance, "north", "more", json!({ "fund": 10 * PRICE }))?;
    let mut one = Probe::bind(appliance.smpp(), "one", PASSWORD, "4917", false)?;
    ensure!(one.submit(7)?.is_ok());
    patch(&root, &json!({ "tenant": { "shop": { "max-price": "0.04" } } }))?;
    assert_eq!(one.submit(8)?.err(), Some(NOT_PAID), "too expensive for the branch");
    let mut two = Probe::bind(appliance.smpp(), "two", PASSWORD, "4917", false)?;
    ensure!(two.submit(9)?.is_ok(), "above the tenant with the highest price");
    let refusals = root.ask("GET", "/v1/refusals", None)?.text;
    ensure!(refusals.contains("price-too-high") && refusals.contains("max-price"), "{refusals}");
    patch(&root, &json!({ "tenant": { "shop": { "max-price": "0.05" } } }))?;
    ensure!(one.submit(10)?.is_ok(), "the price itself is allowed");
    until("all are captured", || Ok(charged(&appliance, "north")?.0 == 0))?;
    assert_eq!(sums(&appliance)?, [6 * PRICE, 4 * PRICE, 2 * PRICE, PRICE]);
    Ok(())
}
