//! The author's commands alone: what `switchyard plugin` does, without an appliance around it. Tests run it.

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "What a plugin's author does", version)]
struct Arguments {
    #[command(subcommand)]
    command: workbench::Command,
}

fn main() -> ExitCode {
    Arguments::parse().command.run()
}
