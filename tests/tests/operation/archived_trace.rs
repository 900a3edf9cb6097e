//! A message's trace is the same before and after archiving.

use anyhow::{Context, Result};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, until};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn the_trace_is_the_same_after_archiving() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let refusing = SinkOptions { error_status: 0x08, error_every: 1, ..SinkOptions::default() };
    let sink = Sink::start(refusing, &tally)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    let keys = "dlrs = false\nretry = [\"50ms\"]\nmax-attempts = 1000";
    config.native("upstream").account("acme", "").peer("upstream", sink.address(), keys);
    let appliance = config.start()?;
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    let id = sent["id"].as_str().context("no id")?.to_owned();
    let trace =
        |appliance: &TestDaemon| -> Result<Value> { appliance.get(&format!("/v1/messages/{id}?body=true")) };
    until("it was refused and waits", || {
        let steps = trace(&appliance)?["steps"].to_string();
        Ok(steps.contains("refused by the peer") && steps.contains("deferred until"))
    })?;
    sink.behave(SinkOptions::default());
    until("the message has ended", || Ok(trace(&appliance)?["finished"] == true))?;
    let before = trace(&appliance)?;
    let (_, mut config) = appliance.stop()?;
    config.archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()));
    let appliance = config.start()?;
    until("it is in the archive", || {
        let pump = appliance.get("/v1/archive")?;
        Ok(pump["archived"].as_u64() >= Some(1) && pump["backlog"] == 0)
    })?;
    let after = trace(&appliance)?;
    assert_eq!(after, before, "the archived trace differs");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
