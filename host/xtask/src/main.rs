//! The house's own tools: `cargo xtask demo`, `test`, `bench`, `crash`, `swap`, `plugins`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod plugins;
mod tools;

use clap::{Parser, Subcommand};
use xtask::house;

#[derive(Parser)]
#[command(about = "Switchyard's own tools", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the plugins into target/plugins.
    Plugins,
    /// Run the load generator's source against its sink, without an appliance: what the measuring tools can do.
    Load(tools::load::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Plugins => {
            println!("plugins: in {}", plugins::build()?.display());
        }
        Task::Load(options) => tools::load::run(&options)?,
    }
    Ok(())
}
