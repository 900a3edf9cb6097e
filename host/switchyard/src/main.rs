//! The Switchyard executable: `switchyard serve`, `check`, `hash-password`, `sms`, `plugin`, and the admin commands.

mod api_services;
mod archived_message;
mod archiving;
mod arguments;
mod audit_collector;
mod backup;
mod batch_size;
mod binding_requests;
mod blocked_by;
#[cfg(test)]
mod cli_reference;
mod cluster_node;
mod cluster_sinks;
mod config;
mod config_manager;
mod conversion_log;
mod conversions;
mod core_handle;
mod core_loop;
mod critical_thread;
mod data_folder;
mod dlr_resend;
mod doctor;
mod drain;
mod erasures;
mod error_causes;
mod event_sinks;
mod explain;
mod followed_state;
mod front_ends;
mod gsm;
mod hook_metrics;
mod hook_service;
mod hook_workers;
mod housekeeper;
mod http_listeners;
mod journal_command;
mod leading_node;
mod ledger;
mod listeners;
mod logging;
mod lookups;
mod manifest;
mod memory;
mod message_cases;
mod message_lookups;
mod message_service;
mod message_state;
mod messages;
mod metrics;
mod notices;
mod operation;
mod opt_out;
mod pace_buckets;
mod partitions;
mod peer_observer;
mod peer_roles;
mod peer_snapshots;
mod plugin_setup;
mod plugin_sources;
mod plugins;
mod policy_try;
mod pools;
mod privacy_command;
mod problems;
mod process_metrics;
mod quarantine;
mod queue_actions;
mod recent_traffic;
mod records;
mod recovery;
mod replays;
mod restore;
mod routing;
mod serve;
mod service_manager;
mod shared_state;
mod shell_records;
mod source_readers;
mod status;
mod stop_signals;
mod store_setup;
mod subscribers;
mod table_writer;
mod telemetry;
mod tenants;
mod testing;
mod text_encryption;
mod traces;
mod traffic_flows;
mod unreadable_log;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

// Millions of messages are allocated on one thread and freed on another.
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
    /// Run the daemon.
    Serve {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Validate a configuration file and report all problems.
    Check {
        /// The configuration file.
        #[arg(long)]
        config: PathBuf,
    },
    /// Restore a data directory from a backup.
    Restore(restore::RestoreCommand),
    /// Show and verify the journal of a data directory, also while a daemon uses it.
    #[command(subcommand)]
    Journal(journal_command::JournalCommand),
    /// Create root keys; list and destroy the keys that encrypt texts.
    #[command(subcommand)]
    Privacy(privacy_command::PrivacyCommand),
    /// Read a password from standard input and print its hash for the configuration.
    HashPassword,
    /// Send and read texts, locally or over ssh.
    Sms(shell::SmsCommand),
    /// Create, build, test, sign and upload plugins.
    #[command(subcommand)]
    Plugin(workbench::PluginCommand),
    /// Try policy documents of plugins before they are activated.
    #[command(subcommand)]
    Policy(workbench::PolicyCommand),
    /// Run a sample SMSC to which the appliance can connect.
    Sink(traffic::SinkCommand),
    /// Submit sample messages as an ESME.
    Send(traffic::SendCommand),
    #[command(flatten)]
    Admin(cli::CliCommand),
}

/// The context of the admin commands.
const BY_DAEMON: cli::CliContext = cli::CliContext {
    command: Arguments::command,
    version: env!("CARGO_PKG_VERSION"),
    read: doctor::config_facts,
};

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool writes to the standard streams"
)]
fn main() -> ExitCode {
    let matches = cli::with_help_groups(Arguments::command()).get_matches();
    let task = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments.task,
        Err(error) => error.exit(),
    };
    if !matches!(task, Task::Serve { .. }) {
        broken_pipe::end_quietly();
    }
    match task {
        Task::Serve { config } => {
            let result = config_manager::load_configuration(&config).and_then(|(config, startup)| {
                let logging = logging::LogControl::start(&config.log)?;
                serve::serve(config, startup, logging)
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
                println!("{}: valid: {}", config.display(), checked.summary());
                match config_manager::describe_next_start(&config) {
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
        Task::Policy(command) => command.run(),
        Task::Sink(command) => command.run(),
        Task::Send(command) => command.run(),
        Task::Admin(command) => command.run(&BY_DAEMON),
        Task::Restore(command) => print_result(command.run()),
        Task::Journal(command) => print_result(command.run()),
        Task::Privacy(command) => print_result(command.run()),
        Task::HashPassword => print_result(hash_password()),
    }
}

/// Prints the result of a command.
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool writes to the standard streams"
)]
fn print_result(result: anyhow::Result<String>) -> ExitCode {
    match result {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("switchyard: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the password from standard input, so that it does not appear in process lists.
fn hash_password() -> anyhow::Result<String> {
    let mut password = String::new();
    std::io::stdin().read_line(&mut password)?;
    let password = password.trim_end_matches(['\n', '\r']);
    anyhow::ensure!(
        !password.is_empty(),
        "no password on standard input; try: echo -n secret | switchyard hash-password"
    );
    Ok(ports::hash_password(password.as_bytes())?)
}
