//! Concurrent admins.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Source, Tally};
use behaviour_tests::test_daemon::TestDaemon;
use behaviour_tests::{Fixture, POLICY, steady_traffic, until};
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};

/// Sends these requests concurrently; returns their answers in the same order.
fn send_concurrently(appliance: &TestDaemon, requests: &[(&str, Value)]) -> Result<Vec<(u16, Value)>> {
    let start = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let send = |(path, body): &(&str, Value)| -> Result<(u16, Value)> {
            start.wait();
            let (status, text) = appliance.request("POST", path, body.to_string().as_bytes())?;
            Ok((status, serde_json::from_str(&text)?))
        };
        let threads: Vec<_> = requests.iter().map(|request| scope.spawn(move || send(request))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("it panicked"))?).collect()
    })
}

fn router(appliance: &TestDaemon) -> Result<Value> {
    appliance.get("/v1/hooks/router")
}

/// The serials of all chains that were ever live, oldest first.
fn serials(state: &Value) -> Vec<u64> {
    let history = state["history"].as_array().into_iter().flatten();
    history.rev().filter_map(|record| record["serial"].as_u64()).collect()
}

#[test]
fn concurrent_activations_conflict() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "window = 1000").peer("upstream", sink.address(), "dlrs = false");
    let appliance = config.start()?;
    let component = fixture.component("prefix_router")?;
    let mut versions = Vec::new();
    for name in ["ours", "theirs"] {
        let octets = testkit::guest::variant(&component, name);
        versions.push(appliance.ask("PUT", "/v1/plugins/prefix-router", &octets)?["version"].clone());
    }
    let source = Source::start(&steady_traffic(&appliance, "acme"), &tally)?;
    until("traffic", || Ok(tally.accepted_count() > 500))?;

    let activation = |version: &Value, expected: Option<u64>| {
        let binding =
            json!({ "plugin": "prefix-router", "version": version, "policy": POLICY, "expected": expected });
        ("/v1/hooks/router/activate", binding)
    };
    for turn in 0..5 {
        let found = router(&appliance)?["live"]["serial"].as_u64().context("no serial")?;
        let requests = [activation(&versions[0], Some(found)), activation(&versions[1], Some(found))];
        let answers = send_concurrently(&appliance, &requests)?;
        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|(status, _)| *status == 200);
        ensure!(won.len() == 1 && lost.len() == 1, "turn {turn}: {answers:#?}");
        assert_eq!(lost[0].0, 409, "{:#}", lost[0].1);
        let detail = lost[0].1["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("router") && detail.contains(&(found + 1).to_string()), "{detail}");
        let state = router(&appliance)?;
        assert_eq!((&state["live"], state["live"]["serial"].as_u64()), (&won[0].1, Some(found + 1)));
    }

    // Without a precondition no change may be lost either: all are applied, one after the other.
    let before = router(&appliance)?["live"]["serial"].as_u64().context("no serial")?;
    let requests = [
        activation(&versions[0], None),
        activation(&versions[1], None),
        ("/v1/hooks/router/rollback", json!({})),
        ("/v1/hooks/router/candidate", {
            let (_, mut candidate) = activation(&versions[1], None);
            candidate["mode"] = "shadow".into();
            candidate
        }),
    ];
    let answers = send_concurrently(&appliance, &requests)?;
    ensure!(answers.iter().all(|(status, _)| *status == 200), "{answers:#?}");
    let state = router(&appliance)?;
    let newest = answers.iter().map(|(_, record)| record).max_by_key(|record| record["serial"].as_u64());
    assert_eq!(Some(&state["live"]), newest);
    assert_eq!(serials(&state), (1..=before + 3).collect::<Vec<_>>());
    assert_eq!(state["candidate"]["chain"][0]["version"], versions[1], "{state:#}");

    source.stop();
    let report = source.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;

    // All of it is on disk.
    let appliance = appliance.kill()?.start()?;
    let found = router(&appliance)?;
    assert_eq!((&found["live"], serials(&found)), (&state["live"], serials(&state)));
    assert_eq!(found["candidate"]["chain"], state["candidate"]["chain"]);
    sink.stop()?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unanswered), (0, 0, 0), "{sums:?}");
    Ok(())
}
