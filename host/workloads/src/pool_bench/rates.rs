//! Pairs of call and hangup per second, alternating between the servers.

use super::target::{CallRates, ClientLoad, Pool, Target, TargetKind};
use super::{Distribution, Options};
use crate::tool_run::ToolRun;
use anyhow::{Context, Result};
use std::path::Path;

/// Required rate of the appliance with [`CONNECTIONS`] and batches, as a multiple of Redis.
const REQUIRED_RATES: [(TargetKind, f64); 2] = [(TargetKind::RedisAlways, 2.0), (TargetKind::Redis, 1.0)];
const CONNECTIONS: usize = 50;

const HEAD: &str = "connections  batch                            pairs a second            answers, µs                       processor, µs a pair\n                                           least    median  greatest      p50      p99    p99.9  longest    server   callers";

pub(super) fn measure(
    options: &Options,
    kinds: &[TargetKind],
    folder: &Path,
    tool_run: Option<&ToolRun>,
) -> Result<()> {
    let script = Target::script(folder)?;
    let mut targets = Vec::new();
    for &kind in kinds {
        let target = Target::start(kind, folder, tool_run, &script)
            .with_context(|| format!("starting: {}", kind.name()))?;
        let pool = target.pool("pool", options.numbers)?;
        targets.push((target, pool));
    }
    println!(
        "\n  a call and its hangup, by the legacy script; {} numbers in the pool; {} alternating rounds of {} s",
        options.numbers, options.rounds, options.seconds
    );
    println!("  {}", HEAD.replace('\n', "\n  "));
    for &connections in &options.connections {
        for &batch in &options.pipeline {
            cell(options, &targets, ClientLoad { connections, batch, threads: options.callers })?;
        }
    }
    Ok(())
}

fn cell(options: &Options, targets: &[(Target, Pool)], load: ClientLoad) -> Result<()> {
    let mut rows: Vec<(TargetKind, Vec<CallRates>)> =
        targets.iter().map(|(target, _)| (target.kind, Vec::new())).collect();
    for _ in 0..options.rounds {
        for ((target, pool), (_, row)) in targets.iter().zip(&mut rows) {
            row.push(target.measure(pool, load, options.time())?);
        }
    }
    for (kind, row) in &rows {
        println!("  {}", line(load, *kind, row));
        if options.by_thread {
            by_thread(row);
        }
    }
    let median = |kind: TargetKind| {
        let (_, row) = rows.iter().find(|(other, _)| *other == kind)?;
        Some(Distribution::of(row.iter().map(|one| one.report.rate)).median)
    };
    if let Some(ours) = median(TargetKind::Ours) {
        for (kind, aim) in REQUIRED_RATES {
            let Some(theirs) = median(kind) else { continue };
            let ratio = ours / theirs;
            let verdict = match (load.connections == CONNECTIONS && load.batch > 1, ratio >= aim) {
                (false, _) => String::new(),
                (true, true) => format!("; the aim is {aim}: reached"),
                (true, false) => format!("; the aim is {aim}: MISSED"),
            };
            println!("{:>21}{ratio:.2} times {}{verdict}", "", kind.name());
        }
    }
    Ok(())
}

fn line(load: ClientLoad, kind: TargetKind, row: &[CallRates]) -> String {
    let rates = Distribution::of(row.iter().map(|one| one.report.rate));
    let mut times = testkit::load::Histogram::default();
    row.iter().for_each(|one| times.add(&one.report.times));
    let micros = |share| times.quantile(share).as_micros();
    let cost = Distribution::of(row.iter().map(|one| one.cost)).median;
    let callers =
        Distribution::of(row.iter().map(|one| {
            one.report.processor.as_secs_f64() * 1e6 * 2.0 / one.report.times.count().max(1) as f64
        }));
    format!(
        "{:>11}{:>7}  {:<20}{:>9.0}{:>10.0}{:>10.0}{:>9}{:>9}{:>9}{:>9}{cost:>10.2}{:>10.2}",
        load.connections,
        load.batch,
        kind.name(),
        rates.min,
        rates.median,
        rates.max,
        micros(0.5),
        micros(0.99),
        micros(0.999),
        times.max().as_micros(),
        callers.median
    )
}

fn by_thread(row: &[CallRates]) {
    let names: std::collections::BTreeSet<_> = row.iter().flat_map(|one| one.threads.keys()).collect();
    for name in names {
        let cost =
            Distribution::of(row.iter().map(|one| one.threads.get(name).copied().unwrap_or(0.0))).median;
        if cost >= 0.01 {
            println!("{:>23}{name:<16}{cost:>8.2} µs of a processor a pair", "");
        }
    }
}
