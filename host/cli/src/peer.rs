//! `switchyard peer`: manages peers.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::peer_or_account::{ConfigChangeArgs, change, load, load_all, print, print_all};
use api::{PeerTestView, TestStepView};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
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
#[command(after_help = AFTER_HELP)]
pub struct PeerCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
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
    /// Add or change a peer; only its own connections are affected.
    #[command(
        after_help = "Examples:\n  switchyard peer set upstream address=smsc.example.net:2775 system-id=us \
                            password=@secret.txt\n  switchyard peer set upstream rate=50 --confirm-within 10m\n  switchyard peer \
                            set upstream rate                        # remove the rate limit"
    )]
    Set {
        /// Its name.
        name: String,
        /// Its settings: KEY=VALUE, KEY=@FILE with the value in a file, or KEY alone to remove the setting.
        #[arg(required = true)]
        settings: Vec<String>,
        /// The protocol of a new peer.
        #[arg(long, value_parser = ["smpp", "sgip", "cmpp", "smgp", "gsup"], default_value = "smpp")]
        protocol: String,
        #[command(flatten)]
        change_args: ConfigChangeArgs,
    },
    /// Remove a peer; messages that wait for it stay until it is configured again or they are rerouted.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        change_args: ConfigChangeArgs,
    },
    /// Dial a peer now if it is in back-off; established links are not affected.
    Dial {
        /// Its name.
        name: String,
    },
    /// Connect to a peer and bind as configured, in addition to its links, and show each step; exits with 1 if a step fails.
    #[command(after_help = "Example:\n  switchyard peer test upstream && echo bind accepted")]
    Test {
        /// Its name.
        name: String,
    },
}

impl PeerCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| match task {
            Task::List => print_all(output, &load_all(api, false)?, false),
            Task::Show { name } => print(output, &load(api, false, &name)?),
            Task::Set { name, mut settings, protocol, change_args } => {
                let section = match protocol.as_str() {
                    "sgip" => "gateway",
                    "cmpp" | "smgp" => {
                        settings.push(format!("protocol={protocol}"));
                        "gateway"
                    }
                    "gsup" => "gsm",
                    _ => "peer",
                };
                change(api, output, false, (section, &name), Some(&settings), &change_args)
            }
            Task::Remove { name, change_args } => {
                change(api, output, false, ("peer", &name), None, &change_args)
            }
            Task::Dial { name } => {
                let done = api.post(&format!("/v1/peers/{}/dial", encode_segment(&name)), &json!({}))?;
                if output.json {
                    output.document(&done)
                } else {
                    output.line(&format!("{name}: is being dialled"))
                }
            }
            Task::Test { name } => test(api, output, &name),
        })
    }
}

fn test(api: &ApiClient, output: &Output, name: &str) -> Result<(), Failure> {
    let path = format!("/v1/peers/{}/test", encode_segment(name));
    let test: PeerTestView = api.call("POST", &path, &json!({}))?;
    if output.json {
        output.document(&test)?;
    } else {
        let row = |TestStepView { what, ok, ms, detail }: &TestStepView| {
            let ok = if *ok { "ok" } else { "failed" };
            vec![what.name().to_owned(), ok.to_owned(), format!("{ms}ms"), value_text(detail)]
        };
        let rows: Vec<Vec<String>> = test.steps.iter().map(row).collect();
        output.table(&["STEP", "RESULT", "TOOK", "DETAIL"], &rows)?;
    }
    if test.ok {
        return Ok(());
    }
    Err(Failure::Refused(format!("peer {name} cannot be used with this configuration")))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::{PeerTestView, TestStepKind, TestStepView};
    use serde_json::{Value, json};

    #[test]
    fn a_peer_test_prints_each_step() {
        let step =
            |what, ok, ms, detail: &str| TestStepView { what, ok, ms, detail: Some(detail.to_owned()) };
        let connected = step(TestStepKind::Connect, true, 3, "10.0.0.1:2775");
        let failed = PeerTestView {
            ok: false,
            steps: vec![connected.clone(), step(TestStepKind::Bind, false, 12, "0x0D")],
        };
        let passed = PeerTestView { ok: true, steps: vec![connected] };
        let url = FakeApi::default()
            .with("POST /v1/peers/up%20stream/test", 200, &json!(failed))
            .with("POST /v1/peers/upstream/dial", 204, &Value::Null)
            .with("POST /v1/peers/upstream/test", 200, &json!(passed))
            .start();
        let done = run(&url, &["peer", "test", "up stream"]);
        assert_eq!(
            (done.code, done.error.as_str()),
            (1, "switchyard: peer up stream cannot be used with this configuration\n")
        );
        insta::assert_snapshot!("peer_test", done.out);
        assert_eq!(run(&url, &["peer", "test", "upstream"]).code, 0);
        assert_eq!(run(&url, &["peer", "test", "nobody"]).code, 1);
        assert_eq!(run(&url, &["peer", "dial", "upstream"]).out, "upstream: is being dialled\n");
        assert_eq!(run(&url, &["peer", "dial", "nobody"]).code, 1);
    }
}
