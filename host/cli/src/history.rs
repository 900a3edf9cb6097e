//! `switchyard history`: lists finished messages.

use crate::format::{table, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{PagedList, fetch_items};
use clap::Args;
use client::ApiClient;
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard history --account shop --state failed --from 2026-11-20T00:00:00Z
  switchyard history --number 8613012345678 --limit 1000 --json | jq .messages[].id"
);

/// Arguments of `history`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct HistoryCommand {
    /// Only with this number as sender or recipient.
    #[arg(long)]
    number: Option<String>,
    /// Only of this account.
    #[arg(long)]
    account: Option<String>,
    /// Only messages submitted to this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Only messages with this final state: delivered, failed, expired ...
    #[arg(long)]
    state: Option<String>,
    /// Only messages to handsets (mt), or from handsets (mo).
    #[arg(long)]
    direction: Option<String>,
    /// Only messages accepted at this time or later: 2026-11-20T00:00:00Z.
    #[arg(long)]
    from: Option<String>,
    /// Only messages accepted before this time.
    #[arg(long)]
    until: Option<String>,
    /// Continue after an earlier list, with the cursor that it printed.
    #[arg(long)]
    cursor: Option<String>,
    /// Maximum number of messages.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    global: GlobalArgs,
}

impl HistoryCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { number, account, peer, state, direction, from, until, cursor, limit, global } = self;
        let query = [
            ("number", number),
            ("account", account),
            ("peer", peer),
            ("state", state),
            ("direction", direction),
            ("from", from),
            ("until", until),
            ("cursor", cursor),
        ];
        let query: Vec<_> =
            query.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
        global.run(streams, |api, output| show(api, output, &query, limit))
    }
}

fn show(api: &ApiClient, output: &Output, query: &[(&str, String)], limit: usize) -> Result<(), Failure> {
    let list = PagedList { path: "/v1/history", items: "messages", next: "cursor" };
    let (messages, next) = fetch_items(api, list, query, limit)?;
    if output.json {
        return output.document(&json!({ "messages": messages, "next": next }));
    }
    if messages.is_empty() {
        output.remark("no message matches");
        return Ok(());
    }
    let rows: Vec<_> = messages.iter().map(row).collect();
    let head = ["ID", "ACCEPTED", "ENDED", "STATE", "ERROR", "ACCOUNT", "PEER", "FROM", "TO"];
    output.write(&table(&head, &rows))?;
    if !next.is_null() {
        output.remark(&format!("there are more; continue with --cursor {}", value_text(&next)));
    }
    Ok(())
}

fn row(message: &Value) -> Vec<String> {
    let names =
        ["id", "accepted_at", "ended_at", "state", "error", "account", "peer", "source", "destination"];
    names.iter().map(|name| value_text(&message[*name])).collect()
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use serde_json::json;

    #[test]
    fn finished_messages_are_listed_in_pages() {
        let page = json!({
            "messages": [{
                "id": "7", "accepted_at": "2026-11-21T16:03:00Z", "ended_at": "2026-11-21T16:03:02Z", "direction": "mt",
                "account": "shop", "peer": "north", "source": "10655", "source_ton": 0, "source_npi": 1,
                "destination": "8613", "destination_ton": 1, "destination_npi": 1, "state": "failed", "error": 11,
                "peer_message_id": null, "attempts": 1, "priority": 0, "data_coding": 0, "udhi": false,
                "router": "prefix-router", "router_version": "58cd962459f1", "note": null,
            }],
            "next": "c7",
        });
        let api = FakeApi::default().with("GET /v1/history?limit=1&account=shop&state=failed", 200, &page);
        let done = run(&api.start(), &["history", "--account", "shop", "--state", "failed", "--limit", "1"]);
        let line =
            "7   2026-11-21T16:03:00Z  2026-11-21T16:03:02Z  failed  11     shop     north  10655  8613\n";
        assert!(done.code == 0 && done.out.ends_with(line), "{}{}", done.out, done.error);
        assert!(done.error.contains("--cursor c7"), "{}", done.error);
    }
}
