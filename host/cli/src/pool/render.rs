//! Pools, numbers and events as tables.

use crate::format::{duration_text, list, timestamp, value_text};
use crate::output::{Failure, Output};
use api::{
    PoolCountsView, PoolEntryView, PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolView, PoolsView,
};

/// The numbers of each state.
fn states(numbers: &PoolCountsView) -> [(&'static str, String); 4] {
    [
        ("idle+up", numbers.idle_up),
        ("idle+down", numbers.idle_down),
        ("busy+up", numbers.busy_up),
        ("busy+down", numbers.busy_down),
    ]
    .map(|(state, count)| (state, count.to_string()))
}

pub(super) fn pools(output: &Output, answer: &PoolsView) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |pool: &PoolView| {
        let mut row =
            vec![value_text(&pool.name), value_text(&pool.settings.strategy), pool.ready.to_string()];
        row.extend(states(&pool.numbers).map(|(_, count)| count));
        row.push(duration_text(&pool.next_ms));
        row
    };
    let rows: Vec<_> = answer.pools.iter().map(row).collect();
    let head = ["POOL", "STRATEGY", "READY", "IDLE+UP", "IDLE+DOWN", "BUSY+UP", "BUSY+DOWN", "NEXT END"];
    output.table(&head, &rows)
}

pub(super) fn pool(output: &Output, pool: &PoolView) -> Result<(), Failure> {
    if output.json {
        return output.document(pool);
    }
    let mut rows = vec![
        ("pool", value_text(&pool.name)),
        ("strategy", value_text(&pool.settings.strategy)),
        ("quarantine", duration_text(&pool.settings.quarantine_ms)),
        ("numbers", pool.numbers.total.to_string()),
    ];
    rows.extend(states(&pool.numbers));
    rows.extend([
        ("ready", pool.ready.to_string()),
        ("next end", duration_text(&pool.next_ms)),
        ("entries", pool.entries.to_string()),
        ("acquired", pool.acquired.to_string()),
        ("none available", pool.none.to_string()),
        ("leases lapsed", pool.lapsed.to_string()),
    ]);
    output.write(&list(&rows))
}

/// The time until the lease, or the quarantine, ends.
fn end(number: &PoolNumberView) -> String {
    match (number.lease_left_ms, number.rest_left_ms) {
        (None, None) => "-".to_owned(),
        (None, Some(rest)) => format!("rests {}", duration_text(&rest)),
        (Some(lease), _) => duration_text(&lease),
    }
}

pub(super) fn numbers(output: &Output, page: &PoolNumbersPage) -> Result<(), Failure> {
    if output.json {
        return output.document(page);
    }
    let row = |number: &PoolNumberView| {
        vec![
            value_text(&number.number),
            value_text(&number.row.state),
            timestamp(&number.row.since),
            value_text(&number.row.holder),
            value_text(&number.row.reason),
            value_text(&number.row.ticket),
            end(number),
        ]
    };
    let rows: Vec<_> = page.numbers.iter().map(row).collect();
    output.table(&["NUMBER", "STATE", "SINCE", "HOLDER", "REASON", "TICKET", "LEFT"], &rows)?;
    if page.next.is_some() {
        output.remark("there are more; use a larger --limit");
    }
    Ok(())
}

pub(super) fn number(output: &Output, number: &PoolNumberView) -> Result<(), Failure> {
    if output.json {
        return output.document(number);
    }
    let row = &number.row;
    output.write(&list(&[
        ("number", value_text(&number.number)),
        ("state", value_text(&row.state)),
        ("since", timestamp(&row.since)),
        ("holder", value_text(&row.holder)),
        ("reason", value_text(&row.reason)),
        ("message", value_text(&row.message)),
        ("ticket", value_text(&row.ticket)),
        ("lease ends", timestamp(&row.lease_ends)),
        ("rests until", timestamp(&row.rests_until)),
        ("left", end(number)),
        ("weight", row.weight.to_string()),
        ("calls", row.calls.to_string()),
        ("held seconds", row.held_seconds.to_string()),
        ("leases lapsed", row.lapsed.to_string()),
    ]))
}

fn cells(entry: &PoolEntryView) -> Vec<String> {
    let row = entry.row.row();
    vec![
        entry.id.to_string(),
        timestamp(&entry.at),
        value_text(&entry.event),
        value_text(&entry.number),
        entry.row.state().to_owned(),
        entry.by.as_ref().map_or_else(|| "(time)".to_owned(), value_text),
        value_text(&row.map(|row| &row.holder)),
        value_text(&row.map(|row| &row.reason)),
        value_text(&row.and_then(|row| row.ticket)),
    ]
}

pub(super) fn history(output: &Output, page: &PoolHistoryPage) -> Result<(), Failure> {
    if output.json {
        return output.document(page);
    }
    let rows: Vec<_> = page.entries.iter().map(cells).collect();
    let head = ["ENTRY", "AT", "EVENT", "NUMBER", "STATE", "BY", "HOLDER", "REASON", "TICKET"];
    output.table(&head, &rows)?;
    if let Some(next) = page.next {
        output.remark(&format!("there are more; continue with --before {next}"));
    }
    Ok(())
}

/// Prints one entry on one line, with fixed widths: later entries are not known.
pub(super) fn entry(output: &Output, entry: &PoolEntryView) -> Result<(), Failure> {
    if output.json {
        return output.document(entry);
    }
    let widths = [8, 20, 6, 16, 9, 8, 0, 0, 0];
    let cells: Vec<String> =
        cells(entry).iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    output.line(cells.join("  ").trim_end())
}
