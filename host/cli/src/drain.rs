//! `switchyard drain`: nothing new is taken, what waits goes out.

use crate::output::{Failure, Output, Streams};
use crate::table::{count, list, moment, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples, before the machine is taken down:
  switchyard drain start
  switchyard drain show --json | jq .left
  systemctl stop switchyard"
);

/// Arguments of `drain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct DrainCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Take nothing new from now on; submitters are told to come back later.
    Start {
        /// Refuse new binds and logins, too.
        #[arg(long)]
        refuse_binds: bool,
    },
    /// Take traffic again.
    Stop,
    /// Show whether it is drained, and what is left.
    Show,
}

impl DrainCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| {
            match task {
                Task::Start { refuse_binds } => {
                    let how = if refuse_binds { json!({ "refuse-binds": true }) } else { json!({}) };
                    drop(appliance.post("/v1/drain", &how)?);
                }
                Task::Stop => drop(appliance.delete("/v1/drain")?),
                Task::Show => {}
            }
            show(output, &appliance.get("/v1/drain")?)
        })
    }
}

fn show(output: &Output, drain: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(drain);
    }
    if drain["draining"] != true {
        return output.line("not draining: traffic is taken");
    }
    output.write(&list(&[
        ("draining since", moment(&drain["since"])),
        ("by", word(&drain["by"])),
        ("waiting", count(&drain["left"]["waiting"])),
        ("in flight", count(&drain["left"]["in-flight"])),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    #[test]
    fn a_drain_begins_and_ends() {
        let draining = json!({
            "draining": true, "since": NOW, "by": "ada", "left": { "waiting": 1_200, "in-flight": 3 },
        });
        let stub = Stub::default()
            .with("POST /v1/drain", 200, &draining)
            .with("DELETE /v1/drain", 204, &Value::Null)
            .with("GET /v1/drain", 200, &draining)
            .with("GET /v1/drain", 200, &json!({ "draining": false, "since": null, "by": null }));
        let url = stub.start();
        let done = run(&url, &["drain", "start"]);
        let shown = "draining since  2026-11-21 16:03:02Z\nby              ada\nwaiting         1,200\nin flight       3\n";
        assert_eq!((done.code, done.out.as_str(), done.error.as_str()), (0, shown, ""));
        let done = run(&url, &["drain", "stop"]);
        assert_eq!((done.code, done.out.as_str()), (0, "not draining: traffic is taken\n"));
        let asked: Vec<String> = stub.asked().into_iter().map(|asked| asked.what).collect();
        assert_eq!(asked, ["POST /v1/drain", "GET /v1/drain", "DELETE /v1/drain", "GET /v1/drain"]);
    }
}
