//! Number pools: numbers, states and events.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::chart::bar;
use crate::form::Form;
use crate::format::{ago, count, duration_text, number, plural, state_badge, text, time_value};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{detail_list, next_page_link, table};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

const STATES: &[&str] = &["idle+up", "busy+up", "idle+down", "busy+down"];

pub(crate) async fn show(context: RequestContext) -> Response {
    let body = context.get::<Value>("/v1/pools").await.map(|found| list(&found));
    page(&context, "Number pools", NavItem::Pools, body)
}

fn share_bar(pool: &Value) -> Markup {
    let numbers = &pool["numbers"];
    let shares = [
        ("good", number(numbers, "idle+up")),
        ("busy", number(numbers, "busy+up")),
        ("warn", number(numbers, "idle+down") + number(numbers, "busy+down")),
    ];
    bar("Share of numbers that are free, in use and down", &shares)
}

fn list(found: &Value) -> Markup {
    let pools = found["pools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = pools
        .iter()
        .map(|pool| {
            let (name, numbers) = (text(pool, "name"), &pool["numbers"]);
            vec![
                html! { a href=(format!("/pools/{}", encode_segment(name))) { (name) } },
                html! { (count(number(numbers, "total"))) },
                html! { (count(number(pool, "ready"))) },
                html! { (count(number(numbers, "busy+up") + number(numbers, "busy+down"))) },
                html! { (count(number(numbers, "idle+down") + number(numbers, "busy+down"))) },
                html! { (text(&pool["settings"], "strategy")) },
                share_bar(pool),
            ]
        })
        .collect();
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
        context.get::<Value>(&path),
        context.get::<Value>(&numbers),
        context.get::<Value>(&journal)
    );
    let (pool, numbers, journal) = (pool?, numbers?, journal?);
    let rows: Vec<_> = numbers["numbers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            vec![
                html! { (text(one, "number")) },
                state_badge(text(one, "state")),
                html! { @match one["holder"].as_str() { Some(holder) => { (holder) } None => { "—" } } @if let Some(id) = one["message"].as_str() { " " a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } } },
                html! { (ago(number(one, "since"))) },
                html! { (count(number(one, "calls"))) },
                html! { (one["reason"].as_str().unwrap_or("—")) },
            ]
        })
        .collect();
    let events: Vec<_> = journal["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            vec![
                time_value(&entry["at"]),
                html! { (text(entry, "event")) },
                html! { (text(entry, "number")) },
                state_badge(text(entry, "state")),
                html! { (entry["by"].as_str().unwrap_or("time")) },
            ]
        })
        .collect();
    let next = numbers["next"].as_u64().map(|next| next.to_string());
    Ok(html! {
        h1 { "Pool " (name) }
        section.card {
            (share_bar(&pool))
            (detail_list(&[
                ("Numbers", html! { (count(number(&pool["numbers"], "total"))) }),
                ("Ready", html! { (count(number(&pool, "ready"))) }),
                ("Strategy", html! { (text(&pool["settings"], "strategy")) }),
                ("Quarantine", html! { (duration_text(number(&pool["settings"], "quarantine-ms"))) }),
                ("Acquired", html! { (plural(number(&pool, "acquired"), "time", "times")) }),
                ("No number available", html! { (plural(number(&pool, "none"), "time", "times")) }),
                ("Expired leases", html! { (count(number(&pool, "lapsed"))) }),
            ]))
        }
        form.card.search method="get" action=(format!("/pools/{}", encode_segment(name))) role="search" aria-label="Numbers" {
            p { label for="state" { "State" } select #state name="state" { option value="" { "any" } @for one in STATES { option value=(one) selected[filter == *one] { (one) } } } }
            p { label for="prefix" { "Prefix" } input #prefix name="prefix" value=(prefix) inputmode="tel" autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card {
            h2 { "Numbers" }
            (table("Numbers", &["Number", "State", "Holder", "Since", "Calls", "Why down"], &rows, &html! { p { "No number matches." } }))
        }
        @if let Some(next) = &next { (next_page_link(&format!("/pools/{}", encode_segment(name)), &[("state", filter), ("prefix", prefix), ("cursor", next)])) }
        section.card {
            h2 { "Recent events" }
            (table("Events, newest first", &["When", "What", "Number", "State after", "By"], &events, &html! { p { "Nothing yet." } }))
        }
    })
}
