//! `cargo xtask swap`: the router exchanged by HTTP under full load; nobody may notice.

use super::phases::{ALLOWED, flow};
use super::place::{POLICY, Place};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::{Appliance, PASSWORD};
use xtask::guest;
use xtask::load::{Probe, Sink, SinkOptions, SourceOptions, Stop, Tally};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the router is exchanged: a new component is uploaded, compiled and activated.
    #[arg(long, default_value_t = 50)]
    swaps: u32,
    /// How often the last exchange is taken back.
    #[arg(long, default_value_t = 10)]
    rollbacks: u32,
    /// Messages a second; as fast as they are taken when left out.
    #[arg(long)]
    rate: Option<f64>,
    /// A daemon that is built already, instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

/// Numbers for the messages of one run.
const MOST: usize = 24_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    Place::with("swap-", options.binary.as_deref(), |place| swap(place, options))
}

fn swap(place: &Place, options: &Options) -> Result<()> {
    let tally = Arc::new(Tally::new(MOST));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = place.blueprint("swap")?;
    let peer = "links = 2\nwindow = 2000\nreceipts = false\nuncertain = \"send-again\"";
    blueprint.account("probe", "").peer("upstream", sink.address(), peer).router(&place.component, POLICY)?;
    let appliance = blueprint.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.rate = options.rate;
    let mut probe = Probe::bind(appliance.smpp(), "probe", PASSWORD, "861", false)?;
    let component = std::fs::read(&place.component)?;

    let (with, mut outcome) = flow(&ask, &tally, || exchange(&appliance, &mut probe, options, &component))?;
    let time = with.time;
    let (without, ()) = flow(&ask, &tally, || {
        Stop::default().pause(time.saturating_sub(Duration::from_secs(1)));
        Ok(())
    })?;
    settle(&tally, outcome.probes)?;
    // Every probe's trace, now that all have been delivered.
    let mut named = 0;
    for (id, versions) in outcome.traces.drain(..) {
        let trace = appliance.get(&format!("/v1/messages/{id}"))?;
        let version = trace["why_here"]["version"].as_str().context("a trace without a version")?;
        ensure!(
            versions.iter().any(|one| one == version),
            "message {id} was decided by {version}, live was {versions:?}"
        );
        named += 1;
    }
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    let report = sink.stop()?;
    let sums = tally.accounts();

    with.print("with exchanges");
    without.print("without");
    println!(
        "  {} uploads and activations (p50 {:?}, longest {:?}), {} rollbacks (longest {:?})",
        options.swaps,
        middle(&mut outcome.swaps),
        outcome.swaps.last().copied().unwrap_or_default(),
        options.rollbacks,
        outcome.rollbacks.iter().max().copied().unwrap_or_default()
    );
    println!(
        "  {} answered positively, {} refused, {} missing, {} twice; {named} traces name the version that was live",
        sums.accepted, sums.refused, sums.missing, sums.duplicates
    );
    ensure!(sums.missing == 0, "{} messages were lost", sums.missing);
    ensure!(sums.refused == 0, "refused: {:?} {:?}", with.source.refusals, without.source.refusals);
    ensure!(
        sums.duplicates == 0 && report.broken == 0,
        "{} came twice; {:?}",
        sums.duplicates,
        report.last_error
    );
    let delay = with.delay_against(&without)?;
    println!(
        "swap: nothing was lost; the longest answer was {delay:.1?} longer than without exchanges (allowed {ALLOWED:?})"
    );
    Ok(())
}

struct Outcome {
    swaps: Vec<Duration>,
    rollbacks: Vec<Duration>,
    /// Ids of probes, with the versions of which one must have decided.
    traces: Vec<(String, Vec<String>)>,
    probes: u64,
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The version of the first router in a binding record.
fn version(record: &Value) -> Result<String> {
    Ok(record["chain"][0]["version"].as_str().with_context(|| format!("no version in {record}"))?.to_owned())
}

fn exchange(
    appliance: &Appliance,
    probe: &mut Probe,
    options: &Options,
    component: &[u8],
) -> Result<Outcome> {
    let mut outcome = Outcome { swaps: Vec::new(), rollbacks: Vec::new(), traces: Vec::new(), probes: 0 };
    let every = (options.swaps / options.rollbacks.max(1)).max(1);
    for turn in 1..=options.swaps {
        let begun = Instant::now();
        let uploaded = appliance.ask(
            "PUT",
            "/v1/plugins/prefix-router",
            &guest::variant(component, &format!("swap {turn}")),
        )?;
        let policy = POLICY.replace("everything upstream", &format!("everything upstream, turn {turn}"));
        let wanted = json!({ "plugin": "prefix-router", "version": uploaded["version"], "policy": policy });
        let live =
            version(&appliance.ask("POST", "/v1/hooks/router/activate", wanted.to_string().as_bytes())?)?;
        ensure!(uploaded["version"] == live, "activated {live} in place of {uploaded}");
        outcome.swaps.push(begun.elapsed());
        outcome.ask(probe, vec![live])?;
        if turn % every == 0 && outcome.rollbacks.len() < options.rollbacks as usize {
            let begun = Instant::now();
            let live = version(&appliance.ask("POST", "/v1/hooks/router/rollback", b"{}")?)?;
            outcome.rollbacks.push(begun.elapsed());
            ensure!(uploaded["version"] != live, "the rollback kept {live}");
            outcome.ask(probe, vec![live])?;
        }
    }
    ensure!(
        outcome.rollbacks.len() == options.rollbacks as usize,
        "only {} rollbacks fit in",
        outcome.rollbacks.len()
    );
    Ok(outcome)
}

impl Outcome {
    /// Submits a message of which the trace is looked at later.
    fn ask(&mut self, probe: &mut Probe, versions: Vec<String>) -> Result<()> {
        // Numbers beyond those of the sources: the sink counts them as strangers.
        let number = MOST as u64 + self.probes;
        match probe.submit(number)? {
            Ok(id) => self.traces.push((id, versions)),
            Err(status) => bail!("a probe was refused with status {status:#x}"),
        }
        self.probes += 1;
        Ok(())
    }
}

/// Waits until everything has arrived, the probes too.
fn settle(tally: &Tally, probes: u64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let pause = Stop::default();
    while !tally.is_settled() || tally.accounts().strangers < probes {
        ensure!(Instant::now() < deadline, "not everything arrives: {:?}", tally.accounts());
        pause.pause(Duration::from_millis(50));
    }
    Ok(())
}
