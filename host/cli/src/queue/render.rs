//! Queues and queue actions as tables.

use crate::format::{blocked_by, count, duration_text, list, number, plural, timestamp, value_text};
use crate::output::{Failure, Output};
use api::{
    AllQueuesView, PaceBucketView, PartitionRow, QueueActionPreview, QueueActionRequest,
    QueueActionScopeView, QueueActionView, QueueView, SettleUncertainResult, UncertainPageView,
    UncertainView,
};
use client::terminal::visible;

/// The columns of a queue.
const QUEUE_HEAD: [&str; 10] = [
    "PEER",
    "QUEUED",
    "SUSPENDED",
    "PACED",
    "DEFERRED",
    "IN FLIGHT",
    "UNCERTAIN",
    "OLDEST",
    "LINKS",
    "BLOCKED BY",
];

fn queue_row(output: &Output, queue: &QueueView) -> Vec<String> {
    let age = queue.oldest.map(|oldest| output.now().saturating_sub(oldest));
    vec![
        value_text(&queue.peer),
        count(&queue.queued),
        count(&queue.suspended),
        count(&queue.paced),
        count(&queue.deferred),
        count(&queue.in_flight),
        count(&queue.uncertain),
        duration_text(&age),
        count(&queue.links),
        blocked_by(&queue.blocked_by),
    ]
}

pub(super) fn print_queues(output: &Output, queues: &[QueueView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&queues);
    }
    let rows: Vec<Vec<String>> = queues.iter().map(|queue| queue_row(output, queue)).collect();
    output.table(&QUEUE_HEAD, &rows)
}

/// Prints the queues of all partitions.
pub(super) fn print_all_queues(output: &Output, all: &AllQueuesView) -> Result<(), Failure> {
    if output.json {
        return output.document(&all);
    }
    let row = |queue: &PartitionRow<QueueView>| {
        [vec![queue.partition.to_string()], queue_row(output, &queue.row)].concat()
    };
    let rows: Vec<Vec<String>> = all.queues.iter().map(row).collect();
    output.table(&[&["PARTITION"][..], &QUEUE_HEAD].concat(), &rows)
}

pub(super) fn print_pace_buckets(output: &Output, buckets: &[PaceBucketView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&buckets);
    }
    if buckets.is_empty() {
        return output.line("there is no pace bucket");
    }
    let row = |bucket: &PaceBucketView| {
        vec![
            value_text(&bucket.name),
            count(&bucket.amount),
            value_text(&bucket.counts),
            count(&bucket.tokens),
            count(&bucket.waiting),
            timestamp(&bucket.next_token),
            if bucket.by_plugin { "a plugin" } else { "the configuration" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = buckets.iter().map(row).collect();
    output.table(&["BUCKET", "AMOUNT", "COUNTS", "TOKENS", "WAITING", "NEXT TOKEN", "DEFINED BY"], &rows)
}

/// The scope of a queue action and its target, in a few words.
fn scope_text(scope: &QueueActionScopeView, to: Option<&str>) -> String {
    let QueueActionScopeView { peer, account, prefix, older_than } = scope;
    let parts = [("peer", peer), ("account", account), ("to", prefix), ("older than", older_than)];
    let parts = parts.into_iter().filter_map(|(what, value)| Some((what, value.as_deref()?)));
    let parts = parts.chain(to.map(|to| ("to peer", to)));
    let words: Vec<String> = parts.map(|(what, value)| format!("{what} {}", visible(value))).collect();
    words.join(", ")
}

pub(super) fn print_actions(output: &Output, actions: &[QueueActionView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&actions);
    }
    if actions.is_empty() {
        return output.line("no queue action is active");
    }
    let row = |action: &QueueActionView| {
        vec![
            value_text(&action.id),
            value_text(&action.action),
            scope_text(&action.scope, action.to.as_deref()),
            value_text(&action.state),
            count(&action.held),
            count(&action.affected),
            value_text(&action.by),
            timestamp(&action.at),
            value_text(&action.why),
        ]
    };
    let rows: Vec<Vec<String>> = actions.iter().map(row).collect();
    output.table(&["ID", "ACTION", "SCOPE", "STATE", "HELD", "AFFECTED", "BY", "AT", "WHY"], &rows)
}

pub(super) fn print_action(output: &Output, action: &QueueActionView) -> Result<(), Failure> {
    if output.json {
        return output.document(action);
    }
    let mut rows = vec![
        ("queue action", value_text(&action.id)),
        ("action", value_text(&action.action)),
        ("scope", scope_text(&action.scope, action.to.as_deref())),
        ("state", value_text(&action.state)),
        ("held", count(&action.held)),
        ("by", value_text(&action.by)),
        ("at", timestamp(&action.at)),
        ("why", value_text(&action.why)),
    ];
    if let Some(until) = &action.undo_until {
        rows.push(("undo until", timestamp(until)));
    }
    output.write(&list(&rows))
}

/// The preview of a queue action, in one sentence.
pub(super) fn preview_text(request: &QueueActionRequest, preview: &QueueActionPreview) -> String {
    let state = |(state, count): (&String, &u64)| format!("{} {}", number(*count), visible(state));
    let states: Vec<String> = preview.by_state.iter().map(state).collect();
    let least = if preview.complete { "" } else { "at least " };
    let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    format!(
        "{}, {}: affects {least}{}{states} now",
        request.action.name(),
        scope_text(&request.scope, request.to.as_deref()),
        plural(preview.messages, "message", "messages")
    )
}

pub(super) fn print_uncertain(output: &Output, page: &UncertainPageView) -> Result<(), Failure> {
    if output.json {
        return output.document(page);
    }
    if page.messages.is_empty() {
        return output.line("no message is uncertain");
    }
    let row = |message: &UncertainView| {
        vec![
            value_text(&message.id),
            value_text(&message.peer),
            value_text(&message.account),
            value_text(&message.source),
            value_text(&message.destination),
            timestamp(&message.since),
            timestamp(&message.until),
        ]
    };
    let rows: Vec<Vec<String>> = page.messages.iter().map(row).collect();
    output.table(&["ID", "PEER", "ACCOUNT", "FROM", "TO", "SUBMITTED", "UNKNOWN FROM"], &rows)?;
    if page.next.is_some() {
        output.remark("there are more; use a larger --limit");
    }
    Ok(())
}

pub(super) fn print_settled(output: &Output, result: &SettleUncertainResult) -> Result<(), Failure> {
    if output.json {
        return output.document(result);
    }
    let mut words = format!("{} settled", plural(result.settled, "message", "messages"));
    if result.skipped > 0 {
        words.push_str(&format!(
            "; {} skipped, because not uncertain",
            plural(result.skipped, "message was", "messages were")
        ));
    }
    output.line(&words)
}
