//! `switchyard opt-out`: manages opt-outs of subscribers.

use crate::format::{table, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard opt-out list
  switchyard opt-out stop 10655 8613012345678
  switchyard opt-out allow 10655 8613012345678"
);

/// Arguments of `opt-out`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
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
                Task::List => return show(output, &api.get("/v1/opt-outs")?),
                Task::Stop(pair) => (pair, true),
                Task::Allow(pair) => (pair, false),
            };
            let body = json!({ "sender": sender, "subscriber": subscriber, "stop": stop });
            api.post("/v1/opt-outs", &body)?;
            if output.json {
                return output.document(&body);
            }
            let becomes = if stop { "blocked" } else { "permitted" };
            output.line(&format!("{sender} to {subscriber}: {becomes}"))
        })
    }
}

fn show(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |pair: &Value| vec![value_text(&pair["sender"]), value_text(&pair["subscriber"])];
    let rows: Vec<_> = answer["stopped"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output.remark("there are no opt-outs");
        return Ok(());
    }
    output.write(&table(&["SENDER", "SUBSCRIBER"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use serde_json::{Value, json};

    #[test]
    fn an_opt_out_is_added_and_removed() {
        let api = FakeApi::default().with("POST /v1/opt-outs", 204, &Value::Null).with(
            "GET /v1/opt-outs",
            200,
            &json!({ "stopped": [{ "sender": "10655", "subscriber": "8613" }] }),
        );
        let url = api.start();
        assert_eq!(run(&url, &["opt-out", "stop", "10655", "8613"]).out, "10655 to 8613: blocked\n");
        assert_eq!(run(&url, &["opt-out", "list"]).out, "SENDER  SUBSCRIBER\n10655   8613\n");
        assert_eq!(run(&url, &["opt-out", "allow", "10655", "8613"]).code, 0);
        let stops: Vec<bool> = api
            .requests()
            .iter()
            .filter_map(|request| serde_json::from_str::<Value>(&request.body).ok()?["stop"].as_bool())
            .collect();
        assert_eq!(stops, [true, false]);
    }
}
