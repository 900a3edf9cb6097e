//! The traffic of the last minute by account and peer, and the history of the counters across a restart.

use anyhow::{Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::PASSWORD;
use behaviour_tests::{Fixture, TIMEOUT};
use serde_json::Value;
use std::sync::Arc;

/// Messages from the account.
const MESSAGES: u64 = 20;

fn sum(history: &Value, field: &str) -> u64 {
    let samples = history["samples"].as_array().into_iter().flatten();
    samples.filter_map(|sample| sample[field].as_u64()).sum()
}

#[test]
fn traffic_is_counted_by_account_and_peer_and_its_history_survives_a_restart() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("quiet", "").peer("upstream", sink.address(), "");
    let appliance = config.start()?;
    appliance.wait_until(TIMEOUT, "/v1/links", |links| {
        links.as_array().into_iter().flatten().any(|link| link["phase"] == "bound")
    })?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "491", true)?;
    for number in 0..MESSAGES {
        esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    }
    esme.wait_for_delivered(MESSAGES as usize, TIMEOUT)?;

    let mt = |traffic: &Value| {
        let flows = traffic["flows"].as_array().into_iter().flatten();
        let mut flows = flows.filter(|flow| flow["from"] == "acme" && flow["to"] == "upstream");
        flows.next().cloned().unwrap_or_default()
    };
    let traffic =
        appliance.wait_until(TIMEOUT, "/v1/traffic", |traffic| mt(traffic)["delivered"] == MESSAGES)?;
    let flow = mt(&traffic);
    ensure!(flow["direction"] == "mt" && flow["accepted"] == MESSAGES && flow["refused"] == 0, "{traffic:#}");
    let submitters = traffic["submitters"].as_array().cloned().unwrap_or_default();
    ensure!(submitters.len() == 1 && submitters[0]["name"] == "acme", "{traffic:#}");
    ensure!(submitters[0]["accepted"] == MESSAGES, "{traffic:#}");
    let hooks = |traffic: &Value| {
        let hooks = traffic["hooks"].as_array().into_iter().flatten();
        hooks.filter(|hook| hook["hook"] == "router").count() == 1
    };
    appliance.wait_until(TIMEOUT, "/v1/traffic", hooks)?;
    let map = appliance.get("/v1/traffic/map?nodes=5&flows=5")?;
    ensure!(map["accepted"] == MESSAGES && map["submitted"] == MESSAGES && map["flow_count"] == 1, "{map:#}");
    ensure!(map["accounts"][0]["name"] == "acme" && map["peers"][0]["name"] == "upstream", "{map:#}");
    ensure!(map["lines"][0]["accepted"] == MESSAGES && map["lines"][0]["severity"].is_null(), "{map:#}");
    // Two samples are thirty seconds apart.
    let calls = appliance.get("/v1/hooks/router/calls")?;
    ensure!(calls["hook"] == "router" && calls["capacity"] == 120, "{calls:#}");
    let queues = appliance.get("/v1/queues")?;
    let is_account = |name: &str| {
        let mut queues = queues.as_array().into_iter().flatten();
        queues.any(|queue| queue["peer"] == name && queue["is_account"] == true)
    };
    ensure!(is_account("acme") && !is_account("upstream"), "{queues:#}");

    let path = "/v1/metrics/history?range=hour";
    let before = appliance.wait_until(TIMEOUT, path, |history| sum(history, "delivered") == MESSAGES)?;
    let starts = |history: &Value| {
        let events = history["events"].as_array().into_iter().flatten();
        events.filter(|event| event["kind"] == "start").count()
    };
    ensure!(starts(&before) == 1, "{before:#}");
    // A sample is in the file when it is shown.
    let appliance = appliance.kill()?.start()?;
    let after = appliance.wait_until(TIMEOUT, path, |history| starts(history) == 2)?;
    ensure!(sum(&after, "accepted") == MESSAGES && sum(&after, "delivered") == MESSAGES, "{after:#}");
    ensure!(mt(&appliance.get("/v1/traffic")?).is_null(), "traffic of the earlier process is shown");
    Ok(())
}
