//! Number pools: numbers, states and events.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::chart::bar;
use crate::csv_export::{ExportPart, csv_file, csv_stream, export_link};
use crate::form::Form;
use crate::format::{ago, count, duration_text, plural, state_badge, time_tag, timestamp};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, detail_list, next_page_link, numeric_table, table};
use api::{
    PoolCountsView, PoolEntryView, PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolView, PoolsView,
};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;

const STATES: &[&str] = &["idle+up", "busy+up", "idle+down", "busy+down"];

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let body = context.get::<PoolsView>("/v1/pools").await.map(|found| list(&found, &query));
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

/// Whether somebody asked the pool for a number and got none, or would get none now.
fn is_exhausted(pool: &PoolView) -> bool {
    pool.ready == 0 && pool.numbers.total > 0
}

/// The pools that match the filter: exhausted ones first, then those with the smallest share of ready numbers.
fn chosen<'a>(found: &'a PoolsView, query: &Form) -> Vec<&'a PoolView> {
    let filter = query.text("q").to_lowercase();
    let mut pools: Vec<&PoolView> =
        found.pools.iter().filter(|pool| pool.name.to_lowercase().contains(&filter)).collect();
    let share = |pool: &PoolView| pool.ready * 1_000 / pool.numbers.total.max(1);
    pools.sort_by(|a, b| (!is_exhausted(a), share(a), &a.name).cmp(&(!is_exhausted(b), share(b), &b.name)));
    pools
}

/// The pools of a filter as CSV.
pub(crate) async fn export(context: RequestContext, Query(query): QueryParams) -> Response {
    let found = match context.get::<PoolsView>("/v1/pools").await {
        Ok(found) => found,
        Err(error) => return page(&context, "Number pools", NavItem::Pools, Err(error)),
    };
    let row = |pool: &&PoolView| {
        let numbers = &pool.numbers;
        let counts = [
            numbers.total as u64,
            pool.ready as u64,
            (numbers.busy_up + numbers.busy_down) as u64,
            (numbers.idle_down + numbers.busy_down) as u64,
            pool.acquired,
            pool.none,
            pool.lapsed,
        ];
        let strategy = pool.settings.strategy.as_str().to_owned();
        [pool.name.clone(), strategy].into_iter().chain(counts.map(|count| count.to_string())).collect()
    };
    let rows: Vec<Vec<String>> = chosen(&found, &Form::of(query)).iter().map(row).collect();
    let heads =
        ["pool", "strategy", "numbers", "ready", "active", "down", "acquired", "none-available", "expired"];
    csv_file("pools.csv", &heads, &rows)
}

fn list(found: &PoolsView, query: &Form) -> Markup {
    let row = |pool: &&PoolView| {
        let numbers = &pool.numbers;
        vec![
            html! {
                a href=(format!("/pools/{}", encode_segment(&pool.name))) { (pool.name) }
                @if is_exhausted(pool) { " " span.badge.bad { "exhausted" } }
            },
            html! { (count(numbers.total as u64)) },
            html! { (count(pool.ready as u64)) },
            html! { (count((numbers.busy_up + numbers.busy_down) as u64)) },
            html! { (count((numbers.idle_down + numbers.busy_down) as u64)) },
            html! { (count(pool.none)) },
            html! { (pool.settings.strategy.as_str()) },
            share_bar(numbers),
        ]
    };
    let pools = chosen(found, query);
    let rows: Vec<_> = pools.iter().map(row).collect();
    let filter = query.text("q");
    let empty = html! {
        @if filter.is_empty() {
            h2 { "No number pools yet" }
            p { "A pool holds numbers that many users share; each number is leased by one user at a time. " code { "switchyard pool add NAME NUMBER…" } " creates a pool." }
        } @else {
            h2 { "No matches" }
            p { a href="/pools" { "Show all" } }
        }
    };
    let columns = [
        Column::Text("Pool"),
        Column::Number("Numbers"),
        Column::Number("Ready"),
        Column::Number("Active"),
        Column::Number("Down"),
        Column::Number("None available"),
        Column::Text("Strategy"),
        Column::Text("Share"),
    ];
    let numbers: usize = pools.iter().map(|pool| pool.numbers.total).sum();
    html! {
        h1 { "Number pools" }
        form.card.search method="get" action="/pools" role="search" aria-label="Number pools" {
            p { label for="q" { "Pool" } input #q name="q" type="search" value=(filter); }
            p.actions { button type="submit" { "Filter" } }
        }
        div.tools {
            p.muted { (plural(pools.len() as u64, "pool", "pools")) ", " (plural(numbers as u64, "number", "numbers")) }
            (export_link("/pools.csv", &[("q", filter)]))
        }
        section.card { (numeric_table("Pools, exhausted ones first", &columns, &rows, &empty)) }
    }
}

/// The parameters of the list of a pool's numbers.
fn number_parameters<'a>(
    query: &'a Form,
    cursor: &'a str,
    limit: &'static str,
) -> [(&'static str, &'a str); 4] {
    [("state", query.text("state")), ("prefix", query.text("prefix")), ("limit", limit), ("cursor", cursor)]
}

