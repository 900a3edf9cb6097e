//! `cargo xtask crash`: repeated SIGKILL under full load; no message may be lost.

mod archived;
pub(crate) mod lessee;

use super::tool_run::{POLICY, ToolRun};
use anyhow::{Result, bail, ensure};
use api::{ArchivePumpView, QueueView};
use lessee::{Lessee, LesseeReport};
use model::{Random, Timestamp};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{PASSWORD, TestDaemon, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of kills.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Seed that repeats the kill times of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// The treatment of uncertain messages.
    #[arg(long, value_enum, default_value_t = Uncertain::SendAgain)]
    uncertain: Uncertain,
    /// Additional participants, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    with: Vec<Participant>,
    /// Messages per second from the source; by default, as many as possible, and 20,000 with `--with`.
    #[arg(long)]
    rate: Option<f64>,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Uncertain {
    /// No message may be missing; duplicates are counted.
    SendAgain,
    /// No message may arrive twice; the appliance must list every missing message as uncertain.
    AwaitDlr,
}

/// A participant of a run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Participant {
    /// A SQLite archive: at the end, it has every accepted message exactly once.
    Archive,
    /// DLRs from the peer to the source: at the end, every accepted message has one.
    Dlrs,
    /// A client of a number pool: no confirmed lease is lost, and no number has two holders.
    Pools,
}

/// Maximum number of messages of a run; enough for some minutes at full rate.
const MAX_MESSAGES: usize = 48_000_000;
/// Messages per second that all participants can keep up with.
const RATE_WITH_PARTICIPANTS: f64 = 20_000.0;
/// Maximum number of messages that have not arrived, or have no DLR, at which the daemon is killed.
const MAX_BACKLOG: u64 = 200_000;
/// Maximum time for the archive to catch up, and for the backlog to shrink.
const CATCH_UP: Duration = Duration::from_secs(600);

pub(crate) fn run(options: &Options) -> Result<()> {
    ToolRun::with("crash-", options.binary.as_deref(), |tool_run| crash(tool_run, options))
}

