//! `switchyard refusals`: shows refused submissions.

use crate::format::{count, table, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use clap::Args;
use client::encode_segment;
use serde_json::Value;
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard refusals
  switchyard refusals --account shop --code no-credit --since 2h
  switchyard refusals --json | jq '.counts[] | select(.code == \"throttled\")'"
);

/// Arguments of `refusals`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct RefusalsCommand {
    /// Only of this account, or of this peer for messages from the network.
    #[arg(long)]
    account: Option<String>,
    /// Only with this code: throttled, no-route, no-credit, opted-out ...
    #[arg(long)]
    code: Option<String>,
    /// Only refusals at this time or later: 2026-11-20T00:00:00Z, or 2h for two hours ago. The counts are since the start of the daemon.
    #[arg(long)]
    since: Option<String>,
    /// Maximum number of refusals.
    #[arg(long, default_value_t = 100)]
    limit: u16,
    #[command(flatten)]
    global: GlobalArgs,
}

impl RefusalsCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { account, code, since, limit, global } = self;
        global.run(streams, |api, output| {
            let mut path = format!("/v1/refusals?limit={limit}");
            let since = since.map(|text| crate::message::parse_time(&text, output.now())).transpose()?;
            let since = since.map(|at| at.to_string());
            for (name, value) in [("account", account), ("code", code), ("since", since)] {
                if let Some(value) = value {
                    path.push_str(&format!("&{name}={}", encode_segment(&value)));
                }
            }
            show(output, &api.get(&path)?)
        })
    }
}

fn show(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let counts = answer["counts"].as_array().into_iter().flatten();
    let counts: Vec<_> = counts
        .map(|one| {
            vec![
                value_text(&one["account"]),
                value_text(&one["protocol"]),
                value_text(&one["code"]),
                count(&one["count"]),
            ]
        })
        .collect();
    if counts.is_empty() {
        output.remark("no submission was refused since the start of the daemon");
        return Ok(());
    }
    output.write(&table(&["ACCOUNT", "PROTOCOL", "CODE", "MESSAGES"], &counts))?;
    let names = ["account", "protocol", "source", "destination", "code", "reason"];
    let row = |one: &Value| {
        let mut row = vec![timestamp(&one["at"])];
        row.extend(names.iter().map(|name| value_text(&one[*name])));
        row
    };
    let rows: Vec<_> = answer["refusals"].as_array().into_iter().flatten().map(row).collect();
    output.write("\n")?;
    output.write(&table(&["AT", "ACCOUNT", "PROTOCOL", "FROM", "TO", "CODE", "REASON"], &rows))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use serde_json::json;

    #[test]
    fn refusals_are_counted_and_listed() {
        let answer = json!({
            "counts": [{ "account": "acme", "protocol": "smpp", "code": "no-credit", "count": 1_200 }],
            "refusals": [{
                "at": NOW, "account": "acme", "protocol": "smpp", "source": "ACME\u{1b}", "destination": "+4915****678",
                "code": "no-credit", "reason": "rejected: no credit",
            }],
        });
        let url = FakeApi::default()
            .with("GET /v1/refusals?limit=5&account=acme&code=no-credit", 200, &answer)
            .with("GET /v1/refusals?limit=100", 200, &json!({ "counts": [], "refusals": [] }))
            .start();
        let done = run(&url, &["refusals", "--account", "acme", "--code", "no-credit", "--limit", "5"]);
        let expected = "ACCOUNT  PROTOCOL  CODE       MESSAGES\n\
                      acme     smpp      no-credit  1,200\n\n\
                      AT                    ACCOUNT  PROTOCOL  FROM   TO            CODE       REASON\n\
                      2026-11-21 16:03:02Z  acme     smpp      ACME␛  +4915****678  no-credit  rejected: no credit\n";
        assert_eq!((done.code, done.out.as_str()), (0, expected));
        let done = run(&url, &["refusals"]);
        assert_eq!((done.code, done.out.as_str()), (0, ""));
    }
}
