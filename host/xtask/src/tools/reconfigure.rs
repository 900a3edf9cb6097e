//! `cargo xtask reconfigure`: the configuration changed again and again under load; what it does not touch may not notice.

use super::phases::{ALLOWED, flow};
use super::place::{POLICY, Place};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::{Appliance, HASH, PASSWORD};
use xtask::load::{Sink, SinkOptions, SourceOptions, Stop, Tally};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the configuration is changed: peers, accounts, words of opt-out and pools come, change and go.
    #[arg(long, default_value_t = 200)]
    changes: u32,
    /// Messages a second.
    #[arg(long, default_value_t = 20_000.0)]
    rate: f64,
    /// A daemon that is built already, instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

/// Numbers for the messages of one run.
const MOST: usize = 24_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    Place::with("reconfigure-", options.binary.as_deref(), |place| reconfigure(place, options))
}

fn reconfigure(place: &Place, options: &Options) -> Result<()> {
    let tally = Arc::new(Tally::new(MOST));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let strangers = Arc::new(Tally::new(1_000));
    let other = Sink::start(SinkOptions::default(), &strangers)?;
    let mut blueprint = place.blueprint("reconfigure")?;
    let peer = "links = 2\nwindow = 2000\nreceipts = false";
    blueprint.peer("upstream", sink.address(), peer).router(&place.component, POLICY)?;
    let appliance = blueprint.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.rate = Some(options.rate);
    let address = other.address().to_string();
    let (with, mut times) = flow(&ask, &tally, || {
        (0..options.changes)
            .map(|turn| change(&appliance, &wanted(turn, &address)))
            .collect::<Result<Vec<_>>>()
    })?;
    let time = with.time;
    let (without, ()) = flow(&ask, &tally, || {
        Stop::default().pause(time.saturating_sub(Duration::from_secs(1)));
        Ok(())
    })?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !tally.is_settled() {
        ensure!(Instant::now() < deadline, "not everything arrives: {:?}", tally.accounts());
        Stop::default().pause(Duration::from_millis(50));
    }
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    let (report, sums) = (sink.stop()?, tally.accounts());
    with.print("with changes");
    without.print("without");
    times.sort_unstable();
    println!(
        "  {} changes, each a version of its own: p50 {:.1?}, longest {:.1?}",
        times.len(),
        times.get(times.len() / 2).copied().unwrap_or_default(),
        times.last().copied().unwrap_or_default()
    );
    println!(
        "  {} answered positively, {} refused, {} missing, {} twice; the peer saw {} binds",
        sums.accepted, sums.refused, sums.missing, sums.duplicates, report.binds
    );
    ensure!(sums.missing == 0, "{} messages were lost", sums.missing);
    ensure!(sums.refused == 0, "refused: {:?} {:?}", with.source.refusals, without.source.refusals);
    ensure!(sums.duplicates == 0, "{} came twice", sums.duplicates);
    ensure!(report.binds == 2, "the links of a peer that was not touched were made anew");
    let delay = with.delay_against(&without)?;
    println!(
        "reconfigure: nothing was lost; the longest answer was {delay:.1?} longer than without changes (allowed {ALLOWED:?})"
    );
    Ok(())
}

/// A patch of things that the traffic has nothing to do with.
fn wanted(turn: u32, address: &str) -> Value {
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

/// Makes one change of the version that is in force; how long its answer took.
fn change(appliance: &Appliance, wanted: &Value) -> Result<Duration> {
    let version = appliance.get("/v1/configuration")?["version"].as_u64().context("no version")?;
    let tag = format!("\"{version}\"");
    let headers = [("if-match", tag.as_str()), ("content-type", "application/merge-patch+json")];
    let begun = Instant::now();
    let (status, text) =
        appliance.send("PATCH", "/v1/configuration", wanted.to_string().as_bytes(), &headers)?;
    ensure!(status == 200, "a change is answered with {status}: {text}");
    Ok(begun.elapsed())
}
