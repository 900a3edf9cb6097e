//! `cargo xtask bench`: what the appliance does and what it costs, in one table from one run.

use super::aims;
use super::place::Place;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use xtask::load::{
    Sink, SinkOptions, Source, SourceOptions, SourceReport, Stop, Tally, resident, thread_times,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Unanswered submissions in all, over four connections.
    #[arg(long, default_value_t = 4000)]
    window: usize,
    /// Messages waiting elsewhere in the last rows.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// A daemon that is built already, instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
    /// Measure one room by itself instead.
    #[command(subcommand)]
    room: Option<Room>,
}

#[derive(clap::Subcommand)]
enum Room {
    /// The data pump beside plain INSERTs into the same data base, and questions to a large history.
    Archive(super::archive_bench::Options),
    /// Every page of the console, in an appliance with many peers, many accounts and a long history.
    Console(super::console_bench::Options),
    /// GSM: messages for phones through resolution and custody; what passing on costs between MSC and HLR.
    Gsm(super::gsm_bench::Options),
    /// Plugins: what calls cost by language, all four hooks end to end, activations, replays.
    Hooks(super::hooks_bench::Options),
    /// Traffic while the archive's MariaDB is up, stopped, and catching up; every message must be in the table at the end.
    Outage,
    /// Number pools: calls and hangups a second beside Debian's redis-server, and what a call costs by the pool's size.
    Pool(super::pool_bench::Options),
}

/// Numbers of an appliance's whole life; a longer measurement ends early.
const MOST: usize = 24_000_000;

/// `99…` waits for a peer that is down, the rest goes upstream.
const POLICY: &str = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"elsewhere\" }]\n\
                      [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

/// One measurement.
struct Row {
    name: String,
    /// Messages that reached the peer, a second.
    rate: f64,
    source: SourceReport,
    /// Processor microseconds a message, by group of threads.
    groups: BTreeMap<&'static str, f64>,
    /// Microseconds of a hook call, of the plugin's own count.
    hook: Option<f64>,
    /// Accepted and not yet arrived when sending ended.
    backlog: u64,
}

/// An appliance between a source and a sink.
struct Line {
    appliance: Appliance,
    sink: Sink,
    tally: Arc<Tally>,
}

impl Line {
    fn start(blueprint: &mut Blueprint) -> Result<Self> {
        let tally = Arc::new(Tally::new(MOST));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        blueprint
            .peer(
                "upstream",
                sink.address(),
                "links = 2\nwindow = 2000\nreceipts = false\nuncertain = \"send-again\"",
            )
            .peer("elsewhere", nobody, "");
        let line = Self { appliance: blueprint.start()?, sink, tally };
        line.appliance.wait_for_line(Duration::from_secs(20), |text| {
            text.contains("bound") && text.contains("peer=upstream")
        })?;
        Ok(line)
    }

    fn ask(&self, options: &Options) -> SourceOptions {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.window = options.window / ask.connections;
        ask
    }

    /// Traffic for the time of the options, at this rate.
    fn measure(&self, name: &str, options: &Options, rate: Option<f64>) -> Result<Row> {
        let mut ask = self.ask(options);
        ask.rate = rate;
        // The first second is for warming up.
        ask.duration = Some(Duration::from_secs(options.seconds + 1));
        let source = Source::start(&ask, &self.tally)?;
        let pause = Stop::default();
        pause.pause(Duration::from_secs(1));
        let from = self.look();
        pause.pause(Duration::from_secs(options.seconds) - Duration::from_millis(200));
        let to = self.look();
        let source = source.join()?;
        let backlog =
            self.tally.accepted_so_far().saturating_sub(self.tally.arrived_so_far() + self.parked());
        self.drain()?;
        ensure!(source.refusals.is_empty(), "{name}: refused: {:?}", source.refusals);
        let (time, done) = ((to.at - from.at).as_secs_f64(), to.arrived - from.arrived);
        ensure!(done > 0, "{name}: nothing arrived; the log ends:\n{}", self.appliance.log(10));
        let mut groups = BTreeMap::new();
        for (thread, after) in &to.threads {
            let before = from.threads.get(thread).copied().unwrap_or_default();
            let group = match thread.as_str() {
                "core" => "engine",
                "commit" => "store",
                name if name.starts_with("link") => "links",
                _ => "other",
            };
            *groups.entry(group).or_default() +=
                after.saturating_sub(before).as_secs_f64() * 1e6 / done as f64;
        }
        let hook = match (from.hook, to.hook) {
            (Some((calls, seconds)), Some((more_calls, more_seconds))) if more_calls > calls => {
                Some((more_seconds - seconds) * 1e6 / (more_calls - calls))
            }
            _ => None,
        };
        let row = Row { name: name.to_owned(), rate: done as f64 / time, source, groups, hook, backlog };
        println!("  {}", row.line());
        Ok(row)
    }

    fn look(&self) -> Look {
        Look {
            at: Instant::now(),
            arrived: self.tally.arrived_so_far(),
            threads: thread_times(self.appliance.id()),
            hook: self.hook(),
        }
    }

