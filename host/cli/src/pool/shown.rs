//! Pools, numbers and what happened to them, for people.

use crate::output::{Failure, Output};
use crate::table::{list, moment, span, table, word};
use serde_json::{Value, json};

const STATES: [&str; 4] = ["idle+up", "idle+down", "busy+up", "busy+down"];

pub(super) fn pools(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let rows: Vec<Vec<String>> = answer["pools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pool| {
            let mut row =
                vec![word(&pool["name"]), word(&pool["settings"]["strategy"]), word(&pool["ready"])];
            row.extend(STATES.map(|state| word(&pool["numbers"][state])));
            row.push(span(&pool["next-ms"]));
            row
        })
        .collect();
    let head = ["POOL", "STRATEGY", "READY", "IDLE+UP", "IDLE+DOWN", "BUSY+UP", "BUSY+DOWN", "NEXT END"];
    output.write(&table(&head, &rows))
}

pub(super) fn pool(output: &Output, pool: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(pool);
    }
    let mut rows = vec![
        ("pool", word(&pool["name"])),
        ("strategy", word(&pool["settings"]["strategy"])),
        ("quarantine", span(&pool["settings"]["quarantine-ms"])),
        ("numbers", word(&pool["numbers"]["total"])),
    ];
    rows.extend(STATES.map(|state| (state, word(&pool["numbers"][state]))));
    rows.extend([
        ("ready", word(&pool["ready"])),
        ("next end", span(&pool["next-ms"])),
        ("entries", word(&pool["entries"])),
        ("given", word(&pool["given"])),
        ("none to be had", word(&pool["none"])),
        ("leases lapsed", word(&pool["lapsed"])),
    ]);
    output.write(&list(&rows))
}

/// When the lease, or the rest, ends.
fn end(number: &Value) -> String {
    match (&number["lease-left-ms"], &number["rest-left-ms"]) {
        (Value::Null, Value::Null) => "-".to_owned(),
        (Value::Null, rest) => format!("rests {}", span(rest)),
        (lease, _) => span(lease),
    }
}

pub(super) fn numbers(output: &Output, numbers: &[Value], next: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "numbers": numbers, "next": next }));
    }
    let rows: Vec<Vec<String>> = numbers
        .iter()
        .map(|number| {
            vec![
                word(&number["number"]),
                word(&number["state"]),
                moment(&number["since"]),
                word(&number["holder"]),
                word(&number["reason"]),
                word(&number["ticket"]),
                end(number),
            ]
        })
        .collect();
    output.write(&table(&["NUMBER", "STATE", "SINCE", "HOLDER", "REASON", "TICKET", "LEFT"], &rows))?;
    if !next.is_null() {
        output.remark("there are more; --limit says how many are shown");
    }
    Ok(())
}

pub(super) fn number(output: &Output, number: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(number);
    }
    output.write(&list(&[
        ("number", word(&number["number"])),
        ("state", word(&number["state"])),
        ("since", moment(&number["since"])),
        ("holder", word(&number["holder"])),
        ("reason", word(&number["reason"])),
        ("message", word(&number["message"])),
        ("ticket", word(&number["ticket"])),
        ("lease ends", moment(&number["lease-ends"])),
        ("rests until", moment(&number["rests-until"])),
        ("left", end(number)),
        ("weight", word(&number["weight"])),
        ("calls", word(&number["calls"])),
        ("held seconds", word(&number["held-seconds"])),
        ("leases lapsed", word(&number["lapsed"])),
    ]))
}

fn row(entry: &Value) -> Vec<String> {
    vec![
        word(&entry["id"]),
        moment(&entry["at"]),
        word(&entry["event"]),
        word(&entry["number"]),
        word(&entry["state"]),
        entry.get("by").map_or_else(|| "(time)".to_owned(), word),
        word(&entry["holder"]),
        word(&entry["reason"]),
        word(&entry["ticket"]),
    ]
}

pub(super) fn history(output: &Output, entries: &[Value], next: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "entries": entries, "next": next }));
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    let head = ["ENTRY", "AT", "EVENT", "NUMBER", "STATE", "BY", "HOLDER", "REASON", "TICKET"];
    output.write(&table(&head, &rows))?;
    if !next.is_null() {
        output.remark(&format!("there is more; go on with --before {next}"));
    }
    Ok(())
}

/// One entry on one line, where no table can be made since nobody knows what comes.
pub(super) fn entry(output: &Output, entry: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(entry);
    }
    let cells = row(entry);
    let widths = [8, 20, 6, 16, 9, 8, 0, 0, 0];
    let cells: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    output.line(cells.join("  ").trim_end())
}
