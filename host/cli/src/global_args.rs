//! The arguments of all commands: the appliance and the output format; and the exit statuses.

use crate::output::{Failure, Output, OutputFormat, Streams};
use crate::table_output::TableArgs;
use crate::watch::watch;
use api::Problem;
use clap::Args;
use client::{ApiClient, ClientError, ConnectionArgs};
use model::parse_duration;
use std::process::ExitCode;
use std::time::Duration;

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
    /// Print JSON, for programs: the same as `--output json`.
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,
    /// The format of the output: text, json, yaml, or csv (tables only).
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    output: Option<OutputFormat>,
    /// Run the command again every 2 seconds, or at the given interval. Requests that change something are refused.
    #[arg(long, global = true, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "2s", value_parser = watch_interval)]
    watch: Option<Duration>,
    /// Refuse to send requests that change something.
    #[arg(long, global = true, hide = true)]
    read_only: bool,
    #[command(flatten)]
    tables: TableArgs,
}

/// Parses the interval at which a command queries the appliance.
pub(crate) fn refresh_interval(text: &str) -> Result<Duration, String> {
    interval(text, Duration::from_millis(100))
        .ok_or_else(|| "expected a time from 100ms to 1h, such as 2s".to_owned())
}

/// Parses the interval of `--watch`.
fn watch_interval(text: &str) -> Result<Duration, String> {
    interval(text, Duration::from_millis(200))
        .ok_or_else(|| "expected a time from 200ms to 1h, such as 5s".to_owned())
}

fn interval(text: &str, least: Duration) -> Option<Duration> {
    parse_duration(text).filter(|interval| (least..=Duration::from_secs(3_600)).contains(interval))
}

impl GlobalArgs {
    /// Whether no appliance and no output format was given.
    pub(crate) fn has_defaults(&self) -> bool {
        !self.json && self.output.is_none() && !self.connection.has_url()
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
        let format = if self.json { OutputFormat::Json } else { self.output.unwrap_or_default() };
        let output = Output::new(streams, format, self.tables);
        if let Some(interval) = self.watch {
            return watch(interval).unwrap_or_else(|failure| output.finish(Err(failure)));
        }
        let done = match self.connection.connect() {
            Ok(api) => task(if self.read_only { api.read_only() } else { api }, &output),
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
