//! Senders from a shared pool, under load.

use anyhow::Result;
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The path of the pool.
pub(crate) const POOL: &str = "/v1/pools/support-line";

fn event(appliance: &TestDaemon, event: &Value) -> Result<Value> {
    appliance.ask("POST", &format!("{POOL}/events"), event.to_string().as_bytes())
}

/// Adds a number to the pool and makes it available.
pub(crate) fn add(appliance: &TestDaemon, number: &str) -> Result<()> {
    event(appliance, &json!({ "event": "add", "number": number }))?;
    event(appliance, &json!({ "event": "reg", "number": number }))?;
    Ok(())
}

#[test]
fn kills_under_load_lose_no_message_and_no_number() -> Result<()> {
    const NUMBERS: u64 = 5;
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100_000));
    let options = SinkOptions { delay: Duration::from_millis(5), ..SinkOptions::default() };
    let sink = Sink::start(options, &tally)?;
    let mut config = fixture.config()?;
    let policy = "[[share]]\npool = \"support-line\"\npeers = [\"upstream\"]\nwithout-number = \"hold\"\n";
    config.router(&fixture.guest("shared_sender"), policy)?;
    config.account("acme", "window = 50").peer(
        "upstream",
        sink.address(),
        "window = 50\ndlrs = false\nuncertain = \"send-again\"",
    );
    let mut appliance = config.start()?;
    for number in 0..NUMBERS {
        add(&appliance, &format!("4915000{number}"))?;
    }
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.reconnect, options.rate) = (true, Some(300.0));
    let source = Source::start(&options, &tally)?;
    for _ in 0..3 {
        let before = tally.arrived_count();
        until("traffic", || Ok(tally.arrived_count() > before + 200))?;
        appliance = appliance.kill()?.start()?;
    }
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    appliance.wait_until(Duration::from_secs(60), POOL, |pool| pool["ready"] == NUMBERS)?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.unknown), (0, 0), "{sums:?}");
    sink.stop()?;
    Ok(())
}
