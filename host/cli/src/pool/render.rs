//! Pools, numbers and events as tables.

use crate::format::{duration_text, list, table, timestamp, value_text};
use crate::output::{Failure, Output};
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
            let mut row = vec![
                value_text(&pool["name"]),
                value_text(&pool["settings"]["strategy"]),
                value_text(&pool["ready"]),
            ];
            row.extend(STATES.map(|state| value_text(&pool["numbers"][state])));
            row.push(duration_text(&pool["next-ms"]));
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
        ("pool", value_text(&pool["name"])),
        ("strategy", value_text(&pool["settings"]["strategy"])),
        ("quarantine", duration_text(&pool["settings"]["quarantine-ms"])),
        ("numbers", value_text(&pool["numbers"]["total"])),
    ];
    rows.extend(STATES.map(|state| (state, value_text(&pool["numbers"][state]))));
    rows.extend([
        ("ready", value_text(&pool["ready"])),
        ("next end", duration_text(&pool["next-ms"])),
        ("entries", value_text(&pool["entries"])),
        ("acquired", value_text(&pool["acquired"])),
        ("none available", value_text(&pool["none"])),
        ("leases lapsed", value_text(&pool["lapsed"])),
    ]);
    output.write(&list(&rows))
}

/// The time until the lease, or the quarantine, ends.
fn end(number: &Value) -> String {
    match (&number["lease-left-ms"], &number["rest-left-ms"]) {
        (Value::Null, Value::Null) => "-".to_owned(),
        (Value::Null, rest) => format!("rests {}", duration_text(rest)),
        (lease, _) => duration_text(lease),
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
                value_text(&number["number"]),
                value_text(&number["state"]),
                timestamp(&number["since"]),
                value_text(&number["holder"]),
                value_text(&number["reason"]),
                value_text(&number["ticket"]),
                end(number),
            ]
        })
        .collect();
    output.write(&table(&["NUMBER", "STATE", "SINCE", "HOLDER", "REASON", "TICKET", "LEFT"], &rows))?;
    if !next.is_null() {
        output.remark("there are more; use a larger --limit");
    }
    Ok(())
}

pub(super) fn number(output: &Output, number: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(number);
    }
    output.write(&list(&[
        ("number", value_text(&number["number"])),
        ("state", value_text(&number["state"])),
        ("since", timestamp(&number["since"])),
        ("holder", value_text(&number["holder"])),
        ("reason", value_text(&number["reason"])),
        ("message", value_text(&number["message"])),
        ("ticket", value_text(&number["ticket"])),
        ("lease ends", timestamp(&number["lease-ends"])),
        ("rests until", timestamp(&number["rests-until"])),
        ("left", end(number)),
        ("weight", value_text(&number["weight"])),
        ("calls", value_text(&number["calls"])),
        ("held seconds", value_text(&number["held-seconds"])),
        ("leases lapsed", value_text(&number["lapsed"])),
    ]))
}

fn row(entry: &Value) -> Vec<String> {
    vec![
        value_text(&entry["id"]),
        timestamp(&entry["at"]),
        value_text(&entry["event"]),
        value_text(&entry["number"]),
        value_text(&entry["state"]),
        entry.get("by").map_or_else(|| "(time)".to_owned(), value_text),
        value_text(&entry["holder"]),
        value_text(&entry["reason"]),
        value_text(&entry["ticket"]),
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
        output.remark(&format!("there are more; continue with --before {next}"));
    }
    Ok(())
}

/// Prints one entry on one line, with fixed widths: later entries are not known.
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
