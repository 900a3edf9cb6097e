//! A replay of archived messages through the router.

use super::{Options, median};
use crate::archive_bench::memory_source::MemorySource;
use crate::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use api::{
    ActivationRequest, HookStateView, ReplayPhase, ReplayReport, ReplayRequest, ReplayStart, ReplayStateView,
};
use archive::Archive;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::process_cpu_time;
use testkit::test_daemon::{TestDaemon, free_port};

/// Two of three messages keep their route.
const POLICY: &str = "[[route]]\nprefix = \"4917\"\nlegs = [{ peer = \"north\" }]\nnote = \"prefix 49\"\n\
                      [default]\nlegs = [{ peer = \"south\" }]\n";
/// Messages in memory at a time while the archive is filled.
const STEP: u64 = 50_000;
/// Replays on one thread; the median counts.
const TIMES: usize = 5;

pub(super) fn measure(tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!("\n4. A replay through the Rust router, out of SQLite");
    let url = format!("sqlite:{}", tool_run.folder.path().join("replayed.sqlite").display());
    let begun = Instant::now();
    fill(&url, options.messages)?;
    println!("  {} messages archived in {:.1} s", options.messages, begun.elapsed().as_secs_f64());
    let mut config = tool_run.config("replay")?;
    for account in ["acme", "bank", "clinic", "daily"] {
        config.account(account, "");
    }
    for peer in ["north", "south"] {
        config.peer(peer, SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)), "");
    }
    config.archive(&url).router(&tool_run.component, POLICY)?;
    let appliance = config.start()?;
    let cores = std::thread::available_parallelism()?.get();
    println!("              messages/s   processor, µs a message: all   reading   comparing    on one core");
    let (mut one_core, mut compared) = (Vec::new(), Vec::new());
    for threads in std::iter::repeat_n(1, TIMES).chain([cores]) {
        let used = || process_cpu_time(appliance.id()).context("the daemon's CPU time");
        let before = used()?;
        let report = replay(&appliance, threads)?;
        let all = used()?.saturating_sub(before);
        let (pace, count) = (&report.pace, report.messages);
        ensure!(count == options.messages, "only {count} messages were replayed: {report:?}");
        let each = |seconds: f64| seconds * 1e6 / count as f64;
        let (all, comparing) = (each(all.as_secs_f64()), each(pace.comparing_seconds));
        println!(
            "  {threads} thread(s){:>11.0}{all:>31.2}{:>10.2}{comparing:>10.2}{:>15.0}",
            pace.messages_per_second,
            all - comparing,
            1e6 / all
        );
        if one_core.len() < TIMES {
            one_core.push(1e6 / all);
            compared.push(1e6 / comparing);
        }
    }
    println!(
        "  median: {:.0} messages a second per core from the file to the report (aim: 500000), {:.0} through router and",
        median(&one_core),
        median(&compared)
    );
    println!(
        "  comparison alone. A third of the decisions differ; reading is SQLite, decoding, and the rest of the daemon."
    );
    Ok(())
}

/// Fills the archive through the pump.
fn fill(url: &str, messages: u64) -> Result<()> {
    let archive =
        Archive::open(url, archive::ArchiveOptions { share: 1.0, ..archive::ArchiveOptions::default() })?;
    let source = Arc::new(MemorySource::default());
    let pump = archive.pump(source.clone()).start()?;
    let mut next = 0;
    while next < messages {
        let count = STEP.min(messages - next);
        source.put(next, count);
        pump.wake();
        ensure!(
            source.wait_until_empty(Duration::from_secs(60)),
            "the pump has stopped: {:?}",
            pump.status()
        );
        next += count;
    }
    pump.stop();
    Ok(())
}

fn replay(appliance: &TestDaemon, threads: usize) -> Result<ReplayReport> {
    let hook: HookStateView = appliance.read("/v1/hooks/router")?;
    let router = hook.live.chain.first().context("no live router")?;
    let activation = ActivationRequest::of(&router.plugin, &router.version, &router.policy);
    let request = ReplayRequest { threads: Some(threads as u64), activation, ..ReplayRequest::default() };
    let ReplayStart { id } = appliance.call("POST", "/v1/replays", &request)?;
    let running = |replay: &ReplayStateView| replay.state == ReplayPhase::Running;
    let path = format!("/v1/replays/{id}");
    let done = appliance.read_until(Duration::from_secs(120), &path, |replay| !running(replay))?;
    ensure!(done.state == ReplayPhase::Done, "the replay failed: {done:?}");
    done.report.flatten().context("a replay without a report")
}
