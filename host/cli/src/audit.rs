//! `switchyard audit`: what was done at the admin's door, and by whom.

use crate::output::{Failure, Output, Streams};
use crate::pages::{List, pages};
use crate::table::{moment, table, word};
use crate::way::{Way, exits};
use clap::Args;
use client::Appliance;
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard audit --limit 20
  switchyard audit --by ann --what /v1/configuration
  switchyard audit --what 'body=1' --json | jq .entries[]   # who has read texts"
);

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct AuditCommand {
    /// Only what this user did; `token` is the appliance's token, token:NAME one that was made.
    #[arg(long)]
    by: Option<String>,
    /// Only lines in whose method and route this stands.
    #[arg(long)]
    what: Option<String>,
    /// Only what was done to this.
    #[arg(long)]
    subject: Option<String>,
    /// Only lines before the one of this number.
    #[arg(long)]
    before: Option<u64>,
    /// How many lines at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    way: Way,
}

impl AuditCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { by, what, subject, before, limit, way } = self;
        let before = before.map(|before| before.to_string());
        let query = [("by", by), ("what", what), ("subject", subject), ("before", before)];
        let query: Vec<_> =
            query.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect();
        way.ask(streams, |appliance, output| show(appliance, output, &query, limit))
    }
}

fn show(
    appliance: &Appliance,
    output: &Output,
    query: &[(&str, String)],
    limit: usize,
) -> Result<(), Failure> {
    let list = List { path: "/v1/audit", items: "entries", next: "before" };
    let (entries, next) = pages(appliance, list, query, limit)?;
    if output.json {
        return output.document(&json!({ "entries": entries, "next": next }));
    }
    if entries.is_empty() {
        return output.line("nothing");
    }
    let rows: Vec<_> = entries.iter().map(row).collect();
    output.write(&table(&["AT", "BY", "WHAT", "SUBJECT", "FROM", "OUTCOME", "DETAIL"], &rows))?;
    if !next.is_null() {
        output.remark(&format!("there is more: --before {next}"));
    }
    Ok(())
}

fn row(entry: &Value) -> Vec<String> {
    let outcome = match entry["outcome"].as_str() {
        Some("done") => "done".to_owned(),
        _ => format!("{} ({})", word(&entry["outcome"]), entry["status"]),
    };
    vec![
        moment(&entry["at"]),
        word(&entry["by"]),
        word(&entry["what"]),
        word(&entry["subject"]),
        word(&entry["from"]),
        outcome,
        word(&entry["detail"]),
    ]
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::json;

    #[test]
    fn lines_are_shown_and_where_they_go_on() {
        let page = json!({
            "entries": [{
                "serial": 7, "at": NOW, "by": "ann", "what": "DELETE /v1/pools/{pool}", "subject": "desk\u{1b}[2J",
                "from": "192.0.2.1", "outcome": "refused", "status": 403,
            }],
            "next": 7,
        });
        let stub = Stub::default().with("GET /v1/audit?limit=1&by=ann", 200, &page);
        let done = run(&stub.start(), &["audit", "--by", "ann", "--limit", "1"]);
        let shown = "AT                    BY   WHAT                     SUBJECT   FROM       OUTCOME        DETAIL\n\
                     2026-11-21 16:03:02Z  ann  DELETE /v1/pools/{pool}  desk␛[2J  192.0.2.1  refused (403)  -\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
        assert!(done.error.contains("--before 7"), "{}", done.error);
    }
}
