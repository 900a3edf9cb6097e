//! `switchyard quarantine`: lists, releases and purges messages in quarantine.

use crate::format::{plural, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::fetch_pages;
use api::{QuarantinePageView, QuarantineResult, QuarantineSelection, QuarantinedView};
use clap::{Args, Subcommand};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard quarantine list --origin acme
  switchyard message show 1000000042 --body
  switchyard quarantine release 1000000042
  switchyard quarantine purge --origin acme"
);

/// Arguments of `quarantine`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct QuarantineCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List messages that a screen keeps in quarantine, oldest first.
    List {
        /// Only messages of this account or peer.
        #[arg(long)]
        origin: Option<String>,
        /// Maximum number of messages.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Release messages: they are routed, and not screened again.
    Release(Selection),
    /// Purge messages: they end as rejected; their submitters receive a DLR.
    Purge(Selection),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Selection {
    /// All messages of this account or peer.
    #[arg(long)]
    origin: Option<String>,
    /// Their ids.
    ids: Vec<String>,
}

impl From<Selection> for QuarantineSelection {
    fn from(Selection { origin, ids }: Selection) -> Self {
        Self { ids: origin.is_none().then_some(ids), origin }
    }
}

impl QuarantineCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| {
            let (path, selection, words) = match task {
                Task::List { origin, limit } => {
                    let query: Vec<_> = origin.into_iter().map(|origin| ("origin", origin)).collect();
                    return show(output, &fetch_pages(api, "/v1/quarantine", &query, limit)?);
                }
                Task::Release(selection) => ("/v1/quarantine/release", selection, "released"),
                Task::Purge(selection) => ("/v1/quarantine/purge", selection, "purged"),
            };
            let result: QuarantineResult = api.call("POST", path, &QuarantineSelection::from(selection))?;
            if output.json {
                return output.document(&result);
            }
            let mut line = format!("{} {words}", plural(result.done, "message", "messages"));
            if result.skipped > 0 {
                let skipped = plural(result.skipped, "message was", "messages were");
                line.push_str(&format!("; {skipped} skipped, because not in quarantine"));
            }
            output.line(&line)
        })
    }
}

fn show(output: &Output, page: &QuarantinePageView) -> Result<(), Failure> {
    if output.json {
        return output.document(page);
    }
    if page.messages.is_empty() {
        return output.line("no message is in quarantine");
    }
    let row = |message: &QuarantinedView| {
        vec![
            value_text(&message.id),
            value_text(&message.origin),
            value_text(&message.source),
            value_text(&message.destination),
            timestamp(&Some(message.at)),
            timestamp(&Some(message.until)),
            value_text(&message.note),
        ]
    };
    let rows: Vec<Vec<String>> = page.messages.iter().map(row).collect();
    output.table(&["ID", "ORIGIN", "FROM", "TO", "ACCEPTED", "EXPIRES", "NOTE"], &rows)?;
    if page.next.is_some() {
        output.remark("there are more; use a larger --limit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use api::{QuarantinePageView, QuarantineResult, QuarantinedView};
    use serde_json::{Value, json};

    #[test]
    fn messages_are_listed_and_leave_quarantine() {
        let message = QuarantinedView {
            id: "1000000007".to_owned(),
            origin: "acme".to_owned(),
            source: "ACME".to_owned(),
            destination: "8613*******00".to_owned(),
            at: NOW - 61_000,
            until: NOW + 60_000,
            by: "firewall 0123456789ab".to_owned(),
            note: Some("rule 2: a listed domain".to_owned()),
            length: 12,
        };
        let page = QuarantinePageView { messages: vec![message], next: None };
        let result = |done, skipped| QuarantineResult { done, skipped };
        let api = FakeApi::default()
            .with("GET /v1/quarantine?limit=100&origin=acme", 200, &page)
            .with("GET /v1/quarantine?limit=100", 200, &QuarantinePageView::default())
            .with("POST /v1/quarantine/release", 200, &result(1, 1))
            .with("POST /v1/quarantine/purge", 200, &result(2, 0));
        let url = api.start();
        let mut text = String::new();
        for line in [
            &["quarantine", "list", "--origin", "acme"][..],
            &["quarantine", "list"],
            &["quarantine", "release", "1000000007", "1000000008"],
            &["quarantine", "purge", "--origin", "acme"],
        ] {
            let done = run(&url, line);
            assert_eq!((done.code, done.error.as_str()), (0, ""), "{line:?}");
            text.push_str(&format!("$ switchyard {}\n{}\n", line.join(" "), done.out));
        }
        insta::assert_snapshot!("quarantine", text);
        let bodies: Vec<Value> =
            api.requests().iter().filter_map(|request| serde_json::from_str(&request.body).ok()).collect();
        assert_eq!(bodies, [json!({ "ids": ["1000000007", "1000000008"] }), json!({ "origin": "acme" })]);
        assert_eq!(run(&url, &["quarantine", "release"]).code, 2);
    }
}
