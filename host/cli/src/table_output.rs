//! Tables in the format that the user has chosen: columns, order, CSV.

use crate::format::table;
use crate::output::{Failure, Output, OutputFormat};
use clap::Args;
use std::cell::Cell;
use std::cmp::Ordering;

/// Options for the display of a table. They apply to the first table that a command prints.
#[derive(Debug, Default, Args)]
pub(crate) struct TableArgs {
    /// Only these columns, in this order: names of the heading, such as `peer,in-flight`.
    #[arg(long, global = true, value_delimiter = ',', value_name = "COLUMNS")]
    columns: Vec<String>,
    /// Sort by this column; with a hyphen before it, the largest first.
    #[arg(long, global = true, allow_hyphen_values = true, value_name = "COLUMN")]
    sort: Option<String>,
    #[arg(skip)]
    used: Cell<bool>,
}

/// The name of a column on the command line and in CSV: `IN FLIGHT` is `in-flight`.
fn column_name(head: &str) -> String {
    head.to_lowercase().replace(' ', "-")
}

fn find_column(heads: &[&str], name: &str) -> Result<usize, Failure> {
    let wanted = column_name(name.trim()).replace('_', "-");
    heads.iter().position(|head| column_name(head) == wanted).ok_or_else(|| {
        let known: Vec<String> = heads.iter().map(|head| column_name(head)).collect();
        Failure::Usage(format!("there is no column {name}; the columns are {}", known.join(", ")))
    })
}

/// The value of a cell with a unit, to compare it: a number, a size in octets, a duration in milliseconds.
fn magnitude(cell: &str) -> Option<f64> {
    let mut sum = 0.0;
    let mut words = cell.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        let end = word
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+')))
            .unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let number: f64 = number.replace(',', "").parse().ok()?;
        let unit = if unit.is_empty() { words.next_if(|next| is_size(next)).unwrap_or("") } else { unit };
        sum += number
            * match unit {
                "" | "octets" | "ms" | "%" => 1.0,
                "s" => 1e3,
                "m" => 6e4,
                "h" => 3.6e6,
                "d" => 8.64e7,
                "KiB" => 1024.0,
                "MiB" => 1024.0 * 1024.0,
                "GiB" => 1024.0 * 1024.0 * 1024.0,
                "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
                _ => return None,
            };
    }
    Some(sum)
}

fn is_size(word: &str) -> bool {
    matches!(word, "octets" | "KiB" | "MiB" | "GiB" | "TiB")
}

