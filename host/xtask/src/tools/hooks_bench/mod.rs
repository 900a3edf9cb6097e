//! `cargo xtask bench hooks`: what plugins cost. A call by language, all four default plugins end to end, an activation
//! under traffic, a replay.

mod calls;
mod exchange;
mod guests;
mod measuring;
mod replay;
mod traffic;

use super::place::Place;
use anyhow::Result;
use guests::Guests;
use measuring::Measuring;
use std::path::Path;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this part: calls, traffic, exchange or replay.
    #[arg(long)]
    only: Option<String>,
    /// Measurements of each call; the median counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Python for the hooks beside the router too: each of these guests takes a minute to compile, the first time.
    #[arg(long)]
    all: bool,
    /// Pairs of measurements end to end: without plugins, with them.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seconds of each of them.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Activations under traffic.
    #[arg(long, default_value_t = 20)]
    activations: usize,
    /// Messages of the archive that is replayed.
    #[arg(long, default_value_t = 300_000)]
    messages: u64,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    let measuring = match binary {
        Some(binary) => Measuring::beside(binary)?,
        None => Measuring::build()?,
    };
    let others = options.wants("calls") || options.wants("exchange");
    let guests = Guests::build(&measuring.daemon, others, options.all)?;
    Place::with("bench-hooks-", Some(&measuring.daemon), |place| measure(&measuring, &guests, place, options))
}

fn measure(measuring: &Measuring, guests: &Guests, place: &Place, options: &Options) -> Result<()> {
    println!(
        "bench hooks: {} processors, shared by everything that takes part",
        std::thread::available_parallelism()?
    );
    let begun = Instant::now();
    if options.wants("calls") {
        calls::measure(measuring, guests, options)?;
    }
    if options.wants("traffic") {
        traffic::measure(place, guests, options)?;
    }
    if options.wants("exchange") {
        exchange::measure(measuring, place, guests, options)?;
    }
    if options.wants("replay") {
        replay::measure(place, options)?;
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