fn crash(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| Timestamp::now().0);
    println!("crash: {} kills, seed {seed}", options.kills);
    let mut random = Random::new(seed);
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let [archive, dlrs, pools] = [Participant::Archive, Participant::Dlrs, Participant::Pools]
        .map(|participant| options.with.contains(&participant));
    let sink = Sink::start(SinkOptions { receipts: dlrs, ..SinkOptions::default() }, &tally)?;
    let mut config = tool_run.config("crash")?;
    let uncertain = match options.uncertain {
        Uncertain::SendAgain => "send-again",
        Uncertain::AwaitDlr => "await-dlr",
    };
    let peer = format!("links = 2\nwindow = 2000\ndlrs = {dlrs}\nuncertain = \"{uncertain}\"");
    config.peer("upstream", sink.address(), &peer).router(&tool_run.component, POLICY)?;

    let archive = archive.then(|| archived::url(tool_run.folder.path()));
    if let Some(url) = &archive {
        config.archive(url);
    }
    let redis = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    if pools {
        let script = lessee::SCRIPT;
        config.tables(&format!("[redis]\nlisten = [\"{redis}\"]\nscripts = [\"{script}\"]\n"));
    }

    let mut appliance = config.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.reconnect = true;
    ask.track_receipts = dlrs;
    // Each message has a destination of its own, by which the archive is checked.
    ask.destinations = Some(u64::MAX);
    ask.rate = options.rate.or_else(|| (!options.with.is_empty()).then_some(RATE_WITH_PARTICIPANTS));
    let lessee_stop = Arc::new(StopFlag::default());
    let lessee = if pools {
        {
            let server = lessee::Server { address: redis, has_account: false };
            Some(Lessee::start(server, &lessee_stop, seed)?)
        }
    } else {
        None
    };
    let source = Source::start(&ask, &tally)?;
    let pause = StopFlag::default();
    for kill in 1..=options.kills {
        // Sometimes the daemon is killed during its recovery.
        let early = kill > 1 && random.between(0, 5) == 0;
        let moment = if early { random.between(0, 60) } else { random.between(100, 1500) };
        pause.pause(Duration::from_millis(moment));
        // Otherwise recoveries would take ever longer, and dominate the run.
        let waited_since = Instant::now();
        while tally.backlog(dlrs) > MAX_BACKLOG && waited_since.elapsed() < CATCH_UP {
            pause.pause(Duration::from_millis(20));
        }
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
    // The pool client releases everything; the source gets its DLRs while it stays connected.
    lessee_stop.set();
    let lessee = match lessee.map(std::thread::JoinHandle::join) {
        Some(Ok(report)) => Some(report?),
        Some(Err(_)) => bail!("the client of the number pool panicked"),
        None => None,
    };
    let waited = settle(&tally, &sink, dlrs);
    if dlrs {
        source.quit();
    }
    let source = source.join()?;
    let doubtful = if options.uncertain == Uncertain::AwaitDlr {
        let queues: Vec<QueueView> = appliance.read("/v1/queues")?;
        queues.iter().map(|queue| queue.uncertain).sum()
    } else {
        0
    };
    if archive.is_some() && options.uncertain == Uncertain::SendAgain {
        wait_for_archive(&appliance)?;
    }
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
    if let Some(LesseeReport { answered, unanswered }) = lessee {
        println!(
            "number pool: {answered} requests answered, {unanswered} never; no lease lost, none doubled"
        );
    }
    if let Some(error) = report.last_error {
        println!("the sink's last error: {error}");
    }
    ensure!(status.success(), "the last stop ended with {status}");
    ensure!(sums.accepted > 0, "no message was accepted: the test proves nothing");
    ensure!(sums.unknown == 0, "{} unknown messages arrived", sums.unknown);
    if dlrs {
        let missing = tally.without_receipt(10);
        println!(
            "DLRs: {} sent by the sink, {} reached the source, {} repeated",
            report.receipts,
            source.receipts,
            tally.repeated_receipts()
        );
        ensure!(missing.is_empty(), "accepted messages without a DLR, the first: {missing:?}");
    }
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
    if let Some(url) = &archive {
        println!(
            "archive: {archived} messages, every accepted one once",
            archived = archived::check(url, &tally)?
        );
    }
    println!("crash: every message that was answered positively is accounted for");
    Ok(())
}

/// Waits until no message waits, and the archive has all finished ones.
fn wait_for_archive(appliance: &TestDaemon) -> Result<()> {
    let waiting = |queue: &QueueView| {
        queue.queued + queue.deferred + queue.in_flight + queue.uncertain + queue.awaiting_dlr > 0
    };
    let is_empty = |queues: &Vec<QueueView>| !queues.iter().any(waiting);
    let _: Vec<QueueView> = appliance.read_until(CATCH_UP, "/v1/queues", is_empty)?;
    let caught_up = |archive: &ArchivePumpView| archive.backlog == 0;
    appliance.read_until(CATCH_UP, "/v1/archive", caught_up).map(drop)
}

/// Waits until every positively answered message has arrived (and has its DLR, if `dlrs`), or nothing has arrived for a
/// while. Then waits until the sink is idle, so that duplicates are counted, too.
fn settle(tally: &Tally, sink: &Sink, dlrs: bool) -> Duration {
    let pause = StopFlag::default();
    let begun = Instant::now();
    let (mut seen, mut since, mut last) = (0, Instant::now(), begun);
    loop {
        pause.pause(Duration::from_millis(50));
        let now = tally.arrived_count() + sink.message_count();
        if now != seen {
            (seen, since, last) = (now, Instant::now(), Instant::now());
        }
        let is_settled = tally.is_settled() && (!dlrs || tally.without_receipt(1).is_empty());
        let quiet = if is_settled { 2 } else { 15 };
        if since.elapsed() > Duration::from_secs(quiet) {
            return last - begun;
        }
    }
}
