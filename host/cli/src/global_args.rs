//! The arguments of all commands: the appliance and the output format; and the exit statuses.

use crate::output::{Failure, Output, Streams};
use api::Problem;
use clap::Args;
use client::{ApiClient, ClientError, ConnectionArgs};
use std::process::ExitCode;

/// The help text about exit statuses that all commands share.
macro_rules! exit_help {
    ($($more:literal),* $(,)?) => {
        concat!(
            "Exit status:\n",
            "  0  done\n",
            "  1  the appliance refused, or the object does not exist; standard error says why\n",
            "  2  the command line or the token is wrong, or the appliance cannot be reached\n",
            $($more, "\n"),*
        )
    };
}
pub(crate) use exit_help;

/// The appliance, and the output format.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

impl GlobalArgs {
    /// Whether no appliance and no output format was given.
    pub(crate) fn has_defaults(&self) -> bool {
        !self.json && !self.connection.has_url()
    }

    /// Runs a task with the API client, and returns its exit code.
    pub(crate) fn run(
        self,
        streams: Streams,
        task: impl FnOnce(&ApiClient, &Output) -> Result<(), Failure>,
    ) -> ExitCode {
        self.run_owned(streams, |api, output| task(&api, output))
    }

    /// As `run`, for a task that needs to own the client, to use it on another thread.
    pub(crate) fn run_owned(
        self,
        streams: Streams,
        task: impl FnOnce(ApiClient, &Output) -> Result<(), Failure>,
    ) -> ExitCode {
        let output = Output::new(streams, self.json);
        let done = match self.connection.connect() {
            Ok(api) => task(api, &output),
            Err(error) => Err(error.into()),
        };
        output.finish(done)
    }
}

/// The answer to a request that an appliance may not support, or may forbid to this caller.
pub(crate) fn optional<T>(answer: Result<T, ClientError>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(ClientError::Refused(Problem { status: 403..=405 | 409, .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
