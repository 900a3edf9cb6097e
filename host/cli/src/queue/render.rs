//! Queues and queue actions as tables.

use crate::format::{blocked_by, count, duration_text, list, number, plural, table, timestamp, value_text};
use crate::output::{Failure, Output};
use client::terminal::visible;
use serde_json::{Value, json};

pub(super) fn print_queues(output: &Output, queues: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(queues);
    }
    let rows: Vec<Vec<String>> = queues
        .as_array()
        .into_iter()
        .flatten()
        .map(|queue| {
            let age = queue["oldest"].as_u64().map(|oldest| json!(output.now().saturating_sub(oldest)));
            vec![
                value_text(&queue["peer"]),
                count(&queue["queued"]),
                count(&queue["suspended"]),
                count(&queue["deferred"]),
                count(&queue["in_flight"]),
                count(&queue["uncertain"]),
                age.map_or("-".to_owned(), |age| duration_text(&age)),
                count(&queue["links"]),
                blocked_by(&queue["blocked_by"]),
            ]
        })
        .collect();
    let head = [
        "PEER",
        "QUEUED",
        "SUSPENDED",
        "DEFERRED",
        "IN FLIGHT",
        "UNCERTAIN",
        "OLDEST",
        "LINKS",
        "BLOCKED BY",
    ];
    output.write(&table(&head, &rows))
}

/// The scope of a queue action, in a few words.
fn scope_text(action: &Value) -> String {
    let of = |name: &str, what: &str| {
        action["scope"][name].as_str().map(|value| format!("{what} {}", visible(value)))
    };
    let parts =
        [of("peer", "peer"), of("account", "account"), of("prefix", "to"), of("older-than", "older than")];
    let mut words = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if let Some(to) = action["to"].as_str() {
        words.push_str(&format!(", to peer {}", visible(to)));
    }
    words
}

pub(super) fn print_actions(output: &Output, actions: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(actions);
    }
    let all = actions.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return output.line("no queue action is active");
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|action| {
            vec![
                value_text(&action["id"]),
                value_text(&action["action"]),
                scope_text(action),
                value_text(&action["state"]),
                count(&action["held"]),
                count(&action["affected"]),
                value_text(&action["by"]),
                timestamp(&action["at"]),
                value_text(&action["why"]),
            ]
        })
        .collect();
    output.write(&table(&["ID", "ACTION", "SCOPE", "STATE", "HELD", "AFFECTED", "BY", "AT", "WHY"], &rows))
}

pub(super) fn print_action(output: &Output, action: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(action);
    }
    let mut rows = vec![
        ("queue action", value_text(&action["id"])),
        ("action", value_text(&action["action"])),
        ("scope", scope_text(action)),
        ("state", value_text(&action["state"])),
        ("held", count(&action["held"])),
        ("by", value_text(&action["by"])),
        ("at", timestamp(&action["at"])),
        ("why", value_text(&action["why"])),
    ];
    if action["undo-until"].is_u64() {
        rows.push(("undo until", timestamp(&action["undo-until"])));
    }
    output.write(&list(&rows))
}

/// The preview of a queue action, in one sentence.
pub(super) fn preview_text(request: &Value, preview: &Value) -> String {
    let messages = preview["messages"].as_u64().unwrap_or(0);
    let states: Vec<String> = preview["by-state"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(state, count)| format!("{} {}", number(count.as_u64().unwrap_or(0)), visible(state)))
        .collect();
    let least = if preview["complete"] == false { "at least " } else { "" };
    let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    let what = request["action"].as_str().unwrap_or_default();
    format!(
        "{what}, {}: affects {least}{}{states} now",
        scope_text(request),
        plural(messages, "message", "messages")
    )
}

pub(super) fn print_uncertain(output: &Output, messages: &[Value], next: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "messages": messages, "next": next }));
    }
    if messages.is_empty() {
        return output.line("no message is uncertain");
    }
    let rows: Vec<Vec<String>> = messages
        .iter()
        .map(|message| {
            vec![
                value_text(&message["id"]),
                value_text(&message["peer"]),
                value_text(&message["account"]),
                value_text(&message["source"]),
                value_text(&message["destination"]),
                timestamp(&message["since"]),
                timestamp(&message["until"]),
            ]
        })
        .collect();
    output.write(&table(&["ID", "PEER", "ACCOUNT", "FROM", "TO", "SUBMITTED", "UNKNOWN FROM"], &rows))?;
    if !next.is_null() {
        output.remark("there are more; use a larger --limit");
    }
    Ok(())
}

pub(super) fn print_settled(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let settled = answer["settled"].as_u64().unwrap_or(0);
    let mut words = format!("{} settled", plural(settled, "message", "messages"));
    let passed = answer["skipped"].as_u64().unwrap_or(0);
    if passed > 0 {
        words.push_str(&format!(
            "; {} skipped, because not uncertain",
            plural(passed, "message was", "messages were")
        ));
    }
    output.line(&words)
}