    /// Calls and seconds of the hook since the start.
    fn hook(&self) -> Option<(f64, f64)> {
        let count = self.appliance.metric("switchyard_hook_seconds_count").ok()?;
        let sum = self.appliance.metric("switchyard_hook_seconds_sum").ok()?;
        Some((count, sum))
    }

    /// Messages that wait elsewhere.
    fn parked(&self) -> u64 {
        PARKED.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Submits messages for the peer that is down, until so many of them wait.
    fn park(&self, options: &Options, wanted: u64) -> Result<()> {
        let missing = wanted.saturating_sub(self.parked());
        let mut ask = self.ask(options);
        ask.prefix = "991".to_owned();
        ask.count = Some(missing);
        let before = self.tally.accepted_so_far();
        let report = Source::start(&ask, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "parking {missing} messages: refused: {:?}", report.refusals);
        PARKED.fetch_add(self.tally.accepted_so_far() - before, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Waits until everything that goes upstream has arrived.
    fn drain(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let pause = Stop::default();
        while self.tally.accepted_so_far() > self.tally.arrived_so_far() + self.parked() {
            ensure!(
                Instant::now() < deadline,
                "messages do not arrive; the log ends:\n{}",
                self.appliance.log(10)
            );
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Octets of memory, once they stand still.
    fn memory(&self) -> Result<u64> {
        let pause = Stop::default();
        let mut before = 0;
        for _ in 0..20 {
            pause.pause(Duration::from_millis(500));
            let now = resident(self.appliance.id()).context("reading the appliance's memory")?;
            if now.abs_diff(before) < 1 << 20 {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }
}

/// Parked messages of the line that runs; there is one at a time.
static PARKED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

struct Look {
    at: Instant,
    arrived: u64,
    threads: BTreeMap<String, Duration>,
    hook: Option<(f64, f64)>,
}

impl Row {
    fn line(&self) -> String {
        let group = |name: &str| self.groups.get(name).copied().unwrap_or(0.0);
        let hook = self.hook.map_or_else(|| "     –".to_owned(), |micros| format!("{micros:6.2}"));
        let ms = |share| self.source.answers.quantile(share).as_secs_f64() * 1e3;
        format!(
            "{:<28}{:>9.0}{:>9.2}{:>9.2}{:>9.2}{:>9.2} {hook}{:>9.2}{:>9.2}{:>9.2}{:>10}",
            self.name,
            self.rate,
            ms(0.5),
            ms(0.99),
            self.source.answers.max().as_secs_f64() * 1e3,
            group("links") - self.hook.unwrap_or(0.0),
            group("engine"),
            group("store"),
            group("other"),
            self.backlog,
        )
    }
}

const HEAD: &str = "                            messages   answer, ms                 processor, µs a message                 backlog\n                                a s      p50      p99  longest protocol   hook   engine    store    other   at end";

fn thousands(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{} thousand", count / 1000),
        _ => format!("{} million", count as f64 / 1e6),
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(Room::Archive(options)) = &options.room {
        return super::archive_bench::run(options);
    }
    if let Some(Room::Console(console)) = &options.room {
        return super::console_bench::run(console, options.binary.as_deref());
    }
    if let Some(Room::Gsm(gsm)) = &options.room {
        return super::gsm_bench::run(gsm, options.binary.as_deref());
    }
    if let Some(Room::Hooks(hooks)) = &options.room {
        return super::hooks_bench::run(hooks, options.binary.as_deref());
    }
    if let Some(Room::Pool(pool)) = &options.room {
        return super::pool_bench::run(pool, options.binary.as_deref());
    }
    if let Some(Room::Outage) = &options.room {
        return Place::with("outage-", options.binary.as_deref(), |place| outage(place, options));
    }
    Place::with("bench-", options.binary.as_deref(), |place| whole(place, options))
}

/// The one table of the whole appliance.
fn whole(place: &Place, options: &Options) -> Result<()> {
    println!(
        "bench: {} processors shared by appliance, source and sink; {} s each; texts of 100 octets; window {}",
        std::thread::available_parallelism()?,
        options.seconds,
        options.window
    );
    println!("  {}", HEAD.replace('\n', "\n  "));
    let mut rows = Vec::new();

    let mut blueprint = place.blueprint("plugin")?;
    blueprint.router(&place.component, POLICY)?;
    let line = Line::start(&mut blueprint)?;
    let full = line.measure("flat out", options, None)?;
    rows.push(line.measure("at half of that", options, Some(full.rate / 2.0))?);
    let limit = full.rate;
    rows.insert(0, full);
    for waiting in [options.waiting / 10, options.waiting] {
        line.park(options, waiting)?;
        rows.push(line.measure(&format!("{} wait elsewhere", thousands(waiting)), options, None)?);
    }
    let crowded = rows.last().map_or(0.0, |row| row.rate);
    let recovery = recovery(line)?;

    PARKED.store(0, std::sync::atomic::Ordering::Relaxed);
    let mut blueprint = place.blueprint("native")?;
    blueprint.native("upstream");
    let line = Line::start(&mut blueprint)?;
    let native = line.measure("no plugin: native constant", options, None)?;
    let (links, links_native) = (rows[0].groups.get("links"), native.groups.get("links"));
    let difference = links.zip(links_native).map(|(with, without)| with - without);
    drop(line);

    let memory = memory(place, options)?;
    println!();
    match rows[0].hook {
        Some(hook) => println!("router call, by the appliance's own count: {hook:.2} µs"),
        None => println!("router call: the appliance counted none"),
    }
    if let Some(difference) = difference {
        println!("links with the plugin, less links without: {difference:.2} µs a message");
    }
    println!(
        "rate with {} waiting, against none: {:+.1}%",
        thousands(options.waiting),
        (crowded / limit - 1.0) * 100.0
    );
    println!("memory of a waiting message: {memory:.0} octets, caches full before and after");
    println!("{recovery}");
    let (source, sent) = (&rows[0].source, rows[0].source.answers.count().max(1));
    println!(
        "the source used {:.2} µs a message of the same processors",
        source.processor.as_secs_f64() * 1e6 / sent as f64
    );
    Ok(())
}

/// The archive's data base goes away and comes back under full load.
fn outage(place: &Place, options: &Options) -> Result<()> {
    println!("  {}", HEAD.replace('\n', "\n  "));
    let mut blueprint = place.blueprint("none")?;
    blueprint.router(&place.component, POLICY)?;
    let line = Line::start(&mut blueprint)?;
    let without = line.measure("no archive", options, None)?;
    drop(line);

    let folder = tempfile::tempdir()?;
    let mut database = xtask::database::Database::mariadb(folder.path())?;
    let mut blueprint = place.blueprint("archive")?;
    blueprint.archive(&database.url()).router(&place.component, POLICY)?;
    let line = Line::start(&mut blueprint)?;
    let up = line.measure("MariaDB up", options, None)?;
    line.appliance.wait_until(CATCH_UP, "/v1/archive", |archive| archive["backlog"] == 0)?;
    database.stop()?;
    let before = line.tally.accepted_so_far();
    let down = line.measure("MariaDB stopped", options, None)?;
    let missed = line.tally.accepted_so_far() - before;
    aims::check(missed >= 100_000, || {
        format!("only {missed} messages while the data base was stopped; take more --seconds")
    })?;
    database.start()?;
    let back = line.measure("MariaDB back, catching up", options, None)?;
    let began = Instant::now();
    line.appliance.wait_until(CATCH_UP, "/v1/archive", |archive| archive["backlog"] == 0)?;
    let took = began.elapsed();
    let rows = database.query("SELECT COUNT(*), COUNT(DISTINCT id) FROM messages")?;
    let accepted = line.tally.accepted_so_far();
    println!();
    println!("stopped against no archive: {:+.1}%", (down.rate / without.rate - 1.0) * 100.0);
    println!(
        "stopped against up: {:+.1}%; catching up against up: {:+.1}%",
        (down.rate / up.rate - 1.0) * 100.0,
        (back.rate / up.rate - 1.0) * 100.0
    );
    println!(
        "{missed} messages while it was stopped; {accepted} accepted in all, rows and ids in the table: {rows:?}"
    );
    println!("the last of them {:.1} s after the load had ended", took.as_secs_f64());
    ensure!(rows == [[accepted.to_string(), accepted.to_string()]], "the table is not what was accepted");
    Ok(())
}

/// How long the pump may take for everything that a measurement has left behind.
const CATCH_UP: Duration = Duration::from_secs(300);

/// Stops the line with its parked messages, and starts the appliance again on them.
fn recovery(line: Line) -> Result<String> {
    let Line { appliance, sink, .. } = line;
    let (status, blueprint) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    drop(sink);
    let again = blueprint.start()?;
    let (messages, ms) = again
        .logged("recovered", "messages")
        .zip(again.logged("recovered", "ms"))
        .context("no line about recovery")?;
    let rate = messages as f64 / (ms.max(1) as f64 / 1e3);
    let whole = again.started_in().as_secs_f64();
    Ok(format!(
        "recovery of {messages} messages: {:.2} s, {rate:.0} a second ({:.2} s a million); ready {whole:.2} s after its start",
        ms as f64 / 1e3,
        1e6 / rate
    ))
}

/// Memory by waiting message, where the caches are small and full before the first look.
fn memory(place: &Place, options: &Options) -> Result<f64> {
    let mut blueprint = place.blueprint("memory")?;
    blueprint.router(&place.component, POLICY)?;
    blueprint.tables("[engine]\nbody-cache = \"4MiB\"\nstore-cache = \"32MiB\"\n");
    let line = Line::start(&mut blueprint)?;
    let (few, many) = (options.waiting / 4, options.waiting);
    line.park(options, few)?;
    let before = line.memory()?;
    line.park(options, many)?;
    let after = line.memory()?;
    Ok((after as f64 - before as f64) / (many - few) as f64)
}
