//! Test of the image: it boots and serves, loses nothing in power cuts, keeps its state over an update, rolls back an
//! update that does not boot, and behaves as the manual says.

mod cluster;
mod first_boot;
mod guide_chapter;
mod updates;

use super::build::ImageBuild;
use super::virtual_machine::{ReadyBanner, RunningVm, VirtualMachine};
use super::{Options, TestPart};
use anyhow::{Context as _, Result, ensure};
use model::{Random, Timestamp};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::PASSWORD;

/// Number of messages of one run.
const MAX_MESSAGES: usize = 4_000_000;
/// Offered messages per second; an emulated machine takes fewer than a real one.
const RATE: f64 = 200.0;
/// Maximum time until every answered message has arrived, after the last start.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum memory of the idle daemon, in bytes.
const MAX_RESIDENT: u64 = 100_000_000;

/// The media type of a JSON body.
const JSON: &str = "application/json";

struct ImageTest {
    tally: Arc<Tally>,
    sink: Sink,
    token: String,
    begun: Instant,
}

/// The versions of this run and their updates.
struct Updates<'a> {
    version: &'a str,
    newer: String,
    newest: std::path::PathBuf,
    broken: std::path::PathBuf,
    dead: std::path::PathBuf,
}

pub(crate) fn run(built: &ImageBuild, options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("trial-").tempdir_in(&built.folder)?;
    match run_test(built, options, folder.path()) {
        Ok(()) => Ok(()),
        Err(error) => {
            println!("kept for inspection: {}", folder.keep().display());
            Err(error)
        }
    }
}

/// Waits until the console shows a token other than this one, and returns it.
fn token(running: &mut RunningVm, before: &str) -> Result<String> {
    running.wait("admin token", |said| {
        let line = said.lines().rev().find_map(|line| line.split_once("admin token  "))?;
        line.1.split_ascii_whitespace().next().filter(|token| *token != before).map(str::to_owned)
    })
}

fn run_test(built: &ImageBuild, options: &Options, folder: &Path) -> Result<()> {
    let version = &options.version;
    let newer = format!("{version}-newer");
    let updates = Updates {
        version,
        newest: built.variant(&newer, "works")?,
        broken: built.variant(&format!("{version}-broken"), "broken")?,
        dead: built.variant(&format!("{version}-dead"), "dead")?,
        newer,
    };

    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let vm_folder = folder.join("first");
    let machine = VirtualMachine::new(&built.raw(), &vm_folder, options.acceleration, options.firmware)?;
    let begun = Instant::now();
    let mut running = machine.start()?;
    let first = running.ready_as(version, "A")?;
    let token = token(&mut running, "")?;
    let mut test = ImageTest { tally, sink, token, begun };
    test.log_step(&format!(
        "first start: ready {:.1?} after power-on, {} after the kernel",
        first.since_power, first.uptime
    ));
    first_boot::check_idle(&running)?;
    first_boot::firewall(&running)?;
    first_boot::screenshot(&running, &built.folder.join("login.png"))?;
    test.add_account_and_peer(&running)?;
    test.swap(&running, &std::fs::read(workspace::plugins::build()?.join("prefix_router.wasm"))?)?;

    let does = |part| options.parts.contains(&part);
    let mut ready = Vec::new();
    if does(TestPart::Cuts) {
        let mut random = Random::new(Timestamp::now().0);
        let source = test.load(&running)?;
        for cut in 1..=options.cuts {
            let before = test.tally.accepted_count();
            test.wait_for_accepted(before + 500)?;
            StopFlag::default().pause(Duration::from_millis(random.between(0, 3000)));
            let (banner, next) = test.power_cut(running, &format!("power cut {cut}"))?;
            ready.push(banner.since_power);
            running = next;
        }
        running = test.power_cut_during_update(running, &updates)?;
        source.stop();
        source.join()?;
        test.check_tally()?;
    }
    let mut slot = "A";
    if does(TestPart::Update) {
        test.update(&mut running, &updates)?;
        test.check_state(&running, "after the update")?;
        slot = "B";
    }
    for (part, bundle, what) in [
        (TestPart::BadDaemon, &updates.broken, "an update whose daemon exits"),
        (TestPart::BadSystem, &updates.dead, "an update that does not boot"),
    ] {
        if does(part) {
            test.rolls_back(&mut running, slot, bundle, what)?;
            test.check_state(&running, "after an update that does not come up")?;
        }
    }
    let source = test.load(&running)?;
    let before = test.tally.accepted_count();
    test.wait_for_accepted(before + 200)?;
    source.stop();
    source.join()?;
    test.check_tally()?;
    if does(TestPart::Guide) {
        test.chapter(running, built, options, folder, &updates)?;
    } else {
        running.power_off()?;
    }

    if does(TestPart::Cluster) {
        test.cluster(built, options, folder)?;
    }

    println!("image: the whole test took {} s", test.begun.elapsed().as_secs());
    ready.sort_unstable();
    if let Some(middle) = ready.get(ready.len() / 2) {
        println!(
            "image: ready again after a power cut in {middle:.1?} (median of {}); every message that was answered positively \
             is accounted for, through {} power cuts",
            ready.len(),
            options.cuts + 1
        );
    }
    Ok(())
}

