//! `cargo xtask bench pool`: numbers taken and given back, by clients of the Redis protocol, from the appliance and from
//! Debian's redis-server with a script that does the same.

mod cost;
mod disk;
mod rates;
mod target;

use crate::tools::place::{Place, runs};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Duration;
use target::Kind;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement, after half a second of warming up.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Measurements of each cell, by turns with the others'.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Connections, several with commas.
    #[arg(long, value_delimiter = ',', default_value = "1,50,500")]
    connections: Vec<usize>,
    /// Calls that a connection sends at once, several with commas; 1: not pipelined.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    pipeline: Vec<usize>,
    /// Numbers in the pool that is asked.
    #[arg(long, default_value_t = 100_000)]
    numbers: usize,
    /// Sizes of the pools of which a call's cost is compared, several with commas.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000")]
    sizes: Vec<usize>,
    /// Only these, with commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Only this part.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Threads of those who call.
    #[arg(long, default_value_t = 1)]
    callers: usize,
    /// Also what each of the appliance's threads used.
    #[arg(long)]
    by_thread: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// How long the disk takes.
    Disk,
    /// Pairs a second, beside Redis.
    Rates,
    /// What a call costs by the size of the pool.
    Cost,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.part.is_none_or(|only| only == part)
    }

    fn kinds(&self) -> Vec<Kind> {
        let all = [Kind::Redis, Kind::RedisAlways, Kind::Ours];
        all.into_iter().filter(|kind| self.only.is_empty() || self.only.contains(kind)).collect()
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// Least, middle and greatest of several measurements.
struct Spread {
    least: f64,
    middle: f64,
    greatest: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { least: at(0), middle: at(values.len() / 2), greatest: at(values.len().wrapping_sub(1)) }
    }
}

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    ensure!(options.seconds > 0.0 && options.rounds > 0, "--seconds and --rounds must be more than none");
    crate::tools::setup::packages(|name| name == "redis-server")?;
    let kinds = options.kinds();
    // On the disk of the build: a memory file system would make a commit free.
    let folder = tempfile::Builder::new().prefix("bench-pool-").tempdir_in(runs()?)?;
    println!(
        "bench pool: {} processors, shared by the server and those who call ({} thread)",
        std::thread::available_parallelism()?,
        options.callers
    );
    if options.wants(Part::Disk) {
        disk::measure(folder.path())?;
    }
    let measure = |place: Option<&Place>| -> Result<()> {
        if options.wants(Part::Rates) {
            rates::measure(options, &kinds, folder.path(), place)?;
        }
        if let Some(place) = place.filter(|_| options.wants(Part::Cost)) {
            cost::measure(options, place)?;
        }
        Ok(())
    };
    if kinds.contains(&Kind::Ours) && options.part != Some(Part::Disk) {
        Place::with("bench-pool-ours-", binary, |place| measure(Some(place)))
    } else {
        measure(None)
    }
}