/// Numbers, sizes and durations by value, before texts; no value (`-`) is last.
fn compare(a: &str, b: &str) -> Ordering {
    let place = |cell: &str| if cell == "-" { 2 } else { u8::from(magnitude(cell).is_none()) };
    place(a).cmp(&place(b)).then_with(|| match (magnitude(a), magnitude(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.to_lowercase().cmp(&b.to_lowercase()),
    })
}

impl TableArgs {
    /// The heading and the rows that are shown.
    fn apply<'a>(
        &self,
        heads: &[&'a str],
        rows: &[Vec<String>],
    ) -> Result<(Vec<&'a str>, Vec<Vec<String>>), Failure> {
        let mut rows = rows.to_vec();
        if self.used.replace(true) {
            return Ok((heads.to_vec(), rows));
        }
        if let Some(sort) = &self.sort {
            let (name, descending) =
                sort.strip_prefix('-').map_or((sort.as_str(), false), |name| (name, true));
            let column = find_column(heads, name)?;
            let cell = |row: &[String]| row.get(column).cloned().unwrap_or_default();
            rows.sort_by(|a, b| {
                let (a, b) = (cell(a), cell(b));
                // No value stays last.
                if descending && a != "-" && b != "-" { compare(&b, &a) } else { compare(&a, &b) }
            });
        }
        if self.columns.is_empty() {
            return Ok((heads.to_vec(), rows));
        }
        let columns: Result<Vec<usize>, Failure> =
            self.columns.iter().map(|name| find_column(heads, name)).collect();
        let columns = columns?;
        let chosen = |row: &Vec<String>| {
            columns.iter().map(|column| row.get(*column).cloned().unwrap_or_default()).collect()
        };
        let heads = columns.iter().filter_map(|column| heads.get(*column).copied()).collect();
        Ok((heads, rows.iter().map(chosen).collect()))
    }
}

impl Output {
    /// Prints a table.
    pub(crate) fn table(&self, heads: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let (heads, rows) = self.tables.apply(heads, rows)?;
        if self.format == OutputFormat::Csv {
            self.octets(&csv_text(&heads, &rows).map_err(|_| Failure::Output)?)
        } else {
            self.write(&table(&heads, &rows))
        }
    }
}

fn csv_text(heads: &[&str], rows: &[Vec<String>]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(heads.iter().map(|head| column_name(head)))?;
    for row in rows {
        // A number is written without separators, and no value as an empty field.
        writer.write_record(row.iter().map(|cell| match cell.as_str() {
            "-" => String::new(),
            cell if is_number(cell) => cell.replace(',', ""),
            cell => cell.to_owned(),
        }))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Whether a cell is a number with a comma after every three digits.
fn is_number(cell: &str) -> bool {
    cell.contains(',')
        && cell.split(',').enumerate().all(|(at, group)| {
            group.chars().all(|c| c.is_ascii_digit())
                && if at == 0 { (1..=3).contains(&group.len()) } else { group.len() == 3 }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, run};
    use crate::fixtures;
    use api::QueueView;

    fn args(columns: &[&str], sort: Option<&str>) -> TableArgs {
        TableArgs {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            sort: sort.map(str::to_owned),
            used: Cell::new(false),
        }
    }

    fn rows(cells: &[[&str; 2]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn rows_are_sorted_by_value() {
        let shown = |sort: &str, cells: &[[&str; 2]]| -> Vec<String> {
            let (_, rows) =
                args(&["in_flight"], Some(sort)).apply(&["PEER", "IN FLIGHT"], &rows(cells)).unwrap();
            rows.into_iter().flatten().collect()
        };
        let cells = [["a", "-"], ["b", "1,200"], ["c", "30"], ["d", "x"]];
        assert_eq!(shown("in-flight", &cells), ["30", "1,200", "x", "-"]);
        assert_eq!(shown("-IN-FLIGHT", &cells), ["x", "1,200", "30", "-"]);
        let cells = [["a", "2m 3s"], ["b", "900ms"], ["c", "1d 1h"], ["d", "1.5s"]];
        assert_eq!(shown("in-flight", &cells), ["900ms", "1.5s", "2m 3s", "1d 1h"]);
        let cells = [["a", "1.5 MiB"], ["b", "900 octets"], ["c", "2.0 KiB"]];
        assert_eq!(shown("in-flight", &cells), ["900 octets", "2.0 KiB", "1.5 MiB"]);
    }

    #[test]
    fn an_unknown_column_is_named_with_those_that_exist() {
        let error = args(&["x"], None).apply(&["PEER", "IN FLIGHT"], &[]).unwrap_err();
        assert_eq!(error.to_string(), "there is no column x; the columns are peer, in-flight");
    }

    fn queues() -> FakeApi {
        let busy = QueueView { queued: 1_200, ..fixtures::queue("north") };
        FakeApi::default().with("GET /v1/queues", 200, &[fixtures::queue("a, \"b\""), busy])
    }

    #[test]
    fn a_command_prints_chosen_columns_in_every_format() {
        let shown = |more: &[&str]| {
            let args = [&["queue", "list"], more].concat();
            run(&queues().start(), &args).out
        };
        assert_eq!(
            shown(&["--columns", "queued,peer", "--sort", "-queued"]),
            "QUEUED  PEER\n1,200   north\n0       a, \"b\"\n"
        );
        assert_eq!(
            shown(&["--output", "csv", "--columns", "peer,queued,oldest"]),
            "peer,queued,oldest\n\"a, \"\"b\"\"\",0,\nnorth,1200,\n"
        );
        let yaml = shown(&["--output", "yaml"]);
        assert!(yaml.starts_with("---\n- \"awaiting_dlr\": 0\n  \"blocked_by\": \"idle\"\n"), "{yaml}");
        assert!(yaml.contains("\"peer\": \"a, \\\"b\\\"\"\n"), "{yaml}");
        assert_eq!(shown(&["--output", "json"]), shown(&["--json"]));
    }
}
