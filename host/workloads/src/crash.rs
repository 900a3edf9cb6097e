//! `cargo xtask crash`: SIGKILL under full load, repeatedly; no message may be lost.

use super::tool_run::{POLICY, ToolRun};
use anyhow::{Result, ensure};
use api::QueueView;
use model::{Random, Timestamp};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::PASSWORD;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of kills.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Seed that repeats the kill times of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// What the appliance does with uncertain messages.
    #[arg(long, value_enum, default_value_t = Uncertain::SendAgain)]
    uncertain: Uncertain,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Uncertain {
    /// Nothing may be missing; duplicates are counted.
    SendAgain,
    /// Nothing may arrive twice; the appliance must list every missing message as uncertain.
    AwaitDlr,
}

/// Maximum number of messages of a run; enough for a minute at full rate.
const MAX_MESSAGES: usize = 12_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    ToolRun::with("crash-", options.binary.as_deref(), |tool_run| crash(tool_run, options))
}

fn crash(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| Timestamp::now().0);
    println!("crash: {} kills, seed {seed}", options.kills);
    let mut random = Random::new(seed);
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = tool_run.config("crash")?;
    let uncertain = match options.uncertain {
        Uncertain::SendAgain => "send-again",
        Uncertain::AwaitDlr => "await-dlr",
    };
    let peer = format!("links = 2\nwindow = 2000\ndlrs = false\nuncertain = \"{uncertain}\"");
    config.peer("upstream", sink.address(), &peer).router(&tool_run.component, POLICY)?;

    let mut appliance = config.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.reconnect = true;
    let source = Source::start(&ask, &tally)?;
    let pause = StopFlag::default();
    for kill in 1..=options.kills {
        // Sometimes during recovery.
        let early = kill > 1 && random.between(0, 5) == 0;
        let moment = if early { random.between(0, 60) } else { random.between(100, 1500) };
        pause.pause(Duration::from_millis(moment));
        let config = appliance.kill()?;
        println!(
            "  kill {kill:2} after {moment:4} ms: {} answered, {} arrived",
            tally.accepted_count(),
            tally.arrived_count()
        );
        appliance = config.launch()?;
        if random.between(0, 5) != 0 || kill == options.kills {
            appliance = appliance.ready()?;
        }
    }
    pause.pause(Duration::from_millis(500));
    source.stop();
    let source = source.join()?;
    let waited = settle(&tally, &sink);
    let doubtful = if options.uncertain == Uncertain::AwaitDlr {
        let queues: Vec<QueueView> = appliance.read("/v1/queues")?;
        queues.iter().map(|queue| queue.uncertain).sum()
    } else {
        0
    };
    let (status, _) = appliance.stop()?;
    let report = sink.stop()?;
    let sums = tally.summary();
    println!(
        "sent {}, answered positively {}, refused {}, never answered {}",
        sums.sent, sums.accepted, sums.refused, sums.unanswered
    );
    println!(
        "{} arrived, {} uncertain, {} duplicates, {} missing; the source lost {} connections, {} binds at the sink",
        sums.arrived, doubtful, sums.duplicates, sums.missing, source.losses, report.binds
    );
    println!("the last one arrived {waited:.1?} after the last answer");
    if let Some(error) = report.last_error {
        println!("the sink's last error: {error}");
    }
    ensure!(status.success(), "the last stop ended with {status}");
    ensure!(sums.accepted > 0, "no message was accepted: the test proves nothing");
    ensure!(sums.unknown == 0, "{} unknown messages arrived", sums.unknown);
    match options.uncertain {
        Uncertain::SendAgain => {
            ensure!(
                sums.missing == 0,
                "{} messages were lost, the first: {:?}",
                sums.missing,
                tally.missing(10)
            );
        }
        Uncertain::AwaitDlr => {
            ensure!(sums.duplicates == 0, "{} messages arrived twice", sums.duplicates);
            ensure!(sums.missing <= doubtful, "{} are missing, but only {doubtful} in doubt", sums.missing);
        }
    }
    println!("crash: every message that was answered positively is accounted for");
    Ok(())
}

/// Waits until every positively answered message has arrived, or nothing has arrived for a while; then until the sink is
/// idle, so that duplicates are counted too.
fn settle(tally: &Tally, sink: &Sink) -> Duration {
    let pause = StopFlag::default();
    let begun = Instant::now();
    let (mut seen, mut since, mut last) = (0, Instant::now(), begun);
    loop {
        pause.pause(Duration::from_millis(50));
        let now = tally.arrived_count() + sink.message_count();
        if now != seen {
            (seen, since, last) = (now, Instant::now(), Instant::now());
        }
        let quiet = if tally.is_settled() { 2 } else { 15 };
        if since.elapsed() > Duration::from_secs(quiet) {
            return last - begun;
        }
    }
}
