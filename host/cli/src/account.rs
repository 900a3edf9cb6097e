//! `switchyard account`: whoever submits messages.

use crate::output::Streams;
use crate::party::{How, change, parties, party, show, show_all};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard account list
  switchyard account set shop rate=100
  switchyard account show demo --json | jq .queue.queued"
);

/// Arguments of `account`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct AccountCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
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
    /// Add an account, or change one; only its own connections are touched.
    #[command(
        after_help = "Examples:\n  echo -n secret | switchyard hash-password | switchyard account set shop \
                            password-hash=@-\n  switchyard account set shop rate=100 window=10"
    )]
    Set {
        /// Its name.
        name: String,
        /// Its settings: KEY=VALUE, KEY=@FILE with the value in a file, or KEY alone to take it away.
        #[arg(required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Take an account away; what waits for it stays, until it is there again.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        how: How,
    },
}

impl AccountCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| match task {
            Task::List => show_all(output, &parties(appliance, true)?, true),
            Task::Show { name } => show(output, &party(appliance, true, &name)?),
            Task::Set { name, settings, how } => {
                change(appliance, output, true, ("account", &name), Some(&settings), &how)
            }
            Task::Remove { name, how } => change(appliance, output, true, ("account", &name), None, &how),
        })
    }
}
