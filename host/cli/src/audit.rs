//! `switchyard audit`: shows the audit log of the admin API.

use crate::format::{timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{Page, fetch_pages};
use api::{AuditEntry, AuditOutcome, AuditPage, AuditRecord};
use clap::Args;
use client::ApiClient;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard audit --limit 20
  switchyard audit --by ann --what /v1/configuration
  switchyard audit --what 'body=1' --json | jq .entries[]   # reads of message texts"
);

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
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

impl Page for AuditPage {
    type Item = AuditEntry;
    const NEXT: &str = "before";

    fn items(&mut self) -> &mut Vec<AuditEntry> {
        &mut self.entries
    }

    fn next(&self) -> Option<String> {
        self.next.map(|next| next.to_string())
    }
}

fn show(api: &ApiClient, output: &Output, query: &[(&str, String)], limit: usize) -> Result<(), Failure> {
    let page: AuditPage = fetch_pages(api, "/v1/audit", query, limit)?;
    if output.json {
        return output.document(&page);
    }
    if page.entries.is_empty() {
        return output.line("no entries");
    }
    let rows: Vec<_> = page.entries.iter().map(|entry| row(&entry.record)).collect();
    output.table(&["AT", "BY", "WHAT", "SUBJECT", "FROM", "OUTCOME", "DETAIL"], &rows)?;
    if let Some(next) = page.next {
        output.remark(&format!("there are more; continue with --before {next}"));
    }
    Ok(())
}

fn row(record: &AuditRecord) -> Vec<String> {
    let outcome = match record.outcome {
        AuditOutcome::Done => "done".to_owned(),
        outcome => format!("{outcome} ({})", record.status),
    };
    vec![
        timestamp(&record.at),
        value_text(&record.by),
        value_text(&record.what),
        value_text(&record.subject),
        value_text(&record.from),
        outcome,
        value_text(&record.detail),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, NOW, run};
    use model::Timestamp;

    #[test]
    fn entries_are_listed_with_the_position_of_the_next_page() {
        let record = AuditRecord {
            at: Timestamp(NOW),
            by: "ann".to_owned(),
            tenant: None,
            what: "DELETE /v1/pools/{pool}".to_owned(),
            subject: "help\u{1b}[2J".to_owned(),
            detail: None,
            from: Some("192.0.2.1".to_owned()),
            outcome: AuditOutcome::Refused,
            status: 403,
        };
        let page = AuditPage { entries: vec![AuditEntry { serial: 7, record }], next: Some(7) };
        let api = FakeApi::default().with("GET /v1/audit?limit=1&by=ann", 200, &page);
        let done = run(&api.start(), &["audit", "--by", "ann", "--limit", "1"]);
        let shown = "AT                    BY   WHAT                     SUBJECT   FROM       OUTCOME        DETAIL\n\
                     2026-11-21 16:03:02Z  ann  DELETE /v1/pools/{pool}  help␛[2J  192.0.2.1  refused (403)  -\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
        assert!(done.error.contains("--before 7"), "{}", done.error);
    }
}
