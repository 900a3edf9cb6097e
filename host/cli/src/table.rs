//! `switchyard table`: manages lookup tables.

use crate::format::{list, number, octets, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{TableFillResult, TableLookUpView, TableView};
use clap::{Args, Subcommand, ValueEnum};
use client::{Progress, encode_segment};
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard table put hlr --kind exact subscribers.csv
  switchyard table look-up hlr 8613012345678
  switchyard table list --json | jq .[].rows"
);

/// Arguments of `table`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TableCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeyMatch {
    /// Exact match of the key.
    Exact,
    /// Longest prefix match: the longest key that the number begins with.
    Prefix,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the tables.
    List,
    /// Look up a key in a table.
    LookUp {
        /// The table.
        name: String,
        /// The key.
        key: String,
    },
    /// Fill a table from a CSV file with a key and a value on each line; all existing rows are replaced.
    Put {
        /// The table.
        name: String,
        /// The file.
        file: PathBuf,
        /// The match of keys.
        #[arg(long)]
        kind: KeyMatch,
    },
    /// Remove a table.
    Delete {
        /// The table.
        name: String,
    },
}

impl TableCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| match task {
            Task::List => show(output, &api.read::<Vec<TableView>>("/v1/tables")?),
            Task::LookUp { name, key } => {
                let path = format!("/v1/tables/{}?key={}", encode_segment(&name), encode_segment(&key));
                print_lookup(output, &api.read(&path)?)
            }
            Task::Put { name, file, kind } => {
                let rows = File::open(&file).map_err(Failure::file(&file))?;
                let length = rows.metadata().map_err(Failure::file(&file))?.len();
                let kind = match kind {
                    KeyMatch::Exact => "exact",
                    KeyMatch::Prefix => "prefix",
                };
                let path = format!("/v1/tables/{}?kind={kind}", encode_segment(&name));
                let progress = Progress::for_octets(output.shows_progress(), "uploaded", Some(length));
                let kind = [("content-type", "text/csv")];
                let answer = api.send_all("PUT", &path, &kind, &mut progress.reader(rows))?;
                drop(progress);
                let filled: TableFillResult = api.typed(&path, answer)?;
                if output.json {
                    return output.document(&filled);
                }
                output.line(&format!("{name}: {} rows", number(filled.rows)))
            }
            Task::Delete { name } => {
                let answer = api.delete(&format!("/v1/tables/{}", encode_segment(&name)))?;
                if output.json { output.document(&answer) } else { output.line(&format!("{name}: removed")) }
            }
        })
    }
}

fn show(output: &Output, tables: &[TableView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&tables);
    }
    let row = |table: &TableView| {
        vec![value_text(&table.name), table.kind.name().to_owned(), number(table.rows), octets(table.octets)]
    };
    let rows: Vec<_> = tables.iter().map(row).collect();
    if rows.is_empty() {
        output.remark("there are no tables");
        return Ok(());
    }
    output.table(&["TABLE", "KIND", "ROWS", "MEMORY"], &rows)
}

fn print_lookup(output: &Output, answer: &TableLookUpView) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let longest = answer.longest.as_ref();
    if answer.exact.is_none() && longest.is_none() {
        return Err(Failure::Refused("the table does not contain the key".to_owned()));
    }
    output.write(&list(&[
        ("exact match", value_text(&answer.exact)),
        ("longest prefix", value_text(&longest.map(|longest| &longest.value))),
        ("prefix digits", value_text(&longest.map(|longest| longest.length))),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::{LongestKeyView, TableFillResult, TableKind, TableLookUpView, TableView};
    use serde_json::{Value, json};

    #[test]
    fn a_table_is_filled_searched_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates.csv");
        std::fs::write(&file, "41,5\n").unwrap();
        let listed = TableView { name: "rates".to_owned(), kind: TableKind::Prefix, rows: 1_200, octets: 9 };
        let longest = LongestKeyView { length: 2, value: "5".to_owned() };
        let api = FakeApi::default()
            .with(
                "PUT /v1/tables/rates?kind=prefix",
                200,
                &json!(TableFillResult { kind: TableKind::Prefix, rows: 1_200, octets: 9 }),
            )
            .with("GET /v1/tables", 200, &json!([listed]))
            .with(
                "GET /v1/tables/rates?key=4179",
                200,
                &json!(TableLookUpView { exact: None, longest: Some(longest) }),
            )
            .with("GET /v1/tables/rates?key=7", 200, &json!(TableLookUpView { exact: None, longest: None }))
            .with("DELETE /v1/tables/rates", 204, &Value::Null);
        let url = api.start();
        let put = run(&url, &["table", "put", "rates", "--kind", "prefix", file.to_str().unwrap()]);
        assert_eq!((put.code, put.out.as_str(), put.error.as_str()), (0, "rates: 1,200 rows\n", ""));
        assert_eq!(api.requests()[0].body, "41,5\n");
        let listed = run(&url, &["table", "list"]);
        assert_eq!(listed.out, "TABLE  KIND    ROWS   MEMORY\nrates  prefix  1,200  9 octets\n");
        let found = run(&url, &["table", "look-up", "rates", "4179"]);
        assert_eq!(found.out, "exact match     -\nlongest prefix  5\nprefix digits   2\n");
        assert_eq!(run(&url, &["table", "look-up", "rates", "7"]).code, 1);
        assert_eq!(run(&url, &["table", "delete", "rates"]).out, "rates: removed\n");
    }
}
