//! Measures the cost of plugin calls, and the effect of activations on concurrent calls. `cargo xtask bench hooks`
//! sends the tasks as JSON on standard input, and makes a table of the JSON output.
#![allow(clippy::print_stdout, reason = "the results go to standard output")]

mod bench_fixture;
mod cached_lookups;
mod calls;
mod exchange;
mod native;
mod table;
mod tenants;

use serde::Deserialize;
use std::path::PathBuf;

/// The allocator of the appliance: its share of a call is not small.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A measurement.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    /// The cost of a warm call.
    Calls(calls::Task),
    /// The time of activations, and the longest call meanwhile.
    Exchange(exchange::Task),
    /// The cost of lookups in a large table.
    Table(table::Task),
    /// A router for each of many tenants, compared with one router.
    Tenants(tenants::Task),
}

/// A plugin to be measured.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Plugin {
    /// Its name in the results.
    name: String,
    /// screen, lookup, router, resolver, delivery-policy, receipt or biller.
    hook: model::Hook,
    component: PathBuf,
    policy: String,
    /// Messages in a batch; 1 if omitted.
    batch: Option<usize>,
}

/// Any error ends the measurement.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let task: Task = serde_json::from_reader(std::io::stdin())?;
    let folder = std::env::args_os().nth(1).ok_or("which folder? plugins are kept there, compiled")?;
    let folder = PathBuf::from(folder);
    let open = || bench_fixture::BenchFixture::open(&folder);
    let measured = match task {
        Task::Calls(task) => serde_json::to_value(calls::measure(&open()?, &task)?)?,
        Task::Exchange(task) => serde_json::to_value(exchange::measure(&open()?, &task)?)?,
        Task::Tenants(task) => serde_json::to_value(tenants::measure(&folder, &task)?)?,
        Task::Table(task) => serde_json::to_value(table::measure(&folder, task)?)?,
    };
    println!("{measured}");
    Ok(())
}