/// The numbers of a filter as CSV.
pub(crate) async fn export_numbers(
    context: RequestContext,
    Path(pool): Path<String>,
    Query(query): QueryParams,
) -> Response {
    let query = Form::of(query);
    let first = match numbers_part(&context, &pool, &query, "").await {
        Ok(first) => first,
        Err(error) => return page(&context, &format!("Pool {pool}"), NavItem::Pools, Err(error)),
    };
    let shared = Arc::new((context, pool, query));
    let heads = ["number", "state", "holder", "message", "since", "calls", "reason"];
    csv_stream("numbers.csv", &heads, first, move |cursor| {
        let shared = shared.clone();
        async move { numbers_part(&shared.0, &shared.1, &shared.2, &cursor).await }
    })
}

async fn numbers_part(
    context: &RequestContext,
    pool: &str,
    query: &Form,
    cursor: &str,
) -> Result<ExportPart, ApiError> {
    let path = format!("/v1/pools/{}/numbers", encode_segment(pool));
    let found: PoolNumbersPage =
        context.get(&with_query(&path, &number_parameters(query, cursor, "1000"))).await?;
    let row = |PoolNumberView { number, row, .. }: &PoolNumberView| {
        vec![
            number.clone(),
            row.state.as_str().to_owned(),
            row.holder.clone(),
            row.message.clone().unwrap_or_default(),
            format!("{}Z", timestamp(row.since).replace(' ', "T")),
            row.calls.to_string(),
            row.reason.clone(),
        ]
    };
    Ok(ExportPart {
        rows: found.numbers.iter().map(row).collect(),
        next: found.next.map(|next| next.to_string()),
    })
}

pub(crate) async fn one(
    context: RequestContext,
    Path(pool): Path<String>,
    Query(query): QueryParams,
) -> Response {
    let body = detail(&context, &pool, &Form::of(query)).await;
    page(&context, &format!("Pool {pool}"), NavItem::Pools, body)
}

const NUMBER_COLUMNS: &[Column<'static>] = &[
    Column::Text("Number"),
    Column::Text("State"),
    Column::Text("Holder"),
    Column::Number("Since"),
    Column::Number("Calls"),
    Column::Text("Reason"),
];

async fn detail(context: &RequestContext, name: &str, query: &Form) -> Result<Markup, ApiError> {
    let path = format!("/v1/pools/{}", encode_segment(name));
    let (filter, prefix) = (query.text("state"), query.text("prefix"));
    let parameters = number_parameters(query, query.text("cursor"), "100");
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
        div.tools {
            p.muted {
                (count((pool.numbers.idle_up + pool.numbers.idle_down) as u64)) " idle, "
                (count((pool.numbers.busy_up + pool.numbers.busy_down) as u64)) " active, "
                (count((pool.numbers.idle_down + pool.numbers.busy_down) as u64)) " down"
            }
            (export_link(&format!("/pools/{}/numbers.csv", encode_segment(name)), &[("state", filter), ("prefix", prefix)]))
        }
        section.card {
            h2 { "Numbers" }
            (numeric_table("Numbers", NUMBER_COLUMNS, &rows, &html! { p { "No number matches." } }))
        }
        @if let Some(next) = &next { (next_page_link(&format!("/pools/{}", encode_segment(name)), &[("state", filter), ("prefix", prefix), ("cursor", next)])) }
        section.card {
            h2 { "Recent events" }
            (table("Events, newest first", &["When", "What", "Number", "State after", "By"], &events, &html! { p { "No events yet." } }))
        }
    })
}
