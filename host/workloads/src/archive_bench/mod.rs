//! `cargo xtask bench archive`: the data pump compared with plain INSERTs into the same table on the same server, and query
//! latency in a large history.

pub(super) mod memory_source;
mod plain_inserter;
pub(super) mod queries;

use super::tool_run::runs_dir;
use anyhow::{Context, Result, ensure};
use archive::{Archive, RunningPump};
use memory_source::MemorySource;
use plain_inserter::PlainInserter;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::database::Database;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages in the queried history.
    #[arg(long, default_value_t = 5_000_000)]
    rows: u64,
    /// Queries by number.
    #[arg(long, default_value_t = 500)]
    questions: u64,
    /// Messages per write measurement.
    #[arg(long, default_value_t = 40_000)]
    messages: u64,
    /// Number of write measurements; pump and plain INSERTs alternate.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measure only this database: sqlite, mariadb or postgres.
    #[arg(long)]
    only: Option<String>,
}

/// Rows per transaction, of the pump and of the plain INSERTs.
const BATCH: usize = 2000;

/// A database that exists for one measurement.
enum BenchDatabase {
    File(tempfile::TempDir),
    /// The server is declared first, so that it is dropped before its folder.
    Server(Database, #[allow(dead_code, reason = "removed when dropped")] tempfile::TempDir),
}

impl BenchDatabase {
    fn start(name: &str, above: &Path) -> Result<Self> {
        // On the build disk: on a memory file system, a commit would cost nothing.
        let folder = tempfile::Builder::new().prefix("bench-archive-").tempdir_in(above)?;
        Ok(match name {
            "sqlite" => Self::File(folder),
            "mariadb" => Self::Server(Database::mariadb(folder.path())?, folder),
            _ => Self::Server(Database::postgres(folder.path())?, folder),
        })
    }

    /// The URL of an empty database.
    fn url(&self, name: &str) -> Result<String> {
        match self {
            Self::File(folder) => Ok(format!("sqlite:{}", folder.path().join(name).display())),
            Self::Server(server, _) => server.create(name),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let above = runs_dir()?;
    println!(
        "bench archive: {} processors shared by pump and server; {} rounds of {} messages; {BATCH} rows a transaction",
        std::thread::available_parallelism()?,
        options.rounds,
        options.messages
    );
    let mut lines = Vec::new();
    for name in ["sqlite", "mariadb", "postgres"] {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let database = BenchDatabase::start(name, &above).with_context(|| format!("starting {name}"))?;
        let line = std::thread::scope(|scope| {
            let measuring = scope.spawn(|| {
                // The pump runs at low priority, so the baseline must, too; the server does not.
                rustix::process::setpriority_process(None, 10).context("lowering the priority")?;
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
                measure(name, &database, options, &runtime)
            });
            measuring.join().map_err(|_| anyhow::anyhow!("the measurement panicked"))?
        })
        .with_context(|| name.to_owned())?;
        println!("  {line}");
        lines.push(line);
    }
    ensure!(!lines.is_empty(), "unknown database {:?}; use sqlite, mariadb or postgres", options.only);
    println!("\n  {HEAD}");
    for line in &lines {
        println!("  {line}");
    }
    Ok(())
}

const HEAD: &str = "data base    pump, rows/s   plain INSERT, rows/s   pump/plain   rows asked   by number: p50   p99   longest ms   by id: p50 ms";

fn measure(
    name: &str,
    database: &BenchDatabase,
    options: &Options,
    runtime: &tokio::runtime::Runtime,
) -> Result<String> {
    let (pumped, plainly) = (database.url("pumped")?, database.url("plainly")?);
    // Without the pauses that the pump makes in favour of traffic.
    let settings = archive::ArchiveOptions { batch: BATCH, share: 1.0, ..archive::ArchiveOptions::default() };
    let archive = Archive::open(&pumped, settings)?;
    runtime.block_on(archive.prepare())?;
    // The same tables and indexes, created by the same statements.
    runtime.block_on(Archive::open(&plainly, settings)?.prepare())?;
    let source = Arc::new(MemorySource::default());
    let pump = archive.pump(source.clone()).start()?;

    // Warms up, and finds the fastest statement size of the baseline.
    let mut next = round(&pump, &source, 0, options.messages)?.0;
    let mut plain = runtime.block_on(PlainInserter::connect(&plainly))?;
    let rows = runtime.block_on(plain_inserter::rows(&archive, options.messages))?;
    let mut id = 0;
    let mut best = (0.0, 0);
    for &size in plain.sizes() {
        let rate = runtime.block_on(plain.insert(&rows, &mut id, size))?;
        println!("  {name}: plain INSERTs of {size} rows: {rate:.0} rows/s");
        if rate > best.0 {
            best = (rate, size);
        }
    }
    let (mut pump_rates, mut plain_rates) = (Vec::new(), Vec::new());
    for turn in 0..options.rounds.max(1) {
        let rate;
        (next, rate) = round(&pump, &source, next, options.messages)?;
        pump_rates.push(rate);
        plain_rates.push(runtime.block_on(plain.insert(&rows, &mut id, best.1))?);
        println!("  {name}: round {turn}: pump {rate:.0}, plain {:.0} rows/s", plain_rates[turn]);
    }
    pump.stop();
    let (pump_rate, plain_rate) = (median(&mut pump_rates), median(&mut plain_rates));
    let asked = queries::measure(&archive, &pumped, options.rows, options.questions, runtime)?;
    Ok(format!(
        "{name:<10}{pump_rate:>15.0}{plain_rate:>23.0}{:>12.0}%{:>13}{:>17.2}{:>6.2}{:>13.2}{:>16.2}",
        pump_rate / plain_rate * 100.0,
        asked.rows,
        asked.by_number.0,
        asked.by_number.1,
        asked.by_number.2,
        asked.by_id
    ))
}

/// Sends messages through the pump; returns the next number and the rate.
fn round(pump: &RunningPump, source: &Arc<MemorySource>, first: u64, messages: u64) -> Result<(u64, f64)> {
    source.put(first, messages);
    let begun = Instant::now();
    pump.wake();
    if !source.wait_until_empty(Duration::from_secs(600)) {
        anyhow::bail!("the pump has stopped: {:?}", pump.status());
    }
    Ok((first + messages, messages as f64 / begun.elapsed().as_secs_f64()))
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}
