//! Pace buckets and send windows: messages keep their place while they wait, and a kill does not grant tokens twice.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, noon_zone, until};
use serde_json::{Value, json};
use std::sync::Arc;

const PEER: &str = "dlrs = false\nwindow = 50\nuncertain = \"send-again\"";

fn queue(appliance: &TestDaemon) -> Result<Value> {
    let queues = appliance.get("/v1/queues")?;
    let found = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == "upstream");
    found.cloned().with_context(|| format!("upstream is not in {queues}"))
}

fn send(appliance: &TestDaemon, tally: &Arc<Tally>, account: &str, count: u64) -> Result<()> {
    let mut options = SourceOptions::new(appliance.smpp(), account, PASSWORD);
    (options.connections, options.window, options.count) = (1, 50, Some(count));
    let before = tally.accepted_count();
    Source::start(&options, tally)?.join()?;
    ensure!(tally.accepted_count() == before + count, "not all were accepted");
    Ok(())
}

fn patch(appliance: &TestDaemon, change: &Value) -> Result<()> {
    let version = appliance.get("/v1/configuration")?["version"].as_u64().context("no version")?;
    let tag = format!("\"{version}\"");
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let (status, answer) =
        appliance.send("PATCH", "/v1/configuration", change.to_string().as_bytes(), &headers)?;
    ensure!(status == 200, "{status}: {answer}");
    Ok(())
}

/// The distinct reasons for which the messages of an account wait.
fn reasons(appliance: &TestDaemon, account: &str) -> Result<Vec<String>> {
    let page = appliance.get(&format!("/v1/messages?account={account}&state=paced&limit=100"))?;
    let mut reasons = Vec::new();
    for message in page["messages"].as_array().into_iter().flatten() {
        let id = message["id"].as_str().context("no id")?;
        let trace = appliance.get(&format!("/v1/messages/{id}"))?;
        reasons.push(trace["waiting_for"].as_str().unwrap_or_default().to_owned());
    }
    Ok(reasons)
}

#[test]
fn a_days_bucket_is_shared_and_a_kill_grants_no_second_allowance() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    let zone = noon_zone()?;
    let brand = "pace-buckets = [\"brand\"]";
    config.account("acme", brand).account("shop", brand).account("other", "");
    config.peer("upstream", sink.address(), PEER);
    config.tables(&format!("[[pace-bucket]]\nname = \"brand\"\namount = 5\nzone = \"{zone}\"\n"));
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance)?["links"] == 1))?;
    send(&appliance, &tally, "acme", 4)?;
    send(&appliance, &tally, "shop", 4)?;
    until("three wait", || Ok(queue(&appliance)?["paced"] == 3))?;
    send(&appliance, &tally, "other", 10)?;
    until("the others pass them", || Ok(tally.arrived_count() == 15))?;
    let blocked_by = queue(&appliance)?["blocked_by"].clone();
    let words = blocked_by.as_str().unwrap_or_default();
    assert!(words.starts_with("all queued messages wait for pace bucket brand, until "), "{blocked_by}");
    let why = reasons(&appliance, "shop")?;
    assert_eq!(why.len(), 3, "{why:?}");
    let expected = "first in the queue of upstream, but waits for pace bucket brand, until ";
    assert!(why.iter().all(|why| why.starts_with(expected)), "{why:?}");
    // A message that arrived but is not recorded as arrived would be sent again after the kill.
    until("the others are recorded", || Ok(queue(&appliance)?["in_flight"] == 0))?;
    until("they are on disk", || {
        let page = appliance.get("/v1/messages?limit=100")?;
        let all = page["messages"].as_array().into_iter().flatten();
        Ok(all.filter(|message| message["finished"] == true).count() == 15)
    })?;

    let appliance = appliance.kill()?.start()?;
    until("three wait again", || Ok(queue(&appliance)?["paced"] == 3))?;
    send(&appliance, &tally, "acme", 2)?;
    until("all without a token wait", || Ok(queue(&appliance)?["paced"] == 5))?;
    assert_eq!(tally.arrived_count(), 15);
    patch(&appliance, &json!({ "pace-bucket": { "brand": { "amount": 10 } } }))?;
    until("they go on", || Ok(tally.arrived_count() == 20))?;
    send(&appliance, &tally, "acme", 1)?;
    until("the larger amount is used up", || Ok(queue(&appliance)?["paced"] == 1))?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates), (1, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn messages_wait_for_their_send_window_and_for_a_bucket_that_fills() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    let zone = noon_zone()?;
    config.account("acme", "send-windows = [\"night\"]").account("other", "");
    config.peer("upstream", sink.address(), &format!("{PEER}\npace-buckets = [\"rate\"]"));
    config.tables(&format!(
        "[[send-window]]\nname = \"night\"\nzone = \"{zone}\"\nfrom = \"22:00\"\nto = \"06:00\"\n\
         [[pace-bucket]]\nname = \"rate\"\namount = 50\nper = \"1s\"\n"
    ));
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance)?["links"] == 1))?;
    send(&appliance, &tally, "acme", 3)?;
    send(&appliance, &tally, "other", 30)?;
    until("the bucket fills", || Ok(tally.arrived_count() == 30))?;
    let why = reasons(&appliance, "acme")?;
    assert!(why.len() == 3 && why[0].contains("waits for send window night, until "), "{why:?}");
    patch(&appliance, &json!({ "send-window": { "night": { "from": "00:00", "to": "24:00" } } }))?;
    until("the window is open", || Ok(tally.arrived_count() == 33))?;
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
