//! A lookup table as large as the numbers of a country: import, memory, file, restart, and lookups of `number-portability`.

use super::guests::Guests;
use super::programs::BenchPrograms;
use super::{Options, median};
use crate::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use api::TableFillResult;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;
use testkit::load::resident_memory;
use testkit::test_daemon::free_port;

const TABLE: &str = "ported";
const POLICY: &str =
    "[[source]]\ntable = \"ported\"\n[[network]]\nname = \"north\"\nmcc = \"262\"\nmnc = \"01\"\n";
/// Numbers that are looked up in rotation, scattered over the table: more than the processor's caches hold.
const SAMPLE: u64 = 100_000;
/// The numbers of the table: a prefix, and this many digits.
const DIGITS: u64 = 10_000_000_000;
/// Coprime to the count of numbers, so that it scatters them without repetition.
const STRIDE: u64 = 7_368_787;

fn number(n: u64) -> String {
    format!("49{:010}", n.wrapping_mul(STRIDE) % DIGITS)
}

/// One of six values, as in a portability database.
fn value(n: u64) -> &'static str {
    ["262-01", "262-02", "262-03", "north", "\"262-03,mobile\"", "\"north,not-ported,mobile\""]
        [(n % 6) as usize]
}

fn csv(rows: u64) -> Result<String> {
    let mut csv = String::with_capacity(usize::try_from(rows)?.saturating_mul(28));
    for n in 0..rows {
        writeln!(csv, "{},{}", number(n), value(n))?;
    }
    Ok(csv)
}

/// Peak memory of a process, in octets.
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn mebibytes(octets: u64) -> f64 {
    octets as f64 / f64::from(1 << 20)
}

pub(super) fn measure(
    programs: &BenchPrograms,
    tool_run: &ToolRun,
    guests: &Guests,
    options: &Options,
) -> Result<()> {
    let rows = options.rows.max(1);
    println!("\n5. A lookup table of {rows} rows");
    let mut config = tool_run.config("table")?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    config.native("upstream").peer("upstream", nowhere, "");
    let appliance = config.start()?;
    let memory = |process| resident_memory(process).context("the daemon's memory");
    let (empty_start, empty) = (appliance.started_in(), memory(appliance.id())?);
    let csv = csv(rows)?;
    let begun = Instant::now();
    let path = format!("/v1/tables/{TABLE}?kind=exact");
    let filled: TableFillResult = appliance.upload("PUT", &path, csv.as_bytes())?;
    let import = begun.elapsed().as_secs_f64();
    ensure!(filled.rows == rows, "{} rows of {rows} are in the table", filled.rows);
    let peak = peak_memory(appliance.id()).context("the daemon's peak")?;
    let filled_memory = memory(appliance.id())?.saturating_sub(empty);
    let file = appliance.config().data().join("tables").join(format!("{TABLE}.table"));
    let file = std::fs::metadata(&file).with_context(|| format!("{}", file.display()))?.len();
    println!(
        "  import over HTTP: {import:.1} s, {:.0} rows/s; the CSV has {:.0} MiB, its file {:.0}",
        rows as f64 / import,
        mebibytes(csv.len() as u64),
        mebibytes(file)
    );
    drop(csv);
    println!(
        "  memory: the table {:.0} MiB, {:.1} octets a row; the daemon {:.0} MiB more than before, at most {:.0} in all",
        mebibytes(filled.octets),
        filled.octets as f64 / rows as f64,
        mebibytes(filled_memory),
        mebibytes(peak)
    );
    let (_, config) = appliance.stop()?;
    let appliance = config.start()?;
    println!(
        "  start: {:.2} s with the table, {:.2} s without; the daemon has {:.0} MiB",
        appliance.started_in().as_secs_f64(),
        empty_start.as_secs_f64(),
        mebibytes(memory(appliance.id())?)
    );
    let (_, config) = appliance.stop()?;
    let step = (rows / SAMPLE).max(1);
    let numbers: Vec<String> = (0..rows).step_by(usize::try_from(step)?).map(number).collect();
    let plugin = json!({
        "name": "number-portability", "hook": "lookup", "component": guests.default("number_portability"), "policy": POLICY,
    });
    let task = json!({ "table": {
        "rounds": options.rounds, "tables": config.data().join("tables"), "table": TABLE, "numbers": numbers, "plugin": plugin } });
    let measured = programs.ask(&workspace::target().join("bench-library"), &task)?;
    let of = |name: &str| {
        let rounds = measured[name].as_array().into_iter().flatten().filter_map(Value::as_f64);
        median(&rounds.collect::<Vec<_>>())
    };
    println!(
        "  a lookup, ns of processor time, of {} numbers by turns (median of {} rounds): in the table {:.0}, by the plugin {:.0}, \
         cached {:.0}",
        numbers.len(),
        options.rounds,
        of("table"),
        of("plugin"),
        of("cached")
    );
    Ok(())
}
