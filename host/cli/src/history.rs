//! `switchyard history`: lists finished messages.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::fetch_pages;
use api::{FinishedMessageView, HistoryPageView};
use clap::Args;
use client::ApiClient;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard history --account shop --state failed --from 2026-11-20T00:00:00Z
  switchyard history --number 8613012345678 --limit 1000 --json | jq .messages[].id"
);

/// Arguments of `history`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct HistoryCommand {
    /// Only messages with this number as sender or recipient.
    #[arg(long)]
    number: Option<String>,
    /// Only messages of this account.
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
    let page: HistoryPageView = fetch_pages(api, "/v1/history", query, limit)?;
    if output.json {
        return output.document(&page);
    }
    if page.messages.is_empty() {
        output.remark("no message matches");
        return Ok(());
    }
    let rows: Vec<_> = page.messages.iter().map(row).collect();
    let head = ["ID", "ACCEPTED", "ENDED", "STATE", "ERROR", "ACCOUNT", "PEER", "FROM", "TO"];
    output.table(&head, &rows)?;
    if let Some(next) = &page.next {
        output.remark(&format!("there are more; continue with --cursor {}", value_text(next)));
    }
    Ok(())
}

fn row(message: &FinishedMessageView) -> Vec<String> {
    vec![
        value_text(&message.id),
        value_text(&message.accepted_at),
        value_text(&message.ended_at),
        value_text(&message.state),
        message.error.to_string(),
        value_text(&message.account),
        value_text(&message.peer),
        value_text(&message.source),
        value_text(&message.destination),
    ]
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::{FinishedMessageView, HistoryPageView};
    use model::{Direction, FinalState};

    #[test]
    fn finished_messages_are_listed_in_pages() {
        let message = FinishedMessageView {
            id: "7".to_owned(),
            accepted_at: "2026-11-21T16:03:00Z".to_owned(),
            ended_at: "2026-11-21T16:03:02Z".to_owned(),
            direction: Direction::Mt,
            account: "shop".to_owned(),
            peer: "north".to_owned(),
            source: "10655".to_owned(),
            source_ton: 0,
            source_npi: 1,
            destination: "8613".to_owned(),
            destination_ton: 1,
            destination_npi: 1,
            state: FinalState::Failed,
            error: 11,
            peer_message_id: None,
            attempts: 1,
            priority: 0,
            data_coding: 0,
            udhi: false,
            body: None,
            router: "prefix-router".to_owned(),
            router_version: "58cd962459f1".to_owned(),
            note: None,
            trace: None,
            price: None,
            content_erased_at: None,
        };
        let page = HistoryPageView { messages: vec![message], next: Some("c7".to_owned()) };
        let api = FakeApi::default().with("GET /v1/history?limit=1&account=shop&state=failed", 200, &page);
        let done = run(&api.start(), &["history", "--account", "shop", "--state", "failed", "--limit", "1"]);
        let line =
            "7   2026-11-21T16:03:00Z  2026-11-21T16:03:02Z  failed  11     shop     north  10655  8613\n";
        assert!(done.code == 0 && done.out.ends_with(line), "{}{}", done.out, done.error);
        assert!(done.error.contains("--cursor c7"), "{}", done.error);
    }
}
