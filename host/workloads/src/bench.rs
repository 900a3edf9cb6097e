//! `cargo xtask bench`: throughput and cost of the appliance, in one table from one run.

use super::aims;
use super::tool_run::{POLICY_WITH_ELSEWHERE, ToolRun};
use anyhow::{Context, Result, ensure};
use api::ArchivePumpView;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{
    GatewayProtocol, GatewaySink, Sink, SinkOptions, Source, SourceOptions, SourceReport, StopFlag, Tally,
    cpu_time_by_thread, resident_memory,
};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds per measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Total window over four connections.
    #[arg(long, default_value_t = 4000)]
    window: usize,
    /// Number of messages that wait for another peer in the last rows.
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
    /// Run one of these measurements instead.
    #[command(subcommand)]
    command: Option<BenchCommand>,
}

#[derive(clap::Subcommand)]
enum BenchCommand {
    /// The data pump compared with plain INSERTs into the same database, and queries of a large history.
    Archive(super::archive_bench::Options),
    /// Two appliances on etcd: rate compared to one appliance, and time without answers when the leader dies.
    Cluster(super::cluster_bench::Options),
    /// Every page of the console, in an appliance with many peers, many accounts and a long history.
    Console(super::console_bench::Options),
    /// GSM: messages to phones; cost of the proxy between MSC and HLR.
    Gsm(super::gsm_bench::Options),
    /// Plugins: cost of calls by language, all four hooks end to end, activations, replays.
    Hooks(super::hooks_bench::Options),
    /// Traffic while the archive's MariaDB is up, stopped, and catching up; every message must be in the table at the end.
    Outage,
    /// Number pools: calls and hangups per second compared with Debian's redis-server, and cost of a call by the pool's size.
    Pool(super::pool_bench::Options),
}

/// Maximum number of messages of a run; a longer measurement ends early.
const MAX_MESSAGES: usize = 24_000_000;

/// Maximum number of messages without a receipt in the row of a source that waits for receipts.
const MAX_RECEIPTS_DUE: u64 = 20_000;

/// One measurement.
struct Row {
    name: String,
    /// Messages that reached the peer, per second.
    rate: f64,
    source: SourceReport,
    /// CPU microseconds per message, by group of threads.
    groups: BTreeMap<&'static str, f64>,
    /// Microseconds per hook call, by the hook's own counters.
    hook: Option<f64>,
    /// Accepted messages that had not arrived when sending ended.
    backlog: u64,
}

/// An appliance between a source and a sink.
struct BenchSetup {
    appliance: TestDaemon,
    /// The sink; `None` if the peer is another process.
    sink: Option<Sink>,
    tally: Arc<Tally>,
}

impl BenchSetup {
    fn start(config: &mut TestDaemonConfig) -> Result<Self> {
        Self::start_with(config, false)
    }

    /// With `receipts`, the peer sends a receipt for each message.
    fn start_with(config: &mut TestDaemonConfig, receipts: bool) -> Result<Self> {
        let tally = Arc::new(Tally::new(MAX_MESSAGES));
        let sink = Sink::start(SinkOptions { receipts, ..SinkOptions::default() }, &tally)?;
        config.peer(
            "upstream",
            sink.address(),
            &format!("links = 2\nwindow = 2000\ndlrs = {receipts}\nuncertain = \"send-again\""),
        );
        Ok(Self { sink: Some(sink), ..Self::start_with_peer(config, tally)? })
    }

    /// Starts an appliance whose configuration already has the peer `upstream`, which is running.
    fn start_with_peer(config: &mut TestDaemonConfig, tally: Arc<Tally>) -> Result<Self> {
        let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        config.peer("elsewhere", nobody, "");
        let setup = Self { appliance: config.start()?, sink: None, tally };
        setup.appliance.wait_for_line(Duration::from_secs(20), |text| {
            text.contains("bound") && text.contains("peer=upstream")
        })?;
        Ok(setup)
    }

    /// Waits until every finished message is in the archive.
    fn wait_for_archive(&self) -> Result<()> {
        let caught_up = |archive: &ArchivePumpView| archive.backlog == 0;
        self.appliance.read_until(CATCH_UP, "/v1/archive", caught_up).map(drop)
    }

