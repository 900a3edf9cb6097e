//! `switchyard drain`: starts and stops the drain of the appliance, and shows its progress.

use crate::format::{list, number, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{DrainOptions, DrainStateView};
use clap::{Args, Subcommand};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples, before a shutdown:
  switchyard drain start
  switchyard drain show --json | jq .remaining
  systemctl stop switchyard"
);

/// Arguments of `drain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DrainCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Refuse new submissions with a temporary error.
    Start {
        /// Refuse new binds and logins as well.
        #[arg(long)]
        refuse_binds: bool,
    },
    /// Accept submissions again.
    Stop,
    /// Show whether the appliance drains, and how many messages remain.
    Show,
}

impl DrainCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| {
            match task {
                Task::Start { refuse_binds } => {
                    let _: DrainStateView = api.call("POST", "/v1/drain", &DrainOptions { refuse_binds })?;
                }
                Task::Stop => drop(api.delete("/v1/drain")?),
                Task::Show => {}
            }
            show(output, &api.read("/v1/drain")?)
        })
    }
}

fn show(output: &Output, drain: &DrainStateView) -> Result<(), Failure> {
    if output.json {
        return output.document(drain);
    }
    if !drain.draining {
        return output.line("not draining: submissions are accepted");
    }
    output.write(&list(&[
        ("draining since", timestamp(&drain.since)),
        ("by", value_text(&drain.by)),
        ("waiting", number(drain.remaining.waiting)),
        ("in flight", number(drain.remaining.in_flight)),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use api::{DrainStateView, RemainingMessagesView};

    #[test]
    fn a_drain_starts_and_stops() {
        let state = |draining: bool| DrainStateView {
            draining,
            refuse_binds: false,
            since: draining.then_some(NOW),
            by: draining.then(|| "ada".to_owned()),
            remaining: RemainingMessagesView { waiting: 1_200, in_flight: 3 },
        };
        let api = FakeApi::default()
            .with("POST /v1/drain", 200, &state(true))
            .with("DELETE /v1/drain", 200, &state(false))
            .with("GET /v1/drain", 200, &state(true))
            .with("GET /v1/drain", 200, &state(false));
        let url = api.start();
        let done = run(&url, &["drain", "start"]);
        let shown = "draining since  2026-11-21 16:03:02Z\nby              ada\nwaiting         1,200\nin flight       3\n";
        assert_eq!((done.code, done.out.as_str(), done.error.as_str()), (0, shown, ""));
        let done = run(&url, &["drain", "stop"]);
        assert_eq!((done.code, done.out.as_str()), (0, "not draining: submissions are accepted\n"));
        let request: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
        assert_eq!(request, ["POST /v1/drain", "GET /v1/drain", "DELETE /v1/drain", "GET /v1/drain"]);
    }
}
