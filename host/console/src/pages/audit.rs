//! The audit log.

use crate::api_caller::with_query;
use crate::form::Form;
use crate::format::{number, state_badge, text, time_value};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let parameters = [
        ("limit", "100"),
        ("before", query.text("before")),
        ("by", query.text("by")),
        ("what", query.text("what")),
        ("subject", query.text("subject")),
    ];
    let body = context
        .get::<Value>(&with_query("/v1/audit", &parameters))
        .await
        .map(|found| page_body(&found, &query));
    page(&context, "Audit", NavItem::Audit, body)
}

fn page_body(found: &Value, query: &Form) -> Markup {
    let rows: Vec<_> = found["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            vec![
                html! { (number(entry, "serial")) },
                time_value(&entry["at"]),
                html! { (text(entry, "by")) },
                html! { (text(entry, "what")) },
                html! { (text(entry, "subject")) @if let Some(detail) = entry["detail"].as_str() { " " span.muted { (detail) } } },
                html! { (entry["from"].as_str().unwrap_or("—")) },
                state_badge(text(entry, "outcome")),
            ]
        })
        .collect();
    let next = found["next"].as_u64().map(|next| next.to_string());
    let field = |name: &str, label: &str| html! { p { label for=(name) { (label) } input id=(name) name=(name) value=(query.text(name)) autocomplete="off" spellcheck="false"; } };
    html! {
        h1 { "Audit" }
        p.lead { "All changes, refused changes and reads of message texts. Entries are never changed." }
        form.card.search method="get" action="/audit" role="search" aria-label="Audit" {
            (field("by", "By"))
            (field("what", "What"))
            (field("subject", "About"))
            p.actions { button.primary type="submit" { "Search" } a.button.quiet href="/audit" { "Clear" } }
        }
        section.card { (table("Entries, newest first", &["Entry", "When", "By", "What", "About", "From", "Outcome"], &rows, &html! { h2 { "No entry matches" } p { a href="/audit" { "Show all entries" } } })) }
        @if let Some(next) = &next { (next_page_link("/audit", &[("before", next), ("by", query.text("by")), ("what", query.text("what")), ("subject", query.text("subject"))])) }
    }
}
