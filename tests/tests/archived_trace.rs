//! A message's trace is the same before and after it goes into the archive.

use anyhow::{Context, Result};
use behaviour_tests::appliance::{Appliance, Blueprint};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::{Stage, until};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn a_message_in_the_archive_has_the_trace_that_it_had_before() -> Result<()> {
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(100));
    let refusing = SinkOptions { error_status: 0x08, error_every: 1, ..SinkOptions::default() };
    let sink = Sink::start(refusing, &tally)?;
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    let keys = "receipts = false\nretry = [\"50ms\"]\nmax-attempts = 1000";
    blueprint.native("upstream").account("acme", "").peer("upstream", sink.address(), keys);
    let appliance = blueprint.start()?;
    let message = json!({ "account": "acme", "from": "1", "to": "8613012345678", "text": "hi" });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    let id = sent["id"].as_str().context("no id")?.to_owned();
    let trace =
        |appliance: &Appliance| -> Result<Value> { appliance.get(&format!("/v1/messages/{id}?body=true")) };
    until("it was refused and waits", || {
        let steps = trace(&appliance)?["steps"].to_string();
        Ok(steps.contains("refused by the peer") && steps.contains("deferred until"))
    })?;
    sink.behave(SinkOptions::default());
    until("it has ended", || Ok(trace(&appliance)?["finished"] == true))?;
    let before = trace(&appliance)?;
    let (_, mut blueprint) = appliance.stop()?;
    blueprint.archive(&format!("sqlite:{}", stage.folder().join("archive.db").display()));
    let appliance = blueprint.start()?;
    until("it is in the archive", || {
        let pump = appliance.get("/v1/archive")?;
        Ok(pump["archived"].as_u64() >= Some(1) && pump["backlog"] == 0)
    })?;
    let after = trace(&appliance)?;
    assert_eq!(after, before, "the archive tells it otherwise");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
