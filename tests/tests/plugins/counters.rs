//! Durable counters of plugins: counts survive a crash and an orderly stop.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, activate, bind};
use serde_json::{Value, json};
use std::sync::Arc;

/// The counter that the plugin increments for each message.
const COUNTER: &str = "asked";

/// A month, so that the test rarely crosses its end.
fn grants() -> Value {
    json!({ "counters": [{ "name": COUNTER, "window": "month", "zone": "Asia/Shanghai" }] })
}

/// Submits a message; returns the count that its router saw.
fn counted(appliance: &TestDaemon) -> Result<u64> {
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let id = esme.submit(7)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let note = trace["routing"]["note"].as_str().context("no note")?;
    let count = note.split("counted ").nth(1).and_then(|rest| rest.split(',').next()).context("no count")?;
    Ok(count.parse()?)
}

fn back_up(appliance: &TestDaemon) -> Result<()> {
    let url = format!("http://{}/v1/backup", appliance.config().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call()?;
    ensure!(!asked.into_body().with_config().limit(1 << 30).read_to_vec()?.is_empty(), "an empty backup");
    Ok(())
}

#[test]
fn a_quota_survives_a_crash_and_a_restart() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", sink.address(), "dlrs = false");
    let appliance = config.start()?;
    let more = json!({ "grants": grants() });
    let component = fixture.component("test_asker")?;
    let version = bind(&appliance, "router", "asker", &component, "to upstream 1", &more)?;
    for expected in 1..=3 {
        assert_eq!(counted(&appliance)?, expected);
    }
    // A backup writes the counts first, so they are certainly on disk before the crash.
    back_up(&appliance)?;
    let appliance = appliance.kill()?.start()?;
    assert_eq!(counted(&appliance)?, 4, "after a crash");
    // Another document, but the same counter.
    activate(&appliance, "router", ("asker", &version), "to upstream 2", &more)?;
    assert_eq!(counted(&appliance)?, 6);
    assert_eq!(appliance.metric("switchyard_durable_count_keys")?, 1.0);
    // Immediately after the count: an orderly stop writes unsaved counts.
    let (status, config) = appliance.stop()?;
    ensure!(status.success(), "{status}");
    let appliance = config.start()?;
    assert_eq!(counted(&appliance)?, 8, "after an orderly stop");

    // The grants are shown.
    let hook = appliance.get("/v1/hooks/router")?;
    assert_eq!(hook["live"]["chain"][0]["grants"]["counters"], grants()["counters"], "{hook:#}");
    let shown = plugin(&fixture, &appliance, &["show", "router"])?;
    ensure!(shown.contains("counter asked by month in Asia/Shanghai"), "{shown}");
    // Without the grant the counter is in memory and starts at 0.
    activate(&appliance, "router", ("asker", &version), "to upstream 1", &json!({ "grants": {} }))?;
    assert_eq!(counted(&appliance)?, 1);
    Ok(())
}

/// Output of `switchyard plugin ...`, whether or not it succeeds.
fn plugin(fixture: &Fixture, appliance: &TestDaemon, arguments: &[&str]) -> Result<String> {
    let output = fixture.command(appliance).arg("plugin").args(arguments).output()?;
    Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
}

#[test]
fn an_invalid_grant_is_refused_by_every_interface() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = fixture.config()?.start()?;
    let component = fixture.component("test_asker")?;
    let uploaded = appliance.ask("PUT", "/v1/plugins/asker", &component)?;
    let version = uploaded["version"].as_str().context("no version")?;
    for (counters, code, words) in [
        (
            json!([{ "name": "a", "window": "week" }]),
            422,
            "unknown variant `week`, expected one of `hour`, `day`, `month`",
        ),
        (json!([{ "name": "a" }]), 422, "missing field `window`"),
        (
            json!([{ "name": "a", "window": "day", "zone": "Bonn" }]),
            422,
            "the time zone \\\"Bonn\\\" is unknown",
        ),
        (
            json!([{ "name": "a", "window": "day" }, { "name": "a", "window": "hour" }]),
            422,
            "counter \\\"a\\\": the name occurs twice",
        ),
    ] {
        let binding = json!({ "plugin": "asker", "version": version, "policy": "to upstream 1", "force": true,
            "grants": { "counters": counters } });
        for path in ["/v1/hooks/router/activate", "/v1/hooks/router/candidate"] {
            let mut request = binding.clone();
            if path.ends_with("candidate") {
                request["mode"] = "shadow".into();
            }
            let (status, text) = appliance.request("POST", path, request.to_string().as_bytes())?;
            ensure!(status == code && text.contains(words), "{path} {counters}: {status} {text}");
        }
    }
    let set = "grants.counters=[{ name = \"a\", window = \"day\", zone = \"Bonn\" }]";
    let plugin = |set: &str| {
        let name = format!("asker@{version}");
        let policy = fixture.folder().join("policy");
        std::fs::write(&policy, "to upstream 1")?;
        let policy = policy.to_str().context("a path")?;
        plugin(
            &fixture,
            &appliance,
            &["activate", "router", &name, "--policy", policy, "--force", "--set", set],
        )
    };
    let error_text = plugin(set)?;
    ensure!(error_text.contains("the time zone \"Bonn\" is unknown"), "{error_text}");
    plugin(&set.replace("Bonn", "Europe/Berlin"))?;
    let granted = &appliance.get("/v1/hooks/router")?["live"]["chain"][0]["grants"]["counters"];
    assert_eq!(*granted, json!([{ "name": "a", "window": "day", "zone": "Europe/Berlin" }]));
    Ok(())
}
