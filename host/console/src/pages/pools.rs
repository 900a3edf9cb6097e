//! Number pools: numbers, states and events.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::chart::bar;
use crate::form::Form;
use crate::format::{ago, count, duration_text, plural, state_badge, time_tag};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{detail_list, next_page_link, table};
use api::{
    PoolCountsView, PoolEntryView, PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolView, PoolsView,
};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};

const STATES: &[&str] = &["idle+up", "busy+up", "idle+down", "busy+down"];

pub(crate) async fn show(context: RequestContext) -> Response {
    let body = context.get::<PoolsView>("/v1/pools").await.map(|found| list(&found));
    page(&context, "Number pools", NavItem::Pools, body)
}

fn share_bar(numbers: &PoolCountsView) -> Markup {
    let shares = [
        ("good", numbers.idle_up as u64),
        ("busy", numbers.busy_up as u64),
        ("warn", (numbers.idle_down + numbers.busy_down) as u64),
    ];
    bar("Share of numbers that are free, in use and down", &shares)
}

fn list(found: &PoolsView) -> Markup {
    let row = |pool: &PoolView| {
        let numbers = &pool.numbers;
        vec![
            html! { a href=(format!("/pools/{}", encode_segment(&pool.name))) { (pool.name) } },
            html! { (count(numbers.total as u64)) },
            html! { (count(pool.ready as u64)) },
            html! { (count((numbers.busy_up + numbers.busy_down) as u64)) },
            html! { (count((numbers.idle_down + numbers.busy_down) as u64)) },
            html! { (pool.settings.strategy.as_str()) },
            share_bar(numbers),
        ]
    };
    let rows: Vec<_> = found.pools.iter().map(row).collect();
    let empty = html! { h2 { "No number pools yet" } p { "A pool holds numbers that many users share; each number is leased by one user at a time. " code { "switchyard pool add NAME NUMBER…" } " creates a pool." } };
    html! {
        h1 { "Number pools" }
        section.card { (table("Pools", &["Pool", "Numbers", "Ready", "Active", "Down", "Strategy", "State"], &rows, &empty)) }
    }
}

pub(crate) async fn one(
    context: RequestContext,
    Path(pool): Path<String>,
    Query(query): QueryParams,
) -> Response {
    let body = detail(&context, &pool, &Form::of(query)).await;
    page(&context, &format!("Pool {pool}"), NavItem::Pools, body)
}

async fn detail(context: &RequestContext, name: &str, query: &Form) -> Result<Markup, ApiError> {
    let path = format!("/v1/pools/{}", encode_segment(name));
    let (filter, prefix) = (query.text("state"), query.text("prefix"));
    let parameters =
        [("state", filter), ("prefix", prefix), ("limit", "100"), ("cursor", query.text("cursor"))];
    let (numbers, journal) =
        (with_query(&format!("{path}/numbers"), &parameters), format!("{path}/history?limit=20"));
    let (pool, numbers, journal) = tokio::join!(
        context.get::<PoolView>(&path),
        context.get::<PoolNumbersPage>(&numbers),
        context.get::<PoolHistoryPage>(&journal)
    );
    let (pool, numbers, journal) = (pool?, numbers?, journal?);
    let dash_if_empty = |text: &str| html! { (if text.is_empty() { "—" } else { text }) };
    let number_row = |PoolNumberView { number, row, .. }: &PoolNumberView| {
        vec![
            html! { (number) },
            state_badge(row.state.as_str()),
            html! { (dash_if_empty(&row.holder)) @if let Some(id) = &row.message { " " a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } } },
            html! { (ago(row.since)) },
            html! { (count(row.calls.into())) },
            dash_if_empty(&row.reason),
        ]
    };
    let rows: Vec<_> = numbers.numbers.iter().map(number_row).collect();
    let entry_row = |entry: &PoolEntryView| {
        vec![
            time_tag(entry.at.0),
            html! { (entry.event) },
            html! { (entry.number) },
            state_badge(entry.row.state()),
            html! { (entry.by.as_deref().unwrap_or("time")) },
        ]
    };
    let events: Vec<_> = journal.entries.iter().map(entry_row).collect();
    let next = numbers.next.map(|next| next.to_string());
    Ok(html! {
        h1 { "Pool " (name) }
        section.card {
            (share_bar(&pool.numbers))
            (detail_list(&[
                ("Numbers", html! { (count(pool.numbers.total as u64)) }),
                ("Ready", html! { (count(pool.ready as u64)) }),
                ("Strategy", html! { (pool.settings.strategy.as_str()) }),
                ("Quarantine", html! { (duration_text(pool.settings.quarantine_ms)) }),
                ("Acquired", html! { (plural(pool.acquired, "time", "times")) }),
                ("No number available", html! { (plural(pool.none, "time", "times")) }),
                ("Expired leases", html! { (count(pool.lapsed)) }),
            ]))
        }
        form.card.search method="get" action=(format!("/pools/{}", encode_segment(name))) role="search" aria-label="Numbers" {
            p { label for="state" { "State" } select #state name="state" { option value="" { "any" } @for one in STATES { option value=(one) selected[filter == *one] { (one) } } } }
            p { label for="prefix" { "Prefix" } input #prefix name="prefix" value=(prefix) inputmode="tel" autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card {
            h2 { "Numbers" }
            (table("Numbers", &["Number", "State", "Holder", "Since", "Calls", "Reason"], &rows, &html! { p { "No number matches." } }))
        }
        @if let Some(next) = &next { (next_page_link(&format!("/pools/{}", encode_segment(name)), &[("state", filter), ("prefix", prefix), ("cursor", next)])) }
        section.card {
            h2 { "Recent events" }
            (table("Events, newest first", &["When", "What", "Number", "State after", "By"], &events, &html! { p { "No events yet." } }))
        }
    })
}
