//! Event sinks: the events at an HTTP server while it fails, while the daemon is killed, and afterwards.

use anyhow::{Context as _, Result, ensure};
use api::{EventSinkView, PumpState};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig};
use behaviour_tests::{ApiReaction, Fixture, POLICY, SmsApi, bind, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The types of events about messages.
const MESSAGE_TYPES: &str = "types = [\"accepted\", \"attempt\", \"dlr\", \"ended\"]\n";
/// After a kill, messages that were not answered are sent again, so that they end.
const PEER: &str = "uncertain = \"send-again\"";

/// All events that the sink has got, in order: repetitions too.
fn events(sink: &SmsApi) -> Vec<Value> {
    let requests = sink.requests();
    requests.iter().flat_map(|request| request.body.as_array().cloned().unwrap_or_default()).collect()
}

/// The ids of the messages that have an event of this type.
fn messages_with(events: &[Value], kind: &str) -> BTreeSet<String> {
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.filter_map(|event| Some(event["data"]["message"].as_str()?.to_owned())).collect()
}

fn config(fixture: &Fixture, peer: &Sink, sink: &SmsApi, keys: &str) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").account("other", "").peer("upstream", peer.address(), PEER).native("upstream");
    config.tables(&format!(
        "[[event-sink]]\nname = \"crm\"\nurl = \"{}\"\ntoken = \"hush\"\n{keys}",
        sink.base_url()
    ));
    Ok(config)
}

fn peer() -> Result<Sink> {
    Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &Arc::new(Tally::new(10_000)))
}

#[test]
fn a_sink_that_fails_and_a_killed_daemon_lose_no_event() -> Result<()> {
    const MESSAGES: u64 = 300;
    let (fixture, peer, sink) = (Fixture::new()?, peer()?, SmsApi::start()?);
    let config = config(&fixture, &peer, &sink, &format!("batch = 7\n{MESSAGE_TYPES}"))?;
    // The server fails in each way, repeatedly.
    let failures =
        [ApiReaction::Status(503), ApiReaction::Cut, ApiReaction::Accept, ApiReaction::Status(401)];
    for _ in 0..8 {
        sink.react(&failures);
    }
    let mut accepted = BTreeSet::new();
    for round in 0..3 {
        let appliance = config.start()?;
        let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
        for number in 0..MESSAGES / 3 {
            let id = esme.submit(round * MESSAGES / 3 + number)?;
            accepted.insert(id.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
        }
        if round == 1 {
            // The sink has got some of the events; the rest is sent after the next start.
            until("some events", || Ok(events(&sink).len() > 20))?;
        }
        appliance.kill()?;
    }
    let appliance = config.start()?;
    until("all messages have ended, and the sink knows", || {
        let events = events(&sink);
        Ok(["switchyard.message.accepted", "switchyard.message.attempt", "switchyard.message.ended"]
            .iter()
            .all(|kind| messages_with(&events, kind).is_superset(&accepted)))
    })?;
    let events = events(&sink);
    // A repetition is the same event, octet for octet.
    let mut by_id: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in &events {
        let id = event["id"].as_str().context("no id")?;
        let first = by_id.entry(id).or_insert(event);
        ensure!(*first == event, "{id}: {first} and {event}");
    }
    ensure!(by_id.len() < events.len(), "no event was repeated, so the test tests little");
    let ended = by_id.values().filter(|event| event["type"] == "switchyard.message.ended").count();
    ensure!(ended == accepted.len(), "{ended} of {}", accepted.len());
    ensure!(events.iter().all(|event| event["specversion"] == "1.0" && event["data"]["account"] == "acme"));
    // Numbers are masked, and there are no texts.
    let destination = events[0]["data"]["destination"].as_str().context("no destination")?;
    ensure!(destination.contains("***"), "{destination}");
    let request = &sink.requests()[0];
    ensure!(request.line == "POST /" && request.authorization == "Bearer hush", "{request:?}");
    // For each message, its acceptance comes first and its end last.
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for event in &events {
        if seen.insert(event["id"].as_str()) {
            let message = event["data"]["message"].as_str().context("no message")?;
            let kind = event["type"].as_str().context("no type")?;
            let before = last.insert(message, kind);
            ensure!(
                before.is_none() == (kind == "switchyard.message.accepted"),
                "{message}: {kind} after {before:?}"
            );
            ensure!(before != Some("switchyard.message.ended"), "{message}: {kind} after its end");
        }
    }
    until("the sink is up to date", || {
        let states: Vec<EventSinkView> = appliance.read("/v1/event-sinks")?;
        Ok(states.len() == 1 && states[0].state == PumpState::Up && states[0].lag_records == 0)
    })?;
    Ok(())
}

#[test]
fn a_sink_gets_the_types_and_accounts_that_it_names() -> Result<()> {
    let (fixture, peer, sink) = (Fixture::new()?, peer()?, SmsApi::start()?);
    let keys =
        "mode = \"structured\"\ntypes = [\"dlr\", \"ended\"]\naccounts = [\"other\"]\nnumbers = \"whole\"\n";
    let config = config(&fixture, &peer, &sink, keys)?;
    let appliance = config.start()?;
    for account in ["acme", "other"] {
        let mut esme = Probe::bind(appliance.smpp(), account, PASSWORD, "861", true)?;
        esme.submit(1)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
    }
    until("two events", || Ok(sink.requests().len() >= 2))?;
    let requests = sink.requests();
    ensure!(requests.len() == 2, "{requests:?}");
    let dlr = &requests[0].body;
    ensure!(dlr["type"] == "switchyard.message.dlr" && dlr["data"]["state"] == "delivered", "{dlr}");
    ensure!(dlr["data"]["peer"] == "upstream" && dlr["data"]["error"] == 0, "{dlr}");
    let event = &requests[1].body;
    ensure!(event["type"] == "switchyard.message.ended" && event["data"]["account"] == "other", "{event}");
    ensure!(event["data"]["peer"] == "upstream" && event["data"]["attempts"] == 1, "{event}");
    ensure!(!event["data"]["destination"].as_str().unwrap_or("*").contains('*'), "{event}");
    Ok(())
}

#[test]
fn exchanges_and_configurations_have_events() -> Result<()> {
    let (fixture, peer, sink) = (Fixture::new()?, peer()?, SmsApi::start()?);
    let config = config(&fixture, &peer, &sink, "types = [\"configuration\", \"exchange\", \"fault\"]\n")?;
    let appliance = config.start()?;
    let has = |kind: &str| events(&sink).iter().filter(|event| event["type"] == kind).count();
    until("the configuration", || Ok(has("switchyard.configuration.changed") == 1))?;
    let router = std::fs::read(fixture.guest("prefix_router"))?;
    bind(&appliance, "router", "prefix-router", &router, POLICY, &json!({}))?;
    until("the exchange", || Ok(has("switchyard.hook.exchanged") == 1))?;
    let found = events(&sink);
    let exchange = found.iter().find(|event| event["type"] == "switchyard.hook.exchanged").context("none")?;
    ensure!(exchange["data"]["hook"] == "router" && exchange["data"]["event"] == "activated", "{exchange}");
    // Notices that a crash could have prevented are repeated, with the same ids.
    let appliance = appliance.kill()?.start()?;
    until("both are told again", || Ok(events(&sink).len() >= 4))?;
    let ids: BTreeSet<String> = events(&sink).iter().map(|event| event["id"].to_string()).collect();
    ensure!(ids.len() == 2, "{ids:?}");
    drop(appliance);
    Ok(())
}
