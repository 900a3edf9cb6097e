//! Durable counters of plugins: their counts go on after a crash and after an orderly stop.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, PASSWORD};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::{Stage, activate, bind};
use serde_json::{Value, json};
use std::sync::Arc;

/// The counter that the guest adds to for each message.
const COUNTER: &str = "asked";

/// A month, so that the test seldom runs across its end.
fn grants() -> Value {
    json!({ "counters": [{ "name": COUNTER, "window": "month", "zone": "Asia/Shanghai" }] })
}

/// Submits a message; tells what its router counted.
fn counted(appliance: &Appliance) -> Result<u64> {
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let id = esme.submit(7)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let note = trace["why_here"]["note"].as_str().context("no note")?;
    let count = note.split("counted ").nth(1).and_then(|rest| rest.split(',').next()).context("no count")?;
    Ok(count.parse()?)
}

fn back_up(appliance: &Appliance) -> Result<()> {
    let url = format!("http://{}/v1/backup", appliance.blueprint().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call()?;
    ensure!(!asked.into_body().with_config().limit(1 << 30).read_to_vec()?.is_empty(), "an empty backup");
    Ok(())
}

#[test]
fn a_quota_survives_a_crash_and_a_restart() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer("upstream", sink.address(), "receipts = false");
    let appliance = blueprint.start()?;
    let more = json!({ "grants": grants() });
    let component = stage.component("test_asker")?;
    let version = bind(&appliance, "router", "asker", &component, "to upstream 1", &more)?;
    for expected in 1..=3 {
        assert_eq!(counted(&appliance)?, expected);
    }
    // A backup writes the counts first, so that they are on disk before the crash for certain.
    back_up(&appliance)?;
    let appliance = appliance.kill()?.start()?;
    assert_eq!(counted(&appliance)?, 4, "after a crash");
    // The document is another one, and the counter is the same.
    activate(&appliance, "router", ("asker", &version), "to upstream 2", &more)?;
    assert_eq!(counted(&appliance)?, 6);
    assert_eq!(appliance.metric("switchyard_durable_count_keys")?, 1.0);
    // At once after the count: an orderly stop writes what is left.
    let (status, blueprint) = appliance.stop()?;
    ensure!(status.success(), "{status}");
    let appliance = blueprint.start()?;
    assert_eq!(counted(&appliance)?, 8, "after an orderly stop");

    // What is granted is shown.
    let hook = appliance.get("/v1/hooks/router")?;
    assert_eq!(hook["live"]["chain"][0]["grants"]["counters"], grants()["counters"], "{hook:#}");
    let shown = plugin(&stage, &appliance, &["show", "router"])?;
    ensure!(shown.contains("counter asked by month in Asia/Shanghai"), "{shown}");
    // Without the grant the counter is in memory, and begins at 0.
    activate(&appliance, "router", ("asker", &version), "to upstream 1", &json!({ "grants": {} }))?;
    assert_eq!(counted(&appliance)?, 1);
    Ok(())
}

/// What `switchyard plugin ...` prints, whether it succeeds or not.
fn plugin(stage: &Stage, appliance: &Appliance, arguments: &[&str]) -> Result<String> {
    let output = stage.command(appliance).arg("plugin").args(arguments).output()?;
    Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
}

#[test]
fn a_grant_that_makes_no_sense_is_refused_at_every_door() -> Result<()> {
    let stage = Stage::new()?;
    let appliance = stage.blueprint()?.start()?;
    let component = stage.component("test_asker")?;
    let uploaded = appliance.ask("PUT", "/v1/plugins/asker", &component)?;
    let version = uploaded["version"].as_str().context("no version")?;
    for (counters, words) in [
        (
            json!([{ "name": "a", "window": "week" }]),
            "unknown variant `week`, expected one of `hour`, `day`, `month`",
        ),
        (json!([{ "name": "a" }]), "missing field `window`"),
        (json!([{ "name": "a", "window": "day", "zone": "Bonn" }]), "the time zone \\\"Bonn\\\" is unknown"),
        (
            json!([{ "name": "a", "window": "day" }, { "name": "a", "window": "hour" }]),
            "counter \\\"a\\\": the name is there twice",
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
            ensure!(status == 422 && text.contains(words), "{path} {counters}: {status} {text}");
        }
    }
    let set = "grants.counters=[{ name = \"a\", window = \"day\", zone = \"Bonn\" }]";
    let plugin = |set: &str| {
        let name = format!("asker@{version}");
        let policy = stage.folder().join("policy");
        std::fs::write(&policy, "to upstream 1")?;
        let policy = policy.to_str().context("a path")?;
        plugin(
            &stage,
            &appliance,
            &["activate", "router", &name, "--policy", policy, "--force", "--set", set],
        )
    };
    let told = plugin(set)?;
    ensure!(told.contains("the time zone \"Bonn\" is unknown"), "{told}");
    plugin(&set.replace("Bonn", "Europe/Berlin"))?;
    let granted = &appliance.get("/v1/hooks/router")?["live"]["chain"][0]["grants"]["counters"];
    assert_eq!(*granted, json!([{ "name": "a", "window": "day", "zone": "Europe/Berlin" }]));
    Ok(())
}
