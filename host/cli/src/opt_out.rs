//! `switchyard opt-out`: which subscribers have told which senders to stop.

use crate::output::{Failure, Output, Streams};
use crate::table::{table, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
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
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the first thousand.
    List,
    /// Send nothing more from this sender to this subscriber.
    Stop(Pair),
    /// Send again.
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
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| {
            let (Pair { sender, subscriber }, stop) = match task {
                Task::List => return show(output, &appliance.get("/v1/opt-outs")?),
                Task::Stop(pair) => (pair, true),
                Task::Allow(pair) => (pair, false),
            };
            let wanted = json!({ "sender": sender, "subscriber": subscriber, "stop": stop });
            appliance.post("/v1/opt-outs", &wanted)?;
            if output.json {
                return output.document(&wanted);
            }
            let becomes = if stop { "nothing more is sent" } else { "messages are sent" };
            output.line(&format!("{sender} to {subscriber}: {becomes}"))
        })
    }
}

fn show(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |pair: &Value| vec![word(&pair["sender"]), word(&pair["subscriber"])];
    let rows: Vec<_> = answer["stopped"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output.remark("nobody has opted out");
        return Ok(());
    }
    output.write(&table(&["SENDER", "SUBSCRIBER"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::{Value, json};

    #[test]
    fn a_sender_is_stopped_and_allowed_again() {
        let stub = Stub::default().with("POST /v1/opt-outs", 204, &Value::Null).with(
            "GET /v1/opt-outs",
            200,
            &json!({ "stopped": [{ "sender": "10655", "subscriber": "8613" }] }),
        );
        let url = stub.start();
        assert_eq!(
            run(&url, &["opt-out", "stop", "10655", "8613"]).out,
            "10655 to 8613: nothing more is sent\n"
        );
        assert_eq!(run(&url, &["opt-out", "list"]).out, "SENDER  SUBSCRIBER\n10655   8613\n");
        assert_eq!(run(&url, &["opt-out", "allow", "10655", "8613"]).code, 0);
        let stops: Vec<bool> = stub
            .asked()
            .iter()
            .filter_map(|asked| serde_json::from_str::<Value>(&asked.body).ok()?["stop"].as_bool())
            .collect();
        assert_eq!(stops, [true, false]);
    }
}
