//! `switchyard peer`: where messages go out.

use crate::output::{Failure, Output, Streams};
use crate::party::{How, change, parties, party, show, show_all};
use crate::table::{table, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, segment};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard peer list
  switchyard peer show upstream
  switchyard peer set upstream rate=50
  switchyard peer test upstream
  switchyard peer dial upstream"
);

/// Arguments of `peer`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct PeerCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all peers, with their links and queues.
    List,
    /// Show one peer: queue, links, configuration without secrets.
    Show {
        /// Its name.
        name: String,
    },
    /// Add a peer, or change one; only its own connections are touched.
    #[command(
        after_help = "Examples:\n  switchyard peer set upstream address=smsc.example.net:2775 system-id=us \
                            password=@secret.txt\n  switchyard peer set upstream rate=50 --confirm-within 10m\n  switchyard peer \
                            set upstream rate                        # no rate any more"
    )]
    Set {
        /// Its name.
        name: String,
        /// Its settings: KEY=VALUE, KEY=@FILE with the value in a file, or KEY alone to take it away.
        #[arg(required = true)]
        settings: Vec<String>,
        /// What a new peer speaks.
        #[arg(long, value_parser = ["smpp", "sgip", "gsup"], default_value = "smpp")]
        protocol: String,
        #[command(flatten)]
        how: How,
    },
    /// Take a peer away; what waits for it stays, until it is there again or is moved.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Dial a peer at once, where it waits to be dialled again; links that are up are left alone.
    Dial {
        /// Its name.
        name: String,
    },
    /// Connect to a peer and bind as configured, beside its links, and tell each step; ends with 1 if one fails.
    #[command(after_help = "Example:\n  switchyard peer test upstream && echo it takes us")]
    Test {
        /// Its name.
        name: String,
    },
}

impl PeerCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| match task {
            Task::List => show_all(output, &parties(appliance, false)?, false),
            Task::Show { name } => show(output, &party(appliance, false, &name)?),
            Task::Set { name, settings, protocol, how } => {
                let section = match protocol.as_str() {
                    "sgip" => "gateway",
                    "gsup" => "gsm",
                    _ => "peer",
                };
                change(appliance, output, false, (section, &name), Some(&settings), &how)
            }
            Task::Remove { name, how } => change(appliance, output, false, ("peer", &name), None, &how),
            Task::Dial { name } => {
                let done = appliance.post(&format!("/v1/peers/{}/dial", segment(&name)), &json!({}))?;
                if output.json {
                    output.document(&done)
                } else {
                    output.line(&format!("{name}: is being dialled"))
                }
            }
            Task::Test { name } => test(appliance, output, &name),
        })
    }
}

fn test(appliance: &Appliance, output: &Output, name: &str) -> Result<(), Failure> {
    let answer = appliance.post(&format!("/v1/peers/{}/test", segment(name)), &json!({}))?;
    if output.json {
        output.document(&answer)?;
    } else {
        let row = |step: &Value| -> Vec<String> {
            let ok = if step["ok"] == true { "ok" } else { "failed" };
            let took = step["ms"].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0}ms"));
            vec![word(&step["what"]), ok.to_owned(), took, word(&step["detail"])]
        };
        let rows: Vec<Vec<String>> = answer["steps"].as_array().into_iter().flatten().map(row).collect();
        output.write(&table(&["STEP", "RESULT", "TOOK", "DETAIL"], &rows))?;
    }
    if answer["ok"] == true {
        return Ok(());
    }
    Err(Failure::Refused(format!("peer {name} cannot be used as it is configured")))
}

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::json;

    #[test]
    fn a_peer_is_tried_step_by_step() {
        let step = |what: &str, ok: bool, ms: f64, detail: Option<&str>| json!({ "what": what, "ok": ok, "ms": ms, "detail": detail });
        let steps =
            [step("connect", true, 3.4, Some("10.0.0.1:2775")), step("bind", false, 12.0, Some("0x0D"))];
        let url = Stub::default()
            .with("POST /v1/peers/up%20stream/test", 200, &json!({ "ok": false, "steps": steps }))
            .with("POST /v1/peers/upstream/dial", 204, &serde_json::Value::Null)
            .with("POST /v1/peers/upstream/test", 200, &json!({ "ok": true, "steps": [steps[0]] }))
            .start();
        let done = run(&url, &["peer", "test", "up stream"]);
        assert_eq!(
            (done.code, done.error.as_str()),
            (1, "switchyard: peer up stream cannot be used as it is configured\n")
        );
        insta::assert_snapshot!("peer_test", done.out);
        assert_eq!(run(&url, &["peer", "test", "upstream"]).code, 0);
        assert_eq!(run(&url, &["peer", "test", "nobody"]).code, 1);
        assert_eq!(run(&url, &["peer", "dial", "upstream"]).out, "upstream: is being dialled\n");
        assert_eq!(run(&url, &["peer", "dial", "nobody"]).code, 1);
    }
}
