//! The plugin tools alone: `switchyard plugin` without the rest of the appliance. Tests run it.

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Create, build, test and deploy plugins", version)]
struct Arguments {
    #[command(subcommand)]
    command: workbench::PluginCommand,
}

fn main() -> ExitCode {
    broken_pipe::end_quietly();
    Arguments::parse().command.run()
}
