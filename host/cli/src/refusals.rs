//! `switchyard refusals`: shows refused submissions.

use crate::format::{number, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{RefusalCountView, RefusalsView, RefusedSubmissionView};
use clap::Args;
use client::encode_segment;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard refusals
  switchyard refusals --account shop --code no-credit --since 2h
  switchyard refusals --json | jq '.counts[] | select(.code == \"throttled\")'"
);

/// Arguments of `refusals`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RefusalsCommand {
    /// Only refusals of this account, or of this peer for messages from the network.
    #[arg(long)]
    account: Option<String>,
    /// Only refusals with this code: throttled, no-route, no-credit, opted-out ...
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
            show(output, &api.read(&path)?)
        })
    }
}

fn show(output: &Output, answer: &RefusalsView) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    if answer.counts.is_empty() {
        output.remark("no submission was refused since the start of the daemon");
        return Ok(());
    }
    let row = |one: &RefusalCountView| {
        let mut row = [&one.account, &one.protocol, &one.code].map(value_text).to_vec();
        row.push(number(one.count));
        row
    };
    let rows: Vec<_> = answer.counts.iter().map(row).collect();
    output.table(&["ACCOUNT", "PROTOCOL", "CODE", "MESSAGES"], &rows)?;
    let row = |one: &RefusedSubmissionView| {
        let mut row = vec![timestamp(&one.at)];
        let texts = [&one.account, &one.protocol, &one.source, &one.destination, &one.code, &one.reason];
        row.extend(texts.map(value_text));
        row
    };
    let rows: Vec<_> = answer.refusals.iter().map(row).collect();
    output.write("\n")?;
    output.table(&["AT", "ACCOUNT", "PROTOCOL", "FROM", "TO", "CODE", "REASON"], &rows)
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use api::{RefusalCountView, RefusalsView, RefusedSubmissionView};

    #[test]
    fn refusals_are_counted_and_listed() {
        let text = str::to_owned;
        let (account, protocol, code) = (text("acme"), text("smpp"), text("no-credit"));
        let count = RefusalCountView {
            account: account.clone(),
            protocol: protocol.clone(),
            code: code.clone(),
            count: 1_200,
        };
        let refusal = RefusedSubmissionView {
            at: NOW,
            account,
            protocol,
            source: text("ACME\u{1b}"),
            destination: text("+4915****678"),
            code,
            reason: text("rejected: no credit"),
        };
        let answer = RefusalsView { counts: vec![count], refusals: vec![refusal] };
        let nothing = RefusalsView { counts: Vec::new(), refusals: Vec::new() };
        let url = FakeApi::default()
            .with("GET /v1/refusals?limit=5&account=acme&code=no-credit", 200, &answer)
            .with("GET /v1/refusals?limit=100", 200, &nothing)
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
