//! `cargo xtask crash`: SIGKILL under full load, again and again, and the books must balance.

use super::place::{POLICY, Place};
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::PASSWORD;
use xtask::load::{Sink, SinkOptions, Source, SourceOptions, Stop, Tally};
use xtask::random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the appliance is killed.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Repeats the moments of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// What the appliance does with messages in doubt.
    #[arg(long, value_enum, default_value_t = Uncertain::SendAgain)]
    uncertain: Uncertain,
    /// A daemon that is built already, instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Uncertain {
    /// Nothing may be missing; doubles are counted.
    SendAgain,
    /// Nothing may come twice; what is missing must be what the appliance says is in doubt.
    AwaitReceipt,
}

/// Numbers for the messages of one run; enough for a minute at full rate.
const MOST: usize = 12_000_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    Place::with("crash-", options.binary.as_deref(), |place| crash(place, options))
}

fn crash(place: &Place, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(Random::any_seed);
    println!("crash: {} kills, seed {seed}", options.kills);
    let mut random = Random::new(seed);
    let tally = Arc::new(Tally::new(MOST));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = place.blueprint("crash")?;
    let uncertain = match options.uncertain {
        Uncertain::SendAgain => "send-again",
        Uncertain::AwaitReceipt => "await-receipt",
    };
    let peer = format!("links = 2\nwindow = 2000\nreceipts = false\nuncertain = \"{uncertain}\"");
    blueprint.peer("upstream", sink.address(), &peer).router(&place.component, POLICY)?;

    let mut appliance = blueprint.start()?;
    let mut ask = SourceOptions::new(appliance.smpp(), "load", PASSWORD);
    ask.reconnect = true;
    let source = Source::start(&ask, &tally)?;
    let pause = Stop::default();
    for kill in 1..=options.kills {
        // Now and then in the middle of a recovery.
        let early = kill > 1 && random.between(0, 5) == 0;
        let moment = if early { random.between(0, 60) } else { random.between(100, 1500) };
        pause.pause(Duration::from_millis(moment));
        let blueprint = appliance.kill()?;
        println!(
            "  kill {kill:2} after {moment:4} ms: {} answered, {} arrived",
            tally.accepted_so_far(),
            tally.arrived_so_far()
        );
        appliance = blueprint.launch()?;
        if random.between(0, 5) != 0 || kill == options.kills {
            appliance = appliance.ready()?;
        }
    }
    pause.pause(Duration::from_millis(500));
    source.stop();
    let source = source.join()?;
    let waited = settle(&tally, &sink);
    let doubtful = if options.uncertain == Uncertain::AwaitReceipt {
        let queues = appliance.get("/v1/queues")?;
        sum(&queues, "uncertain")
    } else {
        0
    };
    let (status, _) = appliance.stop()?;
    let report = sink.stop()?;
    let sums = tally.accounts();
    println!(
        "sent {}, answered positively {}, refused {}, never answered {}",
        sums.sent, sums.accepted, sums.refused, sums.unanswered
    );
    println!(
        "arrived at least once {}, {} in doubt, {} twice, {} missing; {} connections of the source lost, {} binds at the sink",
        sums.arrived, doubtful, sums.duplicates, sums.missing, source.losses, report.binds
    );
    println!("the last one arrived {waited:.1?} after the last answer");
    if let Some(error) = report.last_error {
        println!("the sink's last complaint: {error}");
    }
    ensure!(status.success(), "the last stop ended with {status}");
    ensure!(sums.accepted > 0, "nothing was accepted at all: this proves nothing");
    ensure!(sums.strangers == 0, "{} messages arrived that nobody sent", sums.strangers);
    match options.uncertain {
        Uncertain::SendAgain => {
            ensure!(
                sums.missing == 0,
                "{} messages were lost, the first: {:?}",
                sums.missing,
                tally.missing(10)
            );
        }
        Uncertain::AwaitReceipt => {
            ensure!(sums.duplicates == 0, "{} messages came twice", sums.duplicates);
            ensure!(sums.missing <= doubtful, "{} are missing, but only {doubtful} in doubt", sums.missing);
        }
    }
    println!("crash: every message that was answered positively is accounted for");
    Ok(())
}

/// Waits until all that was answered positively has arrived, or nothing has arrived for a while; then until the sink is
/// quiet, so that doubles are counted too.
fn settle(tally: &Tally, sink: &Sink) -> Duration {
    let pause = Stop::default();
    let begun = Instant::now();
    let (mut seen, mut since, mut last) = (0, Instant::now(), begun);
    loop {
        pause.pause(Duration::from_millis(50));
        let now = tally.arrived_so_far() + sink.messages_so_far();
        if now != seen {
            (seen, since, last) = (now, Instant::now(), Instant::now());
        }
        let quiet = if tally.is_settled() { 2 } else { 15 };
        if since.elapsed() > Duration::from_secs(quiet) {
            return last - begun;
        }
    }
}

/// Adds up all numbers of this name, wherever they stand.
fn sum(value: &serde_json::Value, name: &str) -> u64 {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| if key == name { value.as_u64().unwrap_or(0) } else { sum(value, name) })
            .sum(),
        serde_json::Value::Array(values) => values.iter().map(|value| sum(value, name)).sum(),
        _ => 0,
    }
}
