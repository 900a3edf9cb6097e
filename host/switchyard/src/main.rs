//! The Switchyard daemon: `switchyard serve`, `check`, `hash-password`, `sms`, `plugin`, and the admin's commands.

mod appliance;
mod archiving;
mod backup;
mod boards;
mod causes;
mod config;
mod configuring;
mod core_loop;
mod dlr_repetition;
mod drain;
mod facts;
mod gsm;
mod ledger;
mod logging;
mod look_ups;
mod manifest;
mod measuring;
mod memory;
mod messages;
mod operation;
mod opt_out;
mod orders;
mod plugins;
mod pools;
mod questions;
mod reading;
mod records;
mod replays;
mod restore;
mod routing;
mod serve;
mod subscribers;
mod supervision;
mod telemetry;
mod testing;
mod traces;
mod vital;

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

// Messages are made on one thread and dropped on another by the million.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "An SMS routing appliance", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the appliance.
    Serve {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Read a configuration file over and tell everything that is wrong with it.
    Check {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Make a data directory out of a backup.
    Restore(restore::RestoreCommand),
    /// Read a password from standard input and print its hash for the configuration.
    HashPassword,
    /// Send texts and read them, on the command line of the appliance's machine or over ssh.
    Sms(shell::Command),
    /// Write, build, test and sign plugins, and bring them to an appliance.
    #[command(subcommand)]
    Plugin(workbench::Command),
    /// Run a sample SMSC for the appliance's peers to connect to.
    Sink(traffic::SinkCommand),
    /// Submit sample messages, as an ESME does.
    Send(traffic::SendCommand),
    #[command(flatten)]
    Admin(cli::Command),
}

/// What the admin's commands know of this program.
const HOUSE: cli::House =
    cli::House { command: Arguments::command, version: env!("CARGO_PKG_VERSION"), read: facts::facts };

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks on its standard streams"
)]
fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Serve { config } => {
            let result = configuring::boot(&config).and_then(|(config, booted)| {
                let logging = logging::Logging::start(&config.log)?;
                serve::serve(config, booted, logging)
            });
            match result {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("switchyard: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
        Task::Check { config } => match config::Config::load(&config) {
            Ok(checked) => {
                println!("{}: right: {}", config.display(), checked.summary());
                match configuring::what_counts(&config) {
                    Ok(words) => println!("{words}"),
                    Err(error) => println!(
                        "to learn which configuration the next start takes, run this as the daemon's user while the daemon is \
                         stopped, or ask the daemon with `switchyard config show`: {error:#}"
                    ),
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Task::Sms(command) => command.run(),
        Task::Plugin(command) => command.run(),
        Task::Sink(command) => command.run(),
        Task::Send(command) => command.run(),
        Task::Admin(command) => command.run(&HOUSE),
        Task::Restore(command) => match command.run() {
            Ok(words) => {
                println!("{words}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("switchyard: {error:#}");
                ExitCode::FAILURE
            }
        },
        Task::HashPassword => match hash_password() {
            Ok(hash) => {
                println!("{hash}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("switchyard: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Reads a password from standard input, so that it is in no list of processes.
fn hash_password() -> anyhow::Result<String> {
    let mut password = String::new();
    std::io::stdin().read_line(&mut password)?;
    let password = password.trim_end_matches(['\n', '\r']);
    anyhow::ensure!(
        !password.is_empty(),
        "no password on standard input; try: echo -n secret | switchyard hash-password"
    );
    Ok(doors::hash_password(password.as_bytes())?)
}
