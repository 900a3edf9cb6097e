//! `switchyard account`: manages accounts.

use crate::global_args::{GlobalArgs, exit_help};
use crate::output::Streams;
use crate::peer_or_account::{ConfigChangeArgs, change, load, load_all, print, print_all};
use clap::{Args, Subcommand};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard account list
  switchyard account set shop rate=100
  switchyard account show demo --json | jq .queue.queued"
);

/// Arguments of `account`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct AccountCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all accounts, with their links and queues.
    List,
    /// Show one account: queue, links, configuration without secrets.
    Show {
        /// Its name.
        name: String,
    },
    /// Add or change an account; only its own connections are affected.
    #[command(
        after_help = "Examples:\n  echo -n secret | switchyard hash-password | switchyard account set shop \
                            password-hash=@-\n  switchyard account set shop rate=100 window=10"
    )]
    Set {
        /// Its name.
        name: String,
        /// Its settings: KEY=VALUE, KEY=@FILE with the value in a file, or KEY alone to remove the setting.
        #[arg(required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        change_args: ConfigChangeArgs,
    },
    /// Remove an account; messages that wait for it stay until it is configured again.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        change_args: ConfigChangeArgs,
    },
}

impl AccountCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| match task {
            Task::List => print_all(output, &load_all(api, true)?, true),
            Task::Show { name } => print(output, &load(api, true, &name)?),
            Task::Set { name, settings, change_args } => {
                change(api, output, true, ("account", &name), Some(&settings), &change_args)
            }
            Task::Remove { name, change_args } => {
                change(api, output, true, ("account", &name), None, &change_args)
            }
        })
    }
}
