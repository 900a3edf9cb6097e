//! The Switchyard daemon: `switchyard serve`, `check`, `hash-password`, `sms`, `pool`, `plugin`.

mod appliance;
mod archiving;
mod config;
mod core_loop;
mod gsm;
mod ledger;
mod opt_out;
mod plugins;
mod pools;
mod questions;
mod reading;
mod records;
mod replays;
mod routing;
mod serve;

use clap::{Parser, Subcommand};
use std::io::IsTerminal as _;
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
    /// Read a password from standard input and print its hash for the configuration.
    HashPassword,
    /// Send texts and read them, on the command line of the appliance's machine or over ssh.
    Sms(shell::Command),
    /// Number pools: numbers that many users share, each held by one at a time.
    Pool(cli::PoolCommand),
    /// Write, build, test and sign plugins, and bring them to an appliance.
    #[command(subcommand)]
    Plugin(workbench::Command),
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks on its standard streams"
)]
fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Serve { config } => {
            tracing_subscriber::fmt()
                .with_env_filter(
                    tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
                )
                .with_writer(std::io::stderr)
                .with_ansi(std::io::stderr().is_terminal())
                .init();
            let result = config::Config::load(&config).map_err(anyhow::Error::from).and_then(serve::serve);
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
                println!(
                    "{}: right: {} listeners, {} accounts, {} peers, {} gateways",
                    config.display(),
                    checked.listeners.len() + checked.sgip_listeners.len(),
                    checked.accounts.len(),
                    checked.peers.len(),
                    checked.gateways.len()
                );
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Task::Sms(command) => command.run(),
        Task::Pool(command) => command.run(),
        Task::Plugin(command) => command.run(),
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
