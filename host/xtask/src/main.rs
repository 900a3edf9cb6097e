//! The house's own tools: `cargo xtask demo`, `test`, `bench`, `crash`, `swap`, `plugins`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod house;
mod plugins;

use clap::{Parser, Subcommand};

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Plugins => {
            println!("plugins: in {}", plugins::build()?.display());
        }
    }
    Ok(())
}
