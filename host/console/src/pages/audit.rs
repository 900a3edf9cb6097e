//! Who did what, and who read whose texts.

use crate::ask::with_query;
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, page};
use crate::table::{more, table};
use crate::visit::Visit;
use crate::words::{number, state, text, time_of};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    let query = Form::of(query);
    let asked = [
        ("limit", "100"),
        ("before", query.text("before")),
        ("by", query.text("by")),
        ("what", query.text("what")),
        ("subject", query.text("subject")),
    ];
    let body = visit.get::<Value>(&with_query("/v1/audit", &asked)).await.map(|found| parts(&found, &query));
    page(&visit, "Audit", Room::Audit, body)
}

fn outcome(entry: &Value) -> Markup {
    match &entry["outcome"] {
        Value::String(word) => state(word),
        Value::Number(status) => {
            let good = status.as_u64().is_some_and(|status| status < 400);
            html! { span.badge.(if good { "good" } else { "bad" }) { (status) } }
        }
        _ => html! { "—" },
    }
}

fn parts(found: &Value, query: &Form) -> Markup {
    let rows: Vec<_> = found["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            vec![
                html! { (number(entry, "serial")) },
                time_of(&entry["at"]),
                html! { (text(entry, "by")) },
                html! { (text(entry, "what")) },
                html! { (text(entry, "subject")) @if let Some(detail) = entry["detail"].as_str() { " " span.muted { (detail) } } },
                html! { (entry["from"].as_str().unwrap_or("—")) },
                outcome(entry),
            ]
        })
        .collect();
    let next = found["next"].as_u64().map(|next| next.to_string());
    let field = |name: &str, label: &str| html! { p { label for=(name) { (label) } input id=(name) name=(name) value=(query.text(name)) autocomplete="off" spellcheck="false"; } };
    html! {
        h1 { "Audit" }
        p.lead { "Every change, every refusal of one, and every reading of a message's text. Entries are never rewritten." }
        form.card.search method="get" action="/audit" role="search" aria-label="Audit" {
            (field("by", "By"))
            (field("what", "What"))
            (field("subject", "About"))
            p.do { button.primary type="submit" { "Search" } a.button.quiet href="/audit" { "Clear" } }
        }
        section.card { (table("Entries, newest first", &["Entry", "When", "By", "What", "About", "From", "Outcome"], &rows, &html! { h2 { "Nothing is like that" } p { a href="/audit" { "Show all entries" } } })) }
        @if let Some(next) = &next { (more("/audit", &[("before", next), ("by", query.text("by")), ("what", query.text("what")), ("subject", query.text("subject"))])) }
    }
}
