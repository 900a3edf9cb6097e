//! The audit log.

use crate::api_caller::with_query;
use crate::form::Form;
use crate::format::{state_badge, time_tag};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use api::{AuditEntry, AuditPage};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let parameters = [
        ("limit", "100"),
        ("before", query.text("before")),
        ("by", query.text("by")),
        ("what", query.text("what")),
        ("subject", query.text("subject")),
    ];
    let found = context.get::<AuditPage>(&with_query("/v1/audit", &parameters)).await;
    let body = found.map(|found| page_body(&found, &query));
    page(&context, "Audit", NavItem::Audit, body)
}

fn page_body(found: &AuditPage, query: &Form) -> Markup {
    let row = |AuditEntry { serial, record }: &AuditEntry| {
        vec![
            html! { (serial) },
            time_tag(record.at.0),
            html! { (record.by) },
            html! { (record.what) },
            html! { (record.subject) @if let Some(detail) = &record.detail { " " span.muted { (detail) } } },
            html! { (record.from.as_deref().unwrap_or("—")) },
            state_badge(&record.outcome.to_string()),
        ]
    };
    let rows: Vec<_> = found.entries.iter().map(row).collect();
    let next = found.next.map(|next| next.to_string());
    let field = |name: &str, label: &str| html! { p { label for=(name) { (label) } input id=(name) name=(name) value=(query.text(name)) autocomplete="off" spellcheck="false"; } };
    html! {
        h1 { "Audit" }
        p.lead { "All changes, refused changes and reads of message texts. Entries are never changed." }
        form.card.search method="get" action="/audit" role="search" aria-label="Audit" {
            (field("by", "By"))
            (field("what", "Operation"))
            (field("subject", "Subject"))
            p.actions { button.primary type="submit" { "Search" } a.button.quiet href="/audit" { "Clear" } }
        }
        section.card { (table("Entries, newest first", &["Entry", "When", "By", "Operation", "Subject", "From", "Outcome"], &rows, &html! { h2 { "No entry matches" } p { a href="/audit" { "Show all entries" } } })) }
        @if let Some(next) = &next { (next_page_link("/audit", &[("before", next), ("by", query.text("by")), ("what", query.text("what")), ("subject", query.text("subject"))])) }
    }
}
