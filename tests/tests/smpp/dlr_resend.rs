//! Delivery receipts are sent again on request.

use anyhow::{Context, Result};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, TIMEOUT};
use serde_json::{Value, json};
use std::sync::Arc;

/// Resends the DLRs of 2020 to 2100, below this id if given.
fn dlrs_again(appliance: &TestDaemon, before: &Value) -> Result<Value> {
    let mut request =
        json!({ "account": "acme", "from": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z" });
    if !before.is_null() {
        request["before"] = before.clone();
    }
    appliance.ask("POST", "/v1/dlrs/resend", request.to_string().as_bytes())
}

#[test]
fn resent_dlrs_stop_at_a_full_queue_and_can_continue() -> Result<()> {
    const MESSAGES: usize = 5;
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "queue-limit = 2").peer("upstream", sink.address(), "");
    let appliance = config.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", true)?;
    let mut ids = Vec::new();
    for number in 0..MESSAGES {
        let id = esme.submit(u64::try_from(number)?)?;
        ids.push(id.map_err(|status| anyhow::anyhow!("refused with status {status:#x}"))?);
        // One at a time: a DLR that meets a full queue is left for the next request.
        esme.wait_for_delivered(number + 1, TIMEOUT)?;
    }
    drop(esme);
    appliance.wait_until(TIMEOUT, "/v1/links", |links| {
        links.as_array().is_some_and(|links| links.iter().all(|link| link["peer"] != "acme"))
    })?;

    // There is no client, so two DLRs fill the queue.
    let first = dlrs_again(&appliance, &Value::Null)?;
    assert_eq!(first["dlrs"], 2, "{first}");
    let full = dlrs_again(&appliance, &first["next"])?;
    assert_eq!((&full["dlrs"], &full["next"]), (&json!(0), &first["next"]));

    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", true)?;
    esme.wait_for_delivered(2, TIMEOUT)?;
    let (mut next, mut made) = (first["next"].clone(), 2);
    while !next.is_null() {
        let more = dlrs_again(&appliance, &next)?;
        made += more["dlrs"].as_u64().context("a count")?;
        esme.wait_for_delivered(usize::try_from(made)?, TIMEOUT)?;
        next = more["next"].clone();
    }
    assert_eq!(made, u64::try_from(MESSAGES)?);
    let mut dlr_ids: Vec<_> = esme.delivered.iter().filter_map(|text| text.split(' ').next()).collect();
    dlr_ids.sort_unstable();
    let mut wanted: Vec<_> = ids.iter().map(|id| format!("id:{id}")).collect();
    wanted.sort_unstable();
    assert_eq!(dlr_ids, wanted, "a DLR is missing or duplicated");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}
