//! Pace buckets and send windows that decisions name.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, bind, noon_zone, until};
use serde_json::{Value, json};
use std::sync::Arc;

const PEER: &str = "dlrs = false\nwindow = 50\nuncertain = \"send-again\"";

fn send(appliance: &TestDaemon, tally: &Arc<Tally>, account: &str, count: u64) -> Result<()> {
    let mut options = SourceOptions::new(appliance.smpp(), account, PASSWORD);
    (options.connections, options.window, options.count) = (1, 50, Some(count));
    let before = tally.accepted_count();
    Source::start(&options, tally)?.join()?;
    ensure!(tally.accepted_count() == before + count, "not all were accepted");
    Ok(())
}

fn queue(appliance: &TestDaemon) -> Result<Value> {
    let queues = appliance.get("/v1/queues")?;
    let found = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == "upstream");
    found.cloned().with_context(|| format!("upstream is not in {queues}"))
}

/// The traces of the messages of an account that wait.
fn waiting(appliance: &TestDaemon, account: &str) -> Result<Vec<Value>> {
    let page = appliance.get(&format!("/v1/messages?account={account}&state=paced&limit=100"))?;
    let messages = page["messages"].as_array().into_iter().flatten();
    let ids = messages.map(|message| message["id"].as_str().context("no id"));
    ids.map(|id| appliance.get(&format!("/v1/messages/{}", id?))).collect()
}

fn listed(fixture: &Fixture, appliance: &TestDaemon) -> Result<String> {
    let output = fixture.command(appliance).args(["queue", "pace-buckets"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_bucket_of_a_router_survives_a_kill_and_its_window_holds_messages() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("shop", "").peer("upstream", sink.address(), PEER);
    let zone = noon_zone()?;
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance)?["links"] == 1))?;
    let examiner = fixture.component("test_examiner")?;
    let policy = format!("bucket c1 5 {zone}\nforward upstream");
    bind(&appliance, "router", "examiner", &examiner, &policy, &json!({}))?;
    send(&appliance, &tally, "acme", 3)?;
    send(&appliance, &tally, "shop", 3)?;
    until("the sixth waits", || Ok(queue(&appliance)?["paced"] == 1))?;
    until("five pass", || Ok(tally.arrived_count() == 5))?;
    let traces = waiting(&appliance, "shop")?;
    let [trace] = &traces[..] else { anyhow::bail!("{traces:?}") };
    let why = trace["waiting_for"].as_str().unwrap_or_default();
    assert!(why.starts_with("first in the queue of upstream, but waits for pace bucket c1, until "), "{why}");
    assert!(trace["routing"].to_string().contains("pace bucket c1"), "{trace}");
    let text = listed(&fixture, &appliance)?;
    let row: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..5], ["c1", "5", "messages", "0", "1"], "{text}");
    assert!(text.contains("a plugin"), "{text}");
    // A message that arrived but is not recorded as arrived would be sent again after the kill.
    until("the others are on disk", || {
        let page = appliance.get("/v1/messages?limit=100")?;
        let all = page["messages"].as_array().into_iter().flatten();
        Ok(all.filter(|message| message["finished"] == true).count() == 5)
    })?;

    let appliance = appliance.kill()?.start()?;
    until("it waits again", || Ok(queue(&appliance)?["paced"] == 1))?;
    send(&appliance, &tally, "acme", 1)?;
    until("two wait", || Ok(queue(&appliance)?["paced"] == 2))?;
    assert_eq!(tally.arrived_count(), 5, "a kill grants nothing");

    // A larger amount also applies to waiting messages; the window is closed at noon.
    let policy = format!("bucket c1 7 {zone}\nwindow night {zone} 1320 360\nforward upstream");
    bind(&appliance, "router", "examiner", &examiner, &policy, &json!({}))?;
    send(&appliance, &tally, "shop", 2)?;
    until("the first two pass", || Ok(tally.arrived_count() == 7))?;
    until("those in the window wait", || Ok(queue(&appliance)?["paced"] == 2))?;
    for trace in waiting(&appliance, "shop")? {
        let why = trace["waiting_for"].as_str().unwrap_or_default();
        assert!(why.contains("waits for send window night, until "), "{why}");
    }
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates), (2, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_screen_names_buckets_of_the_configuration_and_an_unknown_one_is_a_fault() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", sink.address(), PEER);
    config.tables(&format!("[[pace-bucket]]\nname = \"brand\"\namount = 2\nzone = \"{}\"\n", noon_zone()?));
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance)?["links"] == 1))?;
    let router = fixture.component("test_examiner")?;
    bind(&appliance, "router", "examiner", &router, "forward upstream", &json!({}))?;
    let screen = fixture.component("test_moody_screen")?;
    // The definition of the plugin does not count.
    bind(&appliance, "screen", "moody", &screen, "ok\nbucket brand 100 UTC", &json!({}))?;
    send(&appliance, &tally, "acme", 3)?;
    until("the third waits", || Ok(queue(&appliance)?["paced"] == 1))?;
    let traces = waiting(&appliance, "acme")?;
    assert!(traces[0]["screening"].to_string().contains("pace bucket brand"), "{traces:?}");

    let on_fault = json!({ "on-fault": "reject" });
    bind(&appliance, "screen", "moody", &screen, "ok\nbucket brandd", &on_fault)?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.window, options.count) = (1, 1, Some(1));
    let before = tally.accepted_count();
    Source::start(&options, &tally)?.join()?;
    assert_eq!(tally.accepted_count(), before, "it is refused");
    let hook = appliance.get("/v1/hooks/screen")?.to_string();
    let expected = "pace bucket brandd, which the decision does not define";
    assert!(hook.contains(expected), "{hook}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
