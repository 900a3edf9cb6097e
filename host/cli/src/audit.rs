//! `switchyard audit`: shows the audit log of the admin API.

use crate::format::{table, timestamp, value_text};
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
  switchyard audit --limit 20
  switchyard audit --by ann --what /v1/configuration
  switchyard audit --what 'body=1' --json | jq .entries[]   # reads of message texts"
);

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct AuditCommand {
    /// Only requests of this user; `token` is the root token, token:NAME an API token.
    #[arg(long)]
    by: Option<String>,
    /// Only requests whose method and route contain this text.
    #[arg(long)]
    what: Option<String>,
    /// Only requests with this subject.
    #[arg(long)]
    subject: Option<String>,
    /// Only entries before the entry with this number.
    #[arg(long)]
    before: Option<u64>,
    /// Maximum number of entries.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    global: GlobalArgs,
}

impl AuditCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { by, what, subject, before, limit, global } = self;
        let before = before.map(|before| before.to_string());
        let query = [("by", by), ("what", what), ("subject", subject), ("before", before)];
        let query: Vec<_> =
            query.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
        global.run(streams, |api, output| show(api, output, &query, limit))
    }
}

fn show(api: &ApiClient, output: &Output, query: &[(&str, String)], limit: usize) -> Result<(), Failure> {
    let list = PagedList { path: "/v1/audit", items: "entries", next: "before" };
    let (entries, next) = fetch_items(api, list, query, limit)?;
    if output.json {
        return output.document(&json!({ "entries": entries, "next": next }));
    }
    if entries.is_empty() {
        return output.line("no entries");
    }
    let rows: Vec<_> = entries.iter().map(row).collect();
    output.write(&table(&["AT", "BY", "WHAT", "SUBJECT", "FROM", "OUTCOME", "DETAIL"], &rows))?;
    if !next.is_null() {
        output.remark(&format!("there are more; continue with --before {next}"));
    }
    Ok(())
}

fn row(entry: &Value) -> Vec<String> {
    let outcome = match entry["outcome"].as_str() {
        Some("done") => "done".to_owned(),
        _ => format!("{} ({})", value_text(&entry["outcome"]), entry["status"]),
    };
    vec![
        timestamp(&entry["at"]),
        value_text(&entry["by"]),
        value_text(&entry["what"]),
        value_text(&entry["subject"]),
        value_text(&entry["from"]),
        outcome,
        value_text(&entry["detail"]),
    ]
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use serde_json::json;

    #[test]
    fn entries_are_listed_with_the_position_of_the_next_page() {
        let page = json!({
            "entries": [{
                "serial": 7, "at": NOW, "by": "ann", "what": "DELETE /v1/pools/{pool}", "subject": "help\u{1b}[2J",
                "from": "192.0.2.1", "outcome": "refused", "status": 403,
            }],
            "next": 7,
        });
        let api = FakeApi::default().with("GET /v1/audit?limit=1&by=ann", 200, &page);
        let done = run(&api.start(), &["audit", "--by", "ann", "--limit", "1"]);
        let shown = "AT                    BY   WHAT                     SUBJECT   FROM       OUTCOME        DETAIL\n\
                     2026-11-21 16:03:02Z  ann  DELETE /v1/pools/{pool}  help␛[2J  192.0.2.1  refused (403)  -\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
        assert!(done.error.contains("--before 7"), "{}", done.error);
    }
}
