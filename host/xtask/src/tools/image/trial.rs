//! What the image has to show: it comes up and serves, keeps its word through power cuts, takes an update and state stays, goes back
//! by itself from one that does not come up, and does what the admin's guide says of it.

mod chapter;
mod first_look;
mod updates;

use super::build::Built;
use super::machine::{Banner, Machine, Running};
use super::{Options, Part};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::PASSWORD;
use xtask::load::{Sink, SinkOptions, Source, SourceOptions, Stop, Tally};
use xtask::random::Random;

/// Numbers for the messages of one run.
const MOST: usize = 4_000_000;
/// Messages a second that are offered; an emulated machine takes fewer than a real one.
const RATE: f64 = 200.0;
/// Longest time until all that was answered has arrived, after the last start.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the daemon may have in memory when nothing goes on, in bytes.
const RESIDENT: u64 = 100_000_000;

struct Trial {
    tally: Arc<Tally>,
    sink: Sink,
    token: String,
    begun: Instant,
}

/// The versions of this run, and their updates.
struct Updates<'a> {
    version: &'a str,
    newer: String,
    newest: std::path::PathBuf,
    broken: std::path::PathBuf,
    dead: std::path::PathBuf,
}

pub(crate) fn run(built: &Built, options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("trial-").tempdir_in(&built.folder)?;
    match trial(built, options, folder.path()) {
        Ok(()) => Ok(()),
        Err(error) => {
            println!("kept for looking into: {}", folder.keep().display());
            Err(error)
        }
    }
}

/// The token as the console shows it, once it is another than this one.
fn token(running: &mut Running, before: &str) -> Result<String> {
    running.wait("admin token", |said| {
        let line = said.lines().rev().find_map(|line| line.split_once("admin token  "))?;
        line.1.split_ascii_whitespace().next().filter(|token| *token != before).map(str::to_owned)
    })
}

fn trial(built: &Built, options: &Options, folder: &Path) -> Result<()> {
    let version = &options.version;
    let newer = format!("{version}-newer");
    let updates = Updates {
        version,
        newest: built.variant(&newer, "works")?,
        broken: built.variant(&format!("{version}-broken"), "broken")?,
        dead: built.variant(&format!("{version}-dead"), "dead")?,
        newer,
    };

    let tally = Arc::new(Tally::new(MOST));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let place = folder.join("first");
    let machine = Machine::new(&built.raw(), &place, options.acceleration, options.firmware)?;
    let begun = Instant::now();
    let mut running = machine.start()?;
    let first = running.ready_as(version, "A")?;
    let token = token(&mut running, "")?;
    let mut trial = Trial { tally, sink, token, begun };
    trial.say(&format!(
        "first start: ready {:.1?} after power, {} after the kernel",
        first.since_power, first.uptime
    ));
    first_look::at_rest(&running)?;
    first_look::firewall(&running)?;
    first_look::screenshot(&running, &built.folder.join("login.png"))?;
    trial.furnish(&running)?;
    trial.swap(&running, &std::fs::read(crate::plugins::build()?.join("prefix_router.wasm"))?)?;

    let does = |part| options.parts.contains(&part);
    let mut ready = Vec::new();
    if does(Part::Cuts) {
        let mut random = Random::new(Random::any_seed());
        let source = trial.load(&running)?;
        for cut in 1..=options.cuts {
            let before = trial.tally.accepted_so_far();
            trial.until_accepted(before + 500)?;
            Stop::default().pause(Duration::from_millis(random.between(0, 3000)));
            let (banner, next) = trial.cut(running, &format!("power cut {cut}"))?;
            ready.push(banner.since_power);
            running = next;
        }
        running = trial.update_cut(running, &updates)?;
        source.stop();
        source.join()?;
        trial.balance()?;
    }
    let mut slot = "A";
    if does(Part::Update) {
        trial.update(&mut running, &updates)?;
        trial.state_is_there(&running, "after the update")?;
        slot = "B";
    }
    for (part, bundle, what) in [
        (Part::BadDaemon, &updates.broken, "an update whose daemon ends"),
        (Part::BadSystem, &updates.dead, "an update that does not even start"),
    ] {
        if does(part) {
            trial.goes_back(&mut running, slot, bundle, what)?;
            trial.state_is_there(&running, "after an update that does not come up")?;
        }
    }
    let source = trial.load(&running)?;
    let before = trial.tally.accepted_so_far();
    trial.until_accepted(before + 200)?;
    source.stop();
    source.join()?;
    trial.balance()?;
    if does(Part::Guide) {
        trial.chapter(running, built, options, folder, &updates)?;
    }

    println!("image: the whole trial took {} s", trial.begun.elapsed().as_secs());
    ready.sort_unstable();
    if let Some(middle) = ready.get(ready.len() / 2) {
        println!(
            "image: ready again after a power cut in {middle:.1?} (middle of {}); every message that was answered positively \
             is accounted for, through {} power cuts",
            ready.len(),
            options.cuts + 1
        );
    }
    Ok(())
}

impl Trial {
    fn say(&self, what: &str) {
        println!("image: [{:4} s] {what}", self.begun.elapsed().as_secs());
    }

    fn ask(&self, running: &Running, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        running.ask(method, path, "application/json", &self.token, body)
    }

    fn load(&self, running: &Running) -> Result<Source> {
        let mut ask = SourceOptions::new(running.machine.smpp, "load", PASSWORD);
        (ask.connections, ask.window, ask.rate, ask.reconnect) = (2, 100, Some(RATE), true);
        Source::start(&ask, &self.tally)
    }

    fn until_accepted(&self, count: u64) -> Result<()> {
        let (pause, deadline) = (Stop::default(), Instant::now() + PATIENCE);
        while self.tally.accepted_so_far() < count {
            ensure!(
                Instant::now() < deadline,
                "only {} messages were answered within {PATIENCE:?}, not {count}",
                self.tally.accepted_so_far()
            );
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    fn cut(&self, running: Running, what: &str) -> Result<(Banner, Running)> {
        let (accepted, arrived) = (self.tally.accepted_so_far(), self.tally.arrived_so_far());
        let mut running = running.cut()?.start()?;
        let banner = running.ready()?;
        self.say(&format!(
            "{what}: {accepted} were answered, {arrived} had arrived; ready again in slot {} after {:.1?}",
            banner.slot, banner.since_power
        ));
        Ok((banner, running))
    }

    /// All that was answered has arrived.
    fn balance(&self) -> Result<()> {
        let (pause, deadline) = (Stop::default(), Instant::now() + PATIENCE);
        while !self.tally.is_settled() && Instant::now() < deadline {
            pause.pause(Duration::from_millis(100));
        }
        let sums = self.tally.accounts();
        self.say(&format!(
            "sent {}, answered positively {}, refused {}, never answered {}; arrived {}, twice {}, missing {}",
            sums.sent, sums.accepted, sums.refused, sums.unanswered, sums.arrived, sums.duplicates, sums.missing
        ));
        ensure!(sums.accepted > 0, "nothing was accepted at all: this proves nothing");
        ensure!(sums.strangers == 0, "{} messages arrived that nobody sent", sums.strangers);
        ensure!(
            sums.missing == 0,
            "{} messages were lost, the first: {:?}",
            sums.missing,
            self.tally.missing(10)
        );
        Ok(())
    }
}
