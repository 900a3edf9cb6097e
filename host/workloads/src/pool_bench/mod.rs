//! `cargo xtask bench pool`: numbers leased and released over the Redis protocol, by the appliance and by
//! Debian's redis-server with an equivalent script.

mod cost;
mod rates;
mod target;

use crate::tool_run::{ToolRun, runs_dir};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Duration;
use target::TargetKind;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds per measurement, after half a second of warm-up.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Measurements per cell; the servers alternate.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of connections, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,50,500")]
    connections: Vec<usize>,
    /// Calls that a connection sends at once, separated by commas; 1: not pipelined.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    pipeline: Vec<usize>,
    /// Numbers in the measured pool.
    #[arg(long, default_value_t = 100_000)]
    numbers: usize,
    /// Pool sizes for the cost comparison, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000")]
    sizes: Vec<usize>,
    /// Measure only these servers, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<TargetKind>,
    /// Run only this part.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Threads of the callers.
    #[arg(long, default_value_t = 1)]
    callers: usize,
    /// Also print the CPU time of each of the appliance's threads.
    #[arg(long)]
    by_thread: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Latency of the disk.
    Disk,
    /// Pairs per second, compared with Redis.
    Rates,
    /// Cost of a call by the size of the pool.
    Cost,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.part.is_none_or(|only| only == part)
    }

    fn kinds(&self) -> Vec<TargetKind> {
        let all = [TargetKind::Redis, TargetKind::RedisAlways, TargetKind::Ours];
        all.into_iter().filter(|kind| self.only.is_empty() || self.only.contains(kind)).collect()
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Minimum, median and maximum of several measurements.
struct Distribution {
    min: f64,
    median: f64,
    max: f64,
}

impl Distribution {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { min: at(0), median: at(values.len() / 2), max: at(values.len().wrapping_sub(1)) }
    }
}

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    ensure!(options.seconds > 0.0 && options.rounds > 0, "--seconds and --rounds must be greater than zero");
    workspace::packages::install(|name| name == "redis-server")?;
    let kinds = options.kinds();
    // On the build disk: on a memory file system, a commit would cost nothing.
    let folder = tempfile::Builder::new().prefix("bench-pool-").tempdir_in(runs_dir()?)?;
    println!(
        "bench pool: {} processors, shared by the server and the callers ({} thread)",
        std::thread::available_parallelism()?,
        options.callers
    );
    if options.wants(Part::Disk) {
        crate::disk::measure(folder.path())?;
    }
    let measure = |tool_run: Option<&ToolRun>| -> Result<()> {
        if options.wants(Part::Rates) {
            rates::measure(options, &kinds, folder.path(), tool_run)?;
        }
        if let Some(tool_run) = tool_run.filter(|_| options.wants(Part::Cost)) {
            cost::measure(options, tool_run)?;
        }
        Ok(())
    };
    if kinds.contains(&TargetKind::Ours) && options.part != Some(Part::Disk) {
        ToolRun::with("bench-pool-ours-", binary, |tool_run| measure(Some(tool_run)))
    } else {
        measure(None)
    }
}
