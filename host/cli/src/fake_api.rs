//! For tests: a function that runs a command line against a fake of the API.

use crate::command::CliCommand;
use crate::context::{CliContext, ConfigFacts};
use crate::global_args::GlobalArgs;
use crate::output::{Failure, Output, Streams};
use clap::{CommandFactory, Parser};
use client::ApiClient;
use serde_json::Value;
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

pub(crate) use testkit::fake_api::fixtures::{NOW, VERSION};
pub(crate) use testkit::fake_api::{FakeApi, RecordedRequest};

/// The command line with the admin's commands only.
#[derive(Debug, Parser)]
#[command(name = "switchyard", version = "0.1.0", about = "An SMS routing appliance", term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

pub(crate) fn context() -> CliContext {
    CliContext { command: CommandLine::command, version: VERSION, read: read_facts }
}

/// Reads a configuration of the tests, which is JSON.
fn read_facts(path: &Path) -> Result<ConfigFacts, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
    let data = PathBuf::from(value["data"].as_str().unwrap());
    let listens = value["listens"].as_object().unwrap().iter();
    let listens = listens.map(|(name, address)| (name.clone(), address.as_str().unwrap().parse().unwrap()));
    Ok(ConfigFacts {
        summary: "nothing".to_owned(),
        token_file: data.join("token"),
        data,
        free_space_watermark: value["watermark"].as_u64().unwrap(),
        listens: listens.collect(),
        connections: value["connections"].as_u64().unwrap(),
        url: value["url"].as_str().unwrap().to_owned(),
        archive: value["archive"].as_str().map(str::to_owned),
        journal: stored(&value["journal"]),
        tables: stored(&value["tables"]),
        text_keys: stored(&value["text_keys"]),
    })
}

/// The state of a part of the data directory: damaged if the text says so.
fn stored(state: &Value) -> Option<Result<String, String>> {
    let text = state.as_str()?;
    Some(text.strip_prefix("damaged: ").map_or_else(|| Ok(text.to_owned()), |what| Err(what.to_owned())))
}

/// The result of a command: exit code and output.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) error: String,
}

#[derive(Clone, Default)]
struct SharedBuffer(Rc<RefCell<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(octets)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command line against the server at `url`.
pub(crate) fn run(url: &str, arguments: &[&str]) -> CommandOutcome {
    let line = ["switchyard"].into_iter().chain(arguments.iter().copied());
    let calls_api = !["completions", "man"].contains(&arguments[0]);
    let target = if calls_api { &["--url", url, "--token", "t0ken"][..] } else { &[] };
    let (out, error) = (SharedBuffer::default(), SharedBuffer::default());
    let code = match CommandLine::try_parse_from(line.chain(target.iter().copied())) {
        Ok(line) => line.command.run_on(Streams::captured(out.clone(), error.clone()), &context()),
        Err(invalid) => {
            write!(error.clone(), "{invalid}").unwrap();
            ExitCode::from(u8::try_from(invalid.exit_code()).unwrap())
        }
    };
    outcome(code, &out, &error)
}

/// A command line with only the arguments for the appliance.
#[derive(Debug, Parser)]
struct GlobalLine {
    #[command(flatten)]
    global: GlobalArgs,
}

/// Runs a task of a command with a client of the server at `url`.
pub(crate) fn run_task(
    url: &str,
    task: impl FnOnce(&ApiClient, &Output) -> Result<(), Failure>,
) -> CommandOutcome {
    let line = GlobalLine::parse_from(["switchyard", "--url", url, "--token", "t0ken"]);
    let (out, error) = (SharedBuffer::default(), SharedBuffer::default());
    let code = line.global.run(Streams::captured(out.clone(), error.clone()), task);
    outcome(code, &out, &error)
}

fn outcome(code: ExitCode, out: &SharedBuffer, error: &SharedBuffer) -> CommandOutcome {
    let code = (0..=255).find(|number| ExitCode::from(*number) == code).unwrap();
    let text = |sink: &SharedBuffer| String::from_utf8(sink.0.borrow().clone()).unwrap();
    CommandOutcome { code, out: text(out), error: text(error) }
}

/// A command fails if it cannot read an answer.
#[test]
fn commands_read_all_answers_of_an_appliance() {
    let url = FakeApi::appliance(6, 4).start();
    for line in [
        "status",
        "top --once --interval 1s",
        "message show 1",
        "message trace 2",
        "subscriber show --number 4915112345678",
        "peer list",
        "peer show north",
        "account list",
        "account show acme",
        "config show",
        "config versions",
        "config diff 6 7",
        "drain show",
        "queue list",
        "queue actions",
        "queue uncertain",
        "pool list",
        "pool history support",
        "table list",
        "table look-up tariffs 49151",
        "ledger list",
        "ledger show acme",
        "ledger operations acme",
        "opt-out list",
        "refusals",
        "log-level",
        "whoami",
        "user list",
        "token list",
        "audit",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        for arguments in [arguments.clone(), [&arguments[..], &["--json"]].concat()] {
            let done = run(&url, &arguments);
            assert!(done.code == 0 && done.error.is_empty(), "{arguments:?}: {done:?}");
        }
    }
}
