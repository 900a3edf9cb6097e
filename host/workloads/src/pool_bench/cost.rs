//! Cost of a call by the size of the pool.

use super::target::{ClientLoad, Target, TargetKind};
use super::{Distribution, Options};
use crate::tool_run::ToolRun;
use anyhow::Result;

const CLIENT_LOAD: (usize, usize) = (50, 16);

pub(super) fn measure(options: &Options, tool_run: &ToolRun) -> Result<()> {
    let folder = tool_run.folder.path().join("cost");
    let target = Target::start(TargetKind::Ours, &folder, Some(tool_run), &Target::script(&folder)?)?;
    println!(
        "\n  a call and its hangup, by pool size; {} connections, batches of {} calls; {} alternating rounds of {} s",
        CLIENT_LOAD.0, CLIENT_LOAD.1, options.rounds, options.seconds
    );
    println!(
        "     numbers       pairs a second: least    median  greatest   processor, µs a pair   memory, octets a number"
    );
    let mut pools = Vec::new();
    for &size in &options.sizes {
        let before = target.memory().unwrap_or_default();
        let pool = target.pool(&format!("numbers-{size}"), size)?;
        let memory = target.memory().unwrap_or_default().saturating_sub(before) as f64 / size as f64;
        pools.push((size, pool, memory, Vec::new()));
    }
    let load = ClientLoad { connections: CLIENT_LOAD.0, batch: CLIENT_LOAD.1, threads: options.callers };
    for _ in 0..options.rounds {
        for (_, pool, _, row) in &mut pools {
            row.push(target.measure(pool, load, options.time())?);
        }
    }
    let mut first = None;
    for (size, _, memory, row) in &pools {
        let rates = Distribution::of(row.iter().map(|one| one.report.rate));
        let cost = Distribution::of(row.iter().map(|one| one.cost)).median;
        let against = cost / *first.get_or_insert(cost);
        println!(
            "  {size:>10}{:>28.0}{:>10.0}{:>10.0}{cost:>15.2} ({against:.2} times){memory:>18.0}",
            rates.min, rates.median, rates.max
        );
    }
    Ok(())
}
