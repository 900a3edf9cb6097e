//! Finding messages.

use crate::ask::{part, with_query};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, page, trouble};
use crate::table::{more, table};
use crate::visit::Visit;
use crate::words::{number, sentence, state, text, time_of};
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::Value;

/// States by which messages are looked for.
const STATES: &[&str] = &[
    "queued",
    "suspended",
    "submitted",
    "responded",
    "deferred",
    "held",
    "resolving",
    "deciding",
    "uncertain",
    "delivered",
    "relayed",
    "failed",
    "expired",
    "cancelled",
    "rejected",
    "unknown",
];

/// Messages of a page.
const MOST: usize = 50;
/// What is asked by account, peer or state is looked for row by row. Nobody waits for that: the page is there after about
/// this many milliseconds, and the script goes on (or the link does, without it).
const PATIENCE: &str = "50";

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    let query = Form::of(query);
    let id = query.text("id");
    if !id.is_empty() {
        return Redirect::to(&format!("/messages/{}", part(id))).into_response();
    }
    // Browsers send `2026-11-22T14:38`; the API wants the seconds and the zone.
    let moment = |name: &str| match query.text(name) {
        "" => String::new(),
        at if at.len() == 16 => format!("{at}:00Z"),
        at if at.len() == 19 => format!("{at}Z"),
        at => at.to_owned(),
    };
    let (from, until) = (moment("from"), moment("until"));
    let asked = [
        ("number", query.text("number")),
        ("imsi", query.text("imsi")),
        ("account", query.text("account")),
        ("peer", query.text("peer")),
        ("state", query.text("state")),
        ("from", &from),
        ("until", &until),
        ("limit", &MOST.to_string()),
        ("patience_ms", PATIENCE),
        ("cursor", query.text("cursor")),
    ];
    let found = visit.get::<Value>(&with_query("/v1/messages", &asked)).await;
    let (status, body) = match found {
        Ok(found) => {
            (axum::http::StatusCode::OK, html! { (form(&visit, &query)) (list(&visit, &found, &query)) })
        }
        Err(refusal) => (refusal.status, html! { (trouble(&refusal)) (form(&visit, &query)) }),
    };
    let body = html! {
        div.head {
            h1 { "Messages" }
            @if visit.may("operate") { a.button.primary href="/messages/new" { "Send a test message" } }
        }
        (body)
    };
    let mut response = page(&visit, "Messages", Room::Messages, Ok(body));
    *response.status_mut() = status;
    response
}

fn form(visit: &Visit, query: &Form) -> Markup {
    let field = |name: &str, label: &str, kind: &str, hint: &str| {
        html! {
            p {
                label for=(name) { (label) }
                input id=(name) name=(name) type=(kind) value=(query.text(name)) placeholder=[(!hint.is_empty()).then_some(hint)] autocomplete="off";
            }
        }
    };
    html! {
        form.card.search method="get" action="/messages" role="search" aria-label="Messages" {
            (field("number", "Number, of either side", "search", "+4917…"))
            @if visit.may("read") {
                (field("imsi", "Or the subscriber's IMSI", "search", ""))
                (field("account", "Account", "text", ""))
                (field("peer", "Peer", "text", ""))
            }
            p {
                label for="state" { "State" }
                select #state name="state" {
                    option value="" { "any" }
                    @for state in STATES { option value=(state) selected[query.text("state") == *state] { (state) } }
                }
            }
            (field("from", "From", "datetime-local", ""))
            (field("until", "Until", "datetime-local", ""))
            (field("id", "Or the message's id", "text", ""))
            p.do { button.primary type="submit" { "Search" } a.button.quiet href="/messages" { "Clear" } }
        }
    }
}

/// Messages as rows: also the way other pages show some.
pub(crate) fn rows(messages: &[Value]) -> Vec<Vec<Markup>> {
    let row = |message: &Value| {
        let id = text(message, "id");
        vec![
            html! { a href=(format!("/messages/{}", part(id))) { code { (id) } } },
            time_of(if message["at"].is_null() { &message["accepted_at"] } else { &message["at"] }),
            state(text(message, "state")),
            html! { (text(message, "source")) },
            html! { (text(message, "destination")) },
            html! { (text(message, "account")) },
            html! { (text(message, "peer")) },
            html! { (number(message, "length")) },
        ]
    };
    messages.iter().map(row).collect()
}

/// The heads of [`rows`].
pub(crate) const HEADS: &[&str] =
    &["Message", "Accepted", "State", "From", "To", "Account", "Peer", "Octets"];

fn list(visit: &Visit, found: &Value, query: &Form) -> Markup {
    let messages = found["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let narrowed = ["number", "imsi", "account", "peer", "state", "from", "until"]
        .iter()
        .any(|name| !query.text(name).is_empty());
    let next = match &found["next"] {
        Value::String(next) => next.clone(),
        Value::Number(next) => next.to_string(),
        _ => String::new(),
    };
    let searching = !next.is_empty() && messages.len() < MOST;
    let empty = html! {
        @if searching {
            h2 { "Nothing so far" }
            p { "What is asked by account, peer or state is looked for from the newest message on." }
        } @else if narrowed {
            h2 { "No message is like that" }
            p { "Numbers are compared as they were submitted, with or without the plus. " a href="/messages" { "Show the newest ones" } "." }
        } @else {
            h2 { "No messages yet" }
            p { "They are here from the moment in which they are accepted. " @if visit.may("operate") { a href="/messages/new" { "Send a test message" } " to see one." } }
        }
    };
    html! {
        @if let Some(incomplete) = found["incomplete"].as_str() { p.muted { (sentence(incomplete)) } }
        section.card #found { (table("Messages, newest first", HEADS, &rows(messages), &empty)) }
        @if !next.is_empty() {
            @let names = ["number", "imsi", "account", "peer", "state", "from", "until"];
            @let mut parameters: Vec<(&str, &str)> = names.iter().map(|name| (*name, query.text(name))).collect();
            @let () = parameters.push(("cursor", &next));
            @if searching {
                p.more data-search-on role="status" {
                    "Searched down to message " code { (next) } ". "
                    a.button href=(with_query("/messages", &parameters)) { "Search on" }
                }
            } @else {
                (more("/messages", &parameters))
            }
        }
    }
}
