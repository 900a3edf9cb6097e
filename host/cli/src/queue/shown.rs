//! Queues and orders for people.

use crate::output::{Failure, Output};
use crate::table::{brake, count, list, moment, number, plural, span, table, word};
use client::terminal::visible;
use serde_json::{Value, json};

pub(super) fn queues(output: &Output, queues: &Value) -> Result<(), Failure> {
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
                word(&queue["peer"]),
                count(&queue["queued"]),
                count(&queue["suspended"]),
                count(&queue["deferred"]),
                count(&queue["in_flight"]),
                count(&queue["uncertain"]),
                age.map_or("-".to_owned(), |age| span(&age)),
                count(&queue["links"]),
                brake(&queue["brake"]),
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
        "HELD UP BY",
    ];
    output.write(&table(&head, &rows))
}

/// What an order is about, in a few words.
fn about(order: &Value) -> String {
    let of = |name: &str, what: &str| {
        order["where"][name].as_str().map(|value| format!("{what} {}", visible(value)))
    };
    let parts =
        [of("peer", "peer"), of("account", "account"), of("prefix", "to"), of("older-than", "older than")];
    let mut words = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if let Some(to) = order["to"].as_str() {
        words.push_str(&format!(", to peer {}", visible(to)));
    }
    words
}

pub(super) fn orders(output: &Output, orders: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(orders);
    }
    let all = orders.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return output.line("no order has a say");
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|order| {
            vec![
                word(&order["id"]),
                word(&order["what"]),
                about(order),
                word(&order["state"]),
                count(&order["held"]),
                count(&order["touched"]),
                word(&order["by"]),
                moment(&order["at"]),
                word(&order["why"]),
            ]
        })
        .collect();
    output.write(&table(&["ID", "WHAT", "WHICH", "STATE", "HELD", "TOUCHED", "BY", "AT", "WHY"], &rows))
}

pub(super) fn order(output: &Output, order: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(order);
    }
    let mut rows = vec![
        ("order", word(&order["id"])),
        ("what", word(&order["what"])),
        ("which", about(order)),
        ("state", word(&order["state"])),
        ("held back", count(&order["held"])),
        ("by", word(&order["by"])),
        ("at", moment(&order["at"])),
        ("why", word(&order["why"])),
    ];
    if order["undo-until"].is_u64() {
        rows.push(("undo until", moment(&order["undo-until"])));
    }
    output.write(&list(&rows))
}

/// What an order would concern, in one sentence.
pub(super) fn preview(wanted: &Value, preview: &Value) -> String {
    let messages = preview["messages"].as_u64().unwrap_or(0);
    let states: Vec<String> = preview["by-state"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(state, count)| format!("{} {}", number(count.as_u64().unwrap_or(0)), visible(state)))
        .collect();
    let least = if preview["complete"] == false { "at least " } else { "" };
    let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    let what = wanted["what"].as_str().unwrap_or_default();
    format!(
        "{what}, {}: that is {least}{}{states} now",
        about(wanted),
        plural(messages, "message", "messages")
    )
}

pub(super) fn uncertain(output: &Output, messages: &[Value], next: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "messages": messages, "next": next }));
    }
    if messages.is_empty() {
        return output.line("nothing is uncertain");
    }
    let rows: Vec<Vec<String>> = messages
        .iter()
        .map(|message| {
            vec![
                word(&message["id"]),
                word(&message["peer"]),
                word(&message["account"]),
                word(&message["source"]),
                word(&message["destination"]),
                moment(&message["since"]),
                moment(&message["until"]),
            ]
        })
        .collect();
    output.write(&table(&["ID", "PEER", "ACCOUNT", "FROM", "TO", "WRITTEN", "UNKNOWN FROM"], &rows))?;
    if !next.is_null() {
        output.remark("there are more: give a larger --limit");
    }
    Ok(())
}

pub(super) fn settled(output: &Output, told: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(told);
    }
    let settled = told["settled"].as_u64().unwrap_or(0);
    let mut words = format!("{} settled", plural(settled, "message", "messages"));
    let passed = told["passed-over"].as_u64().unwrap_or(0);
    if passed > 0 {
        words.push_str(&format!(
            "; {} not uncertain, and passed over",
            plural(passed, "message was", "messages were")
        ));
    }
    output.line(&words)
}
