//! `switchyard context`: names for several appliances.

use crate::global_args::exit_help;
use crate::output::{Failure, Output, OutputFormat, Streams};
use crate::table_output::TableArgs;
use clap::{Args, Subcommand};
use client::{ConnectionArgs, ContextSettings, Contexts};
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard context add lab --url https://lab.example.net:8080 --token-file ~/lab.token
  switchyard context add live --url https://switch.example.net:8080    # then: switchyard login ann --context live
  switchyard context list
  switchyard context use live
  switchyard status --context lab

--url, and --context NAME or SWITCHYARD_CONTEXT, come before the environment; the context of `use` comes after SWITCHYARD_URL.
The file is switchyard/contexts.json in the user's configuration folder; only its owner can read it."
);

/// Arguments of `context`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ContextCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    tables: TableArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all contexts; the current one has a star.
    List,
    /// Add a context with the given --url, --token or --token-file, --ca and --client-certificate.
    Add {
        /// Its name: letters, digits, and . - _
        name: String,
    },
    /// Use a context in later commands.
    Use {
        /// Its name.
        name: String,
    },
    /// Remove a context.
    Remove {
        /// Its name.
        name: String,
    },
}

impl ContextCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, connection, json, tables } = self;
        let format = if json { OutputFormat::Json } else { OutputFormat::default() };
        let output = Output::new(streams, format, tables);
        let done = task.run(connection, &output);
        output.finish(done)
    }
}

impl Task {
    fn run(self, connection: ConnectionArgs, output: &Output) -> Result<(), Failure> {
        let mut contexts = Contexts::read()?;
        match self {
            Self::List => return list(&contexts, output),
            Self::Add { name } => {
                let settings = connection.context_settings()?;
                contexts.add(&name, settings)?;
            }
            Self::Use { name } => contexts.choose(&name)?,
            Self::Remove { name } => contexts.remove(&name)?,
        }
        Ok(contexts.write()?)
    }
}

/// The credentials of a context, without the secret.
fn credentials(settings: &ContextSettings) -> String {
    match (&settings.token_file, &settings.token) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(_)) => "token".to_owned(),
        (None, None) => "login".to_owned(),
    }
}

fn list(contexts: &Contexts, output: &Output) -> Result<(), Failure> {
    let is_current = |name: &str| contexts.current.as_deref() == Some(name);
    if output.json {
        let all = contexts.contexts.iter().map(|(name, settings)| {
            json!({
                "name": name,
                "url": settings.url,
                "credentials": credentials(settings),
                "ca": settings.ca,
                "current": is_current(name),
            })
        });
        return output.document(&all.collect::<Vec<_>>());
    }
    if contexts.contexts.is_empty() {
        return output.line("there are no contexts: switchyard context add NAME --url URL");
    }
    let rows: Vec<Vec<String>> = contexts
        .contexts
        .iter()
        .map(|(name, settings)| {
            let star = if is_current(name) { "*" } else { "" };
            vec![star.to_owned(), name.clone(), settings.url.clone(), credentials(settings)]
        })
        .collect();
    output.table(&["", "name", "url", "credentials"], &rows)
}
