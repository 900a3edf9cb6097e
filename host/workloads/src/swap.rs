//! `cargo xtask swap`: replaces the router over HTTP under full load; traffic must not be affected.

use super::tool_run::{POLICY, ToolRun};
use super::traffic_phase::{MAX_EXTRA_DELAY, run_under_load};
use anyhow::{Context, Result, bail, ensure};
use api::{ActivationRequest, BindingRecord, HookRollbackRequest, PluginVersionView, TraceView};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::guest;
use testkit::load::{Probe, Sink, SinkOptions, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{PASSWORD, TestDaemon};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of replacements: a new component is uploaded, compiled and activated.
    #[arg(long, default_value_t = 50)]
    swaps: u32,
    /// Number of rollbacks of the last replacement.
    #[arg(long, default_value_t = 10)]
    rollbacks: u32,
    /// Messages per second; default: as fast as they are accepted.
    #[arg(long)]
    rate: Option<f64>,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

/// Maximum number of messages of a run.
const MAX_MESSAGES: usize = 24_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    ToolRun::with("swap-", options.binary.as_deref(), |tool_run| swap(tool_run, options))
}

fn swap(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = tool_run.config("swap")?;
    let peer = "links = 2\nwindow = 2000\ndlrs = false\nuncertain = \"send-again\"";
    config.account("probe", "").peer("upstream", sink.address(), peer).router(&tool_run.component, POLICY)?;
    let appliance = config.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.rate = options.rate;
    let mut probe = Probe::bind(appliance.smpp(), "probe", PASSWORD, "861", false)?;
    let component = std::fs::read(&tool_run.component)?;

    let (with, mut outcome) =
        run_under_load(&ask, &tally, || exchange(&appliance, &mut probe, options, &component))?;
    let time = with.time;
    let (without, ()) = run_under_load(&ask, &tally, || {
        StopFlag::default().pause(time.saturating_sub(Duration::from_secs(1)));
        Ok(())
    })?;
    settle(&tally, outcome.probes)?;
    // The trace of every probe, after all were delivered.
    let mut named = 0;
    for (id, versions) in outcome.traces.drain(..) {
        let trace: TraceView = appliance.read(&format!("/v1/messages/{id}"))?;
        let version = trace.routing.version;
        ensure!(versions.contains(&version), "message {id} was decided by {version}, live was {versions:?}");
        named += 1;
    }
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    let report = sink.stop()?;
    let sums = tally.summary();

    with.print("with exchanges");
    without.print("without");
    println!(
        "  {} uploads and activations (p50 {:?}, longest {:?}), {} rollbacks (longest {:?})",
        options.swaps,
        median(&mut outcome.swaps),
        outcome.swaps.last().copied().unwrap_or_default(),
        options.rollbacks,
        outcome.rollbacks.iter().max().copied().unwrap_or_default()
    );
    println!(
        "  {} accepted, {} refused, {} missing, {} duplicates; {named} traces name the version that was live",
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
        "swap: nothing was lost; the longest answer was {delay:.1?} longer than without exchanges (allowed {MAX_EXTRA_DELAY:?})"
    );
    Ok(())
}

struct SwapOutcome {
    swaps: Vec<Duration>,
    rollbacks: Vec<Duration>,
    /// Ids of the probes, with the versions that may have decided each.
    traces: Vec<(String, Vec<String>)>,
    probes: u64,
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The version of the first router in a binding record.
fn version(record: BindingRecord) -> Result<String> {
    Ok(record.chain.into_iter().next().context("a record without a router")?.version)
}

fn exchange(
    appliance: &TestDaemon,
    probe: &mut Probe,
    options: &Options,
    component: &[u8],
) -> Result<SwapOutcome> {
    let mut outcome = SwapOutcome { swaps: Vec::new(), rollbacks: Vec::new(), traces: Vec::new(), probes: 0 };
    let every = (options.swaps / options.rollbacks.max(1)).max(1);
    for turn in 1..=options.swaps {
        let begun = Instant::now();
        let uploaded: PluginVersionView = appliance.upload(
            "PUT",
            "/v1/plugins/prefix-router",
            &guest::variant(component, &format!("swap {turn}")),
        )?;
        let policy = POLICY.replace("everything upstream", &format!("everything upstream, turn {turn}"));
        let activation = ActivationRequest::of("prefix-router", &uploaded.version, &policy);
        let live = version(appliance.call("POST", "/v1/hooks/router/activate", &activation)?)?;
        ensure!(uploaded.version == live, "activated {live} in place of {}", uploaded.version);
        outcome.swaps.push(begun.elapsed());
        outcome.ask(probe, vec![live])?;
        if turn % every == 0 && outcome.rollbacks.len() < options.rollbacks as usize {
            let begun = Instant::now();
            let live = version(appliance.call(
                "POST",
                "/v1/hooks/router/rollback",
                &HookRollbackRequest::default(),
            )?)?;
            outcome.rollbacks.push(begun.elapsed());
            ensure!(uploaded.version != live, "the rollback kept {live}");
            outcome.ask(probe, vec![live])?;
        }
    }
    ensure!(
        outcome.rollbacks.len() == options.rollbacks as usize,
        "there was time for only {} rollbacks",
        outcome.rollbacks.len()
    );
    Ok(outcome)
}

impl SwapOutcome {
    /// Submits a message whose trace is checked later.
    fn ask(&mut self, probe: &mut Probe, versions: Vec<String>) -> Result<()> {
        // Numbers beyond those of the source, so the sink counts them as unknown.
        let number = MAX_MESSAGES as u64 + self.probes;
        match probe.submit(number)? {
            Ok(id) => self.traces.push((id, versions)),
            Err(status) => bail!("a probe was refused with status {status:#x}"),
        }
        self.probes += 1;
        Ok(())
    }
}

/// Waits until all messages have arrived, including the probes.
fn settle(tally: &Tally, probes: u64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let pause = StopFlag::default();
    while !tally.is_settled() || tally.summary().unknown < probes {
        ensure!(Instant::now() < deadline, "messages are missing: {:?}", tally.summary());
        pause.pause(Duration::from_millis(50));
    }
    Ok(())
}
