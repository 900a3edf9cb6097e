//! What calls of plugins cost, and what an exchange of plugins does to the calls of others. `cargo xtask bench hooks` says
//! what to measure, as JSON on standard input, and makes a table of the JSON that comes out.
#![allow(clippy::print_stdout, reason = "what it has measured goes to standard output")]

mod calls;
mod exchange;
mod house;
mod native;

use serde::Deserialize;
use std::path::PathBuf;

/// What is to be measured.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    /// What a warm call costs.
    Calls(calls::Task),
    /// How long activations take, and the longest call meanwhile.
    Exchange(exchange::Task),
}

/// A plugin that takes part.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Plugin {
    /// What it is called in the results.
    name: String,
    /// router, resolver, delivery-policy or biller.
    hook: model::Hook,
    component: PathBuf,
    policy: String,
}

/// Anything that goes wrong ends the measurement.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let task: Task = serde_json::from_reader(std::io::stdin())?;
    let folder = std::env::args_os().nth(1).ok_or("which folder? plugins are kept there, compiled")?;
    let house = house::House::open(&PathBuf::from(folder))?;
    let measured = match task {
        Task::Calls(task) => serde_json::to_value(calls::measure(&house, &task)?)?,
        Task::Exchange(task) => serde_json::to_value(exchange::measure(&house, &task)?)?,
    };
    println!("{measured}");
    Ok(())
}
