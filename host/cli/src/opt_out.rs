//! `switchyard opt-out`: manages opt-outs of subscribers.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{OptOutChange, OptOutView, OptOutsView};
use clap::{Args, Subcommand};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard opt-out list
  switchyard opt-out stop 10655 8613012345678
  switchyard opt-out allow 10655 8613012345678"
);

/// Arguments of `opt-out`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct OptOutCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the first 1,000 opt-outs.
    List,
    /// Block messages of this sender to this subscriber.
    Stop(Pair),
    /// Permit messages of this sender to this subscriber again.
    Allow(Pair),
}

#[derive(Debug, Args)]
struct Pair {
    /// The sender's number.
    sender: String,
    /// The subscriber's number.
    subscriber: String,
}

impl OptOutCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| {
            let (Pair { sender, subscriber }, stop) = match task {
                Task::List => return show(output, &api.read("/v1/opt-outs")?),
                Task::Stop(pair) => (pair, true),
                Task::Allow(pair) => (pair, false),
            };
            let change = OptOutChange { sender, subscriber, stop };
            let () = api.call("POST", "/v1/opt-outs", &change)?;
            if output.json {
                return output.document(&change);
            }
            let becomes = if stop { "blocked" } else { "permitted" };
            output.line(&format!("{} to {}: {becomes}", change.sender, change.subscriber))
        })
    }
}

fn show(output: &Output, opt_outs: &OptOutsView) -> Result<(), Failure> {
    if output.json {
        return output.document(opt_outs);
    }
    let row = |pair: &OptOutView| vec![value_text(&pair.sender), value_text(&pair.subscriber)];
    let rows: Vec<_> = opt_outs.stopped.iter().map(row).collect();
    if rows.is_empty() {
        output.remark("there are no opt-outs");
        return Ok(());
    }
    output.table(&["SENDER", "SUBSCRIBER"], &rows)
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::{OptOutChange, OptOutView, OptOutsView};
    use serde_json::Value;

    #[test]
    fn an_opt_out_is_added_and_removed() {
        let opt_out = OptOutView { sender: "10655".to_owned(), subscriber: "8613".to_owned() };
        let api = FakeApi::default().with("POST /v1/opt-outs", 204, &Value::Null).with(
            "GET /v1/opt-outs",
            200,
            &OptOutsView { stopped: vec![opt_out] },
        );
        let url = api.start();
        assert_eq!(run(&url, &["opt-out", "stop", "10655", "8613"]).out, "10655 to 8613: blocked\n");
        assert_eq!(run(&url, &["opt-out", "list"]).out, "SENDER  SUBSCRIBER\n10655   8613\n");
        assert_eq!(run(&url, &["opt-out", "allow", "10655", "8613"]).code, 0);
        let stops: Vec<bool> = api
            .requests()
            .iter()
            .filter_map(|request| Some(serde_json::from_str::<OptOutChange>(&request.body).ok()?.stop))
            .collect();
        assert_eq!(stops, [true, false]);
    }
}
