//! Refused submissions are counted by account and reason, and the latest of them are listed.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig};
use behaviour_tests::{AdminClient, Fixture, until};
use serde_json::json;
use std::sync::Arc;

/// Basic credentials of `shop`: its name and [`PASSWORD`].
const SHOP: &str = "Basic c2hvcDpzZWNyZXQ=";

#[test]
fn refusals_of_all_protocols_are_counted_and_listed() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config
        .native("upstream")
        .account("slow", "rate = 0.001\nburst = 1")
        .account("strict", "source = { allow = [\"10999\"] }")
        .account("acme", "")
        .business_account("shop", "source = { default = \"10656\" }", "")
        .peer("upstream", sink.address(), "dlrs = false");
    let appliance = config.start()?;
    until("the link is up", || Ok(appliance.get("/v1/links")?[0]["phase"] == "bound"))?;

    // Too fast, an address that the account may not use, and a recipient that has opted out.
    let mut slow = Probe::bind(appliance.smpp(), "slow", PASSWORD, "861", false)?;
    ensure!(slow.submit(1)?.is_ok(), "the first is within the rate");
    assert_eq!(slow.submit(2)?, Err(0x58));
    assert_eq!(slow.submit(3)?, Err(0x58));
    let mut strict = Probe::bind(appliance.smpp(), "strict", PASSWORD, "861", false)?;
    assert_eq!(strict.submit(4)?, Err(0x0A));
    let stop = json!({ "sender": "10656", "subscriber": "8613012345678", "stop": true });
    appliance.ask("POST", "/v1/opt-outs", stop.to_string().as_bytes())?;
    let shop = |body: &str| -> Result<u16> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("http://{}/v1/messages", appliance.config().business());
        let answer = agent
            .post(&url)
            .header("authorization", SHOP)
            .header("content-type", "application/json")
            .send(body)?;
        Ok(answer.status().as_u16())
    };
    assert_eq!(shop(r#"{ "to": "8613012345678", "text": "hi" }"#)?, 422);
    assert_eq!(shop(r#"{ "to": "not a number", "text": "hi" }"#)?, 422);
    appliance.ask("POST", "/v1/drain", b"{}")?;
    let mut acme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    assert_eq!(acme.submit(5)?, Err(0x14));

    let all = appliance.get("/v1/refusals")?;
    let counts: Vec<(&str, &str, &str, u64)> = all["counts"]
        .as_array()
        .context("no counts")?
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            (text("account"), text("protocol"), text("code"), one["count"].as_u64().unwrap_or(0))
        })
        .collect();
    for wanted in [
        ("slow", "smpp", "throttled", 2),
        ("strict", "smpp", "invalid-source", 1),
        ("shop", "http", "opted-out", 1),
        ("shop", "http", "invalid", 1),
        ("acme", "smpp", "queue-full", 1),
    ] {
        ensure!(counts.contains(&wanted), "{wanted:?} is not in {counts:?}");
    }
    assert_eq!(all["refusals"].as_array().map(Vec::len), Some(6), "{all:#}");

    // The record identifies the submission. The root token may read texts, and sees unmasked numbers; a viewer sees masked ones.
    let found = appliance.get("/v1/refusals?account=shop&code=opted-out")?;
    assert_eq!(found["counts"].as_array().map(Vec::len), Some(1));
    let one = &found["refusals"][0];
    assert_eq!((&one["source"], &one["account"]), (&json!("10656"), &json!("shop")));
    assert_eq!(one["destination"], "8613012345678");
    let viewer = AdminClient::root(&appliance)?.make_token("viewer", &json!({ "role": "viewer" }))?;
    let viewer = AdminClient::anonymous(&appliance).with_token(&viewer);
    let masked = viewer.ask("GET", "/v1/refusals?account=shop&code=opted-out", None)?.json()?;
    assert_eq!(masked["refusals"][0]["destination"], "8613*******78");
    ensure!(one["reason"].as_str().is_some_and(|reason| reason.contains("opted out")), "{one}");
    let invalid = appliance.get("/v1/refusals?account=shop&code=invalid")?;
    ensure!(!invalid.to_string().contains("not a number"), "a record quotes the submission: {invalid}");
    let later = one["at"].as_u64().context("no time")? + 3_600_000;
    assert_eq!(appliance.get(&format!("/v1/refusals?since={later}"))?["refusals"], json!([]));
    assert_eq!(appliance.request("GET", "/v1/refusals?account=nobody", &[])?.0, 404);
    ensure!(appliance.metric("switchyard_submissions_refused_total")? >= 6.0);

    let output =
        fixture.command(&appliance).args(["refusals", "--account", "slow", "--since", "1h"]).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && printed.matches("throttled").count() == 3, "{printed}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
