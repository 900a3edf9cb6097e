//! Kills and router replacements under load: short versions of `cargo xtask crash` and `cargo xtask swap`.

use anyhow::{Context, Result};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::PASSWORD;
use behaviour_tests::{Fixture, POLICY, steady_traffic, until};
use serde_json::json;
use std::sync::Arc;

#[test]
fn check_146_a_killed_appliance_loses_nothing_that_it_answered_for() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "window = 1000");
    config.peer(
        "upstream",
        sink.address(),
        "links = 2\nwindow = 500\ndlrs = false\nuncertain = \"send-again\"",
    );
    let mut appliance = config.start()?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    options.reconnect = true;
    let source = Source::start(&options, &tally)?;
    for _ in 0..3 {
        let before = tally.accepted_count();
        until("traffic", || Ok(tally.accepted_count() > before + 2000))?;
        appliance = appliance.kill()?.start()?;
    }
    let before = tally.accepted_count();
    until("traffic after the last start", || Ok(tally.accepted_count() > before + 2000))?;
    source.stop();
    let report = source.join()?;
    assert!(report.losses >= 3, "the source lost only {} connections: was it under load?", report.losses);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.unknown, sums.refused), (0, 0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn waiting_messages_survive_a_kill_and_are_sent_in_order() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let mut config = fixture.config()?;
    let port = behaviour_tests::test_daemon::free_port()?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    config.account("acme", "").peer(
        "upstream",
        address,
        "dlrs = false\nwindow = 1\nuncertain = \"send-again\"",
    );
    let appliance = config.start()?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.window, options.count) = (1, 1, Some(200));
    Source::start(&options, &tally)?.join()?;
    assert_eq!(tally.accepted_count(), 200);
    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.logged("recovered", "messages"), Some(200));
    let sink = Sink::start_at(address, SinkOptions::default(), &tally)?;
    until("all arrive", || Ok(tally.arrived_count() == 200))?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.inversions), (0, 0, 0), "{sums:?}");
    sink.stop()?;
    Ok(())
}

#[test]
fn the_router_is_replaced_and_rolled_back_under_traffic() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "window = 1000").peer(
        "upstream",
        sink.address(),
        "links = 2\nwindow = 500\ndlrs = false",
    );
    let appliance = config.start()?;
    let source = Source::start(&steady_traffic(&appliance, "acme"), &tally)?;
    let component = std::fs::read(fixture.guest("prefix_router"))?;
    let live = |record: &serde_json::Value| -> Result<String> {
        Ok(record["chain"][0]["version"].as_str().with_context(|| format!("{record}"))?.to_owned())
    };
    let mut versions = Vec::new();
    for turn in 0..3 {
        let before = tally.accepted_count();
        until("traffic", || Ok(tally.accepted_count() > before + 500))?;
        let new = testkit::guest::variant(&component, &format!("turn {turn}"));
        let uploaded = appliance.ask("PUT", "/v1/plugins/prefix-router", &new)?;
        let body = json!({ "plugin": "prefix-router", "version": uploaded["version"], "policy": POLICY });
        versions.push(live(&appliance.ask(
            "POST",
            "/v1/hooks/router/activate",
            body.to_string().as_bytes(),
        )?)?);
    }
    let back = live(&appliance.ask("POST", "/v1/hooks/router/rollback", b"{}")?)?;
    assert_eq!(back, versions[1]);
    let before = tally.accepted_count();
    until("traffic after the rollback", || Ok(tally.accepted_count() > before + 500))?;
    source.stop();
    let report = source.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    sink.stop()?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unanswered), (0, 0, 0), "{sums:?}");
    Ok(())
}
