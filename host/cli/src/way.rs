//! What every command has in common: which appliance, for whom its answer is, and how it ends.

use crate::output::{Failure, Output, Streams};
use clap::Args;
use client::{Appliance, At, ClientError};
use serde_json::Value;
use std::process::ExitCode;

/// How a command ends, as all of them tell it in their help.
macro_rules! exits {
    ($($more:literal),* $(,)?) => {
        concat!(
            "Exit status:\n",
            "  0  done\n",
            "  1  the appliance refused, or there is no such thing; standard error says why\n",
            "  2  the command line is wrong, the token is, or the appliance cannot be reached\n",
            $($more, "\n"),*
        )
    };
}
pub(crate) use exits;

/// Which appliance, and for whom.
#[derive(Debug, Args)]
pub(crate) struct Way {
    #[command(flatten)]
    at: At,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

impl Way {
    /// Whether nothing was said of which appliance is meant, nor that the answer is for a program.
    pub(crate) fn is_plain(&self) -> bool {
        !self.json && !self.at.is_said()
    }

    /// Does what is to be done, and ends.
    pub(crate) fn ask(
        self,
        streams: Streams,
        task: impl FnOnce(&Appliance, &Output) -> Result<(), Failure>,
    ) -> ExitCode {
        self.keep(streams, |appliance, output| task(&appliance, output))
    }

    /// The same for a task that keeps the appliance: to ask it on a thread of its own.
    pub(crate) fn keep(
        self,
        streams: Streams,
        task: impl FnOnce(Appliance, &Output) -> Result<(), Failure>,
    ) -> ExitCode {
        let output = Output::new(streams, self.json);
        let done = match self.at.reach() {
            Ok(appliance) => task(appliance, &output),
            Err(error) => Err(error.into()),
        };
        output.end(done)
    }
}

/// What an appliance may not have, or not show to this caller.
pub(crate) fn optional(answer: Result<Value, ClientError>) -> Result<Option<Value>, Failure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(ClientError::Refused { status: 403..=405 | 409, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