    fn ask(&self, options: &Options) -> SourceOptions {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.window = options.window / ask.connections;
        ask
    }

    /// Measures traffic at this rate, for the time in the options.
    fn measure(&self, name: &str, options: &Options, rate: Option<f64>) -> Result<Row> {
        let mut ask = self.ask(options);
        ask.rate = rate;
        self.measure_source(name, options, ask)
    }

    /// Measures the traffic of this source, for the time in the options.
    fn measure_source(&self, name: &str, options: &Options, mut ask: SourceOptions) -> Result<Row> {
        // The first second is the warm-up.
        ask.duration = Some(Duration::from_secs(options.seconds + 1));
        let source = Source::start(&ask, &self.tally)?;
        let pause = StopFlag::default();
        pause.pause(Duration::from_secs(1));
        let from = self.thread_times();
        pause.pause(Duration::from_secs(options.seconds) - Duration::from_millis(200));
        let to = self.thread_times();
        let source = source.join()?;
        let backlog =
            self.tally.accepted_count().saturating_sub(self.tally.arrived_count() + self.waiting_count());
        self.drain()?;
        ensure!(source.refusals.is_empty(), "{name}: refused: {:?}", source.refusals);
        let (time, done) = ((to.at - from.at).as_secs_f64(), to.arrived - from.arrived);
        ensure!(done > 0, "{name}: nothing arrived; end of the log:\n{}", self.appliance.log(10));
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

    fn thread_times(&self) -> ThreadTimes {
        ThreadTimes {
            at: Instant::now(),
            arrived: self.tally.arrived_count(),
            threads: cpu_time_by_thread(self.appliance.id()),
            hook: self.hook(),
        }
    }

    /// Calls and seconds of the hook since the start.
    fn hook(&self) -> Option<(f64, f64)> {
        let count = self.appliance.metric("switchyard_hook_seconds_count").ok()?;
        let sum = self.appliance.metric("switchyard_hook_seconds_sum").ok()?;
        Some((count, sum))
    }

    /// Number of messages that wait for the other peer.
    fn waiting_count(&self) -> u64 {
        WAITING.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Submits messages to the peer that is down until this many wait.
    fn fill_queue(&self, options: &Options, wanted: u64) -> Result<()> {
        let missing = wanted.saturating_sub(self.waiting_count());
        let mut ask = self.ask(options);
        ask.prefix = "991".to_owned();
        ask.count = Some(missing);
        let before = self.tally.accepted_count();
        let report = Source::start(&ask, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "parking {missing} messages: refused: {:?}", report.refusals);
        WAITING.fetch_add(self.tally.accepted_count() - before, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all messages to the upstream peer have arrived.
    fn drain(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let pause = StopFlag::default();
        while self.tally.accepted_count() > self.tally.arrived_count() + self.waiting_count() {
            ensure!(
                Instant::now() < deadline,
                "messages do not arrive; end of the log:\n{}",
                self.appliance.log(10)
            );
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Memory of the appliance in octets, once it is stable.
    fn memory(&self) -> Result<u64> {
        let pause = StopFlag::default();
        let mut before = 0;
        for _ in 0..20 {
            pause.pause(Duration::from_millis(500));
            let now = resident_memory(self.appliance.id()).context("reading the appliance's memory")?;
            if now.abs_diff(before) < 1 << 20 {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }
}

/// Number of waiting messages in the current setup; there is only one setup at a time.
static WAITING: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

struct ThreadTimes {
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
    if let Some(BenchCommand::Archive(options)) = &options.command {
        return super::archive_bench::run(options);
    }
    if let Some(BenchCommand::Cluster(cluster)) = &options.command {
        return super::cluster_bench::run(cluster, options.binary.as_deref());
    }
    if let Some(BenchCommand::Console(console)) = &options.command {
        return super::console_bench::run(console, options.binary.as_deref());
    }
    if let Some(BenchCommand::Gsm(gsm)) = &options.command {
        return super::gsm_bench::run(gsm, options.binary.as_deref());
    }
    if let Some(BenchCommand::Hooks(hooks)) = &options.command {
        return super::hooks_bench::run(hooks, options.binary.as_deref());
    }
    if let Some(BenchCommand::Pool(pool)) = &options.command {
        return super::pool_bench::run(pool, options.binary.as_deref());
    }
    if let Some(BenchCommand::Outage) = &options.command {
        return ToolRun::with("outage-", options.binary.as_deref(), |tool_run| {
            measure_outage(tool_run, options)
        });
    }
    ToolRun::with("bench-", options.binary.as_deref(), |tool_run| measure_table(tool_run, options))
}

/// Measures the table of the whole appliance.
fn measure_table(tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!(
        "bench: {} processors shared by appliance, source and sink; {} s each; texts of 100 octets; window {}",
        std::thread::available_parallelism()?,
        options.seconds,
        options.window
    );
    let sync = crate::disk::sync_latency(tool_run.folder.path())?;
    println!("  bare fdatasync on an idle machine: median {} µs", sync.as_micros());
    println!("  {}", HEAD.replace('\n', "\n  "));
    let mut rows = Vec::new();

    let mut config = tool_run.config("plugin")?;
    config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    let setup = BenchSetup::start(&mut config)?;
    let full = setup.measure("flat out", options, None)?;
    rows.push(setup.measure("at half of that", options, Some(full.rate / 2.0))?);
    let limit = full.rate;
    rows.insert(0, full);
    // The same load for every version of the appliance.
    rows.push(setup.measure("at 80,000 a second", options, Some(80_000.0))?);
    let single_message_cost = one_at_a_time(&setup, options)?;
    for waiting in [options.waiting / 10, options.waiting] {
        setup.fill_queue(options, waiting)?;
        rows.push(setup.measure(&format!("{} wait elsewhere", thousands(waiting)), options, None)?);
    }
    let crowded = rows.last().map_or(0.0, |row| row.rate);
    let recovery = recovery(setup)?;

    WAITING.store(0, std::sync::atomic::Ordering::Relaxed);
    let mut config = tool_run.config("native")?;
    config.native("upstream");
    let setup = BenchSetup::start(&mut config)?;
    let native = setup.measure("no plugin: native constant", options, None)?;
    let (links, links_native) = (rows[0].groups.get("links"), native.groups.get("links"));
    let difference = links.zip(links_native).map(|(with, without)| with - without);
    drop(setup);

    let mut config = tool_run.config("receipts")?;
    config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    let setup = BenchSetup::start_with(&mut config, true)?;
    let mut ask = setup.ask(options);
    ask.receipts = true;
    let with_receipts = setup.measure_source("with a receipt for each", options, ask)?;
    // A source that only waits for answers fills the queues: it is faster than peers that answer each message twice.
    let mut ask = setup.ask(options);
    (ask.receipts, ask.receipts_due) = (true, Some(MAX_RECEIPTS_DUE));
    setup.measure_source("as fast as receipts come", options, ask)?;
    ensure!(with_receipts.source.receipts > 0, "no receipt reached the source");
    drop(setup);

    let gateways = [GatewayProtocol::Cmpp, GatewayProtocol::Smgp]
        .map(|protocol| gateway_row(tool_run, options, protocol));

    let memory = memory(tool_run, options)?;
    println!();
    for (gateway, protocol) in gateways.into_iter().zip(["CMPP", "SMGP"]) {
        println!("rate by {protocol}, against SMPP: {:.2}", gateway?.rate / limit);
    }
    match rows[0].hook {
        Some(hook) => println!("router call, as the appliance measures it: {hook:.2} µs"),
        None => println!("router call: none measured"),
    }
    if let Some(difference) = difference {
        println!("link threads with the plugin minus without: {difference:.2} µs a message");
    }
    println!(
        "rate with {} waiting, against none: {:+.1}%",
        thousands(options.waiting),
        (crowded / limit - 1.0) * 100.0
    );
    println!("memory of a waiting message: {memory:.0} octets, caches full before and after");
    println!("{single_message_cost}");
    println!("{} receipts reached the source while it was bound", with_receipts.source.receipts);
    println!("{recovery}");
    let (source, sent) = (&rows[0].source, rows[0].source.answers.count().max(1));
    println!(
        "the source used {:.2} µs of CPU time a message",
        source.processor.as_secs_f64() * 1e6 / sent as f64
    );
    Ok(())
}

/// The same traffic at the maximum rate, with a Chinese gateway as the peer: two connections with the window of the
/// SMPP peer.
fn gateway_row(tool_run: &ToolRun, options: &Options, protocol: GatewayProtocol) -> Result<Row> {
    WAITING.store(0, std::sync::atomic::Ordering::Relaxed);
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let gateway = GatewaySink::start(protocol, &tally)?;
    let name = protocol.name();
    let mut config = tool_run.config(name)?;
    config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    config.tables(&format!(
        "[[gateway]]\nname = \"upstream\"\nprotocol = \"{name}\"\naddress = \"{}\"\nlogin-name = \"901234\"\n\
         login-password = \"1234\"\nconnections = 2\nwindow = 2000\ndlrs = false\nuncertain = \"send-again\"\n",
        gateway.address()
    ));
    let setup = BenchSetup::start_with_peer(&mut config, tally)?;
    setup.measure(&format!("flat out, to a gateway by {name}"), options, None)
}

/// One connection that waits for each answer: the latency and cost of a single message.
fn one_at_a_time(setup: &BenchSetup, options: &Options) -> Result<String> {
    let written = || -> Result<(f64, f64)> {
        let metric = |name| setup.appliance.metric(name);
        Ok((metric("switchyard_commit_seconds_count")?, metric("switchyard_commit_bytes_total")?))
    };
    let mut ask = setup.ask(options);
    (ask.connections, ask.window) = (1, 1);
    let before = written()?;
    let row = setup.measure_source("one at a time", options, ask)?;
    let after = written()?;
    let messages = row.source.answers.count().max(1) as f64;
    Ok(format!(
        "one at a time: {:.2} commits, each with one fdatasync, and {:.0} octets of the journal a message",
        (after.0 - before.0) / messages,
        (after.1 - before.1) / messages
    ))
}

/// The archive's database stops and restarts under full load.
fn measure_outage(tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!("  {}", HEAD.replace('\n', "\n  "));
    let mut config = tool_run.config("none")?;
    config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    let setup = BenchSetup::start(&mut config)?;
    let without = setup.measure("no archive", options, None)?;
    drop(setup);

    let folder = tempfile::tempdir()?;
    let mut database = testkit::database::Database::mariadb(folder.path())?;
    let mut config = tool_run.config("archive")?;
    config.archive(&database.url()).router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    let setup = BenchSetup::start(&mut config)?;
    let up = setup.measure("MariaDB up", options, None)?;
    setup.wait_for_archive()?;
    database.stop()?;
    let before = setup.tally.accepted_count();
    let down = setup.measure("MariaDB stopped", options, None)?;
    let missed = setup.tally.accepted_count() - before;
    aims::check(missed >= 100_000, || {
        format!("only {missed} messages while the database was stopped; take more --seconds")
    })?;
    database.start()?;
    let back = setup.measure("MariaDB back, catching up", options, None)?;
    let began = Instant::now();
    setup.wait_for_archive()?;
    let took = began.elapsed();
    let rows = database.query("SELECT COUNT(*), COUNT(DISTINCT id) FROM messages")?;
    let accepted = setup.tally.accepted_count();
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
    ensure!(
        rows == [[accepted.to_string(), accepted.to_string()]],
        "the table does not contain exactly the accepted messages"
    );
    Ok(())
}

/// Maximum time for the pump to catch up.
const CATCH_UP: Duration = Duration::from_secs(300);

/// Stops the appliance with its waiting messages, and restarts it.
fn recovery(setup: BenchSetup) -> Result<String> {
    let BenchSetup { appliance, sink, .. } = setup;
    let (status, config) = appliance.stop()?;
    ensure!(status.success(), "the stop ended with {status}");
    drop(sink);
    let again = config.start()?;
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

/// Memory per waiting message, with small caches that are full before the first measurement.
fn memory(tool_run: &ToolRun, options: &Options) -> Result<f64> {
    let mut config = tool_run.config("memory")?;
    config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
    config.tables("[engine]\nbody-cache = \"4MiB\"\nstore-cache = \"32MiB\"\n");
    let setup = BenchSetup::start(&mut config)?;
    let (few, many) = (options.waiting / 4, options.waiting);
    setup.fill_queue(options, few)?;
    let before = setup.memory()?;
    setup.fill_queue(options, many)?;
    let after = setup.memory()?;
    Ok((after as f64 - before as f64) / (many - few) as f64)
}
