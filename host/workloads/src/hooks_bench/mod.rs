//! `cargo xtask bench hooks`: the cost of plugins. A call by language, all four default plugins end to end, an
//! activation under traffic, a replay, a large lookup table, a peer over HTTP, a router for each of many tenants.

mod calls;
mod exchange;
mod guests;
mod http_peer;
mod programs;
mod replay;
mod table;
mod tenants;
mod traffic;

use super::tool_run::{ToolRun, daemon};
use anyhow::Result;
use guests::Guests;
use programs::BenchPrograms;
use std::path::Path;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only this part: calls, traffic, exchange, replay, table, peer or tenants.
    #[arg(long)]
    only: Option<String>,
    /// Measurements per call; the median counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Also measure Python for hooks other than the router. Each of these plugins takes a minute to compile for the
    /// first time.
    #[arg(long)]
    all: bool,
    /// Pairs of end-to-end measurements: without plugins, with them.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seconds per end-to-end measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Activations under traffic.
    #[arg(long, default_value_t = 20)]
    activations: usize,
    /// Messages in the replayed archive.
    #[arg(long, default_value_t = 300_000)]
    messages: u64,
    /// Rows of the lookup table; 10000000 correspond to the numbers of a country.
    #[arg(long, default_value_t = 500_000)]
    rows: u64,
    /// Messages in each run to a peer, over HTTP and over SMPP.
    #[arg(long, default_value_t = 10_000)]
    submissions: u64,
    /// Number of tenants, each with its own router.
    #[arg(long, default_value_t = 1_000)]
    tenants: usize,
    /// Calls of the routers of tenants in each round.
    #[arg(long, default_value_t = 20_000)]
    tenant_calls: usize,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    let programs = BenchPrograms::next_to(&daemon(binary)?)?;
    let others = options.wants("calls") || options.wants("exchange");
    let guests = Guests::build(&programs.daemon, others, options.all)?;
    ToolRun::with("bench-hooks-", Some(&programs.daemon), |tool_run| {
        measure(&programs, &guests, tool_run, options)
    })
}

fn measure(programs: &BenchPrograms, guests: &Guests, tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!("bench hooks: {} processors, shared by all programs", std::thread::available_parallelism()?);
    let begun = Instant::now();
    if options.wants("calls") {
        calls::measure(programs, guests, options)?;
    }
    if options.wants("traffic") {
        traffic::measure(tool_run, guests, options)?;
    }
    if options.wants("exchange") {
        exchange::measure(programs, tool_run, guests, options)?;
    }
    if options.wants("replay") {
        replay::measure(tool_run, options)?;
    }
    if options.wants("table") {
        table::measure(programs, tool_run, guests, options)?;
    }
    if options.wants("peer") {
        http_peer::measure(tool_run, guests, options)?;
    }
    if options.wants("tenants") {
        tenants::measure(programs, tool_run, guests, options)?;
    }
    println!("bench hooks: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn longest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