impl ImageTest {
    fn log_step(&self, what: &str) {
        println!("image: [{:4} s] {what}", self.begun.elapsed().as_secs());
    }

    /// Sends a request to the API and reads the answer as its type.
    fn call<T: DeserializeOwned>(
        &self,
        running: &RunningVm,
        (method, path): (&str, &str),
        kind: &str,
        body: &[u8],
    ) -> Result<T> {
        let answer = running.ask(method, path, kind, &self.token, body)?;
        T::deserialize(&answer).with_context(|| format!("{path} gave an answer of another type: {answer:#}"))
    }

    /// Sends a GET request to the API and reads the answer as its type.
    fn read<T: DeserializeOwned>(&self, running: &RunningVm, path: &str) -> Result<T> {
        self.call(running, ("GET", path), JSON, &[])
    }

    fn load(&self, running: &RunningVm) -> Result<Source> {
        let mut ask = SourceOptions::new(running.machine.smpp, "load", PASSWORD);
        (ask.connections, ask.window, ask.rate, ask.reconnect) = (2, 100, Some(RATE), true);
        Source::start(&ask, &self.tally)
    }

    fn wait_for_accepted(&self, count: u64) -> Result<()> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        while self.tally.accepted_count() < count {
            ensure!(
                Instant::now() < deadline,
                "only {} messages were answered within {TIMEOUT:?}, not {count}",
                self.tally.accepted_count()
            );
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    fn power_cut(&self, running: RunningVm, what: &str) -> Result<(ReadyBanner, RunningVm)> {
        let (accepted, arrived) = (self.tally.accepted_count(), self.tally.arrived_count());
        let mut running = running.power_off()?.start()?;
        let banner = running.ready()?;
        self.log_step(&format!(
            "{what}: {accepted} were answered, {arrived} had arrived; ready again in slot {} after {:.1?}",
            banner.slot, banner.since_power
        ));
        Ok((banner, running))
    }

    /// Checks that every answered message has arrived.
    fn check_tally(&self) -> Result<()> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + TIMEOUT);
        while !self.tally.is_settled() && Instant::now() < deadline {
            pause.pause(Duration::from_millis(100));
        }
        let sums = self.tally.summary();
        self.log_step(&format!(
            "sent {}, answered positively {}, refused {}, never answered {}; arrived {}, twice {}, missing {}",
            sums.sent, sums.accepted, sums.refused, sums.unanswered, sums.arrived, sums.duplicates, sums.missing
        ));
        ensure!(sums.accepted > 0, "no message was accepted: the test proves nothing");
        ensure!(sums.unknown == 0, "{} unknown messages arrived", sums.unknown);
        ensure!(
            sums.missing == 0,
            "{} messages were lost, the first: {:?}",
            sums.missing,
            self.tally.missing(10)
        );
        Ok(())
    }
}
