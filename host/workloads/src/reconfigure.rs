//! `cargo xtask reconfigure`: changes the configuration repeatedly under load; unrelated traffic must not be affected.

use super::tool_run::{POLICY, ToolRun};
use super::traffic_phase::{MAX_EXTRA_DELAY, run_under_load};
use anyhow::{Result, ensure};
use api::CurrentConfiguration;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{HASH, PASSWORD, TestDaemon};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of changes. They add, change and remove peers, accounts, opt-out keywords and pools.
    #[arg(long, default_value_t = 200)]
    changes: u32,
    /// Messages per second.
    #[arg(long, default_value_t = 20_000.0)]
    rate: f64,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

/// Maximum number of messages of a run.
const MAX_MESSAGES: usize = 24_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    ToolRun::with("reconfigure-", options.binary.as_deref(), |tool_run| reconfigure(tool_run, options))
}

fn reconfigure(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let other_tally = Arc::new(Tally::new(1_000));
    let other = Sink::start(SinkOptions::default(), &other_tally)?;
    let mut config = tool_run.config("reconfigure")?;
    let peer = "links = 2\nwindow = 2000\ndlrs = false";
    config.peer("upstream", sink.address(), peer).router(&tool_run.component, POLICY)?;
    let appliance = config.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.rate = Some(options.rate);
    let address = other.address().to_string();
    let (with, mut times) = run_under_load(&ask, &tally, || {
        (0..options.changes)
            .map(|turn| change(&appliance, &patch_for(turn, &address)))
            .collect::<Result<Vec<_>>>()
    })?;
    let time = with.time;
    let (without, ()) = run_under_load(&ask, &tally, || {
        StopFlag::default().pause(time.saturating_sub(Duration::from_secs(1)));
        Ok(())
    })?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !tally.is_settled() {
        ensure!(Instant::now() < deadline, "messages are missing: {:?}", tally.summary());
        StopFlag::default().pause(Duration::from_millis(50));
    }
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    let (report, sums) = (sink.stop()?, tally.summary());
    with.print("with changes");
    without.print("without");
    times.sort_unstable();
    println!(
        "  {} changes, one version each: p50 {:.1?}, longest {:.1?}",
        times.len(),
        times.get(times.len() / 2).copied().unwrap_or_default(),
        times.last().copied().unwrap_or_default()
    );
    println!(
        "  {} accepted, {} refused, {} missing, {} duplicates; the peer saw {} binds",
        sums.accepted, sums.refused, sums.missing, sums.duplicates, report.binds
    );
    ensure!(sums.missing == 0, "{} messages were lost", sums.missing);
    ensure!(sums.refused == 0, "refused: {:?} {:?}", with.source.refusals, without.source.refusals);
    ensure!(sums.duplicates == 0, "{} came twice", sums.duplicates);
    ensure!(report.binds == 2, "the links of an unchanged peer were re-established");
    let delay = with.delay_against(&without)?;
    println!(
        "reconfigure: nothing was lost; the longest answer was {delay:.1?} longer than without changes (allowed {MAX_EXTRA_DELAY:?})"
    );
    Ok(())
}

/// A patch that does not affect the traffic.
fn patch_for(turn: u32, address: &str) -> Value {
    let peer = json!({ "address": address, "system-id": "us", "password": PASSWORD, "links": 1 + turn % 3 });
    match turn % 5 {
        0 => json!({ "peer": { "second": peer } }),
        1 => json!({ "account": { "extra": { "password-hash": HASH, "rate": 1 + turn } } }),
        2 => json!({
            "peer": { "second": { "links": 2 + turn % 4 } },
            "opt-out": [{ "stop": [format!("STOP{turn}")] }],
        }),
        3 => {
            json!({ "account": { "extra": null }, "pool": { "numbers": { "quarantine": format!("{turn}s") } } })
        }
        _ => json!({ "peer": { "second": null } }),
    }
}

/// Makes one change to the current version; returns the latency of the answer.
fn change(appliance: &TestDaemon, wanted: &Value) -> Result<Duration> {
    let CurrentConfiguration { version, .. } = appliance.read("/v1/configuration")?;
    let tag = format!("\"{version}\"");
    let headers = [("if-match", tag.as_str()), ("content-type", "application/merge-patch+json")];
    let begun = Instant::now();
    let (status, text) =
        appliance.send("PATCH", "/v1/configuration", wanted.to_string().as_bytes(), &headers)?;
    ensure!(status == 200, "a change is answered with {status}: {text}");
    Ok(begun.elapsed())
}
